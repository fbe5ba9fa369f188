"""How a call is over: with an answer, or with an error and the decision that ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from ..core.decision import GiveUp, Park

__all__ = ("NOT_APPLIED", "Answered", "Instead", "Lost", "Opened", "Over")


class _NotApplied:
    """What ``verify=`` returns if the call was not applied, so that it may be made again."""

    def __repr__(self) -> str:
        return "NOT_APPLIED"


NOT_APPLIED = _NotApplied()


class Answered(NamedTuple):
    """Over, with an answer that no further attempt is needed for."""

    answer: Any


class Lost(NamedTuple):
    """Over, without one."""

    error: BaseException
    decision: Park | GiveUp


Over: TypeAlias = Answered | Lost


class Opened(NamedTuple):
    """A stream that has something to deliver, and its first item."""

    items: Any
    item: Any


class Instead(NamedTuple):
    """What a fallback delivers in place of a stream of which nothing was seen."""

    items: Any
