"""Events: frozen records of what happened, for listeners.

One event per failed attempt, one for each call that ends in a way worth knowing. A call that
succeeds at once makes no event unless a listener asked for successes. What calls share changes
with one of them: that call is named, and the listeners of its guard are told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .decisions import Decision, Ending
from .failure import Failure
from .story import Story

__all__ = (
    "BreakerChanged",
    "Cancelled",
    "Ended",
    "Event",
    "EventName",
    "Failed",
    "GateShut",
    "Held",
    "Recovered",
    "StoreBack",
    "StoreLost",
    "Succeeded",
    "Verified",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Happened:
    """What every event says.

    Args:
        at: When, in epoch seconds.
        target: The dependency, or empty.
        name: The function.
        request_id: The same for all attempts of one call.
        attempt: Which attempt, from 1.
    """

    at: float
    target: str
    name: str
    request_id: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(_Happened):
    """An attempt failed, and this was decided. Sent before the wait, so no wait is hidden.

    Args:
        failure: What went wrong.
        decision: What happens next.
        elapsed: Seconds since the first failure.
        remark: What the provider should be told, or empty (R-C18).
        took: Seconds that the attempt took; None if its beginning was not measured.
    """

    failure: Failure
    decision: Decision
    elapsed: float
    remark: str = ""
    took: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(_Happened):
    """`verify` has answered whether an attempt was applied.

    Args:
        was_applied: Whether it was; if so, the call has succeeded.
        decision: What happens next, if it was not.
    """

    was_applied: bool
    decision: Decision | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(_Happened):
    """An attempt waits to be admitted; sent before the wait. `attempt` is the one that waits.

    Args:
        delay: Seconds until it asks again.
        because: What it waits for.
    """

    delay: float
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(_Happened):
    """A call succeeded after it had failed; `attempt` is the one that did.

    Args:
        waited: Seconds spent waiting.
        elapsed: Seconds since the first failure.
        took: Seconds that the attempt took; None if its beginning was not measured.
    """

    waited: float
    elapsed: float
    took: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded(_Happened):
    """A call succeeded at once; sent only to listeners that ask for successes.

    Args:
        took: Seconds that it took; None if its beginning was not measured.
    """

    took: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled(_Happened):
    """A call that had failed before was cancelled, in an attempt or in a wait.

    Args:
        elapsed: Seconds since the first failure.
    """

    elapsed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(_Happened):
    """A call ended without success; its own exception is on its way to the caller.

    Args:
        ending: Why.
        failure: The last failure.
        story: All of it.
        elapsed: Seconds since the first failure.
        is_passed_on: Whether a guard further in has ended it, and told its own listeners.
        is_answered: Whether a fallback answers for it, so that the caller sees no error.
    """

    ending: Ending
    failure: Failure
    story: Story
    elapsed: float
    is_passed_on: bool = False
    is_answered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerChanged(_Happened):
    """The target's breaker has opened or closed, with the end of this attempt.

    Args:
        is_open: Whether calls are refused now.
        retry_in: Seconds until one is let through; 0 if it has closed.
        because: Why it has opened; empty if it has closed.
    """

    is_open: bool
    retry_in: float
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateShut(_Happened):
    """The answer to this attempt shut the target's gate for all callers.

    Args:
        delay: Seconds until it opens.
        because: What the target said.
    """

    delay: float
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLost(_Happened):
    """The store does not answer; this process continues with a copy of its own.

    Args:
        url: The store, without its password.
        because: What was found.
    """

    url: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreBack(_Happened):
    """The store answers again.

    Args:
        url: The store, without its password.
    """

    url: str


Event: TypeAlias = (
    Failed
    | Verified
    | Held
    | Recovered
    | Succeeded
    | Cancelled
    | Ended
    | BreakerChanged
    | GateShut
    | StoreLost
    | StoreBack
)
EventName: TypeAlias = Literal[
    "Failed",
    "Verified",
    "Held",
    "Recovered",
    "Succeeded",
    "Cancelled",
    "Ended",
    "BreakerChanged",
    "GateShut",
    "StoreLost",
    "StoreBack",
]
