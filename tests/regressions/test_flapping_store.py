"""A half-open breaker let up to 436 probes through while its store came and went.

Four processes of 200 threads shared a breaker that was half open, on a store that went down and
came back several times a second. Each time it went down, every process began with a copy that knew
nothing of the probe it had just been granted, and granted another; each time it came back, that
copy was thrown away, and the store granted another.

A process that cannot reach its store may send one probe of its own: nobody can tell it of the
others. So there is at most one for each process, however often the store comes and goes.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulligan.core.moment import Due, Moment
from mulligan.errors import StoreDown, StoreUnwritable
from mulligan.shared.breaker import BREAKER, AskBreaker, Breaker, Circuit, Passed, TellBreaker
from mulligan.shared.gate.gate import GATE, Gate, LeaveGate
from mulligan.shared.retry_tokens import TOKENS, Fund, Reserve, Tokens
from mulligan.stores.cache import FailOpen
from mulligan.stores.memory import Memory
from mulligan.stores.state_machine import Key

KEY, GATE_KEY, TOKEN_KEY = Key("t", "breaker"), Key("t", "gate"), Key("t", "tokens")
SETTINGS = Breaker()
NOW = Moment(1000.0, 1e9, "store")


@dataclass(frozen=True)
class Put:
    """Replaces a breaker's state."""

    state: Circuit
    machine = BREAKER

    def __call__(self, _state, _moment):
        return self.state, None


HALF_OPEN = Circuit(streak=5, until=Due(990.0, 60.0, "store"), generation=3, because="5 failures")


class Flapping:
    """A state that fails when told: before it does anything, or after it has."""

    def __init__(self, store) -> None:
        self.state, self.is_down, self.loses_answers, self.is_full = (
            store.state,
            False,
            False,
            False,
        )
        self.before = self.meanwhile = lambda: None

    def transact_all(self, steps):
        return [self.transact(*each) for each in steps]

    def transact(self, key, operation):
        before, self.before = self.before, lambda: None
        before()
        if self.is_down:
            raise StoreDown("test:", "gone")
        if (
            self.is_full
            and operation(*self.state.peek(key, operation.machine))[0]
            is not (self.state.peek(key, operation.machine)[0])
        ):
            raise StoreUnwritable("test:", "full")
        result = self.state.transact(key, operation)
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        if self.loses_answers:
            raise StoreDown("test:", "the answer was lost")
        return result

    def peek_all(self, wanted):
        if self.is_down:
            raise StoreDown("test:", "gone")
        return self.state.peek_all(wanted)


class Process:
    """One process with a half-open breaker on a store that others use, too."""

    _numbers = count()

    def __init__(self, store, pause: float = 0.0) -> None:
        self.store = Flapping(store)
        self.heard: list[object] = []
        self.state = FailOpen(cast("Any", self.store), self.heard.append, pause)
        self.probes: list[tuple[str, int]] = []

    def ask(self) -> bool:
        permit = f"{next(self._numbers)}"
        answer = self.state.transact(KEY, AskBreaker(permit=permit, settings=SETTINGS))
        if isinstance(answer, Passed) and answer.is_probe:
            self.probes.append((permit, answer.generation))
            return True
        return False

    def tell(self, result) -> bool:
        permit, generation = self.probes.pop()
        return self.state.transact(
            KEY,
            TellBreaker(
                permit=permit,
                generation=generation,
                result=result,
                worker=f"{id(self)}",
                settings=SETTINGS,
            ),
        )


@pytest.fixture
def store():
    store = Memory(lambda: NOW)
    store.state.transact(KEY, Put(HALF_OPEN))
    return store


def test_a_probe_is_kept_when_the_store_goes_down(store):
    process = Process(store)
    process.state.peek(KEY, BREAKER)
    assert process.ask()
    process.store.is_down = True
    assert not process.ask()


def test_a_probe_is_kept_when_the_store_comes_back(store):
    one, other = Process(store), Process(store)
    one.state.peek(KEY, BREAKER)
    one.store.is_down = True
    assert one.ask()
    one.store.is_down = False
    assert not one.ask()
    assert not other.ask()  # and all others know of it


def test_a_look_is_enough_to_tell_the_others(store):
    one, other = Process(store), Process(store)
    one.state.peek(KEY, BREAKER)
    one.store.is_down = True
    assert one.ask()
    one.store.is_down = False
    one.state.peek(KEY, BREAKER)
    assert not other.ask()


def test_what_a_probe_found_out_is_told_when_the_store_is_back(store):
    one, other = Process(store), Process(store)
    one.state.peek(KEY, BREAKER)
    one.store.is_down = True
    assert one.ask()
    assert one.tell("failure")
    one.store.is_down = False
    assert not one.ask()
    assert not other.ask()
    assert store.state.peek(KEY, BREAKER)[0].generation == HALF_OPEN.generation + 1


def test_a_probe_that_was_answered_for_meanwhile_makes_room_for_the_next(store):
    one, other = Process(store), Process(store)
    assert one.ask()
    one.store.is_down = True
    one.tell("neither")
    one.store.is_down = False
    one.state.peek(KEY, BREAKER)
    assert other.ask()


def test_one_that_was_cut_off_does_not_open_what_others_have_closed(store):
    one, other = Process(store), Process(store)
    one.state.peek(KEY, BREAKER)
    one.store.is_down = True
    assert one.ask()
    assert other.ask()
    assert other.tell("success")
    one.tell("failure")
    one.store.is_down = False
    assert one.state.peek(KEY, BREAKER)[0].until is None
    assert other.state.peek(KEY, BREAKER)[0].until is None


@pytest.mark.parametrize("when", ["before", "meanwhile"])
@pytest.mark.parametrize("is_lost", [False, True])
def test_what_is_under_way_at_the_store_counts_in_the_copy(store, when, is_lost):
    """One thread's question is at the store, another finds the store down and asks the copy."""
    process = Process(store, pause=3600)
    process.state.peek(KEY, BREAKER)

    def another() -> None:
        process.store.is_down = True
        granted.append(process.ask())
        process.store.is_down = False
        process.store.loses_answers = is_lost

    granted: list[bool] = []
    setattr(process.store, when, another)
    granted.append(process.ask())
    assert sum(granted) == 1


def test_nothing_is_counted_twice_where_nobody_knows_if_it_landed(store):
    process = Process(store)
    fund = Fund(successes=1, tokens=Tokens())
    reserve = Reserve(id="r", cost=10, lease=60, tokens=Tokens())
    process.state.transact(TOKEN_KEY, reserve)
    spent = store.state.peek(TOKEN_KEY, TOKENS)[0]
    once, _ = fund(spent, NOW)
    process.store.is_down = True
    process.state.transact(TOKEN_KEY, fund)
    process.store.is_down = False
    assert process.state.peek(TOKEN_KEY, TOKENS)[0] == once
    assert store.state.peek(TOKEN_KEY, TOKENS)[0] == once


def test_a_limit_heard_while_the_store_was_down_holds_when_it_is_back(store):
    one, other = Process(store), Process(store)
    shut = LeaveGate(id="", turn=0, reply="rejected", settings=Gate(), hint=60, because="429")
    one.state.peek(GATE_KEY, GATE)
    one.store.is_down = True
    one.state.transact(GATE_KEY, shut)
    other.state.transact(
        GATE_KEY, LeaveGate(id="", turn=0, reply="rejected", settings=Gate(), hint=5)
    )
    one.store.is_down = False
    one.state.peek(GATE_KEY, GATE)
    state, moment = other.state.peek(GATE_KEY, GATE)
    assert state.shut is not None
    assert state.shut.left(moment) > 50


def test_a_store_that_can_be_read_but_not_written_is_lost_once(store):
    process = Process(store)
    process.state.peek(KEY, BREAKER)
    process.store.is_full = True
    for _ in range(5):
        process.ask()
        process.state.peek(KEY, BREAKER)
    assert [type(each) for each in process.heard] == [StoreUnwritable]
    assert len(process.probes) == 1
    process.store.is_full = False
    process.state.peek(KEY, BREAKER)
    assert process.heard[1:] == [None]
    assert store.state.peek(KEY, BREAKER)[0].probes


def test_one_caller_asks_again_when_the_pause_is_over():
    class Hanging:
        asked = 0

        def peek_all(self, wanted):
            self.asked += 1
            asking.wait()
            raise StoreDown("test:", "gone")

    hanging: Any = Hanging()
    asking = threading.Event()
    state = FailOpen(hanging, pause=3600)
    asking.set()
    state.peek(KEY, BREAKER)
    asking.clear()
    state._ask_again_at = 0.0
    first = threading.Thread(target=state.peek, args=(KEY, BREAKER))
    first.start()
    while hanging.asked < 2:
        pass
    for _ in range(10):
        state.peek(KEY, BREAKER)  # held up by nobody
    asking.set()
    first.join()
    assert hanging.asked == 2


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(
            [
                "ask",
                "ask",
                "look",
                "down",
                "up",
                "lose answers",
                "full",
                "rest",
                "failure",
                "neither",
            ]
        ),
    ),
    max_size=60,
)


@given(STEPS, st.sampled_from([0.0, 3600.0]))
@settings(max_examples=300)
def test_each_process_has_one_probe_at_most_whatever_happens(steps, pause):
    store = Memory(lambda: NOW)
    store.state.transact(KEY, Put(HALF_OPEN))
    processes = [Process(store, pause) for _ in range(3)]
    for process in processes:
        process.state.peek(KEY, BREAKER)
    for number, step in steps:
        process = processes[number]
        flapping = process.store
        if step == "ask":
            process.ask()
        elif step == "look":
            process.state.peek(KEY, BREAKER)
        elif step == "rest":
            process.state._ask_again_at = 0.0
        elif step in ("failure", "neither"):
            if process.probes:
                process.tell(step)
        else:
            flapping.is_down = step == "down"
            flapping.loses_answers = step == "lose answers"
            flapping.is_full = step == "full"
        assert all(len(each.probes) <= 1 for each in processes)
    # In the end all agree.
    for process in processes * 2:
        process.store.is_down = process.store.loses_answers = process.store.is_full = False
        process.state._ask_again_at = 0.0
        process.state.peek(KEY, BREAKER)
    assert len({process.state.peek(KEY, BREAKER)[0] for process in processes}) == 1


def test_four_times_two_hundred_threads_send_four_probes_at_most(store):
    processes = [Process(store) for _ in range(4)]
    turns = count()

    def agent(number: int) -> None:
        process = processes[number % 4]
        for _ in range(5):
            process.store.is_down = next(turns) % 7 > 3
            process.store.loses_answers = next(turns) % 11 > 7
            process.ask()

    for process in processes:
        process.state.peek(KEY, BREAKER)
    with ThreadPoolExecutor(200) as pool:
        list(pool.map(agent, range(800)))
    assert [len(process.probes) <= 1 for process in processes] == [True] * 4


class TestOrderOfNews:
    """Left over from issue 12: a store that was lost and came back at once could be told as back,
    then as lost, for each thread told its own news. Whoever listened took it for lost for ever."""

    def test_a_store_is_told_as_lost_before_it_is_told_as_back(self):
        heard: list[object] = []
        is_telling, may_tell = threading.Event(), threading.Event()

        def slowly(trouble):
            if trouble is not None:
                is_telling.set()
                assert may_tell.wait(30)
            heard.append(trouble)

        store = Flapping(Memory())
        state = FailOpen(cast("Any", store), slowly, pause=0)
        store.is_down = True
        with ThreadPoolExecutor(1) as threads:
            lost = threads.submit(state.peek, KEY, BREAKER)
            assert is_telling.wait(30)
            store.is_down = False
            state.peek(KEY, BREAKER)  # it is back, and that is news for whoever tells
            may_tell.set()
            lost.result(30)
        assert [type(each) for each in heard] == [StoreDown, type(None)]

    def test_a_listener_may_ask_the_state_that_tells_it(self):
        store = Flapping(Memory())
        heard: list[object] = []

        def asking(trouble):
            heard.append(trouble)
            store.is_down = False
            state.peek(KEY, BREAKER)

        state = FailOpen(cast("Any", store), asking, pause=0)
        store.is_down = True
        state.peek(KEY, BREAKER)
        assert [type(each) for each in heard] == [StoreDown, type(None)]

    def test_a_listener_that_raises_keeps_nobody_else_from_being_told(self):
        store = Flapping(Memory())
        heard: list[object] = []

        def raising(trouble):
            heard.append(trouble)
            if trouble is not None:
                raise RuntimeError("broken")

        state = FailOpen(cast("Any", store), raising, pause=0)
        store.is_down = True
        with pytest.raises(RuntimeError, match=r"^broken$"):
            state.peek(KEY, BREAKER)
        store.is_down = False
        state.peek(KEY, BREAKER)
        assert [type(each) for each in heard] == [StoreDown, type(None)]
