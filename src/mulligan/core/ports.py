"""Protocols that the core expects: clock, listener, store, journal.

Implementations live in calls, stores, telemetry and testing. A contract suite under
tests/contracts runs against every implementation of a port.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..stores.entries import JournalLine
    from ..stores.state_machine import Key, Machine, Operation
    from .events import Event
    from .moment import Moment

__all__ = ("Clock", "Dice", "Journal", "Keys", "Listener", "State", "Store")

S = TypeVar("S")
R = TypeVar("R")


class Clock(Protocol):
    """Time, and the only way to spend it."""

    def now(self) -> float:
        """Seconds on a clock that never goes back; its zero means nothing."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch, as the world's calendars have it."""
        ...

    def sleep(self, delay: float) -> None:
        """Return `delay` seconds later."""
        ...

    async def asleep(self, delay: float) -> None:
        """Return `delay` seconds later; at once, with the cancellation, if cancelled."""
        ...


class Dice(Protocol):
    """Luck."""

    def roll(self) -> float:
        """A number in [0, 1)."""
        ...


class Listener(Protocol):
    """A listener: any callable that takes an event.

    Set the attribute ``successes = True`` on it to hear of first attempts that succeed, too:
    such calls then no longer take the calm path.
    """

    def __call__(self, event: Event, /) -> None: ...


class State(Protocol):
    """Shared state that makes calls better and must never stop them: breaker, gate, tokens.

    It fails open: each process continues with a copy of its own while the store is down. Every
    method answers within 250 ms or raises `StoreDown`.
    """

    def transact(self, key: Key, operation: Operation[S, R], /) -> R:
        """Apply `operation` to the state of `key`, alone, at the store's own time."""
        ...

    def transact_all(self, steps: Sequence[tuple[Key, Operation[Any, Any]]], /) -> Sequence[Any]:
        """Apply operations to keys, in order; in one transaction, if the store can."""
        ...

    def peek(self, key: Key, machine: Machine[S], /) -> tuple[S, Moment]:
        """The state of `key`, and the store's time; writes nothing."""
        ...

    def peek_all(
        self, wanted: Sequence[tuple[Key, Machine[Any]]], /
    ) -> tuple[Sequence[Any], Moment]:
        """The states of several keys, in one round trip if they are of one target; as `peek`."""
        ...

    def known(self, machine: Machine[S], /) -> tuple[Key, ...]:
        """Every key that has a state of this kind."""
        ...


class Keys(Protocol):
    """Claims on idempotency keys. It fails closed: if the store cannot answer, nothing is done.

    What it has acknowledged survives the death of every process involved.
    """

    def transact(self, key: Key, operation: Operation[S, R], /) -> R: ...

    async def atransact(self, key: Key, operation: Operation[S, R], /) -> R: ...


class Journal(Protocol):
    """What has been done. It fails closed: what is not written down is not done.

    What it has acknowledged survives the death of every process involved.
    """

    def append(self, stream: str, entry: JournalLine, /) -> int:
        """Write `entry` at the end of `stream`; its place, counted from 1.

        Raises:
            Fenced: The stream has an entry of a later epoch.
        """
        ...

    def read(self, stream: str, /, after: int = 0) -> tuple[JournalLine, ...]:
        """The entries of `stream` behind place `after`, in order."""
        ...

    def streams(self, prefix: str, /) -> tuple[str, ...]:
        """Every stream that has an entry and whose name begins with `prefix`, sorted."""
        ...

    def forget(self, stream: str, /) -> None:
        """Remove `stream` with all its entries and epochs; a missing one is not an error."""
        ...


class Store(Protocol):
    """Where shared state lives: three ports, split by how they fail."""

    @property
    def url(self) -> str:
        """Where it is, without its password."""
        ...

    @property
    def state(self) -> State: ...

    @property
    def keys(self) -> Keys: ...

    @property
    def journal(self) -> Journal: ...

    def scoped(self, scope: str, /) -> str:
        """The name under which `scope` is stored: a salted hash, never the scope itself."""
        ...

    def close(self) -> None: ...
