"""The seam for breaker and gate: an ordered list of admissions around each attempt."""

from __future__ import annotations

import pytest

import mulligan
from mulligan.core.admission import Admitted, Hold, Refused
from mulligan.testing import Scripted, status_error


class Turnstile:
    """An admission that answers as told and writes down what it hears."""

    def __init__(self, name, log, *answers) -> None:
        self.name, self.log, self.answers = name, log, list(answers)

    def enter(self, attempt, *, now, wall):
        answer = self.answers.pop(0) if self.answers else Admitted(self.name)
        self.log.append(f"{self.name} {type(answer).__name__} {attempt}")
        return answer

    def leave(self, ticket, outcome, failure, *, now, wall):
        assert ticket == self.name
        self.log.append(f"{ticket} {outcome}" + (f" {failure.kind}" if failure else ""))


def test_each_attempt_passes_every_admission_in_order_and_leaves_in_reverse(drive):
    log: list[str] = []
    script = Scripted(status_error(503), "ok")
    turnstiles = [Turnstile("breaker", log), Turnstile("gate", log)]
    result = drive.run(script, effects="read", admissions=turnstiles)
    assert result == "ok"
    assert log == [
        "breaker Admitted 1",
        "gate Admitted 1",
        "gate failed server",
        "breaker failed server",
        "breaker Admitted 2",
        "gate Admitted 2",
        "gate succeeded",
        "breaker succeeded",
    ]


def test_a_closed_gate_costs_time_but_no_attempt(drive):
    log: list[str] = []
    gate = Turnstile("gate", log, Hold(7, "window closed"), Hold(2, "not yet"))
    script = Scripted("ok")
    assert drive.run(script, admissions=[Turnstile("breaker", log), gate]) == "ok"
    assert drive.clock.sleeps == [7, 2]
    assert log.count("breaker cancelled") == 2
    assert len(script.calls) == 1


def test_a_gate_closed_for_long_raises_before_any_attempt(drive):
    script = Scripted("never")
    gate = Turnstile("gate", [], Hold(3600, "50 of 50 used"))
    with pytest.raises(mulligan.LimitReached) as caught:
        drive.run(script, target="anthropic", admissions=[gate])
    assert str(caught.value) == "anthropic: 50 of 50 used"
    assert caught.value.until == drive.clock.wall() + 3600
    assert script.calls == []
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.ending, story.attempts, story.retry_at) == ("refused", 0, caught.value.until)


def test_an_open_circuit_raises_at_once(drive):
    opened = mulligan.CircuitOpen("api", 30.0, "5 failures in a row")
    with pytest.raises(mulligan.CircuitOpen) as caught:
        drive.run(Scripted("never"), admissions=[Turnstile("breaker", [], Refused(opened))])
    assert caught.value is opened
    assert caught.value.retry_in == 30.0


def test_a_refused_retry_ends_with_the_last_real_error(drive):
    opened = mulligan.CircuitOpen("api", 30.0, "5 failures in a row")
    error = status_error(503)
    breaker = Turnstile("breaker", [], Admitted("breaker"), Refused(opened))
    with pytest.raises(Exception, match="status 503") as caught:
        drive.run(Scripted(error), effects="read", admissions=[breaker])
    assert caught.value is error
    assert caught.value.__context__ is None
    story = mulligan.story(error)
    assert story is not None
    assert (story.ending, story.because, story.attempts) == ("refused", "5 failures in a row", 1)


def test_an_open_circuit_raised_inside_is_not_retried(drive):  # R-K6, E-B13
    script = Scripted(mulligan.CircuitOpen("api", 30.0, "open"))
    with pytest.raises(mulligan.CircuitOpen):
        drive.run(script, effects="read")
    assert len(script.calls) == 1


def test_cancellation_gives_the_permit_back(drive):  # E-B2, E-B5
    log: list[str] = []
    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)):
        drive.run(Scripted(KeyboardInterrupt()), admissions=[Turnstile("gate", log)])
    assert log == ["gate Admitted 1", "gate cancelled"]


def test_a_hold_that_would_pass_the_deadline_is_not_waited(drive):
    gate = Turnstile("gate", [], Hold(50, "window closed"))
    with pytest.raises(mulligan.LimitReached):
        drive.run(Scripted("never"), deadline=20, admissions=[gate])
    assert drive.clock.sleeps == []
