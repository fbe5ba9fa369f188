"""Judges: answers that are failures without an exception, and errors that no guard has judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..calls.clock import world
from ..calls.notes import story
from ..classify import http
from ..classify.classifier import classifier
from ..core.failure import Retryability

if TYPE_CHECKING:
    from ..core.failure import Failure

__all__ = ("is_unjudged", "judge_response")


def is_unjudged(error: BaseException) -> bool:
    """Whether `error` may pass if it is tried again, and no guard has decided about it yet.

    For the retry layer of a framework around guarded calls, so that the two do not multiply:
    ``RetryPolicy(retry_on=mulligan.is_unjudged)``.
    """
    if story(error) is not None:
        return False
    failure = classifier.classify(error, now=world().clock.wall())
    return failure.retryability is not Retryability.NON_RETRYABLE


def judge_response(answer: object) -> Failure | None:
    """The failure in a response object of any HTTP client; None for everything else.

    For ``Guard(judge=mulligan.judge_response)`` around clients that return a 503 instead of
    raising it. A body is looked at only where the client has read it already.
    """
    return http.judge_response(answer, now=world().clock.wall())
