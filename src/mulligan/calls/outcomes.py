"""How a call is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from ..core.decisions import GiveUp, Park

__all__ = (
    "APPLIED",
    "NOT_APPLIED",
    "Answered",
    "CallOutcome",
    "FailedCall",
    "FallbackItems",
    "OpenedStream",
)


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


class FailedCall(NamedTuple):
    """Over, without one."""

    error: BaseException
    decision: Park | GiveUp


CallOutcome: TypeAlias = Answered | FailedCall


class OpenedStream(NamedTuple):
    """A stream that has something to deliver: its iterator, its first item, and what to close."""

    items: Any
    item: Any
    source: Any


class FallbackItems(NamedTuple):
    """What a fallback delivers in place of a stream of which nothing was seen."""

    items: Any
