"""How close to the limit: 200 agents behind one gate, in virtual time (RECOVERY S1, S2, S7)."""

from __future__ import annotations

import heapq
import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from mulligan import Failure, Kind
from mulligan.classify.quotas import Quota
from mulligan.core.admission import Admitted, Hold, Outcome
from mulligan.core.hint import Hint
from mulligan.core.moment import Moment
from mulligan.shared.gate.gate import EnterGate, Gate, GateState, GateWait, LeaveGate
from mulligan.stores.memory import Memory
from mulligan.stores.state_machine import Key
from tests.shared.without_queue import GateAlone


@dataclass
class Bucket:
    """A token bucket; `fee` is what a rejected request costs."""

    rate: float
    size: float
    fee: float = 0.0
    level: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.level = self.size

    def ask(self, now: float) -> tuple[bool, float, float, float]:
        """Whether it passes, what remains, when it is full, when to come again."""
        self.level = min(self.size, self.level + (now - self.at) * self.rate)
        self.at = now
        passes = self.level >= 1
        self.level -= 1 if passes else self.fee
        again = max((1 - self.level) / self.rate, 0.001)
        return passes, max(0, int(self.level)), (self.size - self.level) / self.rate, again

    def ideal(self, jobs: int) -> float:
        return max(0.0, (jobs - self.size) / self.rate)


@dataclass
class Window:
    """A fixed window that first turns at `first`."""

    quota: int
    length: float
    first: float
    used: int = 0
    turn: int = 0

    def ask(self, now: float) -> tuple[bool, float, float, float]:
        turn = 0 if now < self.first else 1 + int((now - self.first) / self.length)
        if turn != self.turn:
            self.turn, self.used = turn, 0
        reset = self.first + self.turn * self.length - now
        passes = self.used < self.quota
        self.used += passes
        return passes, self.quota - self.used, reset, reset

    def ideal(self, jobs: int) -> float:
        turns = -(-jobs // self.quota) - 1
        return 0.0 if turns <= 0 else self.first + (turns - 1) * self.length


@dataclass
class Ledger:
    done: int = 0
    requests: int = 0
    ended_at: float = 0.0
    asked: int = 0


class Alone:
    """The pure machine, applied by hand."""

    def __init__(self, gate: Gate, dice: random.Random) -> None:
        self.gate, self.dice, self.state, self.names = gate, dice, GateState(), itertools.count()

    def ask(self, worker, now):
        enter = EnterGate(
            id=f"p{next(self.names)}", holder="h", settings=self.gate, roll=self.dice.random()
        )
        self.state, answer = enter(self.state, Moment(now, 1e9 + now))
        return answer.delay if isinstance(answer, GateWait) else (enter.id, answer.turn)

    def tell(self, worker, ticket, now, *, passes, again, stated):
        name, turn = ticket
        leave = LeaveGate(
            id=name,
            turn=turn,
            reply="answered" if passes else "rejected",
            settings=self.gate,
            stated=stated,
            hint=again,
            roll=self.dice.random(),
        )
        self.state, _ = leave(self.state, Moment(now, 1e9 + now))


class Together:
    """The admissions of several processes, on one store."""

    def __init__(self, gate: Gate, dice: random.Random, workers: int) -> None:
        self.now = 0.0
        store = Memory(lambda: Moment(self.now, 1e9 + self.now, "store"))
        shared = store.state if workers > 1 else None
        self.gates = [
            GateAlone(Key("target", "gate"), gate, roll=dice.random, shared=shared)
            for _ in range(workers)
        ]

    def ask(self, worker, now):
        self.now = now
        answer = self.gates[worker % len(self.gates)].enter(1, now=now, wall=1e9 + now)
        assert isinstance(answer, Admitted | Hold)
        return answer.delay if isinstance(answer, Hold) else answer.ticket

    def tell(self, worker, ticket, now, *, passes, again, stated):
        self.now = now
        gate = self.gates[worker % len(self.gates)]
        failure = None
        if not passes:
            failure = Failure(kind=Kind.RATE_LIMIT, hint=Hint(delay=again))
        outcome: Outcome = "succeeded" if passes else "failed"
        gate.leave(ticket, outcome, failure, None, stated, now=now, wall=1e9 + now)


FRONTS: dict[str, Any] = {
    "the pure gate": Alone,
    "one process": lambda gate, dice: Together(gate, dice, 1),
    "four processes": lambda gate, dice: Together(gate, dice, 4),
}


def simulate(front, server, jobs, *, gate: Gate, limit=None, seed=0, latency=0.2):
    """`jobs` agents that all begin at once; headers are sent where `limit` is given."""
    dice = random.Random(seed)
    gates, ledger = FRONTS[front](gate, dice), Ledger()
    order = itertools.count()
    events: list[tuple[float, int, str, tuple[Any, ...]]] = []

    def at(when, what, *args):
        heapq.heappush(events, (when, next(order), what, args))

    for number in range(jobs):
        at(dice.random() * 0.01, "want", number)
    while events and ledger.asked < 500 * jobs:
        now, _, what, (agent, *args) = heapq.heappop(events)
        if what == "want":
            ledger.asked += 1
            answer = gates.ask(agent, now)
            if isinstance(answer, float):
                at(now + answer, "want", agent)
            else:
                at(now + latency / 2, "arrive", agent, answer)
        elif what == "arrive":
            ledger.requests += 1
            on_its_way = latency * (0.4 + 0.2 * dice.random())
            at(now + on_its_way, "answer", agent, *args, server.ask(now), on_its_way)
        else:
            ticket, (passes, remaining, reset, again), late = args
            said = Quota(
                dimension="requests",
                limit=limit,
                remaining=remaining,
                reset_in=reset - late if reset > late else None,
            )
            stated = (said,) if limit else ()
            gates.tell(agent, ticket, now, passes=passes, again=again, stated=stated)
            if passes:
                ledger.done += 1
                ledger.ended_at = now
            else:
                at(now, "want", agent)
    return ledger


@pytest.fixture(params=FRONTS)
def front(request):
    return request.param


# name, server, jobs, what the headers state as the limit
MODELS: dict[str, tuple[Any, int, int]] = {
    "bucket": (lambda: Bucket(50 / 60, 50), 200, 50),
    "bucket where rejections cost": (lambda: Bucket(50 / 60, 50, 0.2), 200, 50),
    "window 100 a minute": (lambda: Window(100, 60, 40), 250, 100),
    "window 40 in five minutes": (lambda: Window(40, 300, 270), 60, 40),
}


@pytest.mark.parametrize("model", MODELS)
def test_with_headers_every_job_is_done_with_one_request_in_the_ideal_time(front, model):
    make, jobs, limit = MODELS[model]
    server = make()
    seen = simulate(front, server, jobs, gate=Gate(scout=True), limit=limit)
    assert seen.done == jobs
    assert seen.requests / jobs <= 1.02
    assert seen.ended_at / server.ideal(jobs) <= 1.03


@pytest.mark.parametrize("model", MODELS)
def test_with_hints_alone_every_job_is_done_close_to_the_limit(front, model):
    make, jobs, _ = MODELS[model]
    server = make()
    seen = simulate(front, server, jobs, gate=Gate())
    costs = "cost" in model
    assert seen.done == jobs
    assert seen.requests / jobs <= (3.0 if costs else 2.2)
    assert seen.ended_at / server.ideal(jobs) <= (1.4 if costs else 1.10)


@pytest.mark.parametrize("seed", range(6))
def test_the_gate_finds_the_rate_of_limits_it_was_not_tuned_for(front, seed):
    dice = random.Random(seed)
    rate, size = dice.uniform(0.2, 5), dice.randint(5, 80)
    quota, length = dice.randint(5, 80), dice.uniform(5, 600)
    jobs = size + dice.randint(50, 150)
    for server, limit in (
        (Bucket(rate, size), size),
        (Window(quota, length, dice.uniform(1, length)), quota),
    ):
        seen = simulate(front, server, jobs, gate=Gate(scout=True), seed=seed, limit=limit)
        assert seen.done == jobs
        assert seen.requests / jobs <= 1.02
        # What no client can know: the first answer's round trip, and the last one's.
        assert seen.ended_at <= (server.ideal(jobs) + 0.4) * 1.03
