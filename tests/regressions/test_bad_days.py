"""A plain user with all defaults, many calls at once, on a bad day.

Seen before: with 30 % of the calls failing at random 90 % of the jobs were lost, because successes
of calls that had begun calm were not told and the streak grew through them; in an outage of 20 s or
120 s, and behind a 503 with Retry-After 60, all calls ended with an open circuit; of 20 calls that
met one second of overload none succeeded, and then nobody could call for a minute. After one 429
with `remaining 0, reset 1` the gate stood still for 60 s. Every call of a first burst ran into a
limit or an outage that the first of them could have told of. Where 30 % failed at once and answers
took 1.5 s, the breaker opened on the failures before the first answer, and calls with a deadline
of 10 s waited behind the first burst for 1.4 s, then for a random time that ended after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest

import mulligan
from mulligan.testing import VirtualClock, status_error, virtual_time


class Dice:
    """Dice that fall differently for each seed, and the same way every time."""

    def __init__(self, seed: int) -> None:
        self.roll = random.Random(seed).random


class Day:
    """What became of many calls to one server."""

    def __init__(self, answers, *, calls: int, seed: int = 0, takes=(0.1, 0.3), **options) -> None:
        self.requests = 0
        self.done: list[float] = []
        self.errors: list[Exception] = []
        self.clock, luck = VirtualClock(), random.Random(seed)

        async def request() -> None:
            self.requests += 1
            await asyncio.sleep(luck.uniform(*takes))
            answers(self.clock.now(), luck)

        async def agent(guard: mulligan.Guard) -> None:
            await asyncio.sleep(luck.random() * 0.01)
            try:
                await guard.acall(request)
            except Exception as error:  # noqa: BLE001 -- counted
                self.errors.append(error)
            else:
                self.done.append(self.clock.now())

        async def main() -> None:
            guard = mulligan.Guard("api", effects="read", **options)
            await asyncio.gather(*[agent(guard) for _ in range(calls)])

        with virtual_time(self.clock, Dice(seed)):
            self.clock.run(main())


def down_until(end: float, **headers):
    def answers(now, _luck):
        if now < end:
            raise status_error(503, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return answers


@pytest.mark.parametrize("seed", range(3))
def test_where_30_percent_fail_at_random_everything_is_done(seed):
    def answers(_now, luck):
        if luck.random() < 0.3:
            raise status_error(503)

    day = Day(answers, calls=300, seed=seed)
    assert (len(day.done), day.errors) == (300, [])
    assert day.requests < 300 * 1.6


@pytest.mark.parametrize("calls", [1, 200])
@pytest.mark.parametrize("outage", [20, 120])
def test_an_outage_is_outlived_with_few_requests(outage, calls):
    day = Day(down_until(outage), calls=calls)
    assert (len(day.done), day.errors) == (calls, [])
    if calls > 1:
        assert max(day.done) < 1.2 * outage + 5
        assert day.requests < 1.3 * calls


def test_a_503_that_names_a_time_is_waited_for():
    day = Day(down_until(60, retry_after="60"), calls=200)
    assert (len(day.done), day.errors) == (200, [])
    assert max(day.done) < 66
    assert day.requests <= 1.2 * 200


def test_a_limit_that_nobody_knows_of_rejects_a_few_calls_of_a_burst():
    def answers(now, _luck):
        if now < 20:
            raise status_error(429, headers={"retry-after": "20"})

    day = Day(answers, calls=100)
    assert (len(day.done), day.errors) == (100, [])
    assert day.requests <= 120


def test_ten_calls_are_sent_at_once_and_ten_more_a_quarter_of_a_second_later():
    day = Day(lambda _now, _luck: None, calls=20, takes=(2.0, 2.0))
    assert sorted(day.done)[9] <= 2.01
    assert max(day.done) <= 2.26


def test_nobody_asks_a_target_that_has_just_said_to_come_back_in_a_minute():
    """Ten failures open no breaker, and the time that they stated was believed by them alone."""
    closed: list[float] = []

    def answers(now, _luck):
        if now < 60:
            closed.append(now)
            raise status_error(503, headers={"retry-after": "60"})

    day = Day(answers, calls=100)
    assert (len(day.done), day.errors) == (100, [])
    assert len(closed) == 10


def test_a_server_known_to_overstate_is_asked_again_after_the_horizon_of_the_gate():
    """`Gate(horizon=)` opened the gate again, but who had been rejected parked for the hour."""

    def answers(now, _luck):
        if now < 45:
            raise status_error(429, headers={"retry-after": "3600"})

    day = Day(answers, calls=50, gate=mulligan.Gate(horizon=20))
    assert (len(day.done), day.errors) == (50, [])
    assert max(day.done) < 65
    assert day.requests <= 64


def test_a_hundred_calls_to_a_slow_target_that_is_well_all_begin_within_a_second():
    day = Day(lambda _now, _luck: None, calls=100, takes=(2.0, 2.0))
    assert max(day.done) <= 2.0 + 1.01


def test_a_call_with_a_deadline_waits_behind_the_first_burst_for_a_fiftieth_of_it():
    day = Day(lambda _now, _luck: None, calls=200, takes=(2.0, 2.0), deadline=10)
    assert (len(day.done), day.errors) == (200, [])
    assert max(day.done) <= 2.23


@pytest.mark.parametrize("deadline", [10, 15, 600, None])
def test_quick_failures_do_not_outvote_slow_answers(deadline):
    luck = random.Random(1)

    async def request() -> None:
        if luck.random() < 0.3:
            await asyncio.sleep(0.2)
            raise status_error(503)
        await asyncio.sleep(luck.uniform(1.0, 3.0))

    async def main() -> list[object]:
        guard = mulligan.Guard("api", effects="read", deadline=deadline)
        calls = [guard.acall(request) for _ in range(200)]
        return await asyncio.gather(*calls, return_exceptions=True)

    clock = VirtualClock()
    with virtual_time(clock, Dice(1)):
        assert clock.run(main()) == [None] * 200


def test_a_second_of_overload_costs_no_call():
    def answers(now, _luck):
        if now < 1:
            raise status_error(529)

    day = Day(answers, calls=20)
    assert (len(day.done), day.errors) == (20, [])
    assert max(day.done) < 5


def test_a_caller_that_was_held_and_times_out_hears_what_it_waited_for():
    with virtual_time() as clock:
        breaker = mulligan.Breaker(failures=1)
        guard = mulligan.Guard("api", effects="read", attempts=1, breaker=breaker)
        with pytest.raises(Exception, match="503"):
            guard.call(down_until(1e9), 0, None)
        with pytest.raises(mulligan.CircuitOpen) as caught:
            mulligan.Guard("api", effects="read", breaker=breaker, deadline=0.5).call(print)
        assert "1 failures in a row" in caught.value.because
        assert clock.now() <= 0.5


def test_a_window_of_a_second_is_used_again_and_again_without_an_observer():
    used: dict[int, int] = {}

    def answers(now, _luck):
        used[int(now)] = used.get(int(now), 0) + 1
        if used[int(now)] > 5:
            headers = {
                "x-ratelimit-limit": "5",
                "x-ratelimit-remaining": "0",
                "x-ratelimit-reset": "1",
            }
            raise status_error(429, headers=headers)

    day = Day(answers, calls=30)
    assert (len(day.done), day.errors) == (30, [])
    assert max(day.done) < 20


@pytest.mark.parametrize("is_async", [True, False], ids=["acall", "call"])
def test_successes_of_calls_that_began_calm_end_a_row_of_failures(is_async):
    """`Guard.call` and `Guard.acall` told nobody of them.

    Where 30 % of 100 calls at once failed, the breaker opened on "14 failures in a row" that had
    twice as many answers between them.
    """
    heard: list[object] = []
    guard = mulligan.Guard("api", effects="read", attempts=1, listeners=[heard.append])

    def ending(depth: int) -> None:
        if depth % 2:
            raise status_error(503)

    def nested(depth: int) -> None:  # all begin before the first has ended
        if depth:
            with contextlib.suppress(Exception):
                guard.call(nested, depth - 1)
        ending(depth)

    async def anested(depth: int) -> None:
        if depth:
            with contextlib.suppress(Exception):
                await guard.acall(anested, depth - 1)
        ending(depth)

    if is_async:
        asyncio.run(guard.acall(anested, 60))
    else:
        guard.call(nested, 60)
    assert not [each for each in heard if isinstance(each, mulligan.BreakerChanged)]


def test_an_opened_breaker_is_a_warning_where_nobody_listens(caplog):
    """A call that waited for up to 15 minutes said nothing about it."""
    day = Day(down_until(60), calls=30)
    assert (len(day.done), day.errors) == (30, [])
    said = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert [level for level, words in said if "the breaker has opened" in words] == ["WARNING"]
