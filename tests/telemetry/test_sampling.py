"""A sampled log stays short on a bad day and loses no count; structlog says the same."""

from __future__ import annotations

import logging
from math import inf
from typing import Any

import pytest
import structlog

import mulligan
from mulligan import Counters, LogListener, StructlogListener
from mulligan.telemetry import background
from mulligan.testing import Scripted, status_error, virtual_time

logger = logging.getLogger("mulligan.test_sampling")
ALONE: Any = {"breaker": False, "gate": False, "tokens": False}


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.facts: list[dict[str, Any]] = []
        self.lines: list[str] = []

    def emit(self, record):
        self.facts.append(record.mulligan)
        self.lines.append(record.getMessage())


@pytest.fixture
def records(monkeypatch):
    # A busy machine must not make a slow listener of ours: it would be called on another thread.
    monkeypatch.setattr(background, "_ENOUGH", inf)
    kept = Records()
    logger.addHandler(kept)
    logger.setLevel(logging.INFO)
    yield kept
    logger.removeHandler(kept)


def counted(records, event):
    """How many events of a sort the lines tell of, the ones that were left out included."""
    lines = [each for each in records.facts if each["event"] == event]
    rest = [each["count"] for each in records.facts if each.get("of") == event]
    return len(lines) + sum(each.get("left_out", 0) for each in lines) + sum(rest)


@pytest.mark.parametrize("pause", [0.0, 0.36], ids=["at once", "within an hour"])
def test_ten_thousand_transient_503s_make_a_few_hundred_lines_and_lose_no_count(records, pause):
    listener, counters = LogListener("sampled", logger=logger), Counters()
    with virtual_time() as clock:
        guard = mulligan.Guard(
            "acme",
            effects="read",
            listeners=[listener, counters],
            **ALONE,
        )
        for _ in range(5_000):
            guard.call(Scripted(status_error(503), status_error(503), "well"))
            clock.advance(pause)
    listener.flush()
    assert counters.total("retry_failures_total") == 10_000
    assert counters.total("retry_recovered_total") == 5_000
    assert len(records.lines) <= 400
    assert counted(records, "failed") == 10_000
    assert counted(records, "recovered") == 5_000


def test_an_exhaustion_is_never_left_out(records):
    with virtual_time():
        guard = mulligan.Guard(
            "acme",
            effects="read",
            attempts=2,
            listeners=[LogListener("sampled", logger=logger)],
            **ALONE,
        )
        for _ in range(100):
            with pytest.raises(Exception, match="503"):
                guard.call(Scripted(status_error(503)))
    assert sum("gave up after 2 attempts" in line for line in records.lines) == 100


def test_a_line_says_how_many_like_it_were_left_out(records):
    listener = LogListener("sampled", logger=logger)
    with virtual_time():
        guard = mulligan.Guard("acme", effects="read", attempts=5, listeners=[listener])
        with pytest.raises(Exception, match="503"):
            guard.call(Scripted(status_error(503, "no capacity")))
    assert records.lines[1].endswith("attempt 5 of 5 failed with 503 (overloaded) (and 3 like it)")
    assert records.facts[1]["left_out"] == 3


def test_what_was_left_out_last_is_told_when_flushed(records):
    listener = LogListener("sampled", logger=logger)
    with virtual_time():
        guard = mulligan.Guard("acme", effects="read", listeners=[listener], gate=False)
        for _ in range(12):
            guard.call(Scripted(status_error(500), "well"))
    listener.flush()
    assert "acme: 2 more failed server events" in records.lines
    assert "acme: 2 more recovered events" in records.lines
    listener.flush()
    assert len([line for line in records.lines if " more " in line]) == 2


def test_a_provider_that_names_no_time_is_reported_once_per_target_and_hour(records):  # R-C18
    listener = LogListener(logger=logger)
    limited = (status_error(429), status_error(429), status_error(429), "well")
    with virtual_time() as clock:
        for _ in range(3):
            for target in ("acme", "other"):
                guard = mulligan.Guard(target, effects="read", listeners=[listener], **ALONE)
                guard.call(Scripted(*limited))
        told = [line for line in records.lines if "limits without a time" in line]
        assert [line.partition(":")[0] for line in told] == ["acme", "other"]
        clock.advance(3_600)
        mulligan.Guard("acme", effects="read", listeners=[listener], **ALONE).call(
            Scripted(*limited)
        )
    assert len([line for line in records.lines if "limits without a time" in line]) == 3


def test_structlog_gets_the_same_lines_with_facts_as_pairs():
    with structlog.testing.capture_logs() as logs, virtual_time():
        guard = mulligan.Guard("acme", effects="read", listeners=[StructlogListener()])
        guard.call(Scripted(status_error(503, "no capacity"), "well"))
    assert [(each["log_level"], each["event"]) for each in logs] == [
        (
            "info",
            (
                "acme: scripted attempt 1 failed: 503 (overloaded): no capacity; "
                "retry in 250ms, by backoff"
            ),
        ),
        ("info", "acme: scripted succeeded on attempt 2 after 250ms of waiting"),
    ]
    assert logs[0]["kind_of_event"] == "failed"
    assert (logs[0]["kind"], logs[0]["status"], logs[0]["target"]) == ("overloaded", 503, "acme")


def test_a_detail_that_does_not_exist_is_refused():
    with pytest.raises(mulligan.SettingError, match="StructlogListener needs full or sampled"):
        StructlogListener("some")  # type: ignore[arg-type]
