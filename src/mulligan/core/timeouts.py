"""Timeouts of one attempt: connect, read, write, pool and total."""

from __future__ import annotations

from dataclasses import fields, replace

from ..errors import SettingError
from .duration import is_number, seconds
from .record import record
from .schema import Seconds

__all__ = ("SERVICE_TIMEOUTS", "Timeouts")

_PARTS = ("connect", "read", "write", "pool", "total")

# However often a limit has shrunk, it stays one: a millisecond.
_LEAST = 0.001


@record(kw_only=True)
class Timeouts:
    """Time limits of one attempt, in seconds; None where there is none.

    A retried timeout gets less time, not more: a target that was too slow twice is not worth
    waiting for a third time (R-B19). After *k* timeouts each limit is multiplied by
    ``shrink**k``.

    Args:
        connect: To open the connection.
        read: Between two pieces of the answer.
        write: Between two pieces of the request.
        pool: To be given a connection.
        total: For the whole attempt.
        shrink: What is left of each limit after a timeout; in (0, 1].
    """

    connect: Seconds | None = None
    read: Seconds | None = None
    write: Seconds | None = None
    pool: Seconds | None = None
    total: Seconds | None = None
    shrink: float = 1.0

    def __post_init__(self) -> None:
        for part in _PARTS:
            value = getattr(self, part)
            if value is not None:
                limit = seconds(value, name=f"Timeouts.{part}")
                if limit <= 0:
                    raise SettingError(f"Timeouts.{part} needs more than 0 s; got {value!r}")
                object.__setattr__(self, part, limit)
        if not is_number(self.shrink) or not 0 < self.shrink <= 1:
            raise SettingError(f"Timeouts.shrink needs a number in (0, 1]; got {self.shrink!r}")

    def after(self, timeouts: int) -> Timeouts:
        """The limits of the attempt that follows `timeouts` timeouts: 300, then 240, then 192."""
        if not timeouts or self.shrink == 1.0:
            return self
        factor = self.shrink**timeouts
        shorter = {
            each.name: max(value * factor, _LEAST)
            for each in fields(self)
            if each.name in _PARTS and (value := getattr(self, each.name)) is not None
        }
        return replace(self, **shorter)


# R-B20: connect / read / total.
SERVICE_TIMEOUTS: dict[str, Timeouts] = {
    "ollama": Timeouts(connect=5, read=120, total=300),
    "anthropic": Timeouts(connect=10, read=60, total=120),
    "postgresql": Timeouts(connect=5, read=30, total=60),
    "redis": Timeouts(connect=2, read=5, total=10),
    "external": Timeouts(connect=10, read=30, total=60),
}
