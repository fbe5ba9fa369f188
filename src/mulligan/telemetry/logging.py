"""LogListener: events as records of the standard library's logging; or of structlog.

Every record carries the event's facts as fields (``record.mulligan``), so a JSON formatter needs
no parsing. Messages in events are already cleaned and masked; nothing here adds words of others.
"""

from __future__ import annotations

import atexit
import logging
from abc import ABC, abstractmethod
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, assert_never
from weakref import WeakSet

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

__all__ = ("LogListener", "StructlogListener", "fields", "log")

_logger = logging.getLogger("mulligan")


# Lines of one sort (target, event, kind) that a sampled log writes at once, and the seconds after
# which it writes one more.
_BURST, _REFILL = 10, 30.0

# Sorts that are told apart, and targets whose remarks are remembered.
_SORTS = 1_000

# A provider that names no time for its limits is reported once in so many seconds (R-C18).
_REMARK_EVERY = 3_600.0


class _Sampler:
    """Which events a log writes, and how many like them it has left out."""

    def __init__(self, *, is_full: bool) -> None:
        self._is_full = is_full
        self._lock = Lock()
        # target, event, kind → lines left, since when, and events left out since the last line
        self._sorts: dict[tuple[str, str, str], list[float]] = {}
        self._remarked: dict[str, float] = {}

    def chosen(self, event: Event, *, is_grave: bool) -> int | None:
        """How many events like this one were left out before it; None to leave it out, too."""
        if self._is_full or is_grave:
            return 0
        # The last attempt of a call is the one that no further wait follows.
        in_between = isinstance(event, Failed) and isinstance(event.decision, RetryAfter)
        is_wanted = event.attempt == 1 or not in_between
        kind = str(event.failure.kind) if isinstance(event, Failed | Ended) else ""
        with self._lock:
            if len(self._sorts) >= _SORTS:
                self._sorts.clear()
            sort = (event.target, type(event).__name__, kind)
            bucket = self._sorts.setdefault(sort, [_BURST, event.at, 0])
            left, since, out = bucket
            left = min(_BURST, left + max(0.0, event.at - since) / _REFILL)
            is_written = is_wanted and left >= 1
            bucket[:] = left - is_written, max(since, event.at), 0 if is_written else out + 1
        return int(out) if is_written else None

    def left_out(self) -> list[tuple[tuple[str, str, str], int]]:
        """What was left out since the last line of its sort; counted from here on again."""
        with self._lock:
            found = [(sort, int(each[2])) for sort, each in self._sorts.items() if each[2]]
            for each in self._sorts.values():
                each[2] = 0
        return found

    def is_remarked(self, event: Event) -> bool:
        """Whether the remark of `event` is reported with it: once an hour for each target."""
        if not isinstance(event, Failed) or not event.remark:
            return False
        with self._lock:
            last = self._remarked.get(event.target)
            if last is not None and 0 <= event.at - last < _REMARK_EVERY:
                return False
            if len(self._remarked) >= _SORTS:
                self._remarked.clear()
            self._remarked[event.target] = event.at
        return True


class _SampledListener(ABC):
    """The base of the two listeners that write lines."""

    def __init__(self, detail: Literal["full", "sampled"], *, successes: bool) -> None:
        if detail not in ("full", "sampled"):
            raise SettingError(f"{type(self).__name__} needs full or sampled; got {detail!r}")
        self.detail, self.successes = detail, successes
        self._sampler = _Sampler(is_full=detail == "full")
        if detail == "sampled":
            _sampled.add(self)

    def __call__(self, event: Event, /) -> None:
        is_remarked = self._sampler.is_remarked(event)
        level, message = _line(event, is_remarked=is_remarked)
        out = self._sampler.chosen(event, is_grave=level >= logging.WARNING)
        if out is None:
            return
        facts = fields(event)
        if out:
            message, facts["left_out"] = f"{message} (and {out} like it)", out
        self._write(level, message, facts)

    def flush(self) -> None:
        """Write how many events were left out since the last line like them; also done at exit."""
        for (target, event, kind), count in self._sampler.left_out():
            what = " ".join(filter(None, (event.lower(), kind)))
            facts = {"event": "left_out", "target": target, "of": event.lower(), "count": count}
            facts["kind"] = kind or None
            self._write(logging.INFO, f"{target or 'calls'}: {count} more {what} events", facts)

    @abstractmethod
    def _write(self, level: int, message: str, facts: dict[str, Any]) -> None:
        """Write one line, with its facts."""


_sampled: WeakSet[_SampledListener] = WeakSet()


def _at_exit() -> None:
    for each in list(_sampled):
        each.flush()


atexit.register(_at_exit)


class LogListener(_SampledListener):
    """A listener that writes events to a logger.

    Args:
        detail: ``full`` for every event. ``sampled`` for the first attempt, the last attempt and
            the final failure of each call (R-X2), and of each sort of event (target, event, kind)
            ten lines at once and one every 30 seconds, with the number of those left out.
            Warnings are never left out.
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
        super().__init__(detail, successes=successes)
        self.logger = logger

    def _write(self, level: int, message: str, facts: dict[str, Any]) -> None:
        self.logger.log(level, "%s", message, extra={"mulligan": facts})


class StructlogListener(_SampledListener):
    """A listener that writes events to a structlog logger, with their facts as key-value pairs.

    Args:
        detail: As of `LogListener`.
        logger: Where to; by default ``structlog.get_logger("mulligan")``.
        successes: As of `LogListener`.

    Raises:
        SettingError: structlog is not installed.
    """

    def __init__(
        self,
        detail: Literal["full", "sampled"] = "full",
        *,
        logger: Any = None,
        successes: bool = False,
    ) -> None:
        super().__init__(detail, successes=successes)
        if logger is None:
            try:
                import structlog
            except ImportError:
                raise SettingError(
                    "StructlogListener needs structlog: pip install structlog"
                ) from None
            logger = structlog.get_logger("mulligan")
        self.logger = logger

    def _write(self, level: int, message: str, facts: dict[str, Any]) -> None:
        # structlog calls the message `event`, so the event's own name is a fact beside it.
        facts["kind_of_event"] = facts.pop("event")
        getattr(self.logger, logging.getLevelName(level).lower())(message, **facts)


def log(event: Event, logger: logging.Logger = _logger) -> None:
    """Write one event, if the logger listens at its level."""
    level, message = _line(event, is_remarked=True)
    if logger.isEnabledFor(level):
        logger.log(level, "%s", message, extra={"mulligan": fields(event)})


def _line(event: Event, *, is_remarked: bool) -> tuple[int, str]:  # noqa: C901, PLR0911, PLR0912 -- one case per event
    who = f"{event.target}: {event.name}" if event.target else event.name
    match event:
        case Failed():
            remark = f"; {event.remark}" if is_remarked else ""
            return logging.WARNING if remark else logging.INFO, (
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
        # What concerns all callers of a target names the target alone.
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
