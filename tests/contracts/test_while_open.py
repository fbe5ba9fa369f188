"""What callers get while a breaker is open: another answer, or the error at once (R-K8)."""

from __future__ import annotations

import asyncio

import pytest
import trio

import mulligan
from mulligan import Breaker, Guard
from mulligan.testing import Scripted, status_error, virtual_time


class Caller:
    """Makes a call in the way its name says."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, guard: Guard, server: Scripted):
        if self.name == "sync":
            return guard.call(server)

        async def main():
            return await guard.acall(server.acall)

        return asyncio.run(main()) if self.name == "asyncio" else trio.run(main)


@pytest.fixture(params=["sync", "asyncio", "trio"])
def call(request):
    with virtual_time():
        yield Caller(request.param)


def opened(**options) -> Guard:
    """A guard whose breaker is open."""
    options.setdefault("when_open", "fail")
    guard = Guard("openai", breaker=Breaker(failures=1), attempts=1, effects="read", **options)
    with pytest.raises(Exception, match="status 503"):
        Guard("openai", breaker=Breaker(failures=1), attempts=1).call(Scripted(status_error(503)))
    return guard


def test_the_call_fails_at_once_with_the_time_that_is_left(call):  # R-K6, R-K8
    server = Scripted("answer")
    with pytest.raises(mulligan.CircuitOpen) as caught:
        call(opened(), server)
    assert caught.value.retry_in > 0
    assert server.calls == []


def test_a_cached_answer_takes_its_place(call):  # R-K8, R-A5
    server = Scripted("answer")
    assert call(opened(fallback="cached", when_open=None), server) == "cached"
    assert server.calls == []


def test_another_provider_answers_with_its_own_breaker(call):  # R-K7, R-K8
    server, other = Scripted("answer"), Scripted("answer of another")
    another = Guard("anthropic", breaker=Breaker(failures=1), effects="read")
    errors: list[Exception] = []

    def ask(error: Exception):
        errors.append(error)
        return another.call(other)

    async def aask(error: Exception):
        errors.append(error)
        return await another.acall(other.acall)

    guard = opened(fallback=ask if call.name == "sync" else aask)
    assert call(guard, server) == "answer of another"
    assert server.calls == []
    assert [type(error) for error in errors] == [mulligan.CircuitOpen]
