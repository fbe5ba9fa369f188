"""Calls as spans and metrics of the real OpenTelemetry SDK."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import mulligan
from mulligan import OpenTelemetryListener
from mulligan.telemetry.metrics import METRICS
from mulligan.testing import Scripted, status_error, virtual_time


class Told:
    """An SDK that keeps what it is told."""

    def __init__(self, **options) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider(metric_readers=[self.reader])
        self.listener = OpenTelemetryListener(self.provider, meters, **options)

    @property
    def spans(self):
        return self.exporter.get_finished_spans()

    def metrics(self):
        data = self.reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def call(told, *outcomes, **options):
    with virtual_time():
        guard = mulligan.Guard("acme", effects="read", listeners=[told.listener], **options)
        try:
            return guard.call(Scripted(*outcomes))
        except Exception as error:  # noqa: BLE001 -- what the test asks for
            return error


def test_a_call_is_one_span_with_a_child_for_each_attempt():
    told = Told()
    limited = status_error(429, "slow down", headers={"retry-after": "7"})
    call(told, status_error(503, "no capacity"), limited, "well")
    first, second, third, whole = told.spans
    assert [each.name for each in told.spans] == ["attempt scripted"] * 3 + ["retry scripted"]
    assert {each.parent.span_id for each in (first, second, third)} == {whole.context.span_id}
    assert whole.parent is None
    assert dict(first.attributes) == {
        "retry.attempt": 1,
        "retry.reason": "retry in 250ms, by backoff",
        "retry.decision": "retry",
        "retry.delay_ms": 250,
        "error.type": "overloaded",
        "http.response.status_code": 503,
    }
    assert second.attributes["http.request.resend_count"] == 1
    assert second.attributes["retry.delay_ms"] == 7000
    assert dict(third.attributes) == {"retry.attempt": 3, "http.request.resend_count": 2}
    assert first.status.status_code is StatusCode.ERROR
    assert third.status.status_code is whole.status.status_code is StatusCode.UNSET
    assert dict(whole.attributes) == {
        "retry.target": "acme",
        "code.function.name": "scripted",
        "retry.attempts": 3,
    }


def test_spans_follow_each_other_in_the_calls_own_time():
    told = Told(successes=True)
    call(told, status_error(503), status_error(503), "well")
    first, second, third, whole = told.spans
    assert whole.start_time == first.start_time
    assert first.end_time <= second.start_time
    assert second.end_time <= third.start_time
    assert whole.end_time == third.end_time
    assert second.start_time - first.end_time == pytest.approx(250e6, rel=0.01)


def test_a_call_that_ends_without_success_says_why():
    told = Told()
    call(told, status_error(500), attempts=2)
    *attempts, whole = told.spans
    assert len(attempts) == 2
    assert attempts[-1].attributes["retry.decision"] == "give_up"
    assert whole.status.status_code is StatusCode.ERROR
    assert whole.attributes["retry.decision"] == "exhausted"
    assert whole.attributes["retry.reason"] == "attempt 2 of 2 failed with 500 (server)"
    assert whole.attributes["error.type"] == "server"


def test_a_fallback_that_answers_is_no_error():
    told = Told()
    assert call(told, status_error(500), attempts=2, fallback="instead") == "instead"
    assert told.spans[-1].status.status_code is StatusCode.UNSET
    assert told.spans[-1].attributes["retry.decision"] == "exhausted"


def test_a_call_that_succeeds_at_once_is_told_only_if_asked_for():
    silent, talkative = Told(), Told(successes=True)
    call(silent, "well")
    call(talkative, "well")
    assert silent.spans == ()
    assert [each.name for each in talkative.spans] == ["attempt scripted", "retry scripted"]


def test_spans_stand_below_the_span_of_a_model_call_and_leave_it_alone():
    told = Told()
    tracer = told.provider.get_tracer("an SDK's instrumentation")
    facts = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
    with tracer.start_as_current_span("chat m-1", attributes=facts) as chat:
        call(told, status_error(503), "well")
    *ours, theirs = told.spans
    assert {each.context.trace_id for each in ours} == {theirs.context.trace_id}
    assert ours[-1].parent.span_id == chat.get_span_context().span_id
    assert dict(theirs.attributes) == facts
    # A backend that counts model calls by their attributes counts one.
    assert not [name for each in ours for name in each.attributes if name.startswith("gen_ai.")]


def test_metrics_are_as_documented():
    told = Told()
    call(told, status_error(503), status_error(500), attempts=2)
    found = told.metrics()
    (exhausted,) = found["retry.exhausted"].data.data_points
    assert (exhausted.value, dict(exhausted.attributes)) == (
        1,
        {"retry.target": "acme", "retry.kind": "server"},
    )
    (delay,) = found["retry.delay"].data.data_points
    assert (delay.count, found["retry.delay"].unit) == (1, "s")
    assert set(found) <= {each.otel for each in METRICS.values()}


def test_the_names_of_metrics_become_those_of_prometheus():
    assert METRICS["retry_exhausted_total"].otel == "retry.exhausted"
    assert METRICS["retry_breaker_opened_total"].otel == "retry.breaker_opened"
    assert len({each.otel for each in METRICS.values()}) == len(METRICS)


def test_an_inner_guards_ending_is_told_once():
    told = Told()
    with virtual_time():
        inner = mulligan.Guard("acme", effects="read", attempts=2, listeners=[told.listener])
        outer = mulligan.Guard("outer", effects="read", listeners=[told.listener])
        with pytest.raises(Exception, match="500"):
            outer.call(inner.call, Scripted(status_error(500)))
    assert [each.name for each in told.spans if each.name.startswith("retry ")] == [
        "retry scripted"
    ]


def test_a_call_that_never_ends_does_not_keep_its_span_for_ever(monkeypatch):
    from mulligan.telemetry import opentelemetry

    monkeypatch.setattr(opentelemetry, "_OPEN", 10)
    told = Told()
    from mulligan.core.decisions import RetryAfter
    from mulligan.core.failure import Failure, Kind, Reach

    for number in range(50):
        told.listener(
            mulligan.Failed(
                at=1.0,
                target="acme",
                name="f",
                request_id=str(number),
                attempt=1,
                failure=Failure(kind=Kind.SERVER, reach=Reach.MAYBE_APPLIED),
                decision=RetryAfter(1.0),
                elapsed=0.0,
            )
        )
    assert len([each for each in told.spans if each.name == "retry f"]) == 40
