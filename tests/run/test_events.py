"""Events of runs and of the agents of plans, for the listeners that guards have."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

import mulligan
from mulligan.core.events import Cancelled, Ended, Failed, Held, Recovered, Succeeded
from mulligan.errors import SettingError
from mulligan.run import Agent, Phase, Plan, run_plan
from mulligan.run.events import RunEvents
from mulligan.run.journal.entries import (
    AttemptBegun,
    AttemptEnd,
    RunCancelled,
    RunMade,
    RunReopened,
    RunRescheduled,
)
from mulligan.run.journal.state import RunState, state_of

MADE = RunMade(0.0, "claude", "claude -p Fix", "/", "laptop", 1, "port", {}, [])


class Heard(list[Any]):
    """A listener that keeps what it was told."""

    successes = True

    def __call__(self, event):
        self.append(event)


def told(*steps, made=MADE):
    heard = Heard()
    listener = RunEvents("t4r22m", "claude", RunState(made, "new"), (heard,))
    for step in steps:
        listener.step(step)
    return heard


def begun(at, attempt=1):
    return AttemptBegun(at, attempt, "start", "", "")


def limited(at, attempt=1, *, until):
    return AttemptEnd(
        at,
        attempt,
        9.0,
        code=1,
        kind="quota",
        status=429,
        message="You've hit your limit",
        then="again",
        until=until,
        reset_at=until,
        because="the limit resets then",
    )


def test_a_run_that_meets_a_limit_and_recovers_is_told_like_a_call():
    failed, recovered = told(
        begun(1.0),
        limited(10.0, until=100.0),
        begun(101.0, 2),
        AttemptEnd(110.0, 2, 9.0, code=0),
    )
    assert isinstance(failed, Failed)
    assert (failed.target, failed.name, failed.request_id) == ("claude", "port", "t4r22m")
    assert (failed.at, failed.attempt, failed.took) == (10.0, 1, 9.0)
    assert str(failed.failure) == "429 (quota): You've hit your limit"
    assert failed.decision.because == "retry in 1m30s, as the program says"
    assert isinstance(recovered, Recovered)
    assert (recovered.attempt, recovered.waited, recovered.elapsed) == (2, 91.0, 100.0)


def test_a_run_that_succeeds_at_once_is_told_only_to_those_who_ask():
    (succeeded,) = told(begun(1.0), AttemptEnd(2.0, 1, 1.0, code=0))
    assert isinstance(succeeded, Succeeded)
    heard: list[Any] = []
    listener = RunEvents("t4r22m", "claude", RunState(MADE, "new"), (heard.append,))
    for step in (begun(1.0), AttemptEnd(2.0, 1, 1.0, code=0)):
        listener.step(step)
    assert heard == []


@pytest.mark.parametrize("ending", ["exhausted", "deadline", "maybe_applied", "final"])
def test_a_run_that_fails_is_told_with_its_story(ending):
    _, last, ended = told(
        begun(1.0),
        limited(10.0, until=100.0),
        begun(101.0, 2),
        AttemptEnd(110.0, 2, 9.0, code=1, kind="server", then="stop", because="so", ending=ending),
    )
    assert isinstance(last, Failed)
    assert isinstance(ended, Ended)
    assert (ended.ending, ended.failure.kind, ended.attempt) == (ending, "server", 2)
    assert (ended.story.because, ended.story.attempts, ended.story.waited) == ("so", 2, 91.0)
    assert [each.kind for each in ended.story.tries] == ["quota", "server"]


def test_a_refused_attempt_ends_the_run_and_is_no_failed_attempt():
    (ended,) = told(
        AttemptEnd(
            5.0,
            0,
            0.0,
            stopped="refused",
            kind="quota",
            then="stop",
            until=900.0,
            because="beyond",
            ending="horizon",
        )
    )
    assert isinstance(ended, Ended)
    assert (ended.ending, ended.story.retry_at, ended.attempt) == ("horizon", 900.0, 0)


def test_a_wait_for_the_accounts_limit_is_told_and_an_earlier_time_is_not():
    failed, held = told(
        RunRescheduled(0.0, 0.0, "woken by the user"),
        begun(1.0),
        limited(10.0, until=100.0),
        RunRescheduled(100.0, 400.0, "another run has met the limit"),
        RunRescheduled(120.0, 130.0, "the limit was lifted"),
    )
    assert isinstance(failed, Failed)
    assert isinstance(held, Held)
    assert (held.attempt, held.delay) == (2, 300.0)
    assert held.because == "another run has met the limit"


@pytest.mark.parametrize("has_failed", [True, False])
def test_a_run_that_another_process_cancels_is_told_if_it_had_failed(has_failed):
    steps = (begun(1.0), limited(10.0, until=100.0)) if has_failed else (begun(1.0),)
    cancelled = state_of((MADE, *steps, RunCancelled(105.0, "cancelled by the user")))
    assert cancelled is not None
    heard = Heard()
    listener = RunEvents("t4r22m", "claude", RunState(MADE, "new"), (heard,))
    listener.over(cancelled)
    assert [(type(each), each.elapsed) for each in heard] == [(Cancelled, 95.0)] * has_failed


def test_a_run_that_is_interrupted_after_a_failure_is_told():
    pause = AttemptEnd(106.0, 2, 5.0, signal=2, stopped="interrupt", then="pause")
    _, cancelled = told(begun(1.0), limited(10.0, until=100.0), begun(101.0, 2), pause)
    assert isinstance(cancelled, Cancelled)
    assert (cancelled.attempt, cancelled.elapsed) == (2, 96.0)
    assert told(begun(1.0), pause) == []


def test_words_of_a_newer_version_do_not_end_the_run():
    odd = AttemptEnd(10.0, 1, 9.0, kind="eclipse", then="stop", because="so", ending="eclipsed")
    failed, ended = told(begun(1.0), odd)
    assert (failed.failure.kind, ended.ending) == ("unknown", "final")


def test_a_supervisor_that_is_stopped_or_a_remark_is_no_failure():
    stopped = AttemptEnd(5.0, 1, 4.0, signal=15, stopped="terminate", then="again", until=5.0)
    assert told(begun(1.0), stopped, RunReopened(6.0)) == []


def test_a_torn_attempt_counts_as_a_failure_of_unknown_kind():
    torn = AttemptEnd(
        5.0, 1, 4.0, stopped="torn", then="again", until=5.0, message="its supervisor died"
    )
    failed, recovered = told(begun(1.0), torn, begun(6.0, 2), AttemptEnd(7.0, 2, 1.0, code=0))
    assert isinstance(failed, Failed)
    assert (failed.failure.kind, failed.failure.message) == ("unknown", "its supervisor died")
    assert isinstance(recovered, Recovered)


def test_secrets_of_an_older_journal_are_masked():
    end = limited(10.0, until=100.0)._replace(message="api_key=abc123def456 is limited")
    (failed,) = told(begun(1.0), end)
    assert "abc123" not in str(failed.failure)


def test_a_listener_that_raises_is_logged_and_the_others_are_told(caplog):
    def broken(event):
        raise RuntimeError("no")

    heard = Heard()
    listener = RunEvents("t4r22m", "claude", RunState(MADE, "new"), (broken, heard))
    with caplog.at_level(logging.ERROR, "mulligan"):
        listener.step(begun(1.0))
        listener.step(limited(10.0, until=100.0))
    assert len(heard) == 1
    assert "the listener broken raised RuntimeError: no" in caplog.text


# With real programs

ONCE_LIMITED = """
if [ -e {mark} ]; then echo fine
else
  touch {mark}
  echo '429 Too Many Requests: rate limit reached, try again in 1 second' >&2
  exit 1
fi
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MULLIGAN_STORE", raising=False)
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def script(work):
    return ("sh", "-c", ONCE_LIMITED.format(mark=work / "mark"))


@pytest.mark.real
def test_every_listener_gets_the_agents_of_a_plan(work, tmp_path):
    registry, spans = CollectorRegistry(), InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    store = f"sqlite:{tmp_path / 'figures.db'}"
    lines = mulligan.JsonLinesListener(tmp_path / "events.jsonl", successes=True)
    figures = mulligan.StoreListener(store)
    listeners: list[Any] = [
        mulligan.PrometheusListener(registry),
        mulligan.OpenTelemetryListener(provider),
        lines,
        figures,
    ]
    plan = Plan(
        name="night",
        phases=(
            Phase(
                name="a",
                policy="default",
                agents=(
                    Agent(name="limited", command=script(work)),
                    Agent(name="well", command=("true",)),
                ),
            ),
            Phase(name="b", agents=(Agent(name="wrong", command=("sh", "-c", "exit 3")),)),
        ),
    )
    report = run_plan(plan, folder=work, is_shown=False, listeners=listeners)
    assert not report.is_success
    assert registry.get_sample_value("retry_recovered_total", {"target": "sh"}) == 1
    found = {"target": "sh", "kind": "rate_limit"}
    assert registry.get_sample_value("retries_total", found) == 1
    (ended,) = [
        each
        for metric in registry.collect()
        for each in metric.samples
        if each.name == "retry_ended_total"
    ]
    assert (ended.labels["target"], ended.value) == ("sh", 1)
    names = sorted(each.name for each in spans.get_finished_spans())
    assert names.count("attempt night a/limited") == 2
    assert names.count("retry night a/limited") == names.count("retry night b/wrong") == 1
    assert lines.flush()
    told_ = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    of_limited = [each for each in told_ if each["name"] == "night a/limited"]
    assert [each["event"] for each in of_limited] == ["failed", "recovered"]
    assert {each["request_id"] for each in of_limited} == {f"{report.run}.a.limited"}
    assert [each["event"] for each in told_ if each["target"] == "true"] == ["succeeded"]
    assert figures.flush()
    shown = subprocess.run(
        [sys.executable, "-m", "mulligan", "stats", "--json", "--target", "sh", "--store", store],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(shown.stdout)["calls"]["recovered"] == 1


@pytest.mark.real
def test_what_is_no_listener_is_refused_before_anything_starts(work):
    plan = Plan(name="n", phases=(Phase(name="a", agents=(Agent(name="x", command=("true",)),)),))
    with pytest.raises(SettingError, match="listeners needs callables"):
        run_plan(plan, folder=work, listeners=["events.jsonl"])  # type: ignore[list-item]


@pytest.mark.real
def test_the_command_appends_events_to_the_file_that_the_environment_names(work, tmp_path):
    file = tmp_path / "events.jsonl"
    words = [sys.executable, "-m", "mulligan", "run", "--name", "port", "--", *script(work)]
    for _ in range(2):
        done = subprocess.run(
            words,
            env={**os.environ, "MULLIGAN_EVENTS": str(file)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, b"fine\n")
        (work / "mark").unlink()
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert [each["event"] for each in found] == ["failed", "recovered"] * 2
    assert len({each["request_id"] for each in found}) == 2
    assert {(each["target"], each["name"]) for each in found} == {("sh", "port")}


@pytest.mark.real
def test_a_file_of_events_that_cannot_be_written_is_refused_before_the_run(work, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mulligan", "run", "--", "touch", str(work / "made")],
        env={**os.environ, "MULLIGAN_EVENTS": str(tmp_path / "none" / "events.jsonl")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "cannot write to" in done.stderr
    assert not (work / "made").exists()
