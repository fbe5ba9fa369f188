"""Admission: the protocol that is asked before each attempt and told after it.

An admission stands around every attempt: a breaker, a gate, retry tokens. A closed gate is not
a failure: holding costs time, never an attempt.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ..errors import NotAdmitted
from .record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .failure import Failure

__all__ = (
    "Admission",
    "Admitted",
    "Answer",
    "Hold",
    "Outcome",
    "Refused",
    "RetryFunds",
    "SharedTarget",
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


class RetryFunds(Protocol):
    """What pays for retries. Asked before it is decided to wait: a wait for nothing is waste."""

    def reserve(self, failure: Failure, delay: float, *, now: float, wall: float) -> str | None:
        """The name of a reservation for a retry in `delay` seconds; None if there is none left.

        Empty if none is needed.
        """
        ...

    def sent(self, name: str, *, now: float) -> None:
        """The retry is under way."""
        ...

    def settle(self, name: str, *, is_returned: bool, now: float, wall: float) -> None:
        """The retry has ended: `is_returned` if it succeeded or was never made."""
        ...

    def succeeded(self, *, now: float, wall: float) -> None:
        """A call succeeded at its first attempt."""
        ...


class SharedTarget(Admission, Protocol):
    """A target with its breaker, gate and retry tokens, as one call uses them."""

    @property
    def is_asked(self) -> bool:
        """Whether it has a breaker or a gate, so that attempts need admission."""
        ...

    @property
    def waits(self) -> bool:
        """Whether calls wait for a target that is down, and for retry tokens."""
        ...

    @property
    def is_down(self) -> bool:
        """Whether the target's breaker is open, and the call waits for it."""
        ...

    @property
    def has_gate(self) -> bool:
        """Whether a gate paces calls to the target."""
        ...

    @property
    def believes(self) -> float:
        """The longest wait for a limit that its gate believes, in seconds; inf without a gate."""
        ...

    @property
    def answered_at(self) -> float:
        """When the target last answered any caller, as far as is known; -inf if it never did."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether any of it lives outside of this process."""
        ...

    def is_near(self, now: float) -> bool:
        """Whether the next `enter` is answered without a round trip."""
        ...

    def ticket_since(self, mark: int) -> object:
        """The ticket of an attempt that was made unasked, `mark` endings after the beginning."""
        ...

    def weigh(self, tokens: float) -> None:
        """What the call may take of what is counted in tokens."""
        ...

    def observe(self, ticket: object, quotas: Iterable[Any]) -> None:
        """What the answer to the attempt with `ticket` stated about limits; before `leave`."""
        ...

    def settle(self, ticket: object, took: float) -> None:
        """What the attempt with `ticket` took of what is counted in tokens; before `leave`."""
        ...

    def is_news(self, ticket: object, stated: Iterable[Any]) -> bool:
        """Whether a success with `ticket`, and what its answer stated, is written down.

        `ticket` is None if the attempt was not asked for.
        """
        ...

    @property
    def retry_tokens(self) -> RetryFunds | None:
        """What pays for retries; None if they are free."""
        ...

    def is_first_unfunded(self, now: float) -> bool:
        """Whether it is this call's turn to ask for retry tokens."""
        ...

    def unfunded(self, now: float) -> Hold:
        """The hold of a retry for which there are no tokens yet; it waits in a queue."""
        ...

    def give_up(self, now: float) -> None:
        """The call waits in no queue any more."""
        ...

    def settled(self, now: float) -> None:
        """Something may have changed."""
        ...
