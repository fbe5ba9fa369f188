"""Decisions after a failure, each with its reason in one sentence.

The union is closed: the loop of attempts matches on it and ends with `assert_never`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from .duration import duration_text
from .record import record

__all__ = ("Decision", "Ending", "GiveUp", "Park", "RetryAfter", "Verify", "ending_of")


class Ending(StrEnum):
    """Why a call ended without success."""

    FINAL = "final"  # it would fail again: a client error, a statement, no rule
    EXHAUSTED = "exhausted"  # its attempts are used up
    DEADLINE = "deadline"  # the next attempt would come too late
    BUDGET = "budget"  # the time allowed for retrying is used up
    TOKENS = "tokens"  # so many calls to the target fail that retrying would keep it down
    PARKED = "parked"  # it can pass later; the wait is too long to be slept through
    HORIZON = "horizon"  # it can pass later; the wait is longer than the horizon
    MAYBE_APPLIED = "maybe_applied"  # repeating could do it twice
    COMMITTED = "committed"  # a stream that has delivered something is not replayed
    REFUSED = "refused"  # breaker or gate did not let the next attempt through
    CANCELLED = "cancelled"  # the caller no longer wants it
    UNKNOWN = "unknown"  # not understood, hence not repeated

    @property
    def is_exhaustion(self) -> bool:
        """Whether we would have gone on, had there been anything left to go on with."""
        return self in _EXHAUSTIONS


_EXHAUSTIONS = frozenset(
    {
        Ending.EXHAUSTED,
        Ending.DEADLINE,
        Ending.BUDGET,
        Ending.TOKENS,
        Ending.HORIZON,
        Ending.REFUSED,
    }
)


@record()
class RetryAfter:
    """Wait `delay` seconds here, then try again.

    Args:
        delay: Seconds.
        source: Where the server stated the delay; empty for the backoff.
        is_queued: Whether the call waits in the queue of its target, for as long as that takes.
    """

    delay: float
    source: str = ""
    is_queued: bool = False

    @property
    def because(self) -> str:
        if self.is_queued:
            return "retry as soon as the target admits it"
        # Put into words only when read: most retries succeed, and their reasons are not read.
        said = f"as {self.source} says" if self.source else "by backoff"
        return f"retry in {duration_text(self.delay)}, {said}"


@record()
class Park:
    """End the call now; the same call may be made at `until`, in epoch seconds."""

    until: float
    because: str


@record()
class Verify:
    """Find out first whether the call was applied; it must not be repeated blindly."""

    because: str


@record()
class GiveUp:
    """End the call with its own exception.

    Args:
        ending: Why.
        because: Why, in one sentence.
        retry_at: When it could pass, in epoch seconds, if the server named it.
    """

    ending: Ending
    because: str
    retry_at: float | None = None


Decision: TypeAlias = RetryAfter | Park | Verify | GiveUp


def ending_of(decision: Park | GiveUp) -> tuple[Ending, float | None]:
    """How a decision that ends a call ends it, and when the call could pass."""
    if isinstance(decision, Park):
        return Ending.PARKED, decision.until
    return decision.ending, decision.retry_at
