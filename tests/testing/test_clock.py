"""VirtualClock: moves only when a call waits or a test advances it."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

import pytest
import trio

import mulligan
from mulligan.testing import Scripted, VirtualClock, virtual_time

SIX_HOURS = 21_600


def test_time_stands_still_until_somebody_pushes_it():
    clock = VirtualClock()
    assert (clock.now(), clock.now()) == (0, 0)
    clock.advance(90)
    clock.advance("1m30s")
    clock.advance(timedelta(minutes=1))
    assert clock.now() == 240


def test_a_sleep_takes_no_time_and_moves_the_clock():
    clock = VirtualClock()
    clock.sleep(SIX_HOURS)
    clock.sleep(0.5)
    assert clock.now() == SIX_HOURS + 0.5
    assert clock.sleeps == [SIX_HOURS, 0.5]


@pytest.mark.parametrize("delay", [0, -5])
def test_a_sleep_without_a_future_does_not_turn_the_clock_back(delay):
    clock = VirtualClock()
    clock.advance(10)
    clock.sleep(delay)
    assert clock.now() == 10


def test_the_clock_never_goes_back():
    clock = VirtualClock()
    clock.move_to(100)
    clock.move_to(50)
    assert clock.now() == 100
    with pytest.raises(mulligan.SettingError):
        clock.advance(-1)


def test_the_calendar_goes_with_the_clock():
    clock = VirtualClock(wall=1_000_000)
    clock.advance(5)
    assert clock.wall() == 1_000_005


def test_the_calendar_can_be_set_without_touching_the_clock():
    clock = VirtualClock(wall=1_000_000)
    clock.advance(5)
    clock.step_wall(-3600)
    assert (clock.wall(), clock.now()) == (996_405, 5)
    clock.step_wall(7200)
    assert (clock.wall(), clock.now()) == (1_003_605, 5)


def test_a_step_of_the_calendar_does_not_lengthen_a_deadline():
    clock = VirtualClock()

    def step_back():
        clock.step_wall(-86_400)
        raise ConnectionRefusedError

    with virtual_time(clock), pytest.raises(ConnectionRefusedError) as caught:
        mulligan.Guard(deadline=1.0, effects="read").call(step_back)
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.ending == "deadline"
    assert clock.now() < 1


def _until_asleep(clock, count):
    """Wait, in real time and for a second at most, until so many threads sleep on the clock."""
    for _ in range(1000):
        if len(clock._moved._waiters) == count:
            return
        time.sleep(0.001)
    pytest.fail(f"{len(clock._moved._waiters)} of {count} threads are asleep after a second")


@pytest.mark.real
def test_sleepers_in_threads_wait_until_somebody_pushes_the_clock():
    clock = VirtualClock(autojump=False)
    woken: list[tuple[int, float]] = []

    def sleeper(delay):
        clock.sleep(delay)
        woken.append((delay, clock.now()))

    threads = [threading.Thread(target=sleeper, args=(delay,)) for delay in (10, 20, 30)]
    for thread in threads:
        thread.start()
    _until_asleep(clock, 3)
    assert woken == []
    clock.advance(10)
    threads[0].join(1)
    assert woken == [(10, 10)]
    clock.advance(20)
    for thread in threads:
        thread.join(1)
    assert sorted(woken) == [(10, 10), (20, 30), (30, 30)]


@pytest.mark.real
def test_a_guarded_call_in_a_thread_waits_for_the_clock():
    clock = VirtualClock(autojump=False)
    answers: list[str] = []

    def work():
        guard = mulligan.Guard(clock=clock, policy="tools", effects="read")
        answers.append(guard.call(Scripted(ConnectionRefusedError(), "ok")))

    thread = threading.Thread(target=work)
    thread.start()
    _until_asleep(clock, 1)
    assert clock.sleeps == [0.5]
    assert answers == []
    clock.advance(0.5)
    thread.join(1)
    assert answers == ["ok"]


# Loops


async def _sleep_on(clock, delay, woken):
    await clock.asleep(delay)
    woken.append((delay, clock.now()))


STEPS = [SIX_HOURS * n / 50 for n in range(50, 0, -1)]


def test_fifty_tasks_sleep_over_six_hours_on_asyncio():
    clock = VirtualClock()
    woken: list[tuple[float, float]] = []

    async def main():
        await asyncio.gather(*(_sleep_on(clock, delay, woken) for delay in STEPS))

    clock.run(main())
    assert [delay for delay, _ in woken] == sorted(STEPS)
    assert [when for _, when in woken] == pytest.approx(sorted(STEPS))
    assert clock.now() == pytest.approx(SIX_HOURS)


def test_fifty_tasks_sleep_over_six_hours_on_trio():
    clock = VirtualClock()
    woken: list[tuple[float, float]] = []

    async def main():
        async with trio.open_nursery() as nursery:
            for delay in STEPS:
                nursery.start_soon(_sleep_on, clock, delay, woken)

    trio.run(main, clock=clock.trio())
    assert [delay for delay, _ in woken] == sorted(STEPS)
    assert [when for _, when in woken] == pytest.approx(sorted(STEPS))
    assert clock.now() == pytest.approx(SIX_HOURS)


def test_fifty_guarded_calls_wait_out_their_limits_together(adrive):
    limited = mulligan.testing.status_error(429, headers={"retry-after": str(SIX_HOURS)})
    answers: list[object] = []

    async def agent(guard):
        answers.append(await guard.acall(Scripted(limited, "ok").acall))

    async def main():
        guard = mulligan.Guard(in_place="6h", effects="read", clock=adrive.clock)
        if adrive.name == "trio":
            async with trio.open_nursery() as nursery:
                for _ in range(50):
                    nursery.start_soon(agent, guard)
        else:
            await asyncio.gather(*(agent(guard) for _ in range(50)))

    adrive.arun(main)
    assert answers == ["ok"] * 50
    assert adrive.clock.now() == SIX_HOURS  # not fifty times six hours


def test_the_loops_own_timers_live_on_the_clock():
    clock = VirtualClock()

    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.sleep(7200)
        return asyncio.get_running_loop().time()

    assert clock.run(main()) == pytest.approx(3600)


def test_trios_own_timers_live_on_the_clock():
    clock = VirtualClock()

    async def main():
        with trio.move_on_after(3600):
            await trio.sleep(7200)
        return trio.current_time()

    assert trio.run(main, clock=clock.trio()) == 3600


def test_a_cancelled_sleep_ends_at_once(adrive):  # E-D2
    async def main():
        if adrive.name == "trio":
            with trio.move_on_after(5):
                await adrive.clock.asleep(SIX_HOURS)
        else:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(adrive.clock.asleep(SIX_HOURS), 5)

    adrive.arun(main)
    assert adrive.clock.now() == pytest.approx(5)


def test_a_task_of_a_loop_in_real_time_jumps():
    clock = VirtualClock()

    async def main():
        await clock.asleep(SIX_HOURS)

    asyncio.run(main())
    assert clock.now() == SIX_HOURS


def test_a_clock_that_does_not_jump_cannot_hold_a_loop_in_real_time():
    async def main():
        await VirtualClock(autojump=False).asleep(1)

    with pytest.raises(RuntimeError, match=r"clock\.run\(main\(\)\)"):
        asyncio.run(main())


def test_run_gives_back_the_result_and_passes_on_the_error():
    async def answer():
        return 42

    async def fail():
        raise LookupError("gone")

    clock = VirtualClock()
    assert clock.run(answer()) == 42
    with pytest.raises(LookupError, match=r"^gone$"):
        clock.run(fail())
