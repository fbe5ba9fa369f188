"""How a call is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from ..core.decision import GiveUp, Park

__all__ = ("APPLIED", "NOT_APPLIED", "Answered", "Instead", "Lost", "Opened", "Over")


class _Finding:
    """What ``verify=`` returns instead of the call's result."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


# The call was not applied, so it may be made again.
NOT_APPLIED = _Finding("NOT_APPLIED")
# The call was applied, and its result is None. None itself means: could not find out.
APPLIED = _Finding("APPLIED")


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
