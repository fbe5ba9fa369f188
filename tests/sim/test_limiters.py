"""Each limiter obeys its law, whatever the times and costs of what is asked of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.sim.limiters import BucketLimiter, Concurrency, SlidingLog, Window

steps = st.lists(st.floats(0, 30), min_size=1, max_size=80)


def times(gaps):
    at, found = 0.0, []
    for gap in gaps:
        at += gap
        found.append(at)
    return found


@given(gaps=steps, rate=st.floats(0.1, 10), size=st.integers(1, 20))
def test_a_bucket_admits_no_more_than_its_size_and_what_flowed_back(gaps, rate, size):
    bucket = BucketLimiter(rate, size)
    admitted = [at for at in times(gaps) if bucket.ask(at).passes]
    for first, begin in enumerate(admitted):
        for last in range(first, len(admitted)):
            assert last - first + 1 <= size + rate * (admitted[last] - begin) + 1e-6


@given(gaps=steps, quota=st.integers(1, 20), length=st.floats(1, 60))
def test_a_window_admits_its_quota_between_two_resets(gaps, quota, length):
    window = Window(quota, length, length / 2)
    admitted = [at for at in times(gaps) if window.ask(at).passes]
    turns = [0 if at < length / 2 else 1 + int((at - length / 2) / length) for at in admitted]
    assert all(turns.count(turn) <= quota for turn in set(turns))


@given(gaps=steps, quota=st.integers(1, 20), length=st.floats(1, 60))
def test_a_sliding_log_admits_its_quota_in_any_window(gaps, quota, length):
    log = SlidingLog(quota, length)
    admitted = [at for at in times(gaps) if log.ask(at).passes]
    for begin in admitted:
        assert len([at for at in admitted if begin <= at < begin + length - 1e-6]) <= quota


@given(
    asked=st.lists(st.tuples(st.floats(0, 5), st.floats(0.1, 10)), max_size=60),
    places=st.integers(1, 5),
)
def test_no_more_requests_are_served_at_a_time_than_there_are_places(asked, places):
    limiter, at, served = Concurrency(places), 0.0, []
    for gap, takes in asked:
        at += gap
        if limiter.look(at).passes:
            limiter.take(at, until=at + takes)
            served.append((at, at + takes))
    for begin, _ in served:
        assert len([1 for a, b in served if a <= begin < b - 1e-6]) <= places


@pytest.mark.parametrize(
    "make", [lambda: BucketLimiter(0.7, 3), lambda: Window(3, 10, 4), lambda: SlidingLog(3, 10)]
)
@given(gaps=steps)
def test_who_waits_as_long_as_told_is_admitted_and_who_comes_before_is_not(make, gaps):
    limiter = make()
    for at in times(gaps):
        answer = limiter.ask(at)
        if not answer.passes:
            assert not limiter.look(at + answer.retry_in * 0.5).passes or answer.retry_in <= 0.001
            assert limiter.look(at + answer.retry_in + 1e-6).passes
            return


def test_a_rejection_costs_its_fee():
    bucket = BucketLimiter(1, 1, fee=0.5)
    assert bucket.ask(0).passes
    assert [bucket.ask(0).retry_in for _ in range(2)] == [1.5, 2.0]


def test_a_used_up_window_says_when_it_is_reset():
    window = Window(2, 60, 40)
    first, second = window.ask(10), window.ask(10)
    assert (first.remaining, second.remaining) == (1, 0)
    assert second.reset_in == 30
