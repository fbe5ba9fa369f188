"""T* and R* are what RECOVERY's closed forms say, and what no schedule beats in small cases."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulligan.sim.oracle import optimum, probing
from mulligan.sim.scenario import (
    FaultPeriod,
    Hints,
    Jobs,
    Latency,
    Scenario,
    ServerLimit,
    ServerQueue,
)
from mulligan.sim.server import limiter_of

AT_ONCE = Latency(network=0, shape="fixed")


def scenario(count, *limits, **rest):
    return Scenario(jobs=Jobs(count=count), limits=limits, latency=AT_ONCE, **rest)


@given(count=st.integers(1, 300), quota=st.integers(1, 60), per=st.floats(1, 90))
def test_a_bucket_takes_what_the_closed_form_says(count, quota, per):
    best = optimum(scenario(count, ServerLimit(kind="bucket", quota=quota, per=per)))
    ideal = max(0.0, (count - quota) / (quota / per))
    assert best.seconds == pytest.approx(ideal, rel=1e-3, abs=0.01 * max(1, count))


@given(count=st.integers(1, 300), quota=st.integers(1, 60), first=st.floats(1, 60))
def test_a_window_takes_what_the_closed_form_says(count, quota, first):
    best = optimum(scenario(count, ServerLimit(kind="window", quota=quota, per=60, first=first)))
    turns = ceil(count / quota)
    assert best.seconds == pytest.approx(0 if turns < 2 else first + (turns - 2) * 60)


def test_a_sliding_log_frees_its_slots_a_window_after_they_were_taken():
    assert optimum(scenario(200, ServerLimit(kind="sliding", quota=50, per=30))).seconds == (
        pytest.approx(90)
    )


@given(count=st.integers(1, 60), places=st.integers(1, 9), service=st.floats(0.1, 9))
def test_a_limit_of_requests_at_a_time_takes_rounds(count, places, service):
    found = optimum(
        Scenario(
            jobs=Jobs(count=count),
            limits=(ServerLimit(kind="concurrency", quota=places),),
            latency=Latency(network=0, service=service, shape="fixed"),
        )
    )
    assert found.seconds == pytest.approx(ceil(count / places) * service)
    assert found.requests == count


def test_of_requests_and_tokens_the_tighter_one_counts():
    both = scenario(
        100,
        ServerLimit(kind="bucket", quota=60, per=60),
        ServerLimit(kind="bucket", quota=40_000, per=60, unit="tokens"),
    )
    assert optimum(both).seconds == pytest.approx(90, rel=0.01)


@pytest.mark.parametrize("kind", ["bucket", "window", "sliding"])
@settings(max_examples=15)
@given(data=st.data())
def test_no_schedule_of_a_few_jobs_is_faster(kind, data):
    """Brute force: every way to send up to five requests on a grid of half seconds."""
    count, quota = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    limit = ServerLimit(kind=kind, quota=quota, per=2.0, first=1.0 if kind == "window" else None)
    best = optimum(scenario(count, limit)).seconds
    assert best is not None
    fastest = float("inf")
    for times in combinations_with_replacement([n / 2 for n in range(20)], count):
        limiter = limiter_of(limit)
        if times[-1] < fastest and all(limiter.ask(at).passes for at in times):
            fastest = times[-1]
    assert best <= fastest + 0.01
    assert fastest - best < 0.5 + 0.01  # the grid's coarseness


@pytest.mark.parametrize(
    ("hints", "more"),
    [(Hints(), 1), (Hints(retry_after="exact"), 1), (Hints(headers="anthropic"), 0)],
)
def test_a_limit_that_is_not_stated_costs_one_rejection(hints, more):
    limit = ServerLimit(kind="bucket", quota=10, per=60)
    assert optimum(scenario(50, limit, hints=hints)).requests == 50 + more
    assert optimum(scenario(10, limit, hints=hints)).requests == 10


def test_processes_that_do_not_talk_are_rejected_once_each():
    limit = ServerLimit(kind="bucket", quota=10, per=60)
    assert optimum(scenario(50, limit, processes=4, store="apart")).requests == 54
    assert optimum(scenario(50, limit, processes=4, store="shared")).requests == 51


@given(outage=st.floats(1, 600), jobs=st.integers(1, 500))
def test_the_search_for_an_outages_end_is_late_by_a_share_and_costs_few_probes(outage, jobs):
    lag, probes = probing(outage, jobs)
    assert 0 < lag <= max(0.5, outage / 2)
    assert 1 <= probes <= outage + 2


def test_random_failures_have_no_best_time_and_a_best_number_of_requests():
    flaky = scenario(100, faults=(FaultPeriod(share=0.3),))
    assert optimum(flaky).seconds is None
    assert optimum(flaky).requests == pytest.approx(100 / 0.7)


def test_a_queue_is_drained_by_what_it_has_to_spare():
    overload = Scenario(
        jobs=Jobs(count=8000, rate=80, timeout=1),
        queue=ServerQueue(rate=100, slow_rate=40, slow_from=10, slow_until=20),
    )
    assert optimum(overload).seconds == pytest.approx((400 - 100) / 20 + 1)
