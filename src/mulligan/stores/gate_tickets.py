"""What a call holds while it is let through a gate.

A ticket comes back when the attempt has ended, with what its answer stated and took.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..core.belief import Stated
from ..core.failure import Reach

if TYPE_CHECKING:
    from ..core.failure import Failure

__all__ = ("Block", "QuotaLike", "Ticket", "over")


class QuotaLike(Protocol):
    """One dimension of a limit as an answer stated it; `classify.quota_headers.Quota` is one."""

    @property
    def dimension(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def limit(self) -> float | None: ...
    @property
    def remaining(self) -> float | None: ...
    @property
    def reset_in(self) -> float | None: ...
    @property
    def window(self) -> float | None: ...


@dataclass(slots=True)
class Block:
    """Calls that the store has let through and this process has not made."""

    permit: str
    turn: int
    size: int
    left: int
    until: float
    under_way: int = 0


@dataclass(slots=True)
class Ticket:
    """What an attempt was admitted with, and what its answer stated."""

    permit: str
    turn: int
    stated: tuple[Stated, ...] = ()
    size: int = 1  # calls that its permit stands for
    report: int = 0  # passed unasked, to be counted in this report
    tokens: float = 0.0  # reserved for it
    took: float | None = None  # what it turned out to take of them
    block: Block | None = None


def over(ticket: Ticket, failure: Failure | None) -> float:
    """Tokens that the attempt took beyond those reserved; an estimate stands until it is denied."""
    if ticket.took is not None:
        return ticket.took - ticket.tokens
    is_refused = failure is not None and (
        failure.kind.is_limit or failure.reach is Reach.NEVER_SENT
    )
    return -ticket.tokens if is_refused else 0.0
