"""Virtual time belongs to a context, never to the process."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest
import trio

import mulligan
from mulligan.calls.clock import REAL, world
from mulligan.testing import LoadedDice, Scripted, VirtualClock, virtual_time


def test_everything_inside_sleeps_on_the_clock():
    @mulligan.retry(effects="read")
    def fetch():
        return script()

    script = Scripted(ConnectionResetError(), ConnectionResetError(), "ok")
    with virtual_time() as clock:
        assert fetch() == "ok"
    assert clock.sleeps == [0.25, 0.5]


def test_outside_the_world_is_the_real_one():
    assert world() is REAL
    with virtual_time() as clock:
        assert world().clock is clock
    assert world() is REAL


def test_it_ends_with_an_error_too():
    with pytest.raises(LookupError), virtual_time():
        raise LookupError
    assert world() is REAL


def test_it_nests():
    with virtual_time() as outer:
        with virtual_time() as inner:
            assert world().clock is inner
        assert world().clock is outer


def test_clock_and_dice_can_be_given():
    clock = VirtualClock(wall=5)
    with virtual_time(clock, LoadedDice(0.0)) as same:
        assert same is clock
        mulligan.call(Scripted(ConnectionRefusedError(), "ok"))
    assert clock.sleeps == [0]


def test_other_threads_keep_real_time():
    seen: list[object] = []
    with virtual_time():
        thread = threading.Thread(target=lambda: seen.append(world()))
        thread.start()
        thread.join()
    assert seen == [REAL]


def test_other_contexts_keep_real_time():
    elsewhere = contextvars.copy_context()
    with virtual_time():
        assert elsewhere.run(world) is REAL


def test_two_tasks_may_live_in_two_times():
    async def agent(waits):
        with virtual_time(dice=LoadedDice(waits)) as clock:
            script = Scripted(ConnectionRefusedError(), "ok")
            await mulligan.acall(script.acall)
            return clock.sleeps

    async def main():
        return await asyncio.gather(agent(0.0), agent(0.5))

    assert asyncio.run(main()) == [[0], [0.25]]


def test_children_of_tasks_and_to_thread_inherit_it():
    def here():
        return world().clock

    async def on_asyncio():
        child = asyncio.create_task(asyncio.to_thread(here))
        return await child

    async def on_trio():
        return await trio.to_thread.run_sync(here)

    with virtual_time() as clock:
        assert asyncio.run(on_asyncio()) is clock
        assert trio.run(on_trio) is clock


def test_a_task_measures_its_deadline_with_it():
    with virtual_time() as clock, mulligan.task(deadline=10):
        clock.advance(11)
        with pytest.raises(mulligan.DeadlinePassed):
            mulligan.call(Scripted("never reached"))
