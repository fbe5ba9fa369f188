"""What every store promises, on memory, SQLite and real servers."""

from __future__ import annotations

import asyncio
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mulligan.classify.quotas import Quota
from mulligan.errors import Fenced, StoreDown, StoreError
from mulligan.once.claims import Busy, Done, Drop, Finish, Mine, Take
from mulligan.shared.breaker import (
    BREAKER,
    AskBreaker,
    Breaker,
    Circuit,
    ManualOverride,
    OpenBreaker,
    Passed,
    Shut,
    TellBreaker,
)
from mulligan.shared.gate.gate import GATE, Gate, LeaveGate
from mulligan.stores.cache import FailOpen
from mulligan.stores.entries import JournalLine
from mulligan.stores.state_machine import Key

from .conftest import taken_over

KEY = Key("target", "breaker")
GATE_KEY = Key("target", "gate")
ONCE = Key("target", "once")
FIVE = Breaker(failures=5)
_numbers = count()


def half_open(store) -> None:
    """Open the breaker for the shortest time, so that it is half open at once."""
    store.state.transact(KEY, OpenBreaker(stated=0.001, because="test"))
    time.sleep(0.01)


# States


def test_a_transition_is_applied_and_kept(place):
    for _ in range(5):
        place.do(
            TellBreaker(permit="p", generation=0, result="failure", worker="w", settings=FIVE), KEY
        )
    assert isinstance(place.do(AskBreaker(permit="p", settings=FIVE), KEY), Shut)
    state, _ = place.another().state.peek(KEY, BREAKER)
    assert (state.streak, state.generation, state.because) == (5, 1, "5 failures in a row")


def test_operations_on_one_key_are_applied_in_order(place):
    failed = TellBreaker(permit="p", generation=0, result="failure", worker="w", settings=FIVE)
    place.store.state.transact_all([(KEY, failed)] * 3)
    assert place.another().state.peek(KEY, BREAKER)[0].streak == 3


def test_a_key_nobody_wrote_has_the_state_that_nothing_has_happened_to(place):
    assert place.store.state.peek(Key("nobody", "breaker"), BREAKER)[0] == Circuit()


def test_what_changes_nothing_writes_nothing(place):
    place.do(AskBreaker(permit="p", settings=FIVE), KEY)
    assert place.store.state.known(BREAKER) == ()


def test_scopes_and_targets_do_not_share(place):  # R-K7
    one = Key("api", "breaker", place.store.scoped("account 1"))
    two = Key("api", "breaker", place.store.scoped("account 2"))
    place.do(ManualOverride(move="block"), one)
    assert isinstance(place.do(AskBreaker(permit="p", settings=FIVE), two), Passed)
    assert isinstance(
        place.do(AskBreaker(permit="p", settings=FIVE), Key("api", "breaker")), Passed
    )
    assert place.store.state.known(BREAKER) == (one,)


def test_a_scope_is_stored_as_a_hash_that_all_handles_agree_on(place):
    name = place.store.scoped("sk-live-0123456789")
    assert "0123" not in name
    assert place.another().scoped("sk-live-0123456789") == name
    assert place.store.scoped("") == ""


def test_names_of_targets_are_just_text(place):
    for target in ("a{b}c", "a|b", "x' OR 1=1 --", "ü\n", "a:b", "*"):
        place.do(ManualOverride(move="block", because=target), Key(target, "breaker"))
        answer = place.do(AskBreaker(permit="p", settings=FIVE), Key(target, "breaker"))
        assert answer == Shut(float("inf"), target)
    assert len(place.store.state.known(BREAKER)) == 6


def test_a_lease_runs_on_the_stores_time(place):
    place.do(OpenBreaker(stated=0.001, because="test"), KEY)
    place.wait(0.01)
    short = replace(FIVE, lease=0.2)
    assert isinstance(place.do(AskBreaker(permit="hung", settings=short), KEY), Passed)
    assert isinstance(place.do(AskBreaker(permit="next", settings=short), KEY), Shut)
    place.wait(0.25)
    assert isinstance(place.do(AskBreaker(permit="next", settings=short), KEY), Passed)


def test_exactly_one_of_fifty_threads_passes_half_open(place):  # E-B1
    place.do(OpenBreaker(stated=0.001, because="test"), KEY)
    place.wait(0.01)
    stores = [place.store, place.another()]

    def ask(number):
        store = stores[number % 2]
        return store.state.transact(KEY, AskBreaker(permit=f"caller {number}", settings=FIVE))

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(ask, range(50)))
    assert sum(isinstance(answer, Passed) for answer in answers) == 1


@pytest.mark.parametrize("world", ["asyncio", "trio"])
def test_exactly_one_of_fifty_tasks_passes_half_open(place, world):  # E-B1
    place.do(OpenBreaker(stated=0.001, because="test"), KEY)
    place.wait(0.01)
    answers: list[object] = []

    async def ask(number):
        operation = AskBreaker(permit=f"caller {number}", settings=FIVE)
        answers.append(await place.store.state.atransact(KEY, operation))

    async def on_asyncio():
        await asyncio.gather(*map(ask, range(50)))

    async def on_trio():
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(ask, number)

    asyncio.run(on_asyncio()) if world == "asyncio" else trio.run(on_trio)
    assert sum(isinstance(answer, Passed) for answer in answers) == 1


def test_exactly_one_of_fifty_callers_in_five_processes_passes_half_open(common, workers):
    url, store = common
    half_open(store)
    started = [workers("probe", url, n, 10) for n in range(5)]
    assert [worker.hear() for worker in started] == ["ready"] * 5
    for worker in started:
        worker.go()
    assert sum(int(worker.hear()) for worker in started) == 1


@pytest.mark.parametrize("most", [1, 100])
def test_four_processes_get_exactly_a_thousand_of_a_thousand(common, workers, most):
    url, store = common
    said = Quota(dimension="requests", limit=1000, remaining=1000, reset_in=600)
    leave = LeaveGate(id="", turn=0, reply="answered", settings=Gate(), stated=(said,))
    store.state.transact(GATE_KEY, leave)
    started = [workers("grants", url, n, most) for n in range(4)]
    assert [worker.hear() for worker in started] == ["ready"] * 4
    for worker in started:
        worker.go()
    got = [int(worker.hear()) for worker in started]
    assert sum(got) == 1000
    assert store.state.peek(GATE_KEY, GATE)[0].beliefs[0].remaining == 0


def test_workers_that_are_killed_never_make_more_than_was_there(common, workers):
    url, store = common
    said = Quota(dimension="requests", limit=300, remaining=300, reset_in=600)
    leave = LeaveGate(id="", turn=0, reply="answered", settings=Gate(), stated=(said,))
    store.state.transact(GATE_KEY, leave)
    got = []
    for number, lines in enumerate((1, 2, 5, 11, 10_000)):
        worker = workers("grants", url, f"w{number}", 1, "loud")
        worker.hear()
        worker.go()
        heard: list[str] = []
        while len(heard) < lines and (said_now := worker.hear()).startswith("+"):
            heard.append(said_now)
        got += heard + [line for line in worker.killed() if line.startswith("+")]
    # What a killed worker was granted and could not say is lost to everybody, not given twice.
    assert 300 - 4 <= len(got) <= 300


# Keys


def test_one_holds_a_key_and_the_others_get_its_result(place):  # E-F4
    mine = Take(holder="a", fingerprint="f", lease=30)
    assert place.store.keys.transact(ONCE, mine) == Mine(1)
    other = place.another().keys
    theirs = Take(holder="b", fingerprint="f", lease=30)
    assert isinstance(other.transact(ONCE, theirs), Busy)
    assert place.store.keys.transact(
        ONCE, Finish(holder="a", epoch=1, fingerprint="f", value='"x"', ttl=60)
    )
    assert other.transact(ONCE, theirs) == Done('"x"')


def test_a_failure_frees_the_key_at_once(place):  # E-F6
    place.store.keys.transact(ONCE, Take(holder="a", fingerprint="f", lease=30))
    assert place.store.keys.transact(ONCE, Drop(holder="a", epoch=1))
    assert place.store.keys.transact(ONCE, Take(holder="b", fingerprint="f", lease=30)) == Mine(2)


def test_a_holder_that_was_stopped_is_fenced_when_it_wakes(common, workers):  # E-F5
    url, store = common
    zombie = workers("hold", url, "zombie", 0.2)
    assert zombie.hear() == "1"
    zombie.process.send_signal(signal.SIGSTOP)
    try:
        successor = Take(holder="successor", fingerprint="f", lease=30)
        assert taken_over(store, ONCE, successor) == Mine(2)
    finally:
        zombie.process.send_signal(signal.SIGCONT)
    zombie.go()
    assert zombie.hear() == "False"
    finish = Finish(holder="successor", epoch=2, fingerprint="f", value='"mine"', ttl=60)
    assert store.keys.transact(ONCE, finish) is True


# Journal


def test_entries_are_read_in_the_order_they_were_written(place):
    journal = place.store.journal
    places = [journal.append("run", JournalLine(f"e{n}", f'"{n}"', n)) for n in range(5)]
    assert places == [1, 2, 3, 4, 5]
    assert place.another().journal.read("run") == tuple(
        JournalLine(f"e{n}", f'"{n}"', n) for n in range(5)
    )
    assert [entry.id for entry in journal.read("run", after=3)] == ["e3", "e4"]
    assert journal.read("another run") == ()


def test_an_entry_written_twice_stands_there_once(place):
    entry = JournalLine("same", '"body"')
    assert place.store.journal.append("run", entry) == 1
    assert place.another().journal.append("run", entry) == 1
    assert place.store.journal.read("run") == (entry,)


def test_an_older_epoch_is_fenced(place):
    place.store.journal.append("run", JournalLine("new", '"body"', 2))
    with pytest.raises(Fenced, match="run is written by epoch 2 now"):
        place.store.journal.append("run", JournalLine("old", '"body"', 1))
    assert len(place.store.journal.read("run")) == 1


def test_streams_are_found_by_how_their_names_begin(place):
    journal = place.store.journal
    for stream in ("run/1", "run/2", "run/2", "ruin", "dead/a", "run"):
        journal.append(stream, JournalLine(f"to {stream}", "1"))
    assert place.another().journal.streams("run/") == ("run/1", "run/2")
    assert journal.streams("") == ("dead/a", "ruin", "run", "run/1", "run/2")
    assert journal.streams("nobody") == ()


def test_names_of_streams_are_just_text(place):
    signs = ("%", "*", "?", "[b]", "_", "{b}", "(b)", "}", "\\", ":log", "%7B")
    odd = (*(f"a{sign}c" for sign in signs), "ü|é")
    for stream in odd:
        place.store.journal.append(stream, JournalLine("e", f'"{ord(stream[1])}"'))
    assert place.store.journal.streams("a") == tuple(sorted(each for each in odd if each != "ü|é"))
    for stream in odd:
        assert place.store.journal.streams(stream) == (stream,)
        assert len(place.store.journal.read(stream)) == 1


def test_a_forgotten_stream_begins_anew(place):
    journal = place.store.journal
    journal.append("run/1", JournalLine("e", "1", 7))
    journal.append("run/2", JournalLine("e", "2"))
    journal.forget("run/1")
    place.another().journal.forget("run/1")
    assert (journal.read("run/1"), journal.streams("run")) == ((), ("run/2",))
    assert journal.append("run/1", JournalLine("e", "3", 1)) == 1


def test_a_coroutine_takes_a_key_as_a_plain_caller_does(place):
    async def main():
        assert await place.store.keys.atransact(
            ONCE, Take(holder="a", fingerprint="f", lease=30)
        ) == Mine(1)

    asyncio.run(main())
    trio.run(main)


def test_what_was_acknowledged_survives_kill_9(common, workers, within):
    url, store = common
    for number, lines in enumerate((1, 3, 10, 40)):
        worker = workers("append", url, f"w{number}", "run")
        heard = [worker.hear() for _ in range(lines)]
        acknowledged = heard + worker.killed()
        written = {entry.id for entry in store.journal.read("run")}
        assert set(acknowledged) <= written
        with within(1):  # nobody else is kept waiting by the dead
            store.journal.append("run", JournalLine(f"after {number}", "1"))


# The model: whatever is done through any handle, a store answers as the pure machine does.

operations = st.one_of(
    st.builds(AskBreaker, permit=st.sampled_from("abc"), settings=st.just(FIVE)),
    st.builds(
        TellBreaker,
        permit=st.sampled_from("abc"),
        generation=st.integers(0, 3),
        result=st.sampled_from(["success", "failure", "neither"]),
        worker=st.sampled_from("vw"),
        settings=st.just(replace(FIVE, failures=2, open_for=1000, open_at_least=1000)),
    ),
    st.builds(ManualOverride, move=st.sampled_from(["block", "allow", "reset"])),
)


@given(steps=st.lists(st.tuples(operations, st.booleans()), max_size=25))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None
)
def test_a_store_answers_as_the_pure_machine_does(place, steps):
    key = Key(f"model {next(_numbers)}", "breaker")
    handles = [place.store, place.stores[-1]]
    state = Circuit()
    for operation, second in steps:
        answer = handles[second].state.transact(key, operation)
        _, moment = place.store.state.peek(key, BREAKER)
        state, expected = operation(state, moment)
        if isinstance(answer, Shut) and isinstance(expected, Shut):
            assert answer.because == expected.because
            assert answer.retry_in == pytest.approx(expected.retry_in, abs=1)
        else:
            assert answer == expected
    found, _ = place.store.state.peek(key, BREAKER)
    times = {"until": None, "probes": (), "began": None}
    assert replace(found, **times) == replace(state, **times)  # type: ignore[arg-type]


# A store that goes away


class Broken:
    """A state that is down when told."""

    def __init__(self, store) -> None:
        self.state, self.is_down, self.asked = store.state, False, 0

    def __getattr__(self, name):
        self.asked += 1
        if self.is_down:
            raise StoreDown("test:", "gone")
        return getattr(self.state, name)


def test_a_process_goes_on_with_what_it_last_saw(place):
    broken = Broken(place.store)
    heard: list[StoreError | None] = []
    state = FailOpen(broken, heard.append, pause=3600)
    state.transact(KEY, ManualOverride(move="block", because="migration"))
    broken.is_down = True
    assert state.transact(KEY, AskBreaker(permit="p", settings=FIVE)) == Shut(
        float("inf"), "migration"
    )
    asked = broken.asked
    state.transact(KEY, ManualOverride(move="reset"))
    assert isinstance(state.transact(KEY, AskBreaker(permit="p", settings=FIVE)), Passed)
    assert broken.asked == asked  # not before the pause is over
    assert [type(each) for each in heard] == [StoreDown]
    state._ask_again_at = 0.0
    broken.is_down = False
    assert not state.peek(KEY, BREAKER)[0].hand
    assert heard[-1] is None
    assert not place.store.state.peek(KEY, BREAKER)[0].hand  # nobody else had changed it


def test_what_others_did_meanwhile_is_believed_first(place):
    broken, others = Broken(place.store), place.another().state
    state = FailOpen(broken, pause=0)
    state.peek(KEY, BREAKER)
    broken.is_down = True
    state.transact(KEY, OpenBreaker(stated=60, because="a limit"))
    others.transact(KEY, ManualOverride(move="block", because="migration"))
    broken.is_down = False
    assert state.peek(KEY, BREAKER)[0].because == "migration"
    assert others.peek(KEY, BREAKER)[0].because == "migration"
