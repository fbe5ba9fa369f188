"""The best that any client could do: T*, the time, and R*, the requests.

The oracle knows the server's limits and outages, and sends every job at the first moment at which
it passes. What no client can know is added: the round trip of a first answer, the rejection that
reveals an unstated limit, the probes that find the end of an outage. RECOVERY's closed forms are
special cases; the tests hold the oracle against them.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from .randomness import SeededRandom
from .server import Draw, Server, SimulatedJob, limiter_of

if TYPE_CHECKING:
    from .limiters import Limiter
    from .scenario import FaultPeriod, Scenario

__all__ = ("Optimum", "completions", "optimum", "probing")

# The first look at a server that is down is a second after it failed.
_FIRST_LOOK = 1.0


@dataclass(frozen=True, slots=True)
class Optimum:
    """The optimum of one scenario."""

    seconds: float | None  # T*; None where time is not what the scenario is about
    requests: float  # R*
    jobs: int  # how many jobs can be done by their deadlines


def optimum(scenario: Scenario, seed: int = 0) -> Optimum:
    """T* and R* of `scenario`."""
    jobs = scenario.jobs
    if jobs.deadline:
        return _by_deadline(scenario, seed)
    requests = _sendings(scenario)
    if scenario.queue is not None:
        return Optimum(_drained(scenario), requests, jobs.count)
    if _is_random(scenario) and not scenario.limits:
        return Optimum(None, requests, jobs.count)
    strangers = scenario.processes if scenario.store == "apart" else 1
    # Until a first answer can have told anything.
    learning = scenario.latency.round_trip if scenario.limits or scenario.faults else 0.0
    seconds = _schedule(scenario)[-1] + learning
    for fault in scenario.faults:
        if fault.share >= 1 and fault.retry_after:
            requests += strangers
        elif fault.share >= 1:
            lag, probes = probing(fault.end - fault.start, jobs.count)
            seconds += lag
            requests += probes
    if _is_found_by_rejection(scenario):
        requests += strangers
    return Optimum(seconds, requests, jobs.count)


def _sendings(scenario: Scenario) -> float:
    """Requests that all jobs need, counting those that fail by chance."""
    jobs = scenario.jobs
    requests = float(jobs.count)
    for fault in scenario.faults:
        if fault.share < 1:
            requests /= 1 - fault.share
    if jobs.lost:
        # Every lost reply costs a verification; if nothing was done, one more request.
        requests *= (1 + jobs.lost) / _chance(1 - jobs.lost * (1 - jobs.committed))
    return requests / _chance(1 - jobs.cut)


def _chance(share: float) -> float:
    """A chance to succeed that can be divided by: never 0."""
    return max(share, 1e-6)


def _is_found_by_rejection(scenario: Scenario) -> bool:
    """Whether a request must be rejected before any client can know of a limit that binds."""
    if scenario.states_quota:
        return False
    # Requests at a time can be found from below: RECOVERY counts no rejection for S4.
    return any(
        limit.kind != "concurrency"
        and scenario.jobs.count * (scenario.jobs.tokens if limit.unit == "tokens" else 1)
        > limit.quota
        for limit in scenario.limits
    )


def completions(scenario: Scenario) -> list[float]:
    """When each job is answered at the best, in order; empty where there is no best time."""
    if scenario.queue is not None or scenario.jobs.deadline:
        return []
    return [] if _is_random(scenario) else _schedule(scenario)


def _is_random(scenario: Scenario) -> bool:
    """Whether requests fail by chance."""
    is_share = any(fault.share < 1 for fault in scenario.faults)
    return is_share or bool(scenario.jobs.cut or scenario.jobs.lost)


def _schedule(scenario: Scenario) -> list[float]:
    """When each job is answered, if each is sent as early as it passes.

    Jobs for one model are alike, so only the first of each model's queue is looked at. Times never
    go back: limiters keep no past.
    """
    jobs, latency = scenario.jobs, scenario.latency
    limits = [(limit, limiter_of(limit)) for limit in scenario.limits]
    outages = [fault for fault in scenario.faults if fault.share >= 1]
    waiting: dict[str, deque[float]] = {}
    for number, model in enumerate(jobs.assigned):
        begins = (number / jobs.rate if jobs.rate else 0.0) + latency.network
        waiting.setdefault(model, deque()).append(begins)
    mine = {
        model: [
            (limiter, jobs.tokens if limit.unit == "tokens" else 1.0)
            for limit, limiter in limits
            if not limit.model or limit.model == model
        ]
        for model in waiting
    }
    queue = [(begins[0], model) for model, begins in waiting.items()]
    heapq.heapify(queue)
    ends: list[float] = []
    while queue:
        at, model = heapq.heappop(queue)
        wait = _wait(at, mine[model], outages)
        if wait == inf:
            return [*ends, inf]
        if wait > 0:
            heapq.heappush(queue, (at + max(wait, 1e-6), model))
            continue
        for limiter, cost in mine[model]:
            limiter.take(at, cost, until=at + latency.service)
        ends.append(at + latency.service + latency.network)
        waiting[model].popleft()
        if waiting[model]:
            heapq.heappush(queue, (max(at, waiting[model][0]), model))
    return sorted(ends)


def _wait(at: float, limits: list[tuple[Limiter, float]], outages: list[FaultPeriod]) -> float:
    """Seconds from `at` until a request could pass every limit and meet no outage; 0 for now."""
    waits = [(outage.end or inf) - at for outage in outages if outage.is_on(at)]
    answers = [limiter.look(at, cost) for limiter, cost in limits]
    waits += [max(answer.retry_in, 1e-6) for answer in answers if not answer.passes]
    return max(waits, default=0.0)


def probing(outage: float, jobs: int) -> tuple[float, int]:
    """The expected lag and the number of probes of the best shared search for an outage's end.

    How long it lasts is unknown. Probes whose distance grows with the time it has been down by a
    fixed share find the end with a lag of half that share, on average. Few looks are late, many
    are requests; the share with the least ``time * requests`` is the optimum that RQ is held
    against.
    """
    best = (inf, 0.0, 0)
    for percent in range(5, 201):
        share = percent / 100
        looks = 1
        at = _FIRST_LOOK
        while at < outage:
            looks += 1
            at += max(at * share, _FIRST_LOOK)
        lag = max(min(outage, at) * share / (1 + share), _FIRST_LOOK) / 2
        cost = (outage + lag) * (jobs + looks)
        if cost < best[0]:
            best = (cost, lag, looks)
    return best[1], best[2]


def _drained(scenario: Scenario) -> float:
    """Seconds from the end of a slow time until a queue that is sent nothing twice is short again.

    What has waited for longer than the client's timeout is served in vain, so the last
    ``rate * timeout`` of the backlog need not be drained: then answers come in time again.
    """
    queue, jobs = scenario.queue, scenario.jobs
    assert queue is not None  # noqa: S101 -- the caller has looked
    backlog = (jobs.rate - queue.slow_rate) * (queue.slow_until - queue.slow_from)
    spare = queue.rate - jobs.rate
    if backlog <= 0 or spare <= 0:
        return jobs.timeout or scenario.latency.median
    return max(0.0, backlog - queue.rate * jobs.timeout) / spare + jobs.timeout


def _by_deadline(scenario: Scenario, seed: int) -> Optimum:
    """Jobs with a deadline, each alone: repeat at once while there is time for a usual answer."""
    server, random = Server(scenario, SeededRandom(seed)), SeededRandom(seed)
    latency, done, requests = scenario.latency, 0, 0
    for number in range(scenario.jobs.count):
        job = SimulatedJob(number, tokens=scenario.jobs.tokens)
        at, attempt = 0.0, 0
        while scenario.jobs.deadline - at >= latency.median:
            reply = server.arrive(at, job, attempt)
            requests += 1
            at += random.around(latency.network, Draw.UP, number, attempt)
            at += reply.takes + random.around(latency.network, Draw.DOWN, number, attempt)
            attempt += 1
            if reply.ending == "answered":
                done += at <= scenario.jobs.deadline
                break
    return Optimum(None, requests, max(done, 1))
