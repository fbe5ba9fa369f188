"""Guards whose names nobody uses any more were never freed.

A service that names its guards after its customers (``Guard(f"crm/{customer}")``) grew by 5 kB with
every name, for ever: the table of the process held what each of 6,000 targets shared, though its
guards were long gone. It was seen in `tracemalloc` after 6,000 guards of new names.

What guards share is now held by the guards. What they found out outlives them until it expires.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import mulligan
from mulligan.core.moment import Moment
from mulligan.shared.breaker import BREAKER
from mulligan.shared.retry_tokens import TOKENS, Reserve
from mulligan.shared.target import store_for
from mulligan.shared.targets import _SWEEP, targets_of
from mulligan.stores.cache import FailOpen
from mulligan.stores.memory import Memory
from mulligan.stores.state_machine import Key
from mulligan.testing import LoadedDice, Scripted, VirtualClock, status_error, virtual_time

_MANY, _FEW = 6_000, 300


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv("MULLIGAN_STORE", raising=False)


@pytest.fixture(autouse=True)
def _collect_new_garbage_only():
    """What other tests of this process left is not collected again at each `gc.collect()`."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def _places(store="memory:"):
    gc.collect()
    return len(targets_of(store_for(store)))


def _part(guard: Any, name: str) -> Any:
    return guard._engine.shared.state.part(name)


def _calm(name):
    guard = mulligan.Guard(name)
    assert guard.call(Scripted("well")) == "well"
    return guard


def _recovered(name, clock=VirtualClock(), dice=LoadedDice()):  # noqa: B008 -- one for all of them
    guard = mulligan.Guard(name, effects="read", clock=clock, dice=dice)
    assert guard.call(Scripted(status_error(503), "well")) == "well"
    return guard


def _refused(name):
    guard = mulligan.Guard(name, effects="read", scope="account", observe=mulligan.headers_of)
    with pytest.raises(Exception, match="status 400"):
        guard.call(Scripted(status_error(400)))
    return guard


@pytest.mark.parametrize(
    ("used", "times"), [(_calm, _MANY), (_recovered, 1_200), (_refused, 1_200)]
)
def test_guards_of_new_names_are_freed(used, times):
    for number in range(_SWEEP):  # what is loaded and cached once
        used(f"first/{number}")
    gc.collect()
    before = _places()
    tracemalloc.start()
    try:
        held = [used(f"held/{number}") for number in range(_FEW)]
        gc.collect()
        few, _ = tracemalloc.get_traced_memory()
        del held
        gc.collect()
        start, _ = tracemalloc.get_traced_memory()
        for number in range(times):
            used(f"many/{number}")
        gc.collect()
        many, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (
        many - start < few / 2
    )  # were they kept, it would be four to twenty times as much as `few`
    assert _places() <= before + 2 * _SWEEP


def _limited(name, store=None, hint="3600"):
    guard = mulligan.Guard(name, effects="read", attempts=1, **({"store": store} if store else {}))
    with pytest.raises(Exception, match="status 429"):
        guard.call(Scripted(status_error(429, headers={"retry-after": hint})))


def test_a_limit_is_believed_after_the_guard_that_heard_of_it_is_gone():
    _limited("limited")
    for number in range(_FEW):
        _calm(f"other/{number}")
    gc.collect()
    guard = mulligan.Guard("limited")
    assert not guard._engine.shared.is_calm
    assert _part(guard, "gate").view.state.shut is not None


@pytest.mark.real
@pytest.mark.parametrize(
    "fact",
    [
        "failures_of_guards_that_are_made_for_each_call_open_the_breaker",
        "settings_may_be_others_once_nobody_uses_the_old_ones",
        "new_settings_go_with_what_is_known_already",
    ],
)
def test_in_a_process_of_its_own(fact):
    """In one where nothing that another test left behind can hold a guard."""
    file = Path(__file__).with_name("freed_guards.py")
    subprocess.run([sys.executable, str(file), fact], check=True, timeout=60)


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("limit"), st.integers(0, 5), st.sampled_from([5, 600, 7_200])),
        st.tuples(st.just("calm"), st.integers(6, 900), st.just(0)),
        st.tuples(st.just("pass"), st.just(0), st.sampled_from([1, 90, 4_000, 90_000])),
    ),
    max_size=30,
)


@settings(max_examples=20, deadline=None)
@given(_STEPS)
@example([("limit", 4, 7_200), ("pass", 0, 90_000), ("limit", 4, 5)])
def test_nothing_that_is_believed_is_lost(steps):
    shut_until: dict[str, float] = {}
    memory = Memory()
    with virtual_time() as clock:
        for word, number, seconds in steps:
            name = f"target/{number}"
            if word == "pass":
                clock.advance(seconds)
            elif word == "limit" and shut_until.get(name, 0.0) <= clock.now():
                _limited(name, memory, str(seconds))
                shut_until[name] = clock.now() + seconds
                gc.collect()
            elif word == "calm":
                for each in range(_SWEEP):
                    mulligan.Guard(f"{name}/{each}", store=memory)
            for known, until in shut_until.items():
                if until > clock.now():
                    assert not mulligan.Guard(known, store=memory)._engine.shared.is_calm
        for each in range(4 * _SWEEP):
            mulligan.Guard(f"last/{each}", store=memory)
        # A gate forgets a pace after ten spans, and one span may be as long as all the steps.
        clock.advance(30 * 90_000 * 12)
        for each in range(4 * _SWEEP):
            mulligan.Guard(f"after/{each}", store=memory)
        assert not targets_of(memory)._known


def test_threads_that_make_guards_of_one_name_share_one_place():
    names, threads = [f"target/{number}" for number in range(40)], 12
    barrier = Barrier(threads)
    found: list[dict[str, Any]] = []
    held: list[object] = []

    def work():
        barrier.wait()
        mine = {}
        for name in names:
            guard = mulligan.Guard(name)
            held.append(guard)
            mine[name] = guard._engine.shared
        found.append(mine)

    _run(work, threads)
    assert all(len({id(each[name]) for each in found}) == 1 for name in names)


def test_no_failure_is_lost_to_threads_that_sweep():
    """Guards are made for each call by many threads, while others make new names all the time."""
    threads, rounds = 8, 40
    kept = mulligan.Breaker(failures=10_000)

    def fail():
        for _ in range(rounds):
            guard = mulligan.Guard("acme", effects="read", attempts=1, breaker=kept, gate=False)
            with pytest.raises(Exception, match="status 503"):
                guard.call(Scripted(status_error(503)))
            for number in range(_SWEEP // 4):
                mulligan.Guard(f"new/{number}")

    _run(fail, threads)
    guard = mulligan.Guard("acme", breaker=kept, gate=False)
    assert _part(guard, "breaker").view.state.streak == threads * rounds


def _run(work, threads):
    troubles = []

    def safely():
        try:
            work()
        except BaseException as trouble:  # noqa: BLE001 -- shown by the test
            troubles.append(trouble)

    running = [Thread(target=safely) for _ in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    assert not troubles


def test_the_memory_forgets_rows_that_have_expired():
    clock = VirtualClock()
    memory = Memory(lambda: Moment(clock.now(), clock.wall()))
    most = 0
    for number in range(20_000):
        clock.advance(60)
        reserve = Reserve(id="a", cost=1, lease=60.0, tokens=mulligan.Tokens(), funds=0.0)
        memory.state.transact(Key(f"target/{number}", "tokens"), reserve)
        most = max(most, len(memory.state._states))
    day = 86_400 // 60
    assert most <= 2 * day + 2 * 1024
    assert Key("target/19999", "tokens") in memory.state.known(TOKENS)


def test_copies_of_calm_states_are_not_kept_beside_the_store():
    state = FailOpen(Memory().state)
    for number in range(_MANY):
        state.peek(Key(f"target/{number}", "breaker"), BREAKER)
    reserve = Reserve(id="a", cost=1, lease=60.0, tokens=mulligan.Tokens(), funds=0.0)
    state.transact(Key("spent", "tokens"), reserve)
    for number in range(_MANY):
        state.peek(Key(f"other/{number}", "breaker"), BREAKER)
    assert len(state._copies) <= 2 * _SWEEP
    assert state._copies[Key("spent", "tokens")].state.spent


@pytest.mark.real
def test_guards_of_a_file_are_freed_too(tmp_path):
    url = f"sqlite:{tmp_path}/state.db"
    for number in range(_FEW):
        mulligan.Guard(f"target/{number}", store=url).call(Scripted("well"))
    assert _places(url) <= 2 * _SWEEP
