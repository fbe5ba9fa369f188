"""Deadlines, timeouts, cancellation: how time bounds a call."""

from __future__ import annotations

import asyncio

import anyio
import pytest
import trio

import mulligan
from mulligan import Kind, Policy, Rule, Timeouts
from mulligan.testing import VirtualClock, status_error, virtual_time

PATIENT = Policy(rules={Kind.TIMEOUT: Rule(attempts=3), Kind.SERVER: Rule(attempts=3)})


def arun(drive, main):
    async def inside():
        with virtual_time(drive.clock):
            return await main()

    return drive.arun(inside)


def test_a_timeout_cuts_each_attempt_and_is_retried(adrive):
    cut = []

    @mulligan.retry(timeout=10, effects="read", policy=PATIENT)
    async def hang():
        try:
            await anyio.sleep(1000)
        finally:
            cut.append(adrive.clock.now())

    with pytest.raises(
        TimeoutError, match=r"(?m)^hang was cut at its timeout, 10s into attempt 3$"
    ) as caught:
        arun(adrive, hang)
    assert cut == [10, 20.25, 30.75]
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.ending, story.attempts) == ("exhausted", 3)


def test_a_cut_attempt_is_over_before_the_next_one_begins(adrive):
    log = []

    @mulligan.retry(timeout=1, effects="read", policy=PATIENT)
    async def slow_to_die():
        log.append("begin")
        try:
            await anyio.sleep(1000)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(5)
            log.append("end")

    with pytest.raises(TimeoutError):
        arun(adrive, slow_to_die)
    assert log == ["begin", "end"] * 3


def test_a_retried_timeout_shrinks(adrive):  # R-B19
    began, took = [], []

    @mulligan.retry(
        timeout=Timeouts(total=300, shrink=0.8),
        effects="read",
        policy=PATIENT,
    )
    async def subagent():
        began.append(adrive.clock.now())
        try:
            await anyio.sleep(10_000)
        finally:
            took.append(round(adrive.clock.now() - began[-1], 6))

    with pytest.raises(TimeoutError):
        arun(adrive, subagent)
    assert took == [300, 240, 192]


def test_a_deadline_cuts_the_first_attempt(adrive):  # E-D4
    @mulligan.retry(deadline=30, effects="read")
    async def hang():
        await anyio.sleep(1000)

    with pytest.raises(
        TimeoutError, match=r"(?m)^hang was cut at its deadline, 30s into attempt 1$"
    ):
        arun(adrive, hang)
    assert adrive.clock.now() == 30


def test_a_deadline_cuts_a_later_attempt_and_the_last_real_error_is_raised(adrive):  # E-D3
    attempts = []
    real = status_error(503)

    @mulligan.retry(deadline=30, effects="read")
    async def fails_then_hangs():
        attempts.append(adrive.clock.now())
        if len(attempts) == 1:
            raise real
        await anyio.sleep(1000)

    with pytest.raises(Exception, match="status 503") as caught:
        arun(adrive, fails_then_hangs)
    assert caught.value is real
    assert adrive.clock.now() == 30
    story = mulligan.story(real)
    assert story is not None
    assert (story.ending, story.attempts) == ("deadline", 2)


def test_the_deadline_is_shared_by_all_attempts_and_the_timeout_is_not(adrive):  # E-D5
    ends = []

    @mulligan.retry(deadline=25, timeout=10, effects="read")
    async def hang():
        try:
            await anyio.sleep(1000)
        finally:
            ends.append(adrive.clock.now())

    with pytest.raises(TimeoutError):
        arun(adrive, hang)
    assert ends[0] == 10
    assert adrive.clock.now() <= 25


def test_a_timeout_error_of_the_function_itself_is_not_taken_for_ours(adrive):
    @mulligan.retry(timeout=10, policy=Policy(rules={}))
    async def own():
        await anyio.sleep(1)
        raise TimeoutError("of my own")

    with pytest.raises(TimeoutError, match=r"(?m)^of my own$"):
        arun(adrive, own)


def test_a_plain_function_with_a_timeout_is_refused_when_it_is_decorated():
    with pytest.raises(
        mulligan.SettingError, match=r"^timeout cannot stop the plain function f\(\)"
    ):

        @mulligan.retry(timeout=5)
        def f(): ...


def test_a_plain_function_takes_its_limit_by_the_parameter_it_names():
    limits = []
    clock = VirtualClock()

    @mulligan.retry(timeout=10, timeout_to="timeout", deadline=16, effects="read", clock=clock)
    def fetch(timeout):
        limits.append(timeout)
        clock.advance(min(timeout, 7))
        raise status_error(503)

    with pytest.raises(Exception, match="status 503"):
        fetch()  # type: ignore[call-arg]  # the guard passes it
    assert limits[0] == 10
    assert limits[1] < 9


def test_cancellation_ends_a_wait_at_once_and_makes_no_further_attempt():  # E-D2
    clock, calls = VirtualClock(), []

    @mulligan.retry
    async def refused():
        calls.append(clock.now())
        raise status_error(429, headers={"retry-after": "100"})

    async def main():
        with virtual_time(clock):
            task = asyncio.create_task(refused())
            await asyncio.sleep(3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    clock.run(main())
    assert calls == [0]
    assert clock.now() == 3


def test_cancellation_ends_a_wait_at_once_on_trio_too():  # E-D2
    clock, calls = VirtualClock(), []

    @mulligan.retry
    async def refused():
        calls.append(clock.now())
        raise status_error(429, headers={"retry-after": "100"})

    async def main():
        with virtual_time(clock), trio.move_on_after(3):
            await refused()

    trio.run(main, clock=clock.trio())
    assert calls == [0]
    assert clock.now() == 3


@pytest.mark.parametrize("options", [{"timeout": 10}, {"deadline": 10}, {}])
def test_cancellation_from_outside_is_never_taken_for_a_timeout(options):  # E-D1
    clock, calls = VirtualClock(), []

    @mulligan.retry(effects="read", **options)
    async def hang():
        calls.append(1)
        await asyncio.sleep(1000)

    async def main():
        with virtual_time(clock):
            task = asyncio.create_task(hang())
            await asyncio.sleep(3)
            task.cancel("from outside")
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelling() == 1

    clock.run(main())
    assert calls == [1]


def test_a_cancellation_that_the_function_raises_itself_passes_through(adrive):  # E-D1
    calls = []

    @mulligan.retry(effects="read", deadline=100)
    async def gives_up():
        calls.append(1)
        raise asyncio.CancelledError

    async def main():
        with pytest.raises(asyncio.CancelledError):
            await gives_up()

    arun(adrive, main)
    assert calls == [1]


def test_a_nested_cancel_scope_of_trio_survives_a_deadline():
    clock = VirtualClock()

    @mulligan.retry(effects="read", deadline=100)
    async def scoped():
        with trio.move_on_after(5) as scope:
            await trio.sleep(50)
        return scope.cancelled_caught

    async def main():
        with virtual_time(clock):
            return await scoped()

    assert trio.run(main, clock=clock.trio()) is True


def test_a_deadline_that_has_passed_before_the_first_attempt_makes_no_call(drive):
    calls = []

    def call():
        calls.append(1)

    async def main():
        await mulligan.Guard("api").acall(acall)

    async def acall():
        calls.append(1)

    with virtual_time(drive.clock), mulligan.task(deadline=5):
        drive.clock.advance(6)
        with pytest.raises(
            mulligan.DeadlinePassed,
            match=r"(?m)^api: the deadline passed before the attempt could begin$",
        ):
            mulligan.Guard("api").call(call) if drive.name == "sync" else drive.arun(main)
    assert calls == []
    assert issubclass(mulligan.DeadlinePassed, TimeoutError)


@pytest.mark.parametrize("delay", [float("nan"), float("inf"), -5.0, 1e12])
def test_the_sleeper_takes_any_number(delay, monkeypatch):  # E-A5 to E-A7
    from mulligan.calls import clock as world

    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    world.SystemClock().sleep(delay)
    assert 0 <= slept[0] <= 31_536_000


@pytest.mark.real
def test_real_waits_are_real(adrive):
    @mulligan.retry(policy=Policy(rules={Kind.NETWORK: Rule(backoff=mulligan.Fixed(wait=0.05))}))
    async def flaky(seen):
        seen.append(1)
        if len(seen) < 3:
            raise ConnectionRefusedError

    seen: list[int] = []
    if adrive.name == "trio":
        trio.run(flaky, seen)
    else:
        asyncio.run(flaky(seen))
    assert len(seen) == 3
