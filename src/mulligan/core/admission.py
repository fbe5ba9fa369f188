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
    "OutOfTokens",
    "Outcome",
    "Refused",
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


class SharedTarget(Protocol):
    """A target with its breaker, gate and retry tokens, as one call uses them."""

    def enter(self, attempt: int, *, now: float, wall: float) -> Answer:
        """May attempt number `attempt` be made now?"""
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

    def must_write(self, ticket: object, stated: Iterable[Any]) -> bool:
        """Whether a success with `ticket`, and what its answer stated, is written down.

        `ticket` is None if the attempt was not asked for.
        """
        ...

    def reserve(self, failure: Failure, delay: float, *, now: float, wall: float) -> str:
        """Take tokens for a retry in `delay` seconds: empty, or why it must not be made.

        Asked before it is decided to wait: a wait for nothing is waste.
        """
        ...

    @property
    def owes_tokens(self) -> bool:
        """Whether a retry was promised for which there were no tokens yet: `fund` it first."""
        ...

    def fund(self, *, now: float, wall: float) -> Hold | None:
        """Take tokens for a retry that is due and has none; how long to hold if there are none."""
        ...

    def ended(
        self,
        ticket: object,
        outcome: Outcome,
        failure: Failure | None,
        stated: Iterable[Any],
        took: float | None,
        *,
        now: float,
        wall: float,
        was_cut: bool,
    ) -> None:
        """The attempt has ended, or a retry that was promised is not made.

        Args:
            ticket: What the attempt was admitted with; None if it was not, or could not be asked.
            outcome: How it ended.
            failure: What it failed with.
            stated: What the answer stated about limits.
            took: What the attempt took of what is counted in tokens, if known.
            now: The time.
            wall: The time of day.
            was_cut: Whether it failed because the caller ran out of time, which says nothing about
                the target; its retry tokens are gone all the same.
        """
        ...
