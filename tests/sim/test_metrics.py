"""Metrics of small ledgers, by hand."""

from __future__ import annotations

import pytest

from mulligan.sim.ledger import JobEnd, RequestRecord, SimulationLedger
from mulligan.sim.metrics import geometric_mean, measure
from mulligan.sim.oracle import Optimum
from mulligan.sim.scenario import FaultPeriod, Jobs, Scenario, ServerLimit, ServerQueue

BEST = Optimum(10.0, 4.0, 4)


def job(ended_at=10.0, verdict="done", effects=1, agent=0):
    return JobEnd(agent, 0.0, ended_at, verdict, effects)


def request(sent_at=0.0, number=0, **rest):
    rest.setdefault("ending", "answered")
    return RequestRecord(sent_at, 0, 0, number, **rest)


def measured(ends, requests, best=BEST, **scenario):
    scenario.setdefault("jobs", Jobs(count=len(ends)))
    return measure(Scenario(**scenario), SimulationLedger(requests, ends), best)


def four(**rest):
    return [job(**rest) for _ in range(4)], [request(number=n) for n in range(4)]


def test_the_best_that_can_be_done_scores_100():
    found = measured(*four())
    assert (found.quality, found.completion, found.stretch, found.overhead) == (100, 1, 1, 1)


def test_time_and_requests_count_by_their_square_roots():
    jobs, requests = four(ended_at=40.0)
    assert measured(jobs, requests).quality == pytest.approx(50)
    jobs, requests = four()
    assert measured(jobs, requests * 4).quality == pytest.approx(50)


def test_fewer_requests_make_up_for_more_time_but_nothing_is_better_than_the_best():
    jobs, requests = four(ended_at=20.0)
    assert measured(jobs, requests[:2]).quality == pytest.approx(100)
    assert measured(*four(ended_at=5.0)).quality == 100


def test_giving_up_early_is_no_merit():
    jobs, requests = four(ended_at=1.0)
    jobs[3] = job(verdict="not done", effects=0)
    assert measured(jobs, requests[:3]).quality == pytest.approx(75)


def test_a_violation_costs_its_share():
    jobs, requests = four()
    requests[0].is_violation = True
    assert measured(jobs, requests).quality == pytest.approx(75)


@pytest.mark.parametrize(
    ("harm", "name"), [({"effects": 2}, "duplicates"), ({"effects": 0}, "lost")]
)
def test_a_duplicate_or_a_loss_scores_nothing(harm, name):
    jobs, requests = four()
    jobs[0] = job(**harm)
    found = measured(jobs, requests, jobs=Jobs(count=4, effects="unsafe"))
    assert getattr(found, name) == 1
    assert found.quality == 0


def test_a_verdict_is_true_if_the_ledger_says_so():
    jobs = [
        job(),
        job(verdict="not done"),
        job(verdict="unknown"),
        job(verdict="not done", effects=0),
    ]
    found = measured(jobs, [request()], jobs=Jobs(count=4, effects="unsafe"))
    assert found.truth == 0.75  # the second was done, and its caller was told it was not


def test_lag_is_the_time_from_restored_capacity_to_steady_goodput():
    scenario = {
        "faults": (FaultPeriod(end=20.0),),
        "limits": (ServerLimit(kind="bucket", quota=1, per=1),),
        "jobs": Jobs(count=30),
    }
    prompt = [job(ended_at=20.5 + n) for n in range(30)]
    late = [job(ended_at=27.5 + n) for n in range(30)]
    best = Optimum(50.0, 30, 30)
    assert measured(prompt, [request()], best, **scenario).lag == pytest.approx(0, abs=0.75)
    assert measured(late, [request()], best, **scenario).lag == pytest.approx(7, abs=0.75)
    never = [job(ended_at=float("inf"), verdict="not done", effects=0) for _ in range(30)]
    assert measured(never, [request()], best, **scenario).lag == float("inf")


def test_fairness_is_jains_index_over_agents():
    even = [job(agent=n) for n in range(4)]
    assert measured(even, [request()]).fairness == pytest.approx(1)
    uneven = [job(agent=0, ended_at=40.0), *(job(agent=n, ended_at=1e-9) for n in range(1, 4))]
    assert measured(uneven, [request()]).fairness == pytest.approx(0.25)


def test_a_score_of_zero_does_not_hide_the_others():
    assert geometric_mean([100, 100]) == pytest.approx(100)
    assert geometric_mean([0, 100]) == pytest.approx(10)


def test_every_metric_of_a_run_that_was_computed_by_hand():
    """Five jobs of two agents on a limit of 1 a second, down until 4 s; RECOVERY's definitions.

    Agent 0 has jobs 0, 2 and 4, agent 1 has 1 and 3. Ten requests: three a second at the worst,
    one of them into a declared window, one with too little time left, one whose tokens are billed
    although it was cut. Job 3 is not done; job 4 is done twice.
    """
    scenario = Scenario(
        jobs=Jobs(count=5, agents=2, tokens=100.0, deadline=20.0, effects="unsafe"),
        limits=(ServerLimit(kind="bucket", quota=1, per=1.0),),
        faults=(FaultPeriod(end=4.0),),
    )
    ends = [
        JobEnd(0, 0.0, 6.0, "done", 1),
        JobEnd(1, 0.5, 7.0, "done", 1),
        JobEnd(0, 1.0, 8.0, "done", 1),
        JobEnd(1, 1.5, 8.5, "not done", 0),
        JobEnd(0, 2.0, 9.0, "done", 2),
    ]
    requests = [
        request(0.0, 0, ending="status"),
        request(0.5, 1, ending="status"),
        request(0.9, 1, ending="status", is_violation=True),
        request(1.8, 3, ending="status"),
        request(5.8, 0, is_applied=True, tokens=100.0),
        request(6.8, 1, is_applied=True, tokens=100.0),
        request(7.8, 2, is_applied=True, tokens=100.0),
        request(8.4, 3, ending="cut", tokens=50.0, is_late=True),
        request(8.7, 4, is_applied=True, tokens=100.0),
        request(8.9, 4, is_applied=True, tokens=100.0),
    ]
    best = Optimum(8.0, 8.0, 5)
    found = measure(scenario, SimulationLedger(requests, ends), best)
    assert found.completion == 4 / 5
    assert (found.seconds, found.stretch) == (9.0, 9 / 8)
    assert (found.requests, found.overhead) == (10, 10 / 8)
    assert found.violations == 1
    assert found.attempts == 10 / 5
    assert found.peak == 3 / 2  # 0.0, 0.5, 0.9 or 7.8, 8.4, 8.7; of jobs two begin in a second
    assert found.lag == float("inf")  # there are no five seconds with five answers
    assert (found.duplicates, found.lost) == (1, 0)
    assert found.token_waste == 550 / 400
    assert found.late == 1
    assert found.truth == 1
    assert found.fairness == pytest.approx((9 + 7) ** 2 / (2 * (9**2 + 7**2)))
    assert found.quality == 0  # job 4 was done twice
    ends[4].effects = 1
    found = measure(scenario, SimulationLedger(requests, ends), best)
    assert found.quality == pytest.approx(100 * 0.8 * (8 / 9 * 8 / 10) ** 0.5 * (1 - 1 / 5))


QUEUE = ServerQueue(rate=10.0, slow_rate=1.0, slow_from=0.0, slow_until=10.0)


def crowded(done_after):
    """A job a second for 60 s on a queue that is slow until 10 s; `done_after` by its beginning."""
    ends = [JobEnd(n, float(n), n + done_after(n), "done", 1) for n in range(60)]
    scenario = {"queue": QUEUE, "jobs": Jobs(count=60, rate=1.0, timeout=1.0)}
    return measured(ends, [request()], Optimum(4.0, 1.0, 60), **scenario)


def test_a_queue_is_drained_when_new_jobs_are_done_promptly_not_when_it_serves_again():
    waiting = crowded(lambda n: 0.5 if n >= 30 else 10.5)
    assert waiting.lag == 0  # answers come every second
    assert waiting.seconds == pytest.approx(20, abs=1)  # from 10 s to 30 s
    assert waiting.quality == pytest.approx(100 * (4 / waiting.seconds) ** 0.5)
    assert crowded(lambda _n: 0.5).seconds == 0
    assert crowded(lambda _n: 30.0).seconds == pytest.approx(59 + 30 - 10)
