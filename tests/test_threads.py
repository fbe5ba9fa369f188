"""Coroutines wait for a store in threads of ours, whatever the program does with its own."""

from __future__ import annotations

import asyncio
import os
import threading
from contextvars import ContextVar

import pytest
import trio

import mulligan
from mulligan.threads import in_thread

pytestmark = pytest.mark.real

# Enough to fill asyncio's executor and trio's limiter.
MANY = 48


async def ok():
    return "ok"


@pytest.fixture
def guard(tmp_path):
    return mulligan.Guard("target", store=f"sqlite:{tmp_path}/state.db", effects="read")


def test_busy_threads_of_the_program_hold_no_call_up_on_asyncio(guard):
    free = threading.Event()

    async def main():
        jobs = [asyncio.create_task(asyncio.to_thread(free.wait, 20)) for _ in range(MANY)]
        await asyncio.sleep(0)
        answer = await asyncio.wait_for(guard.acall(ok), 10)
        assert not free.is_set()
        free.set()
        await asyncio.gather(*jobs)
        return answer

    assert asyncio.run(main()) == "ok"


def test_busy_threads_of_the_program_hold_no_call_up_on_trio(guard):
    free = threading.Event()

    async def main():
        answer = None
        async with trio.open_nursery() as nursery:
            for _ in range(MANY):
                nursery.start_soon(trio.to_thread.run_sync, free.wait, 20)
            await trio.lowlevel.checkpoint()
            with trio.move_on_after(10):
                answer = await guard.acall(ok)
            free.set()
        return answer

    assert trio.run(main) == "ok"
    free.clear()
    assert trio.run(main) == "ok"  # another run, another limiter


def test_work_in_the_programs_threads_may_wait_for_a_guarded_call(guard):
    async def main():
        loop = asyncio.get_running_loop()

        def tool(number):
            call = guard.aonce(f"key {number}", ok)
            return asyncio.run_coroutine_threadsafe(call, loop).result(20)

        jobs = [asyncio.to_thread(tool, number) for number in range(MANY)]
        return await asyncio.wait_for(asyncio.gather(*jobs), 20)

    assert asyncio.run(main()) == ["ok"] * MANY


def test_there_are_few_threads_however_much_is_asked_at_once():
    seen = set()

    def work():
        seen.add(threading.get_ident())

    async def main():
        await asyncio.gather(*[in_thread(work, is_awaited=True) for _ in range(500)])

    asyncio.run(main())
    assert 1 <= len(seen) <= 16


def test_a_thread_has_the_context_of_the_coroutine_and_its_errors_come_back():
    word = ContextVar("word", default="")

    def work():
        raise LookupError(word.get())

    async def main():
        word.set("here")
        await in_thread(work, is_awaited=False)

    for run in (lambda: asyncio.run(main()), lambda: trio.run(main)):
        with pytest.raises(LookupError, match="here"):
            run()


def test_a_caller_that_is_cancelled_waits_for_what_it_must_give_back():
    free, done = threading.Event(), []

    def work(loop, begun):
        loop.call_soon_threadsafe(begun.set)
        free.wait(20)
        done.append(1)

    async def main():
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(in_thread(work, loop, begun, is_awaited=True))
        await begun.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert done == [1]


def test_a_child_of_a_fork_has_threads_of_its_own():
    async def main():
        return await in_thread(os.getpid, is_awaited=True)

    assert asyncio.run(main()) == os.getpid()
    child = os.fork()
    if not child:
        import signal

        signal.alarm(10)
        os._exit(asyncio.run(main()) != os.getpid())
    assert os.waitpid(child, 0)[1] == 0
