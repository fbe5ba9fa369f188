"""Two hundred agents before one limiter, each behind a default guard, in virtual time.

The same limiters as in `_crowd`, and the whole product in front of them: a guard with breaker,
gate, retry tokens and patience, as it comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from _crowd import ROUND_TRIP, Run

from mulligan.sim import engine
from mulligan.sim.limiters import BucketLimiter
from mulligan.sim.policies import DEFAULT
from mulligan.sim.scenario import Hints, Jobs, Latency, Scenario, ServerLimit

if TYPE_CHECKING:
    from _limiters import Drawn

__all__ = ("GUARDED", "guarded")

# What answers carry, and over how many processes on one store the agents are spread.
GUARDED = {
    "guard, headers": ("headers", 1),
    "guard, headers, four processes": ("headers", 4),
    "guard, Retry-After alone": ("hints", 1),
    "guard, Retry-After alone, four processes": ("hints", 4),
}


def _limit(limiter: Drawn) -> ServerLimit:
    if isinstance(limiter, BucketLimiter):
        per = limiter.size / limiter.rate
        return ServerLimit(kind="bucket", quota=limiter.size, per=per, fee=limiter.fee)
    return ServerLimit(kind="window", quota=limiter.quota, per=limiter.length, first=limiter.first)


def guarded(front: str, limiter: Drawn, *, jobs: int = 200, seed: int = 0) -> Run:
    """One crowd that begins at 0, a job each."""
    carried, processes = GUARDED[front]
    ideal = limiter.ideal(jobs) + 2 * ROUND_TRIP
    scenario = Scenario(
        jobs=Jobs(count=jobs),
        limits=(_limit(limiter),),
        hints=Hints(retry_after="exact", headers="x-ratelimit" if carried == "headers" else "none"),
        latency=Latency(network=ROUND_TRIP / 2),
        processes=processes,
        store="shared" if processes > 1 else "apart",
        horizon=10 * ideal + 3600.0,
    )
    ledger = engine.simulate(scenario, DEFAULT, seed=seed)
    done = [job.ended_at for job in ledger.jobs if job.verdict == "done"]
    burst = sum(each.status == 429 and each.arrived_at < ROUND_TRIP for each in ledger.requests)
    return Run(jobs, len(done), len(ledger.requests), max(done, default=0.0), ideal, burst)
