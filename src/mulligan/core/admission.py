"""Who is asked before an attempt is made.

An admission stands around every attempt: a breaker, a gate, retry tokens. A closed gate is not
a failure: holding costs time, never an attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from ..errors import NotAdmitted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .failure import Failure

__all__ = ("Admission", "Admitted", "Answer", "Commons", "Funds", "Hold", "Outcome", "Refused")

# Cancellation is neither success nor failure; whoever leased a permit takes it back.
Outcome: TypeAlias = Literal["succeeded", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Admitted:
    """The attempt may be made; `ticket` comes back when it has ended."""

    ticket: object = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Not yet: ask again `delay` seconds later."""

    delay: float
    because: str


@dataclass(frozen=True, slots=True)
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


class Funds(Protocol):
    """What pays for retries. Asked before it is decided to wait: a wait for nothing is waste."""

    def reserve(self, failure: Failure, delay: float, *, now: float, wall: float) -> str | None:
        """The name of a reservation for a retry in `delay` seconds; None if there is none left.

        Empty if none is needed.
        """
        ...

    def settle(self, name: str, *, is_returned: bool, now: float, wall: float) -> None:
        """The retry has ended: `is_returned` if it succeeded or was never made."""
        ...

    def succeeded(self, *, now: float, wall: float) -> None:
        """A call succeeded at its first attempt."""
        ...


class Commons(Protocol):
    """What all calls to one target share, as one guard uses it."""

    @property
    def admissions(self) -> tuple[Admission, ...]:
        """The target's breaker and gate, outermost first."""
        ...

    @property
    def tokens(self) -> Funds | None: ...

    @property
    def is_remote(self) -> bool:
        """Whether any of it lives outside of this process."""
        ...

    def is_near(self, *, now: float) -> bool:
        """Whether the next `enter` is answered without a round trip."""
        ...

    def is_news(self, asked: Sequence[tuple[Admission, object]], stated: Iterable[object]) -> bool:
        """Whether a success with these tickets, and what its answer stated, is written down."""
        ...

    def calm_tickets(self, mark: int) -> list[tuple[Admission, object]]:
        """Tickets of an attempt that was made unasked, `mark` endings after the beginning."""
        ...

    def weigh(self, tokens: float) -> None:
        """What the call may take of what is counted in tokens."""
        ...

    def settled(self) -> None:
        """Something may have changed."""
        ...
