"""Tasks: one budget and one deadline for all calls inside (R-B18)."""

from __future__ import annotations

import asyncio
import threading

import pytest
import trio

import mulligan
from mulligan import Fixed, Kind, Policy, Rule
from mulligan.calls.context import surroundings
from mulligan.testing import Scripted, VirtualClock, status_error, virtual_time

STEADY = Policy(
    rules={Kind.SERVER: Rule(attempts=50, backoff=Fixed(wait=4))}, effects=mulligan.Effects.READ
)


def story_of(function, *args):
    with pytest.raises(Exception, match="status 5") as caught:
        function(*args)
    story = mulligan.story(caught.value)
    assert story is not None
    return story


def test_all_calls_of_a_task_share_its_budget(virtual_clock):
    guard = mulligan.Guard("api", policy=STEADY, breaker=False)
    with mulligan.task(budget=30) as task:
        first = story_of(guard.call, Scripted(status_error(500)))
        second = story_of(guard.call, Scripted(status_error(500)))
    assert (first.ending, first.attempts) == ("budget", 8)
    assert (second.ending, second.attempts) == ("budget", 1)
    assert second.because == "waiting 4s would pass the retry budget, 2s of it left"
    assert task.spent == 28


def test_attempts_after_the_first_count_against_the_budget(virtual_clock):
    def slow():
        virtual_clock.advance(10)
        raise status_error(500)

    with mulligan.task(budget=30) as task:
        story = story_of(mulligan.Guard(policy=STEADY).call, slow)
    assert story.attempts == 3
    assert task.spent == 4 + 10 + 4 + 10


def test_nested_tasks_take_the_smaller_of_both(virtual_clock):
    guard = mulligan.Guard(policy=STEADY)
    with mulligan.task(budget=10) as outer:
        with mulligan.task(budget=100):
            assert story_of(guard.call, Scripted(status_error(500))).attempts == 3
        with mulligan.task(budget=1):
            assert story_of(guard.call, Scripted(status_error(500))).attempts == 1
    assert outer.spent == 8


def test_the_deadline_of_a_task_bounds_every_wait_inside(virtual_clock):
    with mulligan.task(deadline=10):
        story = story_of(mulligan.Guard(policy=STEADY).call, Scripted(status_error(500)))
    assert story.ending == "deadline"
    assert virtual_clock.sleeps == [4, 4]


def test_metadata_of_tasks_reaches_current(virtual_clock):
    def look():
        here = mulligan.current()
        assert here is not None
        return here.metadata

    with mulligan.task(metadata={"run": 1, "agent": "a"}), mulligan.task(metadata={"agent": "b"}):
        assert mulligan.call(look) == {"run": 1, "agent": "b"}
        assert mulligan.Guard(metadata={"agent": "c"}).call(look) == {"run": 1, "agent": "c"}
    assert mulligan.current() is None


def test_children_of_asyncio_and_threads_inherit_the_task():
    clock = VirtualClock()

    async def main():
        with virtual_time(clock), mulligan.task(budget=9) as task:
            guard = mulligan.Guard(policy=STEADY)
            script = Scripted(status_error(500))
            await asyncio.gather(
                *(guard.acall(script.acall) for _ in range(4)), return_exceptions=True
            )
            await asyncio.to_thread(lambda: story_of(guard.call, script))
            return task.spent

    assert clock.run(main()) <= 9


def test_children_of_trio_inherit_the_task():
    clock = VirtualClock()

    async def main():
        async def child():
            with pytest.raises(Exception, match="status 500"):
                await mulligan.Guard(policy=STEADY).acall(Scripted(status_error(500)).acall)

        with virtual_time(clock), mulligan.task(budget=9) as task:
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(child)
            return task.spent

    assert trio.run(main, clock=clock.trio()) <= 9


def test_a_budget_is_reserved_once_however_many_ask_together():  # E-C2, E-C3
    from mulligan.calls.budget import Task

    parent = Task(VirtualClock(), budget=500, metadata={})
    task = Task(VirtualClock(), budget=1000, metadata={}, parent=parent)
    granted = []
    barrier = threading.Barrier(8)

    def ask():
        barrier.wait()
        for _ in range(200):
            if task.reserve(1):
                granted.append(1)  # noqa: PERF401 -- from many threads

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 500
    assert (task.spent, parent.spent) == (500, 500)


def test_a_task_works_with_async_with(adrive):
    async def main():
        async with mulligan.task(budget=1) as task:
            return task.budget_left()

    assert adrive.arun(main) == 1


def test_a_task_is_entered_once():
    task = mulligan.task()
    with task, pytest.raises(mulligan.SettingError, match=r"^a task is entered once"):
        task.__enter__()


@pytest.mark.parametrize("bad", [-1, float("nan"), "soon", True])
def test_a_budget_that_cannot_be_meant_is_refused(bad):
    with pytest.raises(mulligan.SettingError, match=r"^budget needs"):
        mulligan.task(budget=bad)


def test_the_first_task_of_a_process_counts_what_was_decorated_before(monkeypatch):
    monkeypatch.setattr(surroundings, "exist", False)

    @mulligan.retry
    def plain():
        return mulligan.current()

    @mulligan.retry
    async def awaited():
        return mulligan.current()

    guard = mulligan.Guard()
    assert [plain(), asyncio.run(awaited()), guard.call(plain)] == [None] * 3
    with mulligan.task(metadata={"run": 7}):
        inside = [plain(), asyncio.run(awaited()), guard.call(plain)]
    assert [each.metadata for each in inside if each] == [{"run": 7}] * 3
    assert plain() is None


def test_a_child_that_outlives_the_task_of_its_parent_stays_in_it():
    @mulligan.retry
    async def awaited():
        return mulligan.current()

    async def parent():
        with mulligan.task(metadata={"run": 7}):
            child = asyncio.create_task(later())
        return await child

    async def later():
        await asyncio.sleep(0)
        return await awaited()

    assert asyncio.run(parent()).metadata == {"run": 7}
