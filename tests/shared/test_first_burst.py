"""How many calls are sent to a target before it is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.shared.gate.first_burst import FirstBurst


def sent(start: FirstBurst, live: int, now: float) -> int:
    """How many more calls may be sent while `live` are under way."""
    count = 0
    while start.wait(live + count, now) == 0 and count < 10_000:
        count += 1
    return count


def test_ten_calls_go_ahead_and_the_next_one_waits_for_a_moment():
    start = FirstBurst()
    assert sent(start, 0, 100.0) == 10
    assert start.wait(10, 100.1) == pytest.approx(0.15)


def test_as_many_again_follow_once_all_have_been_answered():
    start = FirstBurst()
    sent(start, 0, 0.0)
    for left in range(9, 0, -1):
        start.answered(0.1, is_awaited=True)
        assert sent(start, left, 0.1) == 0  # rejections of the calls sent last come last
    start.answered(0.1, is_awaited=True)
    assert sent(start, 0, 0.1) == 10
    assert sent(start, 0, 0.2) == 20
    assert sent(start, 0, 0.3) == 40


def test_where_answers_take_long_as_many_again_are_sent_every_quarter_of_a_second():
    start = FirstBurst()
    assert [sent(start, 1, now) for now in (0.0, 0.25, 0.5, 0.75)] == [10, 10, 20, 40]


def test_where_all_fail_one_call_at_a_time_looks_again():
    start = FirstBurst()
    sent(start, 0, 0.0)
    for _ in range(10):
        start.failed(0.2)
    assert sent(start, 0, 0.2) == 0
    assert sent(start, 0, 0.46) == 1
    start.failed(0.66)
    assert sent(start, 0, 0.67) == 0
    assert sent(start, 0, 0.92) == 1


def test_a_few_failures_hold_nobody_back():
    start = FirstBurst()
    for number in range(4):
        assert start.wait(0, number) == 0
        start.failed(number + 0.1)
    assert start.wait(0, 3.1) == 0


def test_a_first_answer_after_failures_lets_a_few_go_ahead_again():
    start = FirstBurst()
    sent(start, 0, 0.0)
    for _ in range(10):
        start.failed(0.2)
    assert sent(start, 0, 0.5) == 1
    start.answered(0.7, is_awaited=True)
    assert sent(start, 1, 0.7) == 10


def test_nobody_looks_again_before_the_time_that_a_failure_stated():
    start = FirstBurst()
    sent(start, 0, 0.0)
    for _ in range(10):
        start.failed(0.2, 60.0)
    assert start.wait(0, 0.3) == pytest.approx(59.9)
    assert start.until == pytest.approx(60.2)
    assert sent(start, 0, 60.2) == 1


def test_a_few_failures_among_calls_whose_answers_take_longer_hold_nobody_back():
    start = FirstBurst()
    sent(start, 0, 0.0)
    for _ in range(4):
        start.failed(0.2, 60.0)
    assert sent(start, 6, 0.25) == 10


def test_failures_after_an_answer_hold_nobody_back():
    start = FirstBurst()
    sent(start, 0, 0.0)
    start.answered(0.1, is_awaited=True)
    for _ in range(9):
        start.failed(0.2, 60.0)
    assert sent(start, 0, 0.2) == 10


def test_it_is_over_with_the_first_answer_after_which_no_call_waits():
    start = FirstBurst()
    start.answered(0.0, is_awaited=True)
    assert not start.is_over
    start.answered(0.0, is_awaited=False)
    assert start.is_over


def test_a_call_with_a_deadline_waits_for_a_fiftieth_of_it_and_all_others_follow():
    start = FirstBurst()
    sent(start, 0, 0.0)
    start.hasten(0.0, 10.0)
    start.hasten(0.1, 600.0)
    assert start.wait(10, 0.1) == pytest.approx(0.1)
    assert sent(start, 10, 0.2) == 10_000
    assert start.is_over


@given(
    st.lists(
        st.tuples(st.sampled_from(["ask", "answer", "fail"]), st.floats(0.0, 0.5)), max_size=200
    )
)
def test_it_always_goes_on(moves: list[tuple[str, float]]):
    """Whatever happened, the next call is sent within a step, unless a failure stated a time."""
    start, now, live = FirstBurst(), 0.0, 0
    for move, later in moves:
        now += later
        if move == "ask":
            live += start.wait(live, now) == 0
        elif live:
            live -= 1
            if move == "answer":
                start.answered(now, is_awaited=True)
            else:
                start.failed(now)
    waited = start.wait(live, now)
    assert 0 <= waited <= 0.25 + 1e-9
    assert start.wait(live, now + waited + 1e-6) == 0 or waited == 0


def test_rounding_of_times_lets_no_crowd_through():
    start = FirstBurst()
    since = 0.21446
    sent(start, 0, since)
    assert sent(start, 10, since + 0.25 - 1e-17) in {0, 10}
    assert start.wait(10, since + 0.2499999999999999) > 0
