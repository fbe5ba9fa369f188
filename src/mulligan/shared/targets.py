"""The targets of each store, with the breaker, gate and retry tokens that their callers share.

There is one of each for a target, account and store, however many guards there are. In memory
they live in this process alone; elsewhere every process has its own view of what the store holds,
and continues with that while the store is down.

A target lives as long as a guard that uses it. Its state may outlive the guards: a breaker that is
open or counts failures, a limit that is believed, tokens that are spent. It is kept until it has
expired, so that a guard which is made for every call finds what the one before it has learnt.
Everything else is freed with the last guard, its settings too.
"""

from __future__ import annotations

from dataclasses import fields, replace
from threading import Lock, RLock
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

from ..calls.admissions import note_change
from ..calls.clock import world
from ..calls.context import ambient_world, endings
from ..core.shared_settings import Breaker, Gate, Tokens
from ..errors import SettingError, StoreError
from ..stores.cache import FailOpen
from ..stores.forks import reset_after_fork
from ..stores.memory import Memory
from ..stores.open import open_store
from ..stores.state_machine import Key
from .breaker_client import BreakerAdmission
from .gate.client import GateAdmission
from .gate.queue import TargetQueues
from .retry_tokens_client import RetryTokens
from .target import Target

if TYPE_CHECKING:
    from ..core.ports import State, Store

__all__ = ("StoreTargets", "TargetSettings", "TargetState", "forget", "targets_of")

# Seconds before a store that is down is asked again.
_PAUSE = 1.0

# What has expired is looked for each time that so many targets were made, or as many as are kept.
_SWEEP = 64


class TargetSettings(NamedTuple):
    """What one guard shares with others; None for a part that it does not use."""

    breaker: Breaker | None
    gate: Gate | None
    tokens: Tokens | None


class StoreTargets:
    """The targets of one store.

    Args:
        store: Where the state of the targets is.
    """

    def __init__(self, store: Store) -> None:
        self.url = store.url
        # Weak: the table of stores is keyed by stores, and must not keep them alive.
        self._store = ref(store)
        is_here = isinstance(store, Memory)
        # A `CachedState` without a store is the state itself, so memory needs no store behind it.
        self.state: State | None = None if is_here else FailOpen(store.state, self.changed, _PAUSE)
        self._used: WeakValueDictionary[tuple[str, str], Target] = WeakValueDictionary()
        # What is remembered without a guard, and when it was last changed.
        self._known: dict[tuple[str, str], tuple[TargetState, float]] = {}
        self._held: list[Target] = []
        self._until_sweep = _SWEEP
        self.after_fork()
        reset_after_fork(self)

    def after_fork(self) -> None:
        # Reentrant: a collection of garbage may end an abandoned stream while it is held.
        self.lock = RLock()

    def __len__(self) -> int:
        """How many targets are used, or have something to remember."""
        with self.lock:
            return len({*self._used, *self._known})

    def get(self, target: str, scope: str) -> Target:
        """The target of this name, for one account; made if no guard uses it yet."""
        key = target, scope
        found = self._used.get(key)
        if found is not None:
            return found
        # Guards keep their targets alive, but not those of a test, which ends before they do.
        around = ambient_world.get()
        is_held = around is not None and around.store is self._store()
        with self.lock:
            found = self._used.get(key)
            if found is not None:
                return found
            self._until_sweep -= 1
            if self._until_sweep <= 0:
                self._sweep()
            state, _ = self._known.get(key, (None, 0.0))
            found = self._used[key] = Target(target, scope)
            if state is not None:
                state.adopt(found)
            if is_held:
                self._held.append(found)
        if state is not None:
            state.refresh(world().clock.now())
        return found

    def known(self) -> list[TargetState]:
        """The state of every target that is used, or has something to remember."""
        with self.lock:
            kept = [state for state, _ in self._known.values()]
            used = [each.state for each in self._used.values() if each.state is not None]
        return list({id(each): each for each in (*kept, *used)}.values())

    def keep(self, state: TargetState, now: float) -> None:
        """Remember `state`, which has just changed, until what it knows has expired."""
        # Under the lock: a sweep must not drop a state that changed after it checked it.
        with self.lock:
            self._known[state.target, state.scope] = state, now

    def _sweep(self) -> None:
        now = world().clock.now()
        for key, (state, changed_at) in list(self._known.items()):
            if now - changed_at >= state.keeps:
                del self._known[key]
        self._until_sweep = max(_SWEEP, len(self._known))

    def forget(self) -> None:
        """Forget everything, as a new process would; for tests."""
        with self.lock:
            self._known.clear()
            for each in list(self._used.values()):
                each.state, each.is_calm = None, False
                each.is_clear = each.has_default = False

    def scoped(self, scope: str) -> str:
        store = self._store()
        return "" if store is None else store.scoped(scope)

    def changed(self, trouble: StoreError | None) -> None:
        """The store is down, or back."""
        if trouble is None:
            note_change("StoreBack", url=self.url)
        else:
            note_change("StoreLost", url=self.url, because=trouble.because)


class _Stores:
    """Every store that is in use, with its targets."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Any, StoreTargets] = WeakKeyDictionary()
        self.after_fork()
        reset_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def targets_of(self, store: Store) -> StoreTargets:
        """The targets of `store`: the same object every time."""
        with self._lock:
            found = self._known.get(store)
            if found is None:
                found = self._known[store] = StoreTargets(store)
            return found


targets_of = _Stores().targets_of


def forget() -> None:
    """Forget what is shared in the process's memory, as a new process would; for tests."""
    targets_of(open_store("memory:")).forget()


class TargetState:
    """Breaker, gate, tokens and queues of one target; each is made when a guard first needs it.

    Args:
        target: Whose they are.
        home: The targets of its store.

    Attributes:
        is_named: Whether the store has named the account: from then on each part stays the same.
        joined: The settings of the guard that joined last.
        made: The parts that a guard has wanted so far, by name.
    """

    def __init__(self, target: Target, home: StoreTargets) -> None:
        self.target, self.scope, self.home = target.name, target.scope, home
        self._used_by = ref(target)
        self._agreed: dict[str, Breaker | Gate | Tokens] = {}  # what guards have asked for
        self.joined: TargetSettings | None = None
        self.settings: dict[str, Breaker | Gate | Tokens] = {}  # what is gone by
        self._scope: str | None = None if target.scope else ""
        self.is_named = not target.scope
        self._scope_at = 0.0  # when to ask the store for its salt again
        self.made: dict[str, Any] = {}
        self._changed = -1  # endings at the breaker's last change
        self.after_fork()
        reset_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()
        self.waiting = TargetQueues()

    def adopt(self, target: Target) -> None:
        """Belong to `target`, made for the first guard after all others were freed.

        The settings of the freed guards are dropped; the state stays.
        """
        self._used_by, target.state = ref(target), self
        self._agreed.clear()
        self.joined = None
        self.settings.clear()

    @property
    def keeps(self) -> float:
        """Seconds for which this must be remembered after its last change, if no guard is left."""
        return max([each.keeps for each in list(self.made.values())], default=0.0)

    def join(self, settings: TargetSettings, *, is_strict: bool = True) -> None:
        """Add a guard's settings.

        Raises:
            SettingError: Another guard wants the same with other settings.
        """
        for name, wanted in settings._asdict().items():
            if wanted is None:
                continue
            known = self._agreed.setdefault(name, wanted)
            if name not in self.settings:
                self.adjust(name, known)
            if known == wanted:
                continue
            if isinstance(known, Gate) and replace(known, scout=wanted.scout) == wanted:
                if wanted.scout:  # one guard that reads answers is enough
                    self._agreed[name] = wanted
                    self.adjust(name, wanted)
            elif is_strict:
                raise SettingError(
                    f"{self.target!r} has one {name} for all its guards; this one wants "
                    f"{_short(wanted)}, another has {_short(known)}: give both the same, or "
                    f"another scope"
                )
        self.joined = settings

    def adjust(self, name: str, settings: Breaker | Gate | Tokens) -> None:
        """Use `settings` from now on, for every guard of this target in this process (E-C4)."""
        self.settings[name] = settings
        if name in self.made:
            self.made[name].settings = settings

    @property
    def is_known(self) -> bool:
        """Whether the account can be named in its store without asking the store."""
        return self._scope is not None or monotonic() < self._scope_at

    def part(self, name: str) -> Any:
        """The part called `name`, created if needed."""
        made = self.made.get(name)
        if made is not None and self._scope is not None:
            return made
        with self._lock:
            scope, state = self._scope, self.home.state
            if scope is None and monotonic() >= self._scope_at:
                scope = self._scope = self._named()
                self.is_named = scope is not None
                self.made.clear()  # local replacements from while the store was down
            if scope is None:
                state = None
            if name not in self.made:
                key = Key(self.target, name, scope or "")
                self.made[name] = self._new(name, key, state)
            return self.made[name]

    def _named(self) -> str | None:
        """The hash of the account in the store; None while the store is down."""
        was_lost = self._scope_at > 0
        try:
            scope = self.home.scoped(self.scope)
        except StoreError as trouble:
            self._scope_at = monotonic() + _PAUSE
            if not was_lost:
                self.home.changed(trouble)
            return None
        if was_lost:
            self.home.changed(None)
        return scope

    def _new(self, name: str, key: Key, state: State | None) -> Any:
        settings = self.settings[name]
        if isinstance(settings, Breaker):
            return BreakerAdmission(
                key,
                settings,
                shared=state,
                on_change=self._breaker_changed,
                roll=_roll,
            )
        if isinstance(settings, Gate):
            return GateAdmission(
                key,
                settings,
                roll=_roll,
                shared=state,
                on_shut=self._gate_was_shut,
                waiting=self.waiting,
            )
        return RetryTokens(key, settings, shared=state)

    def _breaker_changed(self, is_open: bool, retry_in: float, because: str) -> None:  # noqa: FBT001 -- the callback's one flag
        self._changed = endings.count
        is_awaited = self.waiting.queue.size or self.home.state is not None
        if not is_open and is_awaited and "gate" in self.settings:
            # Ease in: all waiting calls, also of other processes, would come at once.
            clock = world().clock
            self.part("gate").ease(clock.now(), clock.wall())
        note_change("BreakerChanged", is_open=is_open, retry_in=retry_in, because=because)

    @staticmethod
    def _gate_was_shut(delay: float, because: str) -> None:
        note_change("GateShut", delay=delay, because=because)

    def has_changed_since(self, mark: int) -> bool:
        """Whether the breaker opened or closed after `mark` endings, or just then."""
        return mark <= self._changed

    def refresh(self, now: float) -> None:
        """Update `is_calm` after a possible change."""
        if self.home.state is None:
            # Under the lock, so that the last writer has seen all changes.
            with self._lock:
                made, target = self.made, self._used_by()
                gate = made.get("gate")
                rest = all(part.is_calm for name, part in made.items() if name != "gate")
                is_calm = rest and (gate is None or gate.is_calm)
                if target is not None:
                    target.is_calm = is_calm
                    target.is_clear = rest and gate is not None and gate.has_plenty
            if is_calm:
                return
        self.home.keep(self, now)


def _roll() -> float:
    return world().dice.roll()


def _short(settings: Any) -> str:
    """``Breaker(failures=3)``: what differs from the defaults."""
    usual = type(settings)()
    told = [
        f"{each.name}={getattr(settings, each.name):g}"
        for each in fields(settings)
        if getattr(settings, each.name) != getattr(usual, each.name)
    ]
    return f"{type(settings).__name__}({', '.join(told)})"
