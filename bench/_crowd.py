"""Two hundred agents before one limiter, in virtual time.

Time passes from event to event: an agent asks its front, waits or sends, the request arrives half
a round trip later, the answer comes back half a round trip after that. What the front does is the
product's own code; nothing here knows how a gate thinks.
"""

from __future__ import annotations

import heapq
import itertools
import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mulligan import Failure, Kind
from mulligan.classify.quotas import Quota
from mulligan.core.admission import Admitted, Hold
from mulligan.core.hint import Hint
from mulligan.core.moment import Moment
from mulligan.shared.admission import CallAdmission
from mulligan.shared.gate.client import GateAdmission
from mulligan.shared.gate.gate import Gate
from mulligan.stores.memory import Memory
from mulligan.stores.state_machine import Key

if TYPE_CHECKING:
    from collections.abc import Callable

    from _limiters import Drawn

    from mulligan.core.admission import Outcome
    from mulligan.sim.limiters import LimiterAnswer

__all__ = ("FRONTS", "ROUND_TRIP", "Run", "simulate", "tell")

# Seconds from sending a request to having its answer, give or take a tenth.
ROUND_TRIP = 0.2

# Whoever is not called looks again after so many seconds, as drivers do.
_LOOK = 600.0

# A front that needs more requests a job than this is not going to be done.
_HOPELESS = 60


@dataclass(frozen=True, slots=True)
class Run:
    """How one crowd got through.

    Args:
        jobs: How many there were to do.
        done: How many were done.
        requests: How many requests that took.
        seconds: When the last was done.
        ideal: When it could have been, counting what nobody can know beforehand: the round trip
            of the first answer, and the one of the last.
        burst: Requests turned away before the first answer could be back.
        asked: Questions that the agents asked their front.
    """

    jobs: int
    done: int
    requests: int
    seconds: float
    ideal: float
    burst: int = 0
    asked: int = 0

    @property
    def a_burst(self) -> float:
        """Requests a job if nothing but the first burst had been turned away."""
        return 1 + self.burst / self.jobs

    @property
    def a_job(self) -> float:
        return self.requests / self.jobs

    @property
    def stretch(self) -> float:
        return self.seconds / self.ideal if self.done == self.jobs else float("inf")


class Front(Protocol):
    """What stands between an agent and the target."""

    def ask(self, agent: int, now: float) -> float | object:
        """Seconds to wait before asking again; or a ticket, to send at once."""
        ...

    def tell(self, agent: int, ticket: Any, answer: LimiterAnswer, now: float) -> None:
        """What came of it."""
        ...


class Gates:
    """The gate as drivers use it, one for each of `processes`.

    Args:
        dice: Luck.
        call: Told which agent asks again, and when: its turn has come.
        processes: How many share the target.
        reads: Whether answers carry quota headers.
    """

    def __init__(
        self,
        dice: random.Random,
        call: Callable[[int, float], None],
        *,
        processes: int,
        reads: bool,
    ) -> None:
        self._now, self._reads = 0.0, reads
        store = Memory(lambda: Moment(self._now, 1e9 + self._now, "store"))
        self._gates = [
            GateAdmission(
                Key("target", "gate"),
                Gate(scout=reads),
                roll=dice.random,
                shared=store.state if processes > 1 else None,
            )
            for _ in range(processes)
        ]

        self._waiters: dict[int, CallAdmission] = {}
        self._call = call

    def _gate(self, agent: int) -> GateAdmission:
        return self._gates[agent % len(self._gates)]

    def ask(self, agent: int, now: float) -> float | object:
        self._now = now
        waiter = self._waiters.get(agent)
        if waiter is None:
            gate = self._gate(agent)
            made = waiter = self._waiters[agent] = CallAdmission(gate.waiting, None, gate)
            waiter.ring = lambda: self._call(agent, made.due)
        answer = waiter.enter(1, now=now, wall=1e9 + now)
        assert isinstance(answer, Admitted | Hold)
        return min(waiter.due - now, _LOOK) if isinstance(answer, Hold) else answer.ticket

    def tell(self, agent: int, ticket: Any, answer: LimiterAnswer, now: float) -> None:
        self._now = now
        tell(self._waiters[agent], ticket, answer, now, 1e9 + now, reads=self._reads)


def tell(
    gate: CallAdmission,
    ticket: object,
    answer: LimiterAnswer,
    now: float,
    wall: float,
    *,
    reads: bool,
) -> None:
    """Tell `gate` what came of an attempt, as a driver and an observer of headers do."""
    failure: Failure | None = None
    outcome: Outcome = "succeeded"
    said = Quota(
        dimension="requests",
        limit=answer.limit,
        remaining=answer.remaining,
        reset_in=answer.reset_in,
    )
    if not answer.passes:
        hint = Hint(delay=answer.retry_in)
        failure, outcome = Failure(kind=Kind.RATE_LIMIT, hint=hint), "failed"
    stated = (said,) if reads else ()
    gate.leave(ticket, outcome, failure, now=now, wall=wall, stated=stated)


class Alone:
    """Every agent for itself: it waits for what its own last answer said, or rolls for it.

    Args:
        dice: Luck.
        hears: Whether it waits as long as it was told; else full jitter, from one second to sixty.
    """

    def __init__(self, dice: random.Random, *, hears: bool) -> None:
        self._dice, self._hears = dice, hears
        self._waits: dict[int, float] = {}
        self._failed: dict[int, int] = {}

    def ask(self, agent: int, now: float) -> float | object:  # noqa: ARG002 -- the shape of a front
        return self._waits.pop(agent, None) or agent

    def tell(self, agent: int, ticket: Any, answer: LimiterAnswer, now: float) -> None:  # noqa: ARG002 -- the shape of a front
        if answer.passes:
            return
        times = self._failed[agent] = self._failed.get(agent, 0) + 1
        jitter = self._dice.random() * min(60.0, 2.0 ** min(times - 1, 6))
        self._waits[agent] = answer.retry_in if self._hears else max(jitter, 1e-6)


FRONTS: dict[str, Any] = {
    "gate, headers": partial(Gates, processes=1, reads=True),
    "gate, headers, four processes": partial(Gates, processes=4, reads=True),
    "gate, Retry-After alone": partial(Gates, processes=1, reads=False),
    "gate, Retry-After alone, four processes": partial(Gates, processes=4, reads=False),
    "each obeys Retry-After": lambda dice, _call: Alone(dice, hears=True),
    "each full jitter": lambda dice, _call: Alone(dice, hears=False),
}


def simulate(front: str, limiter: Drawn, *, jobs: int = 200, seed: int = 0) -> Run:
    """One crowd that begins at 0, a job each."""
    dice = random.Random(seed)
    order = itertools.count()
    events: list[tuple[float, int, str, int, Any]] = []
    asks_at: dict[int, float] = {}  # when an agent asks next: earlier plans are void

    def call(agent: int, due: float) -> None:
        asks_at[agent] = due
        heapq.heappush(events, (due, next(order), "ask", agent, None))

    gate: Front = FRONTS[front](dice, call)
    done = requests = asked = burst = 0
    ended_at = 0.0
    for agent in range(jobs):
        call(agent, dice.random() * 0.01)
    while events and requests < _HOPELESS * jobs and asked < 40 * _HOPELESS * jobs:
        now, _, what, agent, carried = heapq.heappop(events)
        after: tuple[float, str, Any]
        if what == "ask":
            if asks_at.get(agent) != now:
                continue  # it was called sooner, or is let in by now
            asked += 1
            answer = gate.ask(agent, now)
            if isinstance(answer, float):
                call(agent, now + answer)
                continue
            del asks_at[agent]
            after = (now + _half(dice), "arrive", answer)
        elif what == "arrive":
            requests += 1
            said = limiter.ask(now)
            burst += not said.passes and now < ROUND_TRIP
            after = (now + _half(dice), "answer", (carried, said))
        else:
            ticket, heard = carried
            gate.tell(agent, ticket, heard, now)
            if heard.passes:
                done, ended_at = done + 1, now
                continue
            call(agent, now)
            continue
        heapq.heappush(events, (after[0], next(order), after[1], agent, after[2]))
    ideal = limiter.ideal(jobs) + 2 * ROUND_TRIP
    return Run(jobs, done, requests, ended_at, ideal, burst, asked)


def _half(dice: random.Random) -> float:
    return ROUND_TRIP * (0.45 + 0.1 * dice.random())
