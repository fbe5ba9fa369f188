"""Answers that are read: all of them, though most of them at a glance."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

import mulligan
from mulligan import Gate
from mulligan.testing import Scripted, VirtualClock, virtual_time


def answer(remaining, limit=5000, reset=30, tokens=None):
    headers = {
        "X-RateLimit-Limit-Requests": str(limit),
        "X-RateLimit-Remaining-Requests": str(remaining),
        "X-RateLimit-Reset-Requests": f"{reset}s",
    }
    if tokens is not None:
        headers["X-RateLimit-Limit-Tokens"] = "100000"
        headers["X-RateLimit-Remaining-Tokens"] = str(tokens)
        headers["X-RateLimit-Reset-Tokens"] = f"{reset}s"
    return SimpleNamespace(headers=headers)


def believed(guard):
    """What the gate of `guard` believes is left, by dimension."""
    state = guard._engine.here().state.part("gate").view.state
    return {each.dimension: each.remaining for each in state.beliefs}


@pytest.fixture(params=["decorated", "call", "acall"])
def ask(request):
    """A way to make calls through a guard."""

    def decorated(guard, function):
        return guard.retry(function)()

    def call(guard, function):
        return guard.call(function)

    def acall(guard, function):
        async def answers():
            return function()

        async def main():
            return await guard.acall(answers)

        return asyncio.run(main())

    return {"decorated": decorated, "call": call, "acall": acall}[request.param]


def test_while_plenty_is_left_answers_are_not_counted_one_by_one(virtual_clock, ask):
    guard = mulligan.Guard("api", effects="read", observe=mulligan.headers_of)
    for left in range(4999, 4900, -1):
        ask(guard, Scripted(answer(left)))
    assert believed(guard) == {"requests": 4999}  # read whole once
    assert guard._engine.here().is_clear


def test_the_first_answer_that_says_little_is_read_whole(virtual_clock, ask):
    guard = mulligan.Guard("api", effects="read", observe=mulligan.headers_of)
    for left in (4999, 4998, 2, 1, 0):
        ask(guard, Scripted(answer(left)))
    assert virtual_clock.sleeps == []
    ask(guard, Scripted(answer(4999)))
    assert 30 <= virtual_clock.now() <= 31.5


def test_every_dimension_counts(virtual_clock, ask):
    guard = mulligan.Guard("api", effects="read", observe=mulligan.headers_of)
    ask(guard, Scripted(answer(4999, tokens=99000)))
    ask(guard, Scripted(answer(4998, tokens=98000)))
    assert believed(guard)["tokens"] == 99000
    ask(guard, Scripted(answer(4997, tokens=9000)))
    assert believed(guard)["tokens"] == 9000


def test_an_answer_that_lost_its_headers_is_read_whole(virtual_clock, ask, caplog):
    guard = mulligan.Guard("api", effects="read", observe=lambda found: found.headers)
    ask(guard, Scripted(answer(4999)))
    nothing = SimpleNamespace(headers={})
    assert ask(guard, Scripted(nothing)) is nothing
    assert ask(guard, Scripted("a word")) == "a word"
    assert "raised AttributeError" in caplog.text


def test_a_failure_is_judged_as_ever(virtual_clock, ask):
    guard = mulligan.Guard("api", effects="read", observe=mulligan.headers_of)
    ask(guard, Scripted(answer(4999)))
    assert guard._engine.here().is_clear
    script = Scripted(ConnectionResetError("reset"), answer(4998))
    assert ask(guard, script).headers
    assert len(script.calls) == 2


def test_what_is_kept_back_is_kept_back(virtual_clock, ask):
    guard = mulligan.Guard("api", effects="read", observe=mulligan.headers_of, gate=Gate(keep=4000))
    ask(guard, Scripted(answer(4001)))
    ask(guard, Scripted(answer(3999)))
    assert virtual_clock.sleeps == []
    ask(guard, Scripted(answer(4999)))
    assert virtual_clock.now() >= 30


def test_many_under_way_need_more_that_is_left():
    clock = VirtualClock()
    guard = mulligan.Guard("api", effects="read", observe=mulligan.headers_of)

    async def slow(left):
        await asyncio.sleep(1)
        return answer(left)

    async def main():
        await guard.acall(slow, 4999)
        await asyncio.gather(*[guard.acall(slow, 4000 - each) for each in range(100)])

    with virtual_time(clock):
        clock.run(main())
        # A hundred under way leave less than forty for each: from then on they are counted.
        assert believed(guard)["requests"] < 4000


def test_quotas_themselves_are_taken_as_they_are(virtual_clock, ask):
    from mulligan.classify.quotas import Quota

    quota = Quota(dimension="requests", limit=10, remaining=0, reset_in=12)
    guard = mulligan.Guard("api", effects="read", observe=lambda _: (quota,))
    ask(guard, Scripted("one"))
    ask(guard, Scripted("two"))
    assert virtual_clock.now() >= 12


def test_a_function_that_hands_out_a_coroutine_is_driven(virtual_clock):
    guard = mulligan.Guard("api", effects="read", observe=mulligan.headers_of)
    guard.call(Scripted(answer(4999)))

    async def late():
        return answer(3)

    assert asyncio.run(_awaits(guard.call(late))).headers
    assert believed(guard)["requests"] == 3


async def _awaits(coroutine):
    return await coroutine


def test_a_block_has_no_answer_to_read():
    with pytest.raises(mulligan.SettingError, match=r"attempts\(\) takes no observe"):
        mulligan.Guard("api", observe=mulligan.headers_of).attempts()


def test_headers_are_found_by_shape():
    found = {"x-ratelimit-remaining": "1"}
    for shape in (
        SimpleNamespace(headers=found),
        SimpleNamespace(response=SimpleNamespace(headers=found)),
        SimpleNamespace(_response=SimpleNamespace(headers=found)),
    ):
        assert mulligan.headers_of(shape) is found
    assert mulligan.headers_of("text") is None
    assert mulligan.headers_of(SimpleNamespace(headers=7)) is None
