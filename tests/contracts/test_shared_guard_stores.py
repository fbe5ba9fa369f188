"""Guards on real stores: what they cost, what they promise, what they do without."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

import mulligan
from mulligan import Breaker
from mulligan.errors import StoreDown
from mulligan.stores.memory import Memory
from mulligan.testing import Scripted, status_error

pytestmark = pytest.mark.real

WORKER = Path(__file__).with_name("guard_worker.py")
FLEET = Path(__file__).parents[2] / "examples" / "fleet.py"


class Counted:
    """A state that counts what is asked of it, and by which thread."""

    def __init__(self, state) -> None:
        self.inner, self.reads, self.writes = state, 0, 0
        self.threads: set[int] = set()

    def peek_all(self, *args):
        self.reads += 1
        self.threads.add(threading.get_ident())
        return self.inner.peek_all(*args)

    def transact_all(self, *args):
        self.writes += 1
        self.threads.add(threading.get_ident())
        return self.inner.transact_all(*args)


class CountedStore:
    """A store that counts what is asked of its state."""

    def __init__(self, store) -> None:
        self.url, self.keys, self.journal = store.url, store.keys, store.journal
        self.scoped, self.close = store.scoped, store.close
        self.state = Counted(store.state)


class DownStore:
    """A store that has gone, salt and all."""

    url = "test://gone"
    is_down = True

    def __init__(self) -> None:
        self._memory = Memory()
        self.state, self.keys, self.journal = self, self._memory.keys, self._memory.journal

    def _check(self):
        if self.is_down:
            raise StoreDown(self.url, "nobody answers")

    def scoped(self, scope):
        self._check()
        return self._memory.scoped(scope)

    def peek_all(self, *args):
        self._check()
        return self._memory.state.peek_all(*args)

    def transact_all(self, *args):
        self._check()
        return self._memory.state.transact_all(*args)

    def close(self) -> None: ...


def run_all(name, function):
    """Run a coroutine function on the loop called `name`."""
    return trio.run(function) if name == "trio" else asyncio.run(function())


@pytest.mark.parametrize("scope", ["", "account"])
def test_a_healthy_call_writes_nothing_and_hardly_reads(common, scope):
    store: Any = CountedStore(common[1])
    guard = mulligan.Guard("healthy", effects="read", store=store, scope=scope)
    began = time.monotonic()
    for _ in range(200):
        assert guard.call(Scripted("well")) == "well"
    spans = (time.monotonic() - began) / 0.05
    assert store.state.writes == 0
    assert store.state.reads <= 2 * (spans + 1)  # breaker and gate, once in 50 ms each


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_coroutine_never_waits_for_the_store_in_its_own_thread(common, loop):
    store: Any = CountedStore(common[1])
    guard = mulligan.Guard(
        f"async {loop}", effects="read", store=store, policy=_quick(), breaker=Breaker(failures=9)
    )

    async def main():
        for _ in range(50):
            assert await guard.acall(Scripted("well").acall) == "well"
        assert store.state.writes == 0
        assert await guard.acall(Scripted(status_error(503), "well").acall) == "well"
        return threading.get_ident()

    assert run_all(loop, main) not in store.state.threads
    assert store.state.writes > 0


def _quick():
    rule = mulligan.Rule(attempts=3, backoff=mulligan.Fixed(wait=0.01))
    return mulligan.Policy(rules={mulligan.Kind.SERVER: rule, mulligan.Kind.OVERLOADED: rule})


def opened(store):
    """A guard whose breaker is half open."""
    guard = mulligan.Guard(
        "half open",
        effects="read",
        attempts=1,
        store=store,
        breaker=Breaker(failures=1, open_for=0.2),
        tokens=False,
        when_open="fail",
    )
    with pytest.raises(Exception, match="status 503"):
        guard.call(Scripted(status_error(503)))
    with pytest.raises(mulligan.CircuitOpen):
        guard.call(Scripted("never"))
    time.sleep(0.25)
    return guard


def test_exactly_one_of_fifty_threads_passes_half_open(common):  # E-B1
    fifty_threads(opened(common[0]))


def test_exactly_one_of_fifty_threads_passes_half_open_in_memory():  # E-B1
    fifty_threads(opened(Memory()))


def fifty_threads(guard):
    refused = threading.Semaphore(0)

    def probe():
        for _ in range(49):
            assert refused.acquire(timeout=20)
        return 1

    def ask(_):
        try:
            return guard.call(probe)
        except mulligan.CircuitOpen:
            refused.release()
            return 0

    with ThreadPoolExecutor(50) as pool:
        assert sum(pool.map(ask, range(50))) == 1
    assert guard.call(Scripted("well")) == "well"


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_exactly_one_of_fifty_tasks_passes_half_open(common, loop):  # E-B1
    fifty_tasks(opened(common[0]), loop)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_exactly_one_of_fifty_tasks_passes_half_open_in_memory(loop):  # E-B1
    fifty_tasks(opened(Memory()), loop)


def fifty_tasks(guard, loop):
    passed: list[int] = []
    refused: list[int] = []

    async def probe():
        passed.append(1)
        while len(refused) < 49:
            if loop == "trio":
                await trio.sleep(0.01)
            else:
                await asyncio.sleep(0.01)

    async def ask():
        try:
            await guard.acall(probe)
        except mulligan.CircuitOpen:
            refused.append(1)

    async def main():
        if loop == "trio":
            with trio.fail_after(20):
                async with trio.open_nursery() as nursery:
                    for _ in range(50):
                        nursery.start_soon(ask)
        else:
            await asyncio.wait_for(asyncio.gather(*[ask() for _ in range(50)]), 20)

    run_all(loop, main)
    assert (len(passed), len(refused)) == (1, 49)


def test_exactly_one_of_fifty_callers_in_four_processes_passes_half_open(common):  # E-B1, E-B15
    url, _ = common
    callers, fails = (13, 13, 12, 12), (1, 1, 0, 0)  # two processes are a quorum
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), "half_open", url, str(count), str(first)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for count, first in zip(callers, fails, strict=True)
    ]
    try:
        for worker in workers[:2]:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "_StatusError\n"
        time.sleep(0.9)
        said = [worker.communicate("go\n", timeout=30)[0] for worker in _told(workers)]
    finally:
        for worker in workers:
            worker.kill()
    assert sum(int(words.split()[-1]) for words in said) == 1


def _told(workers):
    """All of them at once, before anybody is waited for."""
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return workers


@pytest.mark.parametrize("loop", ["sync", "asyncio", "trio"])
def test_a_store_that_hangs_holds_up_one_call_and_not_the_next_ten(loop):
    heard: list[object] = []
    with closing(socket.socket()) as deaf:  # it listens, and never says a word
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(64)
        url = f"redis://127.0.0.1:{deaf.getsockname()[1]}"
        guard = mulligan.Guard("api", store=url, listeners=[heard.append], scope="account")

        async def one():
            assert await guard.acall(Scripted("well").acall) == "well"

        def call():
            began = time.monotonic()
            if loop == "sync":
                assert guard.call(Scripted("well")) == "well"
            else:
                run_all(loop, one)
            return time.monotonic() - began

        first, rest = call(), [call() for _ in range(10)]
    assert [type(event) for event in heard] == [mulligan.StoreLost]
    assert sorted(rest)[5] < first / 2
    assert first < 4 * 0.25  # a quarter of a second, on a machine that has other things to do


def test_a_lost_store_is_a_warning_where_nobody_listens(caplog):
    store: Any = DownStore()
    guard = mulligan.Guard("api", store=store, effects="read", scope="account", attempts=1)
    for _ in range(3):
        assert guard.call(Scripted("well")) == "well"
    assert caplog.messages == [
        "test://gone does not answer, so api is guarded by this process alone: nobody answers"
    ]


def test_while_the_store_is_down_a_process_guards_itself_and_returns(monkeypatch):
    now = time.monotonic()
    monkeypatch.setattr("mulligan.shared.targets.monotonic", lambda: now)
    monkeypatch.setattr("mulligan.stores.cache.monotonic", lambda: now)
    heard: list[object] = []
    store: Any = DownStore()
    guard = mulligan.Guard(
        "api",
        store=store,
        effects="read",
        scope="account",
        attempts=1,
        listeners=[heard.append],
        breaker=Breaker(failures=5),
        when_open="fail",
    )
    for _ in range(5):
        with pytest.raises(Exception, match="status 503"):
            guard.call(Scripted(status_error(503)))
    with pytest.raises(mulligan.CircuitOpen):
        guard.call(Scripted("never"))
    store.is_down = False
    now += 1.1
    assert guard.call(Scripted("well")) == "well"
    names = [type(event).__name__ for event in heard]
    assert names.count("StoreLost") == names.count("StoreBack") == 1
    assert "account" not in str([event for event in heard if "Store" in type(event).__name__])


def test_four_processes_share_one_limit(common):
    spec = importlib.util.spec_from_file_location("fleet", FLEET)
    assert spec is not None
    assert spec.loader is not None
    fleet: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fleet)
    fleet.WINDOW = 0.8  # with the spread of those who wait, no wait is longer than a second
    provider = fleet.Provider()
    processes = [
        fleet.multiprocessing.Process(target=fleet.agent, args=(provider, common[0]))
        for _ in range(4)
    ]
    for each in processes:
        each.start()
    for each in processes:
        each.join(60)
    assert [each.exitcode for each in processes] == [0, 0, 0, 0]
    assert 40 <= provider.requests.value <= 1.25 * 40


class SlowStore(DownStore):
    """A store whose every answer takes a while."""

    is_down = False

    def _check(self):
        time.sleep(0.15)


class HeldStore(DownStore):
    """A store that answers when it is told to."""

    is_down = False

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()

    def _check(self):
        self.asked.set()
        assert self.may_answer.wait(30)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_caller_that_is_cancelled_while_it_asks_leaves_no_probe_behind(loop, cancelled_once):
    """E-B2"""
    store: Any = HeldStore()
    guard = opened(store)
    begun: list[int] = []

    async def never():
        begun.append(1)

    async def call():
        await guard.acall(never)

    store.asked.clear()
    store.may_answer.clear()
    cancelled_once(loop, store.asked, call, then=store.may_answer.set)
    assert begun == []
    assert guard.call(Scripted("well")) == "well"


def test_a_loop_goes_on_while_the_store_is_slow():
    store: Any = SlowStore()
    guard = mulligan.Guard("slow", effects="read", store=store)
    ticks: list[float] = []

    async def tick():
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.01)

    async def main():
        ticker = asyncio.create_task(tick())
        assert await guard.acall(Scripted("well").acall) == "well"
        ticker.cancel()

    asyncio.run(main())
    assert len(ticks) >= 5  # two round trips of 0.15 s, and a tick every 0.01 s
