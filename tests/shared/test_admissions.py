"""Breaker, gate and tokens around attempts, in one process and in several."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

import mulligan
from mulligan import Failure, Kind
from mulligan.core.admission import Admitted, Hold, Refused
from mulligan.core.hint import Hint
from mulligan.core.moment import Moment
from mulligan.shared.admission import CallAdmission
from mulligan.shared.breaker import Breaker, ManualOverride
from mulligan.shared.gate.gate import GATE, Gate
from mulligan.shared.gate.queue import TargetQueues
from mulligan.shared.retry_tokens import Tokens
from mulligan.shared.retry_tokens_client import RetryTokens
from mulligan.stores.cache import FailOpen, do_all
from mulligan.stores.memory import Memory
from mulligan.stores.sqlite.store import Sqlite
from mulligan.stores.state_machine import Key
from mulligan.testing import Scripted, VirtualClock, status_error

from .without_queue import BreakerAlone, GateAlone

BREAKER_KEY = Key("api", "breaker")
GATE_KEY = Key("api", "gate")
SERVER = Failure(kind=Kind.SERVER, status=503)
FIVE = Breaker(failures=5, open_for=60, open_at_least=60)


class Clock:
    def __init__(self) -> None:
        self.now, self.wall = 100.0, 1e9

    def __call__(self) -> Moment:
        return Moment(self.now, self.wall + self.now, "store")

    @property
    def times(self) -> dict[str, float]:
        return {"now": self.now, "wall": self.wall + self.now}


class Counted:
    """A state that counts what is asked of it."""

    def __init__(self, state) -> None:
        self.inner, self.reads, self.writes = state, 0, 0

    def peek(self, key, machine):
        (state,), moment = self.peek_all([(key, machine)])
        return state, moment

    def peek_all(self, wanted):
        self.reads += 1
        return self.inner.peek_all(wanted)

    def transact(self, key, operation):
        return self.transact_all([(key, operation)])[0]

    def transact_all(self, steps):
        self.writes += 1
        return self.inner.transact_all(steps)


@dataclass(frozen=True)
class Quota:
    dimension: str = "requests"
    unit: str = "requests"
    limit: float | None = 100
    remaining: float | None = 100
    reset_in: float | None = 60
    window: float | None = None


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def shared(request, tmp_path, clock):
    store = Memory(clock) if request.param == "memory" else Sqlite(tmp_path / "s.db", clock)
    yield Counted(store.state)
    store.close()


def asked(gate, clock):
    return gate.ask(0.0, **clock.times, moment=Moment(**clock.times))


def ended(tokens, clock, name="", outcome="succeeded"):
    do_all(tokens.settling(name, outcome, clock.now), **clock.times)


def call(admission, clock, outcome="succeeded", failure=None, *quotas):
    answer = admission.enter(1, **clock.times)
    if isinstance(answer, Admitted):
        args = (None, quotas) if quotas else ()
        admission.leave(answer.ticket, outcome, failure, *args, **clock.times)
    return answer


def limit(seconds: float) -> Failure:
    hint = Hint(delay=seconds, source="retry-after")
    return Failure(kind=Kind.RATE_LIMIT, status=429, message="slow down", hint=hint)


# Breaker


def test_five_failures_open_it_and_the_error_says_for_how_long(clock):  # R-K1, R-K2, R-K6
    breaker = BreakerAlone(BREAKER_KEY, FIVE)
    for _ in range(5):
        assert isinstance(call(breaker, clock, "failed", SERVER), Admitted)
    clock.now += 20
    answer = call(breaker, clock)
    assert isinstance(answer, Refused)
    assert isinstance(answer.error, mulligan.CircuitOpen)
    assert (answer.error.target, answer.error.retry_in) == ("api", 40.0)
    assert str(answer.error) == "api: 5 failures in a row"
    clock.now += 40
    assert isinstance(call(breaker, clock), Admitted)
    assert breaker.is_calm


def test_a_client_error_never_counts(clock):
    breaker = BreakerAlone(BREAKER_KEY, FIVE)
    for _ in range(50):
        call(breaker, clock, "failed", Failure(kind=Kind.CLIENT, status=400))
        call(breaker, clock, "failed", limit(5))
    assert breaker.is_calm


def test_exactly_one_of_fifty_threads_passes_half_open(clock):  # E-B1
    breaker = BreakerAlone(BREAKER_KEY, FIVE)
    for _ in range(5):
        call(breaker, clock, "failed", SERVER)
    clock.now += 60
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: breaker.enter(1, **clock.times), range(50)))
    assert sum(isinstance(answer, Admitted) for answer in answers) == 1


def test_a_healthy_call_writes_nothing_and_reads_once_in_50_ms(clock, shared):
    breaker = BreakerAlone(BREAKER_KEY, FIVE, shared=shared)
    gate = GateAlone(GATE_KEY, Gate(), roll=lambda: 0.5, shared=shared)
    for _ in range(100):
        call(breaker, clock)
        call(gate, clock)
        clock.now += 0.01
    assert shared.writes == 0
    assert shared.reads <= 2 * 21


def test_a_worker_on_a_bad_network_stops_itself_and_nobody_else(clock, shared):  # E-B15
    bad, good = (BreakerAlone(BREAKER_KEY, FIVE, shared=shared) for _ in range(2))
    for _ in range(5):
        call(bad, clock, "failed", SERVER)
        clock.now += 1
    assert isinstance(call(bad, clock), Refused)
    assert isinstance(call(good, clock), Admitted)


def test_what_a_quorum_saw_stops_everybody(clock, shared):
    workers = [BreakerAlone(BREAKER_KEY, FIVE, shared=shared) for _ in range(5)]
    for worker in workers:
        call(worker, clock, "failed", SERVER)
    newcomer = BreakerAlone(BREAKER_KEY, FIVE, shared=shared)
    assert isinstance(call(newcomer, clock), Refused)
    clock.now += 61
    answers = [worker.enter(1, **clock.times) for worker in workers]
    assert [type(answer) for answer in answers].count(Admitted) == 1


def test_a_success_elsewhere_ends_the_row_for_all(clock, shared):
    one, two = (BreakerAlone(BREAKER_KEY, FIVE, shared=shared) for _ in range(2))
    for _ in range(20):
        for _ in range(4):
            call(one, clock, "failed", SERVER)
            clock.now += 1
        call(two, clock)
        call(one, clock)
        clock.now += 1
    assert isinstance(call(one, clock), Admitted)


def test_a_hand_elsewhere_is_felt_within_50_ms(clock, shared):
    breaker = BreakerAlone(BREAKER_KEY, FIVE, shared=shared)
    call(breaker, clock)
    shared.transact(BREAKER_KEY, ManualOverride(move="block", because="migration"))
    clock.now += 0.06
    answer = call(breaker, clock)
    assert isinstance(answer, Refused)
    assert str(answer.error) == "api: migration"


def test_without_a_gate_a_stated_limit_opens_it_exactly_so_long(clock, shared):
    told: list[tuple[bool, float, str]] = []
    breaker = BreakerAlone(
        BREAKER_KEY,
        Breaker(),
        shared=shared,
        on_change=lambda *change: told.append(change),
    )
    call(CallAdmission(TargetQueues(), breaker, None), clock, "failed", limit(300))
    other = BreakerAlone(BREAKER_KEY, FIVE, shared=shared)
    answer = call(other, clock)
    assert isinstance(answer, Refused)
    assert isinstance(answer.error, mulligan.CircuitOpen)
    assert answer.error.retry_in == 300
    assert told == [(True, 300, "429 (rate_limit): slow down")]


def test_cancellation_is_neither_success_nor_failure(clock):  # E-B5
    breaker = BreakerAlone(BREAKER_KEY, FIVE)
    for _ in range(5):
        call(breaker, clock, "failed", SERVER)
    clock.now += 60
    assert isinstance(call(breaker, clock, "cancelled"), Admitted)
    assert isinstance(call(breaker, clock), Admitted)
    assert breaker.is_calm


# Gate


def test_one_processs_rejection_holds_the_others(clock, shared):
    gates = [GateAlone(GATE_KEY, Gate(), roll=lambda: 0.0, shared=shared) for _ in range(3)]
    call(gates[0], clock, "failed", limit(20))
    clock.now += 0.06
    for gate in gates:
        answer = call(gate, clock)
        assert isinstance(answer, Hold)
        assert answer.delay == pytest.approx(19.94)
        assert answer.because == "429 (rate_limit): slow down"


def test_while_much_is_left_observed_calls_write_nothing(clock, shared):
    gate = GateAlone(GATE_KEY, Gate(), roll=lambda: 0.0, shared=shared)
    for used in range(200):
        call(gate, clock, "succeeded", None, Quota(limit=4000, remaining=4000 - used))
        clock.now += 0.01
    assert shared.writes == 0


def test_no_more_calls_pass_than_were_stated_in_one_process_or_in_four(clock, shared):
    for gates in (
        [GateAlone(GATE_KEY, Gate(), roll=lambda: 0.0)],
        [GateAlone(GATE_KEY, Gate(), roll=lambda: 0.0, shared=shared) for _ in range(4)],
    ):
        call(gates[0], clock, "succeeded", None, Quota(remaining=19))
        clock.now += 0.06
        answers = [gates[n % len(gates)].enter(1, **clock.times) for n in range(100)]
        passed = sum(isinstance(answer, Admitted) for answer in answers)
        assert passed == 19
        held = answers[-1]
        assert isinstance(held, Hold)
        assert held.delay == pytest.approx(59.94, abs=0.1)
        assert held.because == "0 of 100 requests left until the reset"


def test_a_dimension_that_counts_no_requests_can_shut_it_too(clock, shared):
    gate = GateAlone(GATE_KEY, Gate(), roll=lambda: 0.0, shared=shared)
    used_up = Quota(dimension="unified-5h", unit="share", limit=1, remaining=0, reset_in=9000)
    call(gate, clock, "succeeded", None, Quota(limit=4000, remaining=3000), used_up)
    clock.now += 0.06
    answer = call(gate, clock)
    assert isinstance(answer, Hold)
    assert answer.because == "0 of 1 unified-5h left until the reset"


def test_blocks_spare_the_store(clock, shared):
    gate = GateAlone(GATE_KEY, Gate(), roll=lambda: 0.0, shared=shared)
    call(gate, clock, "succeeded", None, Quota(limit=1000, remaining=99))
    clock.now += 0.06
    before = shared.writes
    for _ in range(20):
        assert isinstance(gate.enter(1, **clock.times), Admitted)
    assert shared.writes - before <= 2


def test_a_call_that_states_nothing_leaves_no_trace(clock):
    gate = GateAlone(GATE_KEY, Gate(scout=True), roll=lambda: 0.0)
    assert isinstance(call(gate, clock), Admitted)
    for _ in range(10):
        assert isinstance(call(gate, clock), Admitted)


def test_an_attempt_made_unasked_while_all_was_calm_is_told_all_the_same(clock, shared):
    for state in (None, shared):
        breaker = BreakerAlone(BREAKER_KEY, Breaker(failures=1), shared=state)
        gate = GateAlone(GATE_KEY, Gate(), roll=lambda: 0.0, shared=state)
        assert not gate.is_calm  # until the target has answered
        assert isinstance(call(gate, clock), Admitted)
        assert [each.is_calm for each in (breaker, gate)] == [True, True]
        breaker.leave(breaker.calm_ticket(), "failed", SERVER, **clock.times)
        gate.leave(gate.calm_ticket(), "failed", limit(30), **clock.times)
        assert isinstance(call(breaker, clock), Refused)
        assert isinstance(call(gate, clock), Hold)
        assert [each.is_calm for each in (breaker, gate)] == [False, False]


# Tokens


def test_tokens_run_out_and_come_back_with_successes(clock, shared):
    key = Key("api", "tokens")
    for tokens in (
        RetryTokens(key, Tokens(capacity=30, floor=0)),
        RetryTokens(key, Tokens(capacity=30, floor=0), shared=shared),
    ):
        first = tokens.reserve(SERVER, 1, **clock.times)
        second = tokens.reserve(SERVER, 1, **clock.times)
        assert first
        assert second
        assert tokens.reserve(SERVER, 1, **clock.times) is None
        ended(tokens, clock, first, "failed")
        ended(tokens, clock, second, "succeeded")
        assert not tokens.is_calm
        for _ in range(30):
            ended(tokens, clock)
        assert tokens.is_calm


def test_a_retry_that_outlives_those_that_failed_lends_its_tokens(clock, shared):
    for state in (None, shared):
        tokens = RetryTokens(Key("api", "tokens"), Tokens(capacity=28, floor=0), shared=state)
        failing, slow = (tokens.reserve(SERVER, 0, **clock.times) or "" for _ in range(2))
        for name in (failing, slow):
            tokens.sent(name, now=clock.now)
        clock.now += 1.0
        assert tokens.reserve(SERVER, 0, **clock.times) is None  # none is known to have failed
        ended(tokens, clock, failing, "failed")
        assert tokens.reserve(SERVER, 0, **clock.times) is None  # `slow` may fail as late
        assert not tokens.has_some(clock.now)
        clock.now += 0.5
        assert tokens.has_some(clock.now)
        assert tokens.reserve(SERVER, 0, **clock.times)
        assert tokens.reserve(SERVER, 0, **clock.times) is None
        ended(tokens, clock, slow, "succeeded")
        assert tokens.reserve(SERVER, 0, **clock.times) is None  # it had lent them


def test_while_the_bucket_is_full_successes_write_nothing(clock, shared):
    tokens = RetryTokens(Key("api", "tokens"), Tokens(), shared=shared)
    for _ in range(1000):
        ended(tokens, clock)
    assert (shared.reads, shared.writes) == (0, 0)


# In a driver


def test_a_guard_waits_at_the_gate_and_the_attempt_is_not_counted(drive):
    clock = drive.clock
    gate = GateAlone(GATE_KEY, Gate(), roll=lambda: 0.0)
    script = Scripted(status_error(429, headers={"retry-after": "7"}), "ok")
    assert drive.run(script, admissions=[gate], target="api") == "ok"
    assert sum(clock.sleeps) == pytest.approx(7)
    assert len(script.calls) == 2


def test_a_guard_with_an_open_breaker_raises_its_last_real_error():
    clock = VirtualClock()
    breaker = BreakerAlone(BREAKER_KEY, Breaker(failures=2))
    with mulligan.testing.virtual_time(clock):
        guard = mulligan.Guard("api", effects="read", admissions=[breaker])
        with pytest.raises(Exception, match="status 503"):
            guard.call(Scripted(*[status_error(503)] * 5))
        with pytest.raises(mulligan.CircuitOpen) as caught:
            guard.call(Scripted("never"))
    assert 0 < caught.value.retry_in <= 60


def test_a_store_that_is_down_stops_no_call(clock):
    from mulligan.errors import StoreDown

    class Down:
        def __getattr__(self, name):
            raise StoreDown("test:", "gone")

    heard: list[object] = []
    state = FailOpen(Down(), heard.append)
    breaker = BreakerAlone(BREAKER_KEY, FIVE, shared=state)
    gate = GateAlone(GATE_KEY, Gate(), roll=lambda: 0.0, shared=state)
    for _ in range(5):
        assert isinstance(call(gate, clock), Admitted)
        assert isinstance(call(breaker, clock, "failed", SERVER), Admitted)
    assert isinstance(call(breaker, clock), Refused)  # what this process saw itself still counts
    assert len(heard) == 1


def test_calls_that_began_with_the_failed_one_show_that_not_all_fail(clock):
    gate = GateAlone(GATE_KEY, Gate(), roll=lambda: 0.0)
    old = [asked(gate, clock) for _ in range(5)]
    clock.now += 60.0
    burst = [asked(gate, clock) for _ in range(10)]
    clock.now += 0.2
    asked(gate, clock)  # too new to show anything
    failed = burst.pop()
    gate.leave(failed, "failed", SERVER, **clock.times)
    assert gate.count_as_old(failed, 0.0, clock.now) == 9
    assert (
        gate.count_as_old(failed, 61.0, clock.now) == 14
    )  # failures since before the old ones began
    for ticket in (*old, *burst):
        gate.leave(ticket, "succeeded", None, **clock.times)
    assert gate.count_as_old(failed, 61.0, clock.now) == 0


def test_who_let_calls_wait_leases_no_more_than_they_need(clock):
    store = Memory(lambda: Moment(clock.now, clock.wall, "store"))
    gate = GateAlone(GATE_KEY, Gate(), roll=lambda: 0.0, shared=store.state)
    call(gate, clock, "succeeded", None, Quota(limit=19, remaining=0, reset_in=30))
    clock.now += 0.06
    waiters = [CallAdmission(gate.waiting, None, gate) for _ in range(2)]
    for waiter in waiters:
        assert isinstance(waiter.enter(1, **clock.times), Hold)
    clock.now += 30.1
    tickets = []
    for waiter in waiters:
        answer = waiter.enter(1, **clock.times)
        assert isinstance(answer, Admitted)
        tickets.append(answer.ticket)
    waiters[0].leave(tickets[0], "succeeded", None, **clock.times)
    left = store.state.peek(GATE_KEY, GATE)[0].beliefs[0].remaining
    assert left == 17  # nobody else misses what two calls do not need
