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
from threading import Lock
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
    from ..stores.cache import CachedState

__all__ = ("StoreTargets", "TargetParts", "TargetSettings", "forget", "home_of")

# Seconds before a store that is down is asked again.
_PAUSE = 1.0

# What has expired is looked for each time that so many places were made, or as many as are kept.
_SWEEP = 64


class TargetSettings(NamedTuple):
    """What one guard shares with others; None for a part that it does not use."""

    breaker: Breaker | None
    gate: Gate | None
    tokens: Tokens | None


class TargetTable:
    """The places of one store."""

    def __init__(self) -> None:
        self._used: WeakValueDictionary[tuple[str, str], Target] = WeakValueDictionary()
        self._known: dict[
            tuple[str, str], tuple[TargetParts, float]
        ] = {}  # and when it was last changed
        self._held: list[Target] = []
        self._until_sweep = _SWEEP
        self.after_fork()
        reset_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def __len__(self) -> int:
        """How many places are used, or have something to remember."""
        with self._lock:
            return len({*self._used, *self._known})

    def get(self, target: str, scope: str) -> Target | None:
        """The place of `target`, if a guard uses it."""
        return self._used.get((target, scope))

    def new(self, target: str, scope: str, *, is_held: bool) -> Target:
        """The place of `target`, made now unless another thread has just done so.

        Args:
            target: The dependency.
            scope: The account.
            is_held: Whether it stays although no guard holds it.
        """
        key = target, scope
        with self._lock:
            place = self._used.get(key)
            if place is not None:
                return place
            self._until_sweep -= 1
            if self._until_sweep <= 0:
                self._sweep()
            parts, _ = self._known.get(key, (None, 0.0))
            place = Target(target, scope)
            if parts is not None:
                parts.settle_in(place)
            self._used[key] = place
            if is_held:
                self._held.append(place)
        if parts is not None:
            parts.refresh(world().clock.now())
        return place

    def known(self) -> list[TargetParts]:
        """The parts of every place that is used, or has something to remember."""
        with self._lock:
            kept = [parts for parts, _ in self._known.values()]
            used = [place.parts for place in self._used.values() if place.parts is not None]
        return list({id(each): each for each in (*kept, *used)}.values())

    def keep(self, parts: TargetParts, now: float) -> None:
        """Remember `parts`, which have just changed, until what they know has expired."""
        # Under the lock: a sweep must not drop parts that changed after it checked them.
        with self._lock:
            self._known[parts.target, parts.scope] = parts, now

    def _sweep(self) -> None:
        now = world().clock.now()
        for key, (parts, changed_at) in list(self._known.items()):
            if now - changed_at >= parts.keeps:
                del self._known[key]
        self._until_sweep = max(_SWEEP, len(self._known))

    def forget(self) -> None:
        """Forget everything, as a new process would; for tests."""
        with self._lock:
            self._known.clear()
            for place in list(self._used.values()):
                place.parts, place.is_calm = None, False
                place.is_clear = place.has_default = False


class StoreTargets:
    """One store, with the places of its targets.

    Args:
        store: Where they are.
    """

    def __init__(self, store: Store) -> None:
        self.url = store.url
        # Weak: the table of homes is keyed by stores, and must not keep them alive.
        self._store = ref(store)
        self.lock = Lock()
        reset_after_fork(self)
        is_here = isinstance(store, Memory)
        # A `CachedState` without a store is the state itself, so memory needs no store behind it.
        self.state: State | None = None if is_here else FailOpen(store.state, self.changed, _PAUSE)
        self.places = TargetTable()

    def place(self, target: str, scope: str) -> Target:
        place = self.places.get(target, scope)
        if place is None:
            # Guards keep their targets alive, but not those of a test, which ends before they do.
            around = ambient_world.get()
            is_held = around is not None and around.store is self._store()
            place = self.places.new(target, scope, is_held=is_held)
        return place

    def after_fork(self) -> None:
        self.lock = Lock()

    def scoped(self, scope: str) -> str:
        store = self._store()
        return "" if store is None else store.scoped(scope)

    def changed(self, trouble: StoreError | None) -> None:
        """The store is down, or back."""
        if trouble is None:
            note_change("StoreBack", url=self.url)
        else:
            note_change("StoreLost", url=self.url, because=trouble.because)


class _Homes:
    """Every store that is in use, with its home."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Any, StoreTargets] = WeakKeyDictionary()
        self._lock = Lock()
        reset_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def of(self, store: Store) -> StoreTargets:
        with self._lock:
            home = self._known.get(store)
            if home is None:
                home = self._known[store] = StoreTargets(store)
            return home


_homes = _Homes()


def home_of(store: Store) -> StoreTargets:
    """The home of `store`, the same one every time."""
    return _homes.of(store)


def forget() -> None:
    """Forget what is shared in the process's memory, as a new process would; for tests."""
    home_of(open_store("memory:")).places.forget()


class TargetParts:
    """Breaker, gate and tokens of one place; each is made when a guard first wants it.

    Args:
        place: Whose parts.
        home: Where they are.

    Attributes:
        is_named: Whether the store has named the account: from then on each part stays the same.
        joined: The settings of the guard that joined last.
        made: The parts that a guard has wanted so far, by name.
    """

    def __init__(self, place: Target, home: StoreTargets) -> None:
        self.target, self.scope, self.home = place.target, place.scope, home
        self._place = ref(place)
        self._agreed: dict[str, Breaker | Gate | Tokens] = {}  # what guards have asked for
        self.joined: TargetSettings | None = None
        self.settings: dict[str, Breaker | Gate | Tokens] = {}  # what is gone by
        self._scope: str | None = None if place.scope else ""
        self.is_named = not place.scope
        self._scope_at = 0.0  # when to ask the store for its salt again
        self.made: dict[str, Any] = {}
        self._changed = -1  # endings at the breaker's last change
        self.after_fork()
        reset_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()
        self.waiting = TargetQueues()

    def settle_in(self, place: Target) -> None:
        """Move to `place`, made for the first guard after all others were freed.

        The settings of the freed guards are dropped; the state stays.
        """
        self._place, place.parts = ref(place), self
        self._agreed.clear()
        self.joined = None
        self.settings.clear()

    @property
    def keeps(self) -> float:
        """Seconds for which this must be remembered after its last change, if no guard is left."""
        return max([each.keeps for each in list(self.made.values())], default=0.0)

    def join(self, wants: TargetSettings, *, is_strict: bool = True) -> None:
        """Add a guard's settings.

        Raises:
            SettingError: Another guard wants the same with other settings.
        """
        for name, wanted in wants._asdict().items():
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
        self.joined = wants

    def adjust(self, name: str, settings: Breaker | Gate | Tokens) -> None:
        """Use `settings` from now on, for every guard of this target in this process (E-C4)."""
        self.settings[name] = settings
        if name in self.made:
            self.made[name].settings = settings

    @property
    def is_known(self) -> bool:
        """Whether the place can be named in its store without asking the store."""
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

    def views(self) -> dict[str, CachedState[Any]]:
        """What this process knows of the state of each part that was made."""
        return {name: part.view for name, part in list(self.made.items())}

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
                made, place = self.made, self._place()
                gate = made.get("gate")
                rest = all(part.is_calm for name, part in made.items() if name != "gate")
                is_calm = rest and (gate is None or gate.is_calm)
                if place is not None:
                    place.is_calm = is_calm
                    place.is_clear = rest and gate is not None and gate.has_plenty
            if is_calm:
                return
        self.home.places.keep(self, now)


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
