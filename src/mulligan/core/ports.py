"""What the core asks of the world, one small protocol each.

Implementations live in drivers, stores, telemetry and testing. A contract suite under
tests/contracts runs against every implementation of a port.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .events import Event

__all__ = ("Clock", "Dice", "Listener")


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
    """Whoever wants to know what happened: any callable that takes an event.

    Set the attribute ``successes = True`` on it to hear of first attempts that succeed, too:
    such calls then no longer take the calm path.
    """

    def __call__(self, event: Event, /) -> None: ...
