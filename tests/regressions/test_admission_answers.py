"""Admissions (user code that admits or holds attempts) were trusted too much.

An admission is anything with `enter` and `leave`. What it answered, and what it raised, could let
a call through, keep it forever, or replace its answer.
"""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

import pytest

import mulligan
from mulligan.core.admission import Admitted, Hold, Refused
from mulligan.testing import Scripted, status_error, virtual_time


class Turnstile:
    def __init__(self, *answers) -> None:
        self.answers, self.left = list(answers), []

    def enter(self, attempt, *, now, wall):
        return self.answers.pop(0) if self.answers else Admitted()

    def leave(self, ticket, outcome, failure, *, now, wall):
        self.left.append(outcome)


def test_an_admission_that_holds_for_no_time_has_not_admitted():
    """`Hold(0)` was taken for an admission, without a ticket."""

    class Gate:
        asked = 0

        def enter(self, attempt, *, now, wall):
            self.asked += 1
            return Hold(0.0, "not yet") if self.asked == 1 else Admitted("ticket")

        def leave(self, ticket, outcome, failure, *, now, wall):
            assert ticket == "ticket"

    gate = Gate()
    with virtual_time():
        mulligan.Guard("acme", admissions=[gate]).call(Scripted("ok"))
    assert gate.asked == 2


def test_an_admission_that_always_holds_is_bounded():
    """A call without a deadline asked forever."""

    class Gate:
        asked = 0

        def enter(self, attempt, *, now, wall):
            self.asked += 1
            if self.asked > 10_000:
                raise AssertionError("endless")
            return Hold(1.0, "closed")

        def leave(self, ticket, outcome, failure, *, now, wall):
            pass

    with virtual_time(), pytest.raises(mulligan.LimitReached):
        mulligan.Guard("acme", admissions=[Gate()]).call(Scripted("ok"))


def test_an_admission_that_breaks_at_the_end_spoils_neither_answer_nor_error():
    """An exception in `leave` replaced the answer of the call."""

    class Gate:
        def enter(self, attempt, *, now, wall):
            return Admitted()

        def leave(self, ticket, outcome, failure, *, now, wall):
            raise RuntimeError("leave broke")

    with virtual_time():
        guard = mulligan.Guard("acme", admissions=[Gate()], attempts=1)
        assert guard.call(Scripted("ok")) == "ok"


def test_a_wait_to_be_admitted_is_announced(virtual_clock):
    """Listeners did not hear of waits before the first attempt."""
    answers: list[Hold | Admitted] = [Hold(7, "window closed"), Admitted()]

    class Gate:
        def enter(self, attempt, *, now, wall):
            return answers.pop(0)

        def leave(self, ticket, outcome, failure, *, now, wall): ...

    events: list[mulligan.Event] = []
    mulligan.Guard("acme", admissions=[Gate()], listeners=[events.append]).call(Scripted("ok"))
    assert [(type(each).__name__, each.attempt) for each in events] == [("Held", 1)]


def test_a_block_that_is_never_entered_gives_its_permit_back():
    """`break` before `with attempt:` kept the permit for good."""
    gate = Turnstile()
    for _ in mulligan.Guard(admissions=[gate]).attempts():
        break
    assert gate.left == ["cancelled"]


def test_a_block_that_is_refused_its_second_attempt_keeps_the_cause_of_its_error(virtual_clock):
    """The refusal replaced the `__cause__` that the caller had set."""
    cause = KeyError("root")
    opened = Refused(mulligan.CircuitOpen("api", 5.0, "open"))

    def block():
        for attempt in mulligan.Guard(admissions=[Turnstile(Admitted(), opened)]).attempts():
            with attempt:
                raise status_error(503) from cause

    with pytest.raises(Exception, match="status 503") as caught:
        block()
    assert caught.value.__cause__ is cause
