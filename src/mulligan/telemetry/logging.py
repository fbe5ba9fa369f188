"""LogListener: events as records of the standard library's logging.

Every record carries the event's facts as fields (``record.mulligan``), so a JSON formatter needs
no parsing. Messages in events are already cleaned and masked; nothing here adds words of others.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal, assert_never

from ..core.decisions import RetryAfter
from ..core.duration import duration_text
from ..core.events import (
    BreakerChanged,
    Cancelled,
    Ended,
    Failed,
    GateShut,
    Held,
    Recovered,
    StoreBack,
    StoreLost,
    Succeeded,
    Verified,
)
from ..errors import SettingError

if TYPE_CHECKING:
    from ..core.events import Event

__all__ = ("LogListener", "log")

_logger = logging.getLogger("mulligan")


class LogListener:
    """A listener that writes events to a logger.

    Args:
        detail: ``full`` for every event, or ``sampled`` for the first attempt, the last attempt
            and the final failure of each call (R-X2).
        logger: Where to; by default the logger named ``mulligan``.
        successes: Whether to hear of calls that succeed at once, too; they are logged at DEBUG.
    """

    def __init__(
        self,
        detail: Literal["full", "sampled"] = "full",
        *,
        logger: logging.Logger = _logger,
        successes: bool = False,
    ) -> None:
        if detail not in ("full", "sampled"):
            raise SettingError(f"LogListener needs full or sampled; got {detail!r}")
        self.detail, self.logger, self.successes = detail, logger, successes

    def __call__(self, event: Event, /) -> None:
        # The last attempt of a call is the one that no further wait follows.
        in_between = isinstance(event, Failed) and isinstance(event.decision, RetryAfter)
        if self.detail == "full" or event.attempt == 1 or not in_between:
            log(event, self.logger)


def log(event: Event, logger: logging.Logger = _logger) -> None:
    """Write one event, if the logger listens at its level."""
    level, message = _line(event)
    if logger.isEnabledFor(level):
        logger.log(level, "%s", message, extra={"mulligan": fields(event)})


def _line(event: Event) -> tuple[int, str]:  # noqa: PLR0911 -- one an event
    who = f"{event.target}: {event.name}" if event.target else event.name
    match event:
        case Failed():
            remark = f"; {event.remark}" if event.remark else ""
            return logging.INFO, (
                f"{who} attempt {event.attempt} failed: {event.failure}; "
                f"{event.decision.because}{remark}"
            )
        case Verified():
            found = "was applied" if event.was_applied else "was not applied"
            after = f"; {event.decision.because}" if event.decision is not None else ""
            return logging.INFO, f"{who} attempt {event.attempt} {found}{after}"
        case Held():
            return logging.INFO, (
                f"{who} attempt {event.attempt} is held for "
                f"{duration_text(event.delay)}: {event.because}"
            )
        case Recovered():
            return logging.INFO, (
                f"{who} succeeded on attempt {event.attempt} "
                f"after {duration_text(event.waited)} of waiting"
            )
        case Cancelled():
            return logging.INFO, f"{who} cancelled in attempt {event.attempt}"
        case Succeeded():
            return logging.DEBUG, f"{who} succeeded"
        case Ended():
            is_grave = event.ending.is_exhaustion or event.is_answered
            level = logging.WARNING if is_grave else logging.INFO
            if event.is_passed_on:
                level = logging.DEBUG  # the guard further in has said it
            said = f": {event.failure.message}" if event.failure.message else ""
            return level, f"{who} {event.story.summary}{said}"
        case BreakerChanged() | GateShut() | StoreLost() | StoreBack():
            return _shared_line(event)
        case _:
            assert_never(event)


def _shared_line(event: BreakerChanged | GateShut | StoreLost | StoreBack) -> tuple[int, str]:
    """What concerns all callers of a target: the target speaks, not the call."""
    match event:
        case BreakerChanged(is_open=True):
            wait = duration_text(event.retry_in)
            return logging.WARNING, (
                f"{event.target}: the breaker has opened for {wait}: {event.because}"
            )
        case BreakerChanged():
            return logging.INFO, f"{event.target}: the breaker has closed"
        case GateShut():
            return logging.INFO, (
                f"{event.target}: the gate is shut for {duration_text(event.delay)}: "
                f"{event.because}"
            )
        case StoreLost():
            return logging.WARNING, (
                f"{event.url} does not answer, so {event.target} is guarded "
                f"by this process alone: {event.because}"
            )
        case StoreBack():
            return logging.INFO, f"{event.url} answers again"
        case _:
            assert_never(event)


def fields(event: Event) -> dict[str, Any]:
    """The facts of an event, flat, for a structured log (R-X2, R-X3)."""
    facts: dict[str, Any] = {
        "event": type(event).__name__.lower(),
        "at": event.at,
        "target": event.target,
        "name": event.name,
        "request_id": event.request_id,
        "attempt": event.attempt,
    }
    match event:
        case Failed():
            facts |= _failure(event) | {
                "decision": type(event.decision).__name__,
                "delay": event.decision.delay if isinstance(event.decision, RetryAfter) else None,
                "because": event.decision.because,
                "remark": event.remark or None,
            }
        case Verified():
            facts |= {
                "was_applied": event.was_applied,
                "because": None if event.decision is None else event.decision.because,
            }
        case Held():
            facts |= {"delay": event.delay, "because": event.because}
        case Recovered():
            facts |= {"waited": event.waited, "elapsed": event.elapsed}
        case Cancelled():
            facts |= {"elapsed": event.elapsed}
        case Succeeded():
            pass
        case BreakerChanged() | GateShut() | StoreLost() | StoreBack():
            own = ("is_open", "retry_in", "delay", "url", "because")
            facts |= {name: getattr(event, name) for name in own if hasattr(event, name)}
        case Ended():
            facts |= _failure(event) | {
                "ending": str(event.ending),
                "because": event.story.because,
                "waited": event.story.waited,
                "retry_at": event.story.retry_at,
                "is_passed_on": event.is_passed_on,
                "is_answered": event.is_answered,
            }
        case _:
            assert_never(event)
    return facts


def _failure(event: Failed | Ended) -> dict[str, Any]:
    return {
        "kind": str(event.failure.kind),
        "status": event.failure.status,
        "code": event.failure.code,
        "message": event.failure.message,
        "elapsed": event.elapsed,
    }
