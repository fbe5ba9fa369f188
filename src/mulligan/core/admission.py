"""Admission: the protocol that is asked before each attempt and told after it.

An admission stands around every attempt: a breaker, a gate, retry tokens. A closed gate is not
a failure: holding costs time, never an attempt.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from ..errors import NotAdmitted
from .record import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from .failure import Failure

__all__ = (
    "Admission",
    "Admitted",
    "Answer",
    "Hold",
    "OutOfTokens",
    "Outcome",
    "Refused",
    "Waiter",
)

# Cancellation is neither success nor failure; the breaker or gate that leased a permit takes it
# back.
Outcome: TypeAlias = Literal["succeeded", "failed", "cancelled"]


@record()
class Admitted:
    """The attempt may be made; `ticket` comes back when it has ended."""

    ticket: object = None


@record()
class Hold:
    """Not yet: ask again `delay` seconds later.

    Args:
        delay: When to ask again, in seconds.
        because: What it waits for.
        least: Seconds that the wait takes at the least: a call that has less time left need not
            begin it. None for `delay`.
        reason: ``limit`` where the target admits no calls, ``outage`` where it is down,
            ``tokens`` where the call waits for retry tokens.
        waiter: The call's place in a queue: it is called when its turn comes, so that it may
            sleep for longer than `delay`. None where the waiter is not notified.
        answered_at: When the target last answered any caller, as far as is known.
    """

    delay: float
    because: str
    least: float | None = None
    reason: Literal["limit", "outage", "tokens"] = "limit"
    waiter: Waiter | None = None
    answered_at: float = -inf


class Waiter(Protocol):
    """A place in a queue.

    Attributes:
        due: When it asks again at the latest, on the caller's clock; inf while others are before.
        ring: Called when `due` has changed; set by the waiter.
    """

    due: float
    ring: Callable[[], object] | None

    def look(self, now: float) -> None:
        """Call the next waiter if those before it are gone: their loop was thrown away."""
        ...


class OutOfTokens(NotAdmitted):
    """A retry got no tokens in time; the call ends with its own last error."""


@record()
class Refused:
    """No: the call ends with this error, or with its last real one."""

    error: NotAdmitted


Answer: TypeAlias = Admitted | Hold | Refused


class Admission(Protocol):
    """One layer around the attempt. Asked outermost first, told innermost first."""

    def enter(self, attempt: int, *, now: float, wall: float) -> Answer:
        """May attempt number `attempt` be made now?"""
        ...

    def leave(
        self, ticket: object, outcome: Outcome, failure: Failure | None, *, now: float, wall: float
    ) -> None:
        """The attempt admitted with `ticket` has ended. Must not raise."""
        ...
