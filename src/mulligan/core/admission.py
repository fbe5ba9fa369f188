"""Who is asked before an attempt is made.

An admission stands around every attempt: a breaker, a gate, retry tokens. A closed gate is not
a failure: holding costs time, never an attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from ..errors import NotAdmitted

if TYPE_CHECKING:
    from .failure import Failure

__all__ = ("Admission", "Admitted", "Answer", "Hold", "Outcome", "Refused")

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
