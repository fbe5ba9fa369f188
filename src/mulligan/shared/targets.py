"""What the callers of a target share, made of its parts.

One breaker, one gate and one bucket of tokens for each target, account and store, however many
guards there are. In memory they live in this process alone; elsewhere every process has its own
view of what the store holds, and goes on with that while the store is down.
"""

from __future__ import annotations

from dataclasses import fields, replace
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, ref

from ..core.events import BreakerChanged, GateShut, StoreBack, StoreLost
from ..core.machine import Key
from ..core.sharing import Breaker, Gate, Tokens
from ..drivers.ambient import endings
from ..drivers.entrance import tell
from ..drivers.world import world
from ..errors import SettingError, StoreError
from ..stores.breaker_admission import BreakerAdmission, BreakerAlone
from ..stores.failopen import FailOpen
from ..stores.forks import made_anew
from ..stores.gate_admission import GateAdmission
from ..stores.memory import Memory
from ..stores.retry_tokens import RetryTokens
from ..stores.url import open_store
from ..stores.waiting import GateWaiter
from .shared import Place, place_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.admission import Admission
    from ..core.ports import State, Store

__all__ = ("Home", "Line", "Parts", "Wants", "home_of")

# Seconds to go without a store before it is asked again.
_PAUSE = 1.0


class Wants(NamedTuple):
    """What one guard shares with others; None for what it does without."""

    breaker: Breaker | None
    gate: Gate | None
    tokens: Tokens | None


class Home:
    """One store, with the places of its targets.

    Args:
        store: Where they are.
    """

    def __init__(self, store: Store) -> None:
        self.url = store.url
        # The table of homes is keyed by stores: what it holds must not keep them alive.
        self._store = ref(store)
        self.lock = Lock()
        made_anew(self)
        is_here = isinstance(store, Memory)
        # A view without a store is the state itself; memory needs nothing behind it.
        self.state: State | None = None if is_here else FailOpen(store.state, self.changed, _PAUSE)
        self._is_process = is_here and store is open_store("memory:")
        self._places: dict[tuple[str, str], Place] = {}

    def place(self, target: str, scope: str) -> Place:
        if self._is_process:
            return place_in(None, target, scope)
        place = self._places.get((target, scope))
        if place is None:
            new = Place(target, scope, is_calm=self.state is None)
            place = self._places.setdefault((target, scope), new)
        return place

    def after_fork(self) -> None:
        self.lock = Lock()

    def scoped(self, scope: str) -> str:
        store = self._store()
        return "" if store is None else store.scoped(scope)

    def changed(self, trouble: StoreError | None) -> None:
        """The store is down, or back."""
        if trouble is None:
            tell(StoreBack, url=self.url)
        else:
            tell(StoreLost, url=self.url, because=trouble.because)


class _Homes:
    """Every store that is in use, with its home."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Any, Home] = WeakKeyDictionary()
        self._lock = Lock()
        made_anew(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def of(self, store: Store) -> Home:
        with self._lock:
            home = self._known.get(store)
            if home is None:
                home = self._known[store] = Home(store)
            return home


_homes = _Homes()


def home_of(store: Store) -> Home:
    """The home of `store`, the same one every time."""
    return _homes.of(store)


class Parts:
    """Breaker, gate and tokens of one place; each is made when a guard first wants it.

    Args:
        place: Whose parts.
        home: Where they are.
    """

    def __init__(self, place: Place, home: Home) -> None:
        self.place, self.home = place, home
        self._agreed: dict[str, Breaker | Gate | Tokens] = {}  # what guards have asked for
        self.settings: dict[str, Breaker | Gate | Tokens] = {}  # what is gone by
        self._scope: str | None = None if place.scope else ""
        self._scope_at = 0.0  # when to ask the store for its salt again
        self._made: dict[str, Any] = {}
        self._changed = -1  # endings at the breaker's last change
        self._lock = Lock()
        made_anew(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def join(self, wants: Wants, *, is_strict: bool = True) -> None:
        """Have what a guard wants among the settings.

        Raises:
            SettingError: Another guard wants the same with other settings.
        """
        for name, wanted in wants._asdict().items():
            if wanted is None:
                continue
            known = self._agreed.setdefault(name, wanted)
            self.settings.setdefault(name, known)
            if known == wanted:
                continue
            if isinstance(known, Gate) and replace(known, scout=wanted.scout) == wanted:
                if wanted.scout:  # one who reads answers is enough
                    self._agreed[name] = wanted
                    self.adjust(name, wanted)
            elif is_strict:
                raise SettingError(
                    f"{self.place.target!r} has one {name} for all its guards; this one wants "
                    f"{_short(wanted)}, another has {_short(known)}: give both the same, or "
                    f"another scope"
                )

    def adjust(self, name: str, settings: Breaker | Gate | Tokens) -> None:
        """Go by `settings` from now on, for every guard of this target in this process (E-C4)."""
        self.settings[name] = settings
        if name in self._made:
            self._made[name].settings = settings

    @property
    def is_known(self) -> bool:
        """Whether the place can be named in its store without asking the store."""
        return self._scope is not None or monotonic() < self._scope_at

    def part(self, name: str) -> Any:
        """The part called `name`, which somebody wants."""
        made = self._made.get(name)
        if made is not None and self._scope is not None:
            return made
        with self._lock:
            scope, state = self._scope, self.home.state
            if scope is None and monotonic() >= self._scope_at:
                scope = self._scope = self._named()
                self._made.clear()  # what stood in for it while the store was down
            if scope is None:
                state = None
            if name not in self._made:
                key = Key(self.place.target, name, scope or "")
                self._made[name] = self._new(name, key, state)
            return self._made[name]

    def _named(self) -> str | None:
        """The account as the store writes it; None while the store cannot say."""
        was_lost = self._scope_at > 0
        try:
            scope = self.home.scoped(self.place.scope)
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
            )
        if isinstance(settings, Gate):
            return GateAdmission(
                key, settings, roll=_roll, shared=state, on_shut=self._gate_was_shut
            )
        return RetryTokens(key, settings, shared=state)

    def _breaker_changed(self, is_open: bool, retry_in: float, because: str) -> None:  # noqa: FBT001 -- the callback's one flag
        self._changed = endings.count
        tell(BreakerChanged, is_open=is_open, retry_in=retry_in, because=because)

    @staticmethod
    def _gate_was_shut(delay: float, because: str) -> None:
        tell(GateShut, delay=delay, because=because)

    def has_changed_since(self, mark: int) -> bool:
        """Whether the breaker opened or closed after `mark` endings, or just then."""
        return mark <= self._changed

    def refresh(self) -> None:
        """Say whether all is calm, now that something may have changed."""
        if self.home.state is None:
            # Under the lock: whoever comes last has seen what all others did.
            with self._lock:
                made, place = self._made, self.place
                gate = made.get("gate")
                rest = all(part.is_calm for name, part in made.items() if name != "gate")
                place.is_calm = rest and (gate is None or gate.is_calm)
                place.is_clear = rest and gate is not None and gate.has_plenty


class Line:
    """The parts of one place as one guard uses them (`core.admission.Commons`).

    Args:
        parts: The target's.
        wants: The guard's.
    """

    __slots__ = ("_estimate", "_parts", "_waiter", "_wants")

    def __init__(self, parts: Parts, wants: Wants) -> None:
        self._parts, self._wants = parts, wants
        self._waiter: GateWaiter | None = None
        self._estimate = 0.0

    @property
    def admissions(self) -> tuple[Admission, ...]:
        names = ("breaker", "gate")
        return tuple([self._part(each) for each in names if getattr(self._wants, each)])

    def _part(self, name: str) -> Any:
        part = self._parts.part(name)
        if name == "breaker":
            return BreakerAlone(part) if self._wants.gate is None else part
        if self._waiter is None or self._waiter.gate is not part:
            self._waiter = GateWaiter(part, self._estimate)
        return self._waiter

    @property
    def tokens(self) -> RetryTokens | None:
        return None if self._wants.tokens is None else self._parts.part("tokens")

    @property
    def is_remote(self) -> bool:
        return self._parts.home.state is not None

    def is_near(self, *, now: float) -> bool:
        if not self.is_remote:
            return True
        return self._parts.is_known and all(each.is_near(now) for each in self.admissions)  # type: ignore[attr-defined]

    def is_news(self, asked: Sequence[tuple[Admission, object]], stated: Iterable[object]) -> bool:
        if not self._parts.is_known:
            return True
        if self._wants.tokens is not None and not self._parts.part("tokens").is_calm:
            return True
        return any(
            getattr(admission, "has_news", _never)(ticket, stated) for admission, ticket in asked
        )

    def calm_tickets(self, mark: int) -> list[tuple[Admission, object]]:
        parts, tickets = self._parts, []
        for name in ("breaker", "gate"):
            # What began before the breaker changed says nothing about the target now (E-B4).
            if getattr(self._wants, name) and (
                name != "breaker" or not parts.has_changed_since(mark)
            ):
                part = self._part(name)
                tickets.append((part, part.calm_ticket()))
        return tickets

    def weigh(self, tokens: float) -> None:
        self._estimate = tokens

    def settled(self) -> None:
        self._parts.refresh()


def _roll() -> float:
    return world().dice.roll()


def _never(_ticket: object, _stated: object) -> bool:
    return False


def _short(settings: Any) -> str:
    """``Breaker(failures=3)``: what differs from the defaults."""
    usual = type(settings)()
    told = [
        f"{each.name}={getattr(settings, each.name):g}"
        for each in fields(settings)
        if getattr(settings, each.name) != getattr(usual, each.name)
    ]
    return f"{type(settings).__name__}({', '.join(told)})"
