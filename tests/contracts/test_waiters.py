"""Who waits at a gate: first come, first served; free to go; on nobody's attempts."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from typing import Any

import pytest
import trio

import mulligan
from mulligan.classify.quotas import Quota
from mulligan.core.admission import Admitted, Hold
from mulligan.shared.admission import CallAdmission
from mulligan.shared.gate.client import GateAdmission
from mulligan.shared.gate.gate import Gate
from mulligan.stores.state_machine import Key
from mulligan.testing import Scripted, status_error, virtual_time

LIMITED = status_error(429, headers={"retry-after": "10"})


class Crowd:
    """Callers of one target that come one after another, on asyncio or trio in virtual time."""

    def __init__(self, drive) -> None:
        self.drive, self.clock = drive, drive.clock
        self.let_in: list[tuple[str, float]] = []
        self.errors: dict[str, Exception] = {}

    async def call(self, name, *, after=0.0, **options):
        await self.clock.asleep(after)

        async def work():
            self.let_in.append((name, self.clock.now() - self.began))
            await self.clock.asleep(0.3)

        try:
            await mulligan.Guard("api", effects="read", **options).acall(work)
        except Exception as error:  # noqa: BLE001 -- the test looks at it
            self.errors[name] = error

    def run(self, *callers, cancelled=()):
        """All of them, behind a gate that is shut for ten seconds; `cancelled` after five."""

        async def main():
            with pytest.raises(type(LIMITED)):
                await mulligan.Guard("api", attempts=1).acall(Scripted(LIMITED).acall)
            self.began = self.clock.now()
            if self.drive.name == "trio":
                async with trio.open_nursery() as nursery:
                    scope = await nursery.start(
                        self._scoped, [c for c in callers if c[0] in cancelled]
                    )
                    for name, after, options in callers:
                        if name not in cancelled:
                            nursery.start_soon(partial(self.call, name, after=after, **options))
                    await self.clock.asleep(5)
                    scope.cancel()
            else:
                tasks = {n: asyncio.create_task(self.call(n, after=a, **o)) for n, a, o in callers}
                await self.clock.asleep(5)
                for name in cancelled:
                    tasks[name].cancel()
                await asyncio.gather(*tasks.values(), return_exceptions=True)

        self.drive.arun(main)
        return [name for name, _ in self.let_in]

    async def _scoped(self, callers, *, task_status):
        with trio.CancelScope() as scope:
            task_status.started(scope)
            async with trio.open_nursery() as nursery:
                for name, after, options in callers:
                    nursery.start_soon(partial(self.call, name, after=after, **options))


@pytest.fixture
def crowd(adrive):
    with virtual_time(adrive.clock):
        yield Crowd(adrive)


Caller = tuple[str, float, dict[str, Any]]


def coming(*, every: float, names: list[str], first: float = 0.0) -> list[Caller]:
    return [(name, first + every * number, {}) for number, name in enumerate(names)]


NAMES = [f"caller {number}" for number in range(12)]


def test_tasks_are_let_in_in_the_order_of_their_coming(crowd):
    assert crowd.run(*coming(every=0.7, names=NAMES)) == NAMES
    times = [at for _, at in crowd.let_in]
    assert times[0] >= 10
    assert times[-1] < 13  # slow start: 1, 2, 4 … at a time, each taking 0.3 s


def test_who_comes_as_the_gate_opens_comes_after_those_who_have_waited(crowd):
    late = [f"late {number}" for number in range(8)]
    callers = coming(every=0.01, names=NAMES) + coming(every=0.05, names=late, first=9.9)
    assert crowd.run(*callers) == NAMES + late


def test_a_waiter_that_is_cancelled_is_gone_at_once_and_holds_up_nobody(crowd):
    assert crowd.run(*coming(every=0.01, names=NAMES[:4]), cancelled=NAMES[:2]) == NAMES[2:4]
    assert crowd.let_in[0][1] < 10.2
    assert crowd.errors == {}


def test_waiting_counts_against_the_deadline_and_not_against_attempts(crowd):
    patient: Caller = ("patient", 0.0, {"attempts": 1, "deadline": 60})
    assert crowd.run(("hasty", 0.0, {"deadline": 5}), patient) == ["patient"]
    error = crowd.errors["hasty"]
    assert isinstance(error, mulligan.LimitReached)
    story = mulligan.story(error)
    assert story is not None
    assert (story.attempts, story.waited) == (0, 0.0)


@pytest.mark.real
def test_threads_are_let_in_in_the_order_of_their_coming():
    limited = status_error(429, headers={"retry-after": "0.6"})
    with pytest.raises(type(limited)):
        mulligan.Guard("threads", attempts=1).call(Scripted(limited))
    let_in: list[int] = []
    threads = [
        threading.Thread(
            target=mulligan.Guard("threads", effects="read").call, args=(let_in.append, number)
        )
        for number in range(10)
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.03)
    for thread in threads:
        thread.join()
    assert let_in == list(range(10))


def test_in_every_store_a_process_lets_in_who_came_first(place):
    now = [100.0]
    gate = GateAdmission(Key("api", "gate"), Gate(), roll=lambda: 0.5, shared=place.another().state)
    times: dict[str, Any] = {"now": now[0], "wall": 1e9}
    first = CallAdmission(gate.waiting, None, gate)
    admitted = first.enter(1, **times)
    assert isinstance(admitted, Admitted)
    stated = (Quota(dimension="requests", limit=4, remaining=0, reset_in=0.4),)
    first.leave(admitted.ticket, "succeeded", None, stated=stated, **times)
    waiters = [CallAdmission(gate.waiting, None, gate) for _ in range(3)]
    delays = []
    for number, waiter in enumerate(waiters):
        answer = waiter.enter(1, now=100.06 + number / 1000, wall=1e9)
        assert isinstance(answer, Hold)
        assert answer.because == "0 of 4 requests left until the reset"
        delays.append(answer.delay + number / 1000)
    assert delays == sorted(delays)
    place.wait(0.5)
    newcomer = CallAdmission(gate.waiting, None, gate)
    for waiter in (newcomer, waiters[2], waiters[1]):
        answer = waiter.enter(1, now=100.51, wall=1e9)
        assert isinstance(answer, Hold)
        assert answer.delay < 0.01
    waiters[1].give_up(100.51)
    for waiter in (waiters[0], waiters[2], newcomer):
        assert isinstance(waiter.enter(1, now=100.52, wall=1e9), Admitted)
