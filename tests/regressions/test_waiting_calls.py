"""Calls that waited for too long, or asked too often, behind a default guard.

After an outage of 1.5 s of a limiter with quota headers nothing was sent for 60.6 s; after a crowd
was cancelled nothing was sent for 57.9 s. The first call that waited for a retry token asked again
every second, whether one had come back or not, and the first that waited for an answer every five
milliseconds: 12 questions a call through an outage of 20 s, 25 before a long window.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

import mulligan
from mulligan import testing
from mulligan.core.events import Held
from mulligan.sim.compare import resized
from mulligan.sim.engine import SimulatedAnswer, StatusError, simulate
from mulligan.sim.limiters import BucketLimiter, Window
from mulligan.sim.policies import DEFAULT, Guarded
from mulligan.sim.scenario import FaultPeriod, Hints, Jobs, Scenario, ServerLimit
from mulligan.sim.scenario_file import find_scenario


def longest_pause(times: list[float]) -> float:
    return max(later - earlier for earlier, later in pairwise(times))


@pytest.mark.parametrize("status", [503, 0], ids=["503", "refused"])
@pytest.mark.parametrize("kind", ["bucket", "window"])
def test_a_limiter_with_headers_that_is_out_for_a_moment_is_used_again_at_once(kind, status):
    scenario = Scenario(
        jobs=Jobs(count=60),
        limits=(ServerLimit(kind=kind, quota=5, per=1.0),),
        faults=(FaultPeriod(start=3.0, end=4.5, status=status),),
        hints=Hints(headers="x-ratelimit", retry_after="exact"),
    )
    ledger = simulate(scenario, DEFAULT)
    assert [job.verdict for job in ledger.jobs] == ["done"] * 60
    assert longest_pause([each.sent_at for each in ledger.requests]) < 4.0
    # 12 s at 5 a second, 1.5 s of outage, and as long again to find its end and to come back.
    assert max(job.ended_at for job in ledger.jobs) < 12 + 1.5 + 6


class Server:
    """A limit that is stated on every answer; requests take a fifth of a second."""

    def __init__(self, limiter: BucketLimiter | Window, clock: testing.VirtualClock) -> None:
        self.limiter, self.clock = limiter, clock
        self.sent: list[float] = []

    async def __call__(self) -> SimulatedAnswer:
        self.sent.append(self.clock.now())
        await asyncio.sleep(0.1)
        said = self.limiter.ask(self.clock.now())
        headers = {
            "x-ratelimit-limit-requests": str(said.limit),
            "x-ratelimit-remaining-requests": str(said.remaining),
            "x-ratelimit-reset-requests": f"{said.reset_in:.3f}s",
        }
        await asyncio.sleep(0.1)
        if not said.passes:
            raise StatusError(429, {**headers, "retry-after": f"{said.retry_in:.0f}"}, {})
        return SimulatedAnswer(headers)


@pytest.mark.parametrize("reads", [True, False], ids=["headers", "rejections"])
@pytest.mark.parametrize("when", [0.05, 0.15, 1.05, 2.5])
@pytest.mark.parametrize(
    "limiter",
    [lambda: BucketLimiter(5.0, 5), lambda: Window(5, 1.0, 1.0)],
    ids=["bucket", "window"],
)
def test_a_cancelled_crowd_holds_up_nobody(limiter, when, reads):
    clock = testing.VirtualClock()

    async def main() -> tuple[list[float], int]:
        server = Server(limiter(), clock)
        guard = mulligan.Guard(
            "acme", effects="read", observe=mulligan.headers_of if reads else None
        )
        crowd = [asyncio.ensure_future(guard.acall(server)) for _ in range(100)]
        await asyncio.sleep(when)
        for each in crowd:
            each.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)
        server.sent.clear()
        later = await asyncio.gather(*(guard.acall(server) for _ in range(10)))
        return [when, *server.sent], len(later)

    with testing.virtual_time(clock):
        sent, done = clock.run(main())
    assert done == 10
    assert longest_pause(sent) < 3.0
    assert clock.now() < when + 6.0


@pytest.mark.parametrize(
    "name", ["s1-bucket-headers", "s6-outage-20s", "s7-503-retry-after", "s10-one-second"]
)
def test_a_waiting_call_asks_a_few_times_however_many_wait(name):
    held: list[Held] = []
    guarded = Guarded("default", {"listeners": [held.append]})
    scenario = resized(find_scenario(name), agents=400)
    ledger = simulate(scenario, guarded)
    assert all(job.verdict == "done" for job in ledger.jobs)
    asked = sum(isinstance(each, Held) for each in held)
    assert asked / len(ledger.jobs) <= 3


def test_a_process_that_heard_no_answer_waits_as_long_as_one_that_did():
    # Two of four processes used up a whole window; the calls of the others, which had heard
    # nothing for as long as the first wait, were parked: 133 of 200 jobs were done.
    scenario = Scenario(
        jobs=Jobs(count=200),
        limits=(ServerLimit(kind="window", quota=64, per=614.0, first=406.0),),
        hints=Hints(retry_after="exact"),
        processes=4,
        store="shared",
        horizon=7200.0,
    )
    ledger = simulate(scenario, DEFAULT, seed=1)
    assert Counter(job.verdict for job in ledger.jobs) == {"done": 200}
    assert max(job.ended_at for job in ledger.jobs) < 1.01 * (406 + 2 * 614)


def test_a_retry_does_not_wait_for_slow_answers_to_others():
    # 30 % of the calls fail at once, and answers take seconds: 35 retries that were under way held
    # all tokens, and the others waited up to 3.7 s, although backoffs are below 0.5 s. (Behind the
    # first burst a retry waits for up to 1.6 s.)
    scenario = find_scenario("s12-deadline")
    ledger = simulate(scenario, DEFAULT, seed=0)
    sent: dict[int, list[float]] = {}
    for request in ledger.requests:
        sent.setdefault(request.job, []).append(request.sent_at)
    waits = [times[1] - times[0] for times in sent.values() if len(times) > 1]
    assert max(waits) < 2.0
    assert sum(job.verdict == "done" for job in ledger.jobs) >= 198
