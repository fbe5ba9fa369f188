"""OpenTelemetryListener: a call as one span with a child for each attempt, and metrics.

Spans are made when an event tells of them, with the times that it tells: the parent is the span
that is current where the call was made. Instrumented HTTP clients make their own spans beside
ours. Attributes are those of the semantic conventions where there are any: `error.type`,
`http.response.status_code`, `http.request.resend_count` (absent on the first attempt). Our spans
carry no `gen_ai.*` attribute, so a model call that its SDK's instrumentation reports is counted
once.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.decisions import RetryAfter
from ..core.events import Cancelled, Ended, Failed, Held, Recovered, Succeeded
from ..errors import MissingExtra
from .metrics import METRICS, BoundedLabels, changes

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from ..core.events import Event

__all__ = ("OpenTelemetryListener",)

# Most spans open at a time; beyond it the oldest is ended. A call that never ends, such as an
# abandoned stream, would keep its span for ever.
_OPEN = 10_000

_DECISIONS = {"RetryAfter": "retry", "Park": "park", "Verify": "verify", "GiveUp": "give_up"}


class _OpenCall(NamedTuple):
    """A call that has failed and has not ended."""

    span: Span
    context: Any


class OpenTelemetryListener:
    """A listener that reports calls as spans and metrics of OpenTelemetry.

    A call that fails at least once is a span ``retry NAME`` from the beginning of its first attempt
    to its end, with a child ``attempt NAME`` for each attempt. A call that succeeds at once makes a
    span only with `successes`. Without it the beginning of a first attempt is not measured, and its
    span is as long as is known: zero.

    Args:
        tracer_provider: By default the global one.
        meter_provider: By default the global one.
        targets: How many targets get a metric attribute of their own; the others share ``other``.
        successes: Whether calls that succeed at once are reported, too.

    Raises:
        MissingExtra: opentelemetry-api is not installed.
    """

    # On a thread of its own it could not see the caller's span. Exporting is the business of the
    # span processor: the SDK's BatchSpanProcessor has a thread for it.
    is_quick = True

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        targets: int = 100,
        successes: bool = False,
    ) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError:
            raise MissingExtra("mulligan.OpenTelemetryListener", "otel") from None
        self.successes = successes
        self._trace = trace
        self._tracer = trace.get_tracer("mulligan", tracer_provider=tracer_provider)
        meter = metrics.get_meter("mulligan", meter_provider=meter_provider)
        make: dict[str, Any] = {
            "counter": meter.create_counter,
            "histogram": meter.create_histogram,
        }
        self._instruments: dict[str, Any] = {
            each.name: make[each.kind](each.otel, unit=each.unit, description=each.help)
            for each in METRICS.values()
            if each.kind in make
        }
        self._label = BoundedLabels(targets)
        self._lock = Lock()
        self._calls: dict[str, _OpenCall] = {}

    def __call__(self, event: Event, /) -> None:
        self._measure(event)
        match event:
            case Failed() | Recovered() | Succeeded():
                call = self._call(event, event.at - (event.took or 0.0))
                self._attempt(event, call)
                if not isinstance(event, Failed):
                    self._close(event, call)
            case Held():
                with self._lock:
                    held = self._calls.get(event.request_id)
                if held is not None:
                    wait: dict[str, Any] = {"retry.delay_ms": _ms(event.delay)}
                    facts = {**wait, "retry.reason": event.because}
                    held.span.add_event("retry.held", facts, timestamp=_ns(event.at))
            case Cancelled():
                call = self._call(event, event.at)
                call.span.add_event("retry.cancelled", timestamp=_ns(event.at))
                self._close(event, call)
            case Ended() if not event.is_passed_on:
                self._end(event, self._call(event, event.at))
            case _:
                pass

    def _measure(self, event: Event) -> None:
        target = self._label(event.target)
        for change in changes(event):
            metric = METRICS[change.name]
            facts = {"retry.target": target}
            if metric.label:
                facts[f"retry.{metric.label}"] = change.label
            instrument = self._instruments[change.name]
            (instrument.add if metric.kind == "counter" else instrument.record)(change.value, facts)

    def _call(self, event: Event, began_at: float) -> _OpenCall:
        with self._lock:
            known = self._calls.get(event.request_id)
            if known is not None:
                return known
            span = self._tracer.start_span(
                f"retry {event.name}",
                start_time=_ns(began_at),
                attributes={"retry.target": event.target, "code.function.name": event.name},
            )
            made = _OpenCall(span, self._trace.set_span_in_context(span))
            self._calls[event.request_id] = made
            is_full = len(self._calls) > _OPEN
            late = self._calls.pop(next(iter(self._calls))) if is_full else None
        if late is not None:
            late.span.end()
        return made

    def _attempt(self, event: Failed | Recovered | Succeeded, call: _OpenCall) -> None:
        facts: dict[str, Any] = {"retry.attempt": event.attempt}
        if event.attempt > 1:
            facts["http.request.resend_count"] = event.attempt - 1
        if isinstance(event, Failed):
            facts |= _failure(event)
        span = self._tracer.start_span(
            f"attempt {event.name}",
            context=call.context,
            start_time=_ns(event.at - (event.took or 0.0)),
            attributes=facts,
        )
        if isinstance(event, Failed):
            span.set_status(self._trace.StatusCode.ERROR, str(event.failure))
        span.end(_ns(event.at))

    def _end(self, event: Ended, call: _OpenCall) -> None:
        call.span.set_attribute("retry.decision", str(event.ending))
        call.span.set_attribute("retry.reason", event.story.because)
        call.span.set_attribute("error.type", str(event.failure.kind))
        if not event.is_answered:  # a fallback answers: the caller sees no error
            call.span.set_status(self._trace.StatusCode.ERROR, event.story.summary)
        self._close(event, call)

    def _close(self, event: Event, call: _OpenCall) -> None:
        with self._lock:
            self._calls.pop(event.request_id, None)
        call.span.set_attribute("retry.attempts", event.attempt)
        call.span.end(_ns(event.at))


def _failure(event: Failed) -> dict[str, Any]:
    failure, decision = event.failure, event.decision
    facts: dict[str, Any] = {
        "retry.reason": decision.because,
        "retry.decision": _DECISIONS[type(decision).__name__],
        "error.type": str(failure.kind),
    }
    if isinstance(decision, RetryAfter):
        facts["retry.delay_ms"] = _ms(decision.delay)
    if failure.status is not None:
        facts["http.response.status_code"] = failure.status
    return facts


def _ns(at: float) -> int:
    return int(at * 1e9)


def _ms(seconds: float) -> int:
    return round(seconds * 1_000)
