"""Judges for answers that are failures without an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..calls.clock import world
from ..classify import http

if TYPE_CHECKING:
    from ..core.failure import Failure

__all__ = ("judge_response",)


def judge_response(answer: object) -> Failure | None:
    """The failure in a response object of any HTTP client; None for everything else.

    For ``Guard(judge=mulligan.judge_response)`` around clients that return a 503 instead of
    raising it. A body is looked at only where the client has read it already.
    """
    return http.judge_response(answer, now=world().clock.wall())
