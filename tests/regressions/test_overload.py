"""A server with a queue is slow for a while, and callers time out: retrying must not keep it full.

Seen before: after the breaker had closed, every answer let two more calls through, as long as the
answers came in time. The calls queued at the server until all of them timed out together, the
breaker opened, and it began again: a queue that drains in 15 s without any retries took 103 s, with
2.5 times the offered load in the worst second. Now the number of calls under way grows only while
answers take no longer than they did at best.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mulligan.core.moment import Moment
from mulligan.shared.gate.slow_start import SlowStart
from mulligan.sim.compare import run
from mulligan.sim.policies import DEFAULT, NO_RETRIES
from mulligan.sim.scenario_file import find_scenario

OVERLOAD = find_scenario("s10-overload")
QUEUE = OVERLOAD.queue
assert QUEUE is not None
NEARLY_DEAD = replace(OVERLOAD, queue=replace(QUEUE, slow_rate=2.0))
LONG = replace(OVERLOAD, queue=replace(QUEUE, slow_until=30.0))


@pytest.mark.parametrize(
    "scenario", [OVERLOAD, NEARLY_DEAD, LONG], ids=["half of the load", "nearly dead", "20 s"]
)
def test_overload_drains_as_fast_as_without_retries_and_nothing_is_lost(scenario):
    none, ours = (run(scenario, policy).metrics for policy in (NO_RETRIES, DEFAULT))
    assert ours.completion == 1 > none.completion
    assert ours.lag is not None
    assert none.lag is not None
    assert ours.lag <= 1.2 * none.lag  # until goodput is back
    assert ours.seconds <= 1.6 * none.seconds  # until new jobs are prompt: the goal is 1.2
    assert ours.peak < 1.5 * none.peak
    assert ours.requests < 1.1 * none.requests


def answered(opening: SlowStart, lasted: float, count: int) -> SlowStart:
    for _ in range(count):
        opening = opening.ramped(opening.allowed, lasted, NOW)
    return opening


NOW = Moment(now=100.0, wall=1_000.0, era="e")


def test_a_ramp_beyond_a_few_calls_grows_by_a_quarter_of_what_is_answered():
    opening = answered(SlowStart.ramp(NOW), 0.2, 90)
    assert 24 <= opening.allowed <= 30


def test_a_ramp_grows_by_one_a_round_while_answers_take_longer_than_at_best():
    opening = answered(SlowStart.ramp(NOW), 0.2, 24)
    slower = answered(opening, 0.6, opening.allowed)
    assert slower.allowed == opening.allowed + 1


def test_a_ramp_is_halved_once_for_all_that_were_under_way_together():
    opening = answered(SlowStart.ramp(NOW), 0.2, 90)
    after = opening
    for _ in range(20):
        after = after.shrunk(1.0, NOW)
    assert after.allowed == opening.allowed // 2
    later = Moment(now=102.0, wall=1_002.0, era="e")
    assert after.shrunk(1.0, later).allowed == opening.allowed // 4
