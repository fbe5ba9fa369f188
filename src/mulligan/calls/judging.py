"""Answers that are failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.failure import Failure
from ..errors import FailedAnswer
from .emit import report

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("judge",)


def judge(ask: Callable[[Any], Failure | None], answer: Any) -> None:
    """Raise if the user's judge finds that `answer` is a failure.

    A judge that raises, or says something else, is reported and not heard: the call has been made,
    and its answer must not be lost to a mistake in looking at it.

    Raises:
        FailedAnswer: It is one.
    """
    try:
        found: object = ask(answer)
    except Exception as trouble:  # noqa: BLE001 -- reported, see above
        report("judge", ask, trouble)
        return
    if isinstance(found, Failure):
        raise FailedAnswer(found.cleaned(), answer)
    if found is not None:
        said = type(found).__name__
        report("judge", ask, TypeError(f"a judge returns a Failure or None, not {said}"))
