"""Processes that are killed, stopped and woken at any moment, beside the pure machines.

A handful of moments in `make test`, hundreds in `make soak`, which sets MULLIGAN_SOAK.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import fields, is_dataclass
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from mulligan.classify.quotas import Quota
from mulligan.core.moment import Moment
from mulligan.once import claims
from mulligan.once.claims import Drop, Finish, Mine, Renew, Take
from mulligan.shared import breaker
from mulligan.shared import retry_tokens as tokens
from mulligan.shared.breaker import BREAKER, AskBreaker, Breaker, ManualOverride, TellBreaker
from mulligan.shared.gate import gate
from mulligan.shared.gate.gate import GATE, EnterGate, Gate, LeaveGate, PermitGranted
from mulligan.shared.retry_tokens import TOKENS, Reserve, Settle, Tokens
from mulligan.stores.entries import JournalLine
from mulligan.stores.open import open_store
from mulligan.stores.redis.store import Redis
from mulligan.stores.state_machine import Key, Machine

from .conftest import Worker, taken_over

pytestmark = pytest.mark.real

LONG = int(os.environ.get("MULLIGAN_SOAK", "0"))
CAPACITY = 12
MACHINES: dict[str, Machine[Any]] = {each.name: each for each in (BREAKER, GATE, TOKENS)}
NAMES: dict[str, Any] = {"inf": float("inf")}
for module in (breaker, claims, gate, tokens):
    NAMES |= {name: getattr(module, name) for name in module.__all__}
_numbers = count()

# What depends on the moment, and on how busy the machine is.
_TIMES = {"retry_in", "delay", "least", "seconds", "because"}

HALF_OPEN = Breaker(failures=2, open_for=1000)


def seen(answer: Any) -> Any:
    """An answer without what depends on the moment."""
    if not is_dataclass(answer):
        return answer
    values = {each.name: getattr(answer, each.name) for each in fields(answer)}
    return type(answer).__name__, {k: v for k, v in values.items() if k not in _TIMES}


class Fleet(RuleBasedStateMachine):
    """Two processes on one store, and the pure machines beside them."""

    url = ""
    spare: list[Worker]  # processes that outlive an example

    def __init__(self) -> None:
        super().__init__()
        self.number, self.names = next(_numbers), count()
        self.states: dict[Key, Any] = {}
        self.granted = 0
        self.epochs = [0]
        unit: Any = "requests"  # as it can be written and read again
        full: Any = {"limit": CAPACITY, "remaining": CAPACITY, "reset_in": 3000}
        said = Quota(dimension="requests", unit=unit, **full)
        learnt = LeaveGate(id="", turn=0, reply="answered", settings=Gate(), stated=(said,))
        self.does(0, "gate", learnt)

    # Doing

    def worker(self, at: int) -> Worker:
        while len(self.spare) <= at:
            self.spare.append(Worker("serve", self.url))
            assert self.spare[-1].hear() == "ready"
        return self.spare[at]

    def key(self, part: str) -> Key:
        return Key(f"loop {self.number}", part)

    def line(self, part: str, operation: Any) -> str:
        port = "keys" if part.startswith("once") else "state"
        return f"({port!r}, {self.key(part)!r}, {operation!r})"

    def asks(self, at: int, part: str, operation: Any) -> Any:
        """What a process is answered."""
        worker = self.worker(at)
        worker.say(self.line(part, operation))
        return eval(worker.hear(), dict(NAMES))  # noqa: S307 -- our own worker speaks here

    def does(self, at: int, part: str, operation: Any) -> Any:
        """What a process is answered, which is what the pure machine says."""
        answer = self.asks(at, part, operation)
        key, moment = self.key(part), Moment(time.monotonic(), time.time())
        before = self.states.get(key, operation.machine.start)
        self.states[key], expected = operation(before, moment)
        assert seen(answer) == seen(expected), operation
        if isinstance(answer, PermitGranted):
            self.granted += answer.count
            assert self.granted <= CAPACITY
        return answer

    # Rules

    who = st.integers(0, 1)

    @rule(at=who, holder=st.sampled_from("ab"))
    def take(self, at, holder):
        answer = self.does(at, "once", Take(holder=holder, fingerprint="f", lease=1000))
        if isinstance(answer, Mine):
            self.epochs.append(answer.epoch)

    @rule(at=who, holder=st.sampled_from("ab"), back=st.integers(1, 2))
    def finish(self, at, holder, back):
        epoch = self.epochs[-min(back, len(self.epochs))]
        self.does(
            at,
            "once",
            Finish(holder=holder, epoch=epoch, fingerprint="f", value='"done"', ttl=1000),
        )

    @rule(at=who, holder=st.sampled_from("ab"), back=st.integers(1, 2), renews=st.booleans())
    def drop_or_renew(self, at, holder, back, renews):
        epoch = self.epochs[-min(back, len(self.epochs))]
        keep = Renew(holder=holder, epoch=epoch, fingerprint="f", lease=1000)
        self.does(at, "once", keep if renews else Drop(holder=holder, epoch=epoch))

    @rule(
        at=who,
        result=st.sampled_from(["success", "failure", "neither"]),
        permit=st.sampled_from("pq"),
    )
    def tell(self, at, result, permit):
        generation = getattr(self.states.get(self.key("breaker")), "generation", 0)
        tell = TellBreaker(
            permit=permit, generation=generation, result=result, worker="w", settings=HALF_OPEN
        )
        self.does(at, "breaker", tell)
        self.does(1 - at, "breaker", AskBreaker(permit=permit, settings=HALF_OPEN))

    @rule(at=who, move=st.sampled_from(["block", "allow", "reset"]))
    def lay_a_hand_on(self, at, move):
        self.does(at, "breaker", ManualOverride(move=move))

    @rule(at=who, most=st.integers(1, 4), leaves=st.booleans())
    def enter(self, at, most, leaves):
        name = f"p{next(self.names)}"
        entering = EnterGate(id=name, holder=f"h{at}", settings=Gate(block=1000), most=most)
        answer = self.does(at, "gate", entering)
        if leaves and isinstance(answer, PermitGranted):
            unused = answer.count - 1
            back = LeaveGate(id=name, turn=0, reply="answered", settings=Gate(), unused=unused)
            self.does(1 - at, "gate", back)
            self.granted -= unused

    @rule(at=who, is_returned=st.booleans())
    def retry(self, at, is_returned):
        bound, name = Tokens(capacity=40), f"r{next(self.names)}"
        self.does(at, "tokens", Reserve(id=name, cost=14, lease=1000, tokens=bound))
        settle = Settle(id=name, is_returned=is_returned)
        self.does(1 - at, "tokens", settle)

    @rule(at=who, what=st.integers(0, 3), moment=st.floats(0, 0.002))
    def kill_in_the_middle(self, at, what, moment):
        """Whether it landed nobody knows; asking again with the same id is the same as once."""
        name = f"k{next(self.names)}"
        part, operation = [
            ("gate", EnterGate(id=name, holder="k", settings=Gate(block=1000))),
            ("tokens", Reserve(id=name, cost=5, lease=1000, tokens=Tokens(capacity=40))),
            ("once", Take(holder=name, fingerprint="f", lease=1000)),
            ("breaker", AskBreaker(permit=name, settings=HALF_OPEN)),
        ][what]
        worker = self.worker(at)
        worker.say(self.line(part, operation))
        time.sleep(moment)
        worker.end()
        del self.spare[at]
        answer = self.does(at, part, operation)
        if isinstance(answer, Mine):
            self.epochs.append(answer.epoch)

    @rule(at=who)
    def stop_a_holder_until_it_is_a_zombie(self, at):
        part = f"once {next(self.names)}"
        first = self.does(at, part, Take(holder="zombie", fingerprint="f", lease=0.02))
        assert first == Mine(1)
        zombie = self.worker(at).process
        zombie.send_signal(signal.SIGSTOP)
        try:
            heir = Take(holder="heir", fingerprint="f", lease=1000)
            # When exactly the lease ends depends on the moments of the looks, so the pure machine
            # looks on a clock of its own. Six looks are enough but for rounding.
            key, taken, expected = self.key(part), None, None
            for look in range(1, 8):
                time.sleep(0.02)
                taken = self.asks(1 - at, part, heir)
                moment = Moment(time.monotonic() + look, time.time())
                self.states[key], expected = heir(self.states[key], moment)
            assert taken == expected == Mine(2)
        finally:
            zombie.send_signal(signal.SIGCONT)
        late = Finish(holder="zombie", epoch=1, fingerprint="f", value='"late"', ttl=1000)
        assert self.does(at, part, late) is False

    def teardown(self) -> None:
        store = open_store(self.url)
        for key, state in self.states.items():
            if machine := MACHINES.get(key.part):
                found, _ = store.state.peek(key, machine)
                assert type(found) is type(state)
                for name in ("generation", "turn", "spent", "hand", "streak"):
                    assert getattr(found, name, None) == getattr(state, name, None)


def test_processes_that_die_and_stop_at_any_moment_answer_as_the_pure_machines_do(common):
    url, _ = common
    spare: list[Worker] = []
    fleet = type("Fleet", (Fleet,), {"url": url, "spare": spare})
    try:
        run_state_machine_as_test(
            fleet,
            settings=settings(
                max_examples=LONG or 3,
                stateful_step_count=30 if LONG else 10,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        for worker in spare:
            worker.end()


def test_no_lease_outlives_its_time_when_its_holder_is_killed(common, workers):
    url, store = common
    for number in range(max(2, LONG // 4)):
        holder = workers("hold", url, f"w{number}", 0.2)
        epoch = int(holder.hear())
        holder.killed()
        heir = Take(holder="heir", fingerprint="f", lease=30)
        assert taken_over(store, Key("target", "once"), heir) == Mine(epoch + 1)
        assert store.keys.transact(Key("target", "once"), Drop(holder="heir", epoch=epoch + 1))


def test_a_server_killed_and_started_again_has_lost_nothing_it_acknowledged(new_server, workers):
    server = new_server()
    store = Redis(server.url)
    for number in range(max(3, LONG // 4)):
        worker = workers("append", server.url, f"w{number}", "run")
        acknowledged = [worker.hear() for _ in range(1 + 7 * number % 40)]
        server.end(signal.SIGKILL)
        acknowledged += worker.killed()
        server.start()
        written = [entry.id for entry in store.journal.read("run")]
        assert set(filter(None, acknowledged)) <= set(written)
        assert len(written) == len(set(written))
        store.journal.append("run", JournalLine(f"after {number}", "1"))
        store._hot.command("SCRIPT", "FLUSH")
    store.close()
