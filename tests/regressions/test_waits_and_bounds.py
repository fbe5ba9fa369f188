"""Waits and bounds were computed or reported wrongly."""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

import asyncio

import pytest

import mulligan
from mulligan import Effects, Exponential, Failure, Hint, Kind, Policy, RetryAfter, Rule, preset
from mulligan.core.decide import Call
from mulligan.core.duration import duration_text
from mulligan.testing import Scripted, VirtualClock, status_error, virtual_time


def test_a_whole_factor_is_as_safe_as_a_fraction():  # E-A1
    """In whole numbers the power takes seconds and 125 MB."""
    # In whole numbers 2 ** 10**9 takes seconds and 125 MB.
    assert isinstance(Exponential(factor=2).factor, float)
    assert Exponential(factor=2).delay(10**9, 0.5) == 15


def test_the_longer_wait_is_told_with_its_own_reason():  # at_least
    """The backoff was waited for, and the server was named as the reason."""
    call = Call(preset("pipeline"), Effects.READ)
    failure = Failure(kind=Kind.RATE_LIMIT, hint=Hint(delay=5, source="retry-after"))
    decision = call.failed(failure, now=0, wall=0, roll=0.5)
    assert decision.because == "retry in 2m15s, by backoff"


def test_the_time_since_the_first_failure_is_told_from_the_first_second_of_a_clock():
    """A clock that starts at 0 was taken for "no failure yet"."""
    events: list[mulligan.Failed] = []
    with virtual_time():
        mulligan.Guard("acme", effects="read", listeners=[events.append]).call(
            Scripted(status_error(500), status_error(500), status_error(500), "ok")
        )
    assert [each.elapsed for each in events] == [0.0, 0.25, 0.75, 1.75]


def test_a_time_of_a_thousand_digits_is_no_hint():
    """OverflowError in the middle of a call."""
    assert Hint.after(10**400, source="retry-after") is None


def test_a_no_without_a_reason_is_still_a_sentence():
    """The reason ended with a colon."""
    decision = Call(preset("default"), Effects.READ).failed(
        Failure(kind=Kind.SERVER, is_retriable=False), now=0, wall=0, roll=0.5
    )
    assert not decision.because.rstrip().endswith(":")


@pytest.mark.parametrize(("value", "text"), [(59.96, "1m"), (0.9996, "1s"), (-0.0, "0s")])
def test_durations_round_into_the_next_unit(value, text):
    """Printed as 60s, 1000ms and -0s."""
    assert duration_text(value) == text


def test_skill_retries_four_statuses_and_no_fifth():  # R-C7
    """425 was retried by a preset that names its statuses."""
    failure = mulligan.classifier.classify(status_error(425), now=0)
    decision = Call(preset("skill"), Effects.READ).failed(failure, now=0, wall=0, roll=0.5)
    assert not isinstance(decision, RetryAfter)


def test_a_server_that_says_in_a_millisecond_again_and_again_is_no_hot_loop(virtual_clock):
    """`retry-after-ms: 1` made thousands of requests."""
    script = Scripted(status_error(429, headers={"retry-after-ms": "1"}))
    with pytest.raises(Exception, match="status 429"):
        mulligan.call(script)
    assert virtual_clock.sleeps[0] == pytest.approx(0.001)
    assert len(script.calls) < 40  # in a quarter of an hour


def test_attempts_are_the_total_whatever_they_fail_with(virtual_clock):
    """Each kind of failure had its own count, so `attempts=2` made four."""
    script = Scripted(
        ConnectionRefusedError(), status_error(500), TimeoutError(), status_error(429), "never"
    )
    with pytest.raises(Exception, match="status 500"):
        mulligan.Guard(attempts=2, effects="read").call(script)
    assert len(script.calls) == 2


def test_patience_is_believed_where_it_is_given(virtual_clock):
    """A stated reset was waited for beyond the `patience` of the caller."""
    with pytest.raises(Exception, match="status 429"):
        mulligan.Guard(patience=10).call(
            Scripted(status_error(429, headers={"retry-after": "100"}), "late")
        )
    assert virtual_clock.sleeps == []


def test_an_explicit_deadline_is_not_cut_short_by_patience(virtual_clock):
    """The default patience ended a call that had an hour."""
    with pytest.raises(Exception, match="status 429"):
        mulligan.Guard(deadline="1h").call(Scripted(status_error(429)))
    assert 3000 < virtual_clock.now() <= 3600


def test_an_attempt_that_succeeds_late_costs_the_task_its_time(virtual_clock):
    """Only failed attempts were charged to the budget of the task."""
    tries = []

    def slow():
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionRefusedError
        virtual_clock.advance(25)

    with mulligan.task(budget=30) as task:
        mulligan.call(slow)
    assert task.spent == 25.25


def test_a_deadline_counts_from_the_start_not_from_the_first_suspension():
    """The time before the first `await` did not count."""
    clock = VirtualClock()

    @mulligan.retry(deadline=5, effects="read")
    async def slow_to_start():
        clock.advance(4)
        await asyncio.sleep(1000)

    async def main():
        with virtual_time(clock):
            await slow_to_start()

    with pytest.raises(TimeoutError):
        clock.run(main())
    assert clock.now() == 5


def test_a_thousand_attempts_need_no_thousand_frames(virtual_clock):
    """Attempts must not nest, and all of them belong to one request id."""
    policy = Policy(rules={Kind.SERVER: Rule(attempts=1500)}, patience="30d")
    seen = []
    listeners = [lambda event: seen.append(event.request_id)]
    guard = mulligan.Guard(policy=policy, effects="read", listeners=listeners)
    with pytest.raises(Exception, match="status 500"):
        guard.call(Scripted(status_error(500)))
    assert len(seen) == 1501
    assert len(set(seen)) == 1
