"""Simulations: repeatable, true to their server's books, and run by the product's own guards."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from mulligan.sim.compare import resized, run
from mulligan.sim.engine import StatusError, simulate
from mulligan.sim.policies import DEFAULT, NO_RETRIES, PATIENT, Guarded
from mulligan.sim.scenario import (
    FaultPeriod,
    Hints,
    Jobs,
    Latency,
    Scenario,
    ServerLimit,
    ServerQueue,
)
from mulligan.sim.scenario_file import find_scenario, shipped

BUCKET = ServerLimit(kind="bucket", quota=10, per=10)


class Policy:
    """A policy as a function."""

    def __init__(self, call):
        self.name, self._call = "test", call

    def clients(self, settings):
        self.settings = settings
        return self

    async def call(self, send, job):
        return await self._call(send, job)


def small(name):
    """A shipped scenario with few jobs."""
    found = find_scenario(name)
    if found.queue is not None:
        return replace(found, jobs=replace(found.jobs, count=1200))
    return resized(found, agents=min(found.agents, 12))


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_scenario_runs_small_and_twice_alike(name):
    scenario = small(name)
    first, second = simulate(scenario, DEFAULT, seed=3), simulate(scenario, DEFAULT, seed=3)
    assert first == second
    assert not first.has_run_away
    measured = run(scenario, DEFAULT, seed=3).metrics
    assert 0 <= measured.quality <= 100
    assert measured.requests == len(first.requests)
    assert (measured.duplicates, measured.lost) == (0, 0)


@pytest.mark.parametrize("name", shipped())
def test_the_ledger_adds_up(name):
    scenario = small(name)
    ledger = simulate(scenario, PATIENT, seed=1)
    applied = [0] * len(ledger.jobs)
    for request in ledger.requests:
        assert request.sent_at <= request.arrived_at <= request.ended_at
        applied[request.job] += request.is_applied
    assert applied == [job.effects for job in ledger.jobs]
    answered = {each.job for each in ledger.requests if each.ending == "answered"}
    for number, job in enumerate(ledger.jobs):
        if job.verdict == "done":
            assert job.effects
            assert number in answered or scenario.jobs.effects == "unsafe"  # found by verify=
            assert job.began_at <= job.ended_at <= scenario.horizon


def test_another_seed_is_another_run():
    scenario = find_scenario("s9-brownout-30")
    first, second = (simulate(scenario, NO_RETRIES, seed=seed) for seed in (1, 2))
    assert [each.status for each in first.requests] != [each.status for each in second.requests]


def test_policies_meet_the_same_luck():
    """The first request of a job fails or not whatever the policy did before."""
    scenario = find_scenario("s9-brownout-30")
    fates = []
    for policy in (NO_RETRIES, Policy(persistent)):
        first: dict[int, int] = {}
        for each in simulate(scenario, policy, seed=5).requests:
            first.setdefault(each.job, each.status)
        fates.append(first)
    assert fates[0] == fates[1]


async def persistent(send, _job):
    while True:
        try:
            return await send()
        except StatusError:
            await asyncio.sleep(1)


def test_a_call_that_waits_for_what_never_comes_is_a_hang_and_scores_nothing():
    async def waits_for_ever(_send, _job):
        await asyncio.get_running_loop().create_future()

    found = run(Scenario(jobs=Jobs(count=3)), Policy(waits_for_ever))
    assert found.ledger.has_hung
    assert found.metrics.quality == 0


def test_what_is_not_done_at_the_horizon_is_not_done():
    async def sleeps(_send, _job):
        await asyncio.sleep(1e6)

    found = run(Scenario(jobs=Jobs(count=3), horizon=60), Policy(sleeps))
    assert not found.ledger.has_hung
    assert [job.verdict for job in found.ledger.jobs] == ["pending"] * 3
    assert found.metrics.completion == 0


def test_requests_without_end_are_stopped():
    async def storms(send, _job):
        while True:
            try:
                return await send()
            except StatusError:
                pass

    scenario = Scenario(jobs=Jobs(count=50), faults=(FaultPeriod(end=3000),))
    ledger = simulate(scenario, Policy(storms))
    assert ledger.has_run_away


def test_a_request_into_a_window_that_was_declared_closed_is_a_violation():
    scenario = Scenario(
        jobs=Jobs(count=1),
        faults=(FaultPeriod(end=20, status=429, retry_after=True),),
        latency=Latency(shape="fixed"),
    )
    found = simulate(scenario, Policy(lambda send, _: twice(send)))
    assert [each.is_violation for each in found.requests] == [False, True]


async def twice(send):
    try:
        await send()
    except StatusError:
        await send()


def test_what_another_process_was_told_binds_nobody_unless_they_share_a_store():
    async def in_turn(send, job):
        await asyncio.sleep(job.number)
        await send()

    scenario = Scenario(
        jobs=Jobs(count=2), processes=2, faults=(FaultPeriod(end=20, status=429, retry_after=True),)
    )
    assert run(scenario, Policy(in_turn)).metrics.violations == 0
    together = replace(scenario, store="shared")
    assert run(together, Policy(in_turn)).metrics.violations == 1


def test_a_lie_binds_nobody():
    scenario = Scenario(
        jobs=Jobs(count=20, agents=1),
        limits=(ServerLimit(kind="window", quota=10, per=60),),
        hints=Hints(retry_after="huge"),
    )
    assert run(scenario, Policy(lambda send, _: twice(send))).metrics.violations == 0


def test_a_server_that_no_longer_has_a_client_works_on():
    """Retries of what timed out keep a queue full: the loop that makes overload last."""

    async def three_times(send, _job):
        for _ in range(3):
            try:
                return await send()
            except TimeoutError:
                continue
        raise TimeoutError

    scenario = Scenario(
        jobs=Jobs(count=4000, rate=80, timeout=1),
        queue=ServerQueue(rate=100, slow_rate=40, slow_from=5, slow_until=15),
        horizon=120,
    )
    calm, storm = run(scenario, NO_RETRIES), run(scenario, Policy(three_times))
    assert calm.metrics.lag is not None
    assert storm.metrics.lag is not None
    assert calm.metrics.lag < 20
    assert storm.metrics.lag > 2 * calm.metrics.lag
    assert storm.metrics.peak > 1.5


def test_a_lost_reply_is_verified_and_nothing_is_done_twice():
    found = run(find_scenario("s11-lost-replies"), Guarded("calm", {"breaker": False}))
    assert found.metrics.duplicates == 0
    assert found.metrics.truth == 1
    assert any(each.ending == "verify" for each in found.ledger.requests)
    blind = run(find_scenario("s11-lost-replies"), Policy(blindly))
    assert blind.metrics.duplicates > 0
    assert blind.metrics.quality == 0


async def blindly(send, _job):
    while True:
        try:
            return await send()
        except ConnectionResetError:
            await asyncio.sleep(0.1)


def test_processes_that_share_a_store_hear_of_each_others_limits():
    scenario = Scenario(
        jobs=Jobs(count=60), limits=(BUCKET,), processes=4, hints=Hints(headers="x-ratelimit")
    )
    together = run(replace(scenario, store="shared"), PATIENT).metrics
    apart = run(scenario, PATIENT).metrics
    assert together.completion == apart.completion == 1
    assert together.requests <= apart.requests


def test_a_job_that_was_put_off_is_taken_up_again_by_the_next_process():
    found = run(find_scenario("s8-five-hours"), DEFAULT)
    assert found.metrics.completion == 1
    assert found.metrics.stretch == pytest.approx(1, abs=0.01)
    during = [each for each in found.ledger.requests if 10 < each.sent_at < 5 * 3600 - 1]
    assert not during  # neither before nor after the death


def test_agents_with_several_jobs_do_them_one_after_another():
    scenario = Scenario(jobs=Jobs(count=6, agents=2), latency=Latency(service=1))
    ledger = simulate(scenario, NO_RETRIES)
    assert [job.agent for job in ledger.jobs] == [0, 1, 0, 1, 0, 1]
    assert ledger.jobs[2].began_at == ledger.jobs[0].ended_at


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(jobs=Jobs(count=20), faults=(FaultPeriod(end=1800.0),), horizon=20_000.0),
        Scenario(
            jobs=Jobs(count=20),
            limits=(ServerLimit(kind="window", quota=10, per=7200.0),),
            hints=Hints(retry_after="exact"),
            horizon=20_000.0,
        ),
    ],
    ids=["outage", "window"],
)
def test_the_patient_policy_finishes_what_lasts_longer_than_the_default_waits(scenario):
    default, patient = (simulate(scenario, policy) for policy in (DEFAULT, PATIENT))
    assert any(job.verdict != "done" for job in default.jobs)
    assert all(job.verdict == "done" for job in patient.jobs)
