"""Metrics: their names, labels and units, and which of them an event changes.

One table for every listener that counts: `Counters` (below), the store, Prometheus and
OpenTelemetry use the same names, so that a figure means the same wherever it is read.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..core.decisions import RetryAfter
from ..core.events import (
    BreakerChanged,
    Cancelled,
    Ended,
    Failed,
    GateShut,
    Held,
    Recovered,
    StoreLost,
    Succeeded,
)
from ..core.redaction import presentable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.events import Event

__all__ = ("METRICS", "OTHER", "BoundedLabels", "Change", "Counters", "Metric", "changes")

# The label of everything past the bound.
OTHER = "other"


class Metric(NamedTuple):
    """One metric."""

    name: str  # in Prometheus
    # A counter only rises, a histogram keeps a distribution, a gauge is read at a time.
    kind: Literal["counter", "histogram", "gauge"]
    help: str
    label: str = ""  # beside `target`; empty for none
    unit: str = "1"  # as OpenTelemetry writes units

    @property
    def otel(self) -> str:
        """Its name in OpenTelemetry, whose exporters to Prometheus make `name` of it."""
        bare = self.name.removesuffix("_total").removesuffix("_seconds")
        return "retry.retries" if bare == "retries" else bare.replace("_", ".", 1)


_ALL = (
    Metric("retry_failures_total", "counter", "Attempts that failed.", "kind"),
    Metric("retries_total", "counter", "Failed attempts that were followed by another.", "kind"),
    Metric("retry_succeeded_total", "counter", "Calls that succeeded at once, if asked for."),
    Metric("retry_recovered_total", "counter", "Calls that succeeded after a failure."),
    Metric(
        "retry_exhausted_total", "counter", "Calls out of attempts, time, budget or tokens.", "kind"
    ),
    Metric("retry_ended_total", "counter", "Calls that ended without success.", "ending"),
    Metric("retry_cancelled_total", "counter", "Failed calls that their caller cancelled."),
    Metric("retry_held_total", "counter", "Attempts that waited to be admitted."),
    Metric("retry_breaker_opened_total", "counter", "Times that the breaker opened."),
    Metric("retry_breaker_closed_total", "counter", "Times that the breaker closed."),
    Metric("retry_gate_shut_total", "counter", "Times that a limit shut the gate."),
    Metric("retry_store_lost_total", "counter", "Times that the store stopped answering."),
    Metric("retry_silent_limits_total", "counter", "Repeated 429 answers without a reset time."),
    Metric("retry_delay_seconds", "histogram", "Waits before a retry or an admission.", unit="s"),
    Metric("retry_call_attempts", "histogram", "Attempts of calls that failed at least once."),
    Metric("retry_breaker_state", "gauge", "0 closed, 1 half open, 2 open or blocked."),
    Metric(
        "retry_gate_opens_in_seconds",
        "gauge",
        "Seconds until the gate opens; 0 if it is open.",
        unit="s",
    ),
    Metric("retry_gate_remaining", "gauge", "What the server says is left.", "dimension"),
    Metric("retry_tokens_left", "gauge", "Retry tokens that are left."),
)
METRICS = {each.name: each for each in _ALL}


class Change(NamedTuple):
    """What an event does to a metric."""

    name: str  # of the metric
    label: str = ""  # the value of the metric's own label; empty for none
    value: float = 1.0  # how much a counter rises, or what a histogram observes


def changes(event: Event) -> Iterator[Change]:  # noqa: C901, PLR0912 -- one case per event
    """The changes that `event` makes to the metrics of its target."""
    match event:
        case Failed():
            kind = str(event.failure.kind)
            yield Change("retry_failures_total", kind)
            if event.remark:
                yield Change("retry_silent_limits_total")
            if isinstance(event.decision, RetryAfter):
                yield Change("retries_total", kind)
                yield Change("retry_delay_seconds", "", event.decision.delay)
        case Held():
            yield Change("retry_held_total")
            yield Change("retry_delay_seconds", "", event.delay)
        case Recovered():
            yield Change("retry_recovered_total")
            yield Change("retry_call_attempts", "", event.attempt)
        case Succeeded():
            yield Change("retry_succeeded_total")
        case Cancelled():
            yield Change("retry_cancelled_total")
        case Ended(is_passed_on=False):
            yield Change("retry_ended_total", str(event.ending))
            if event.attempt:
                yield Change("retry_call_attempts", "", event.attempt)
            if event.ending.is_exhaustion:
                yield Change("retry_exhausted_total", str(event.failure.kind))
        case BreakerChanged():
            name = "opened" if event.is_open else "closed"
            yield Change(f"retry_breaker_{name}_total")
        case GateShut():
            yield Change("retry_gate_shut_total")
        case StoreLost():
            yield Change("retry_store_lost_total")
        case _:
            pass


class BoundedLabels:
    """Label values, at most so many: what comes later is called ``other``.

    A target's name may come from a request. Each value is a time series that a metrics server
    keeps for weeks.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[str, str] = {}

    def __call__(self, value: str) -> str:
        known = self._known.get(value)
        if known is None:
            if len(self._known) >= self._limit:
                return OTHER
            known = self._known[value] = presentable(value, 80)
        return known


class Counters:
    """A listener that counts.

    ``totals`` maps (name, target, kind or ending) to a number. The names are those of the counters
    in `METRICS`.

    Args:
        successes: Whether to count calls that succeed at once, too; they leave the calm path.
    """

    is_quick = True

    def __init__(self, *, successes: bool = False) -> None:
        self.totals: Counter[tuple[str, str, str]] = Counter()
        self.successes = successes
        self._lock = Lock()

    def __call__(self, event: Event, /) -> None:
        for change in changes(event):
            if METRICS[change.name].kind == "counter":
                with self._lock:  # two threads that add at once would lose a count
                    self.totals[change.name, event.target, change.label] += 1

    def total(self, name: str) -> int:
        """The sum of one counter over all targets."""
        return sum(count for (each, _, _), count in list(self.totals.items()) if each == name)
