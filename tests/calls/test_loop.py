"""The loop of attempts, where a generator could get in the way of the caller's own errors."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import suppress
from typing import Any

import pytest

import mulligan
from mulligan.core.events import Cancelled
from mulligan.testing import Scripted, status_error, virtual_time


class Weak(Exception):
    """An exception that can be referred to weakly."""

    status_code = 503


def always(error):
    def fails():
        raise error

    return fails


def test_a_stop_iteration_of_the_callers_leaves_as_itself():
    with virtual_time(), pytest.raises(StopIteration):
        mulligan.retry(effects="read", on=StopIteration, attempts=2)(always(StopIteration("x")))()


def test_a_stop_iteration_of_a_fallback_leaves_as_itself():
    def fallback(error):
        raise StopIteration

    guard = mulligan.Guard("api", effects="read", attempts=1, fallback=fallback)
    with virtual_time(), pytest.raises(StopIteration):
        guard.call(always(Weak()))


def test_under_a_key_a_stop_iteration_leaves_as_itself_and_frees_the_key():
    guard = mulligan.Guard("api", effects="read", attempts=1)
    with virtual_time():
        with pytest.raises(StopIteration):
            guard.once("k", always(StopIteration()))
        with pytest.raises(Weak):  # it is called again: nothing was kept
            guard.once("k2", always(Weak()))


@pytest.mark.parametrize("attempts", [1, 3])
def test_an_error_is_freed_without_the_collector(attempts):
    alive: list[Any] = []

    def fails():
        error = Weak()
        alive.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    wrapped = mulligan.retry(effects="read", attempts=attempts)(fails)
    gc.disable()
    try:
        with virtual_time(), suppress(Weak):
            wrapped()
        assert [each() for each in alive] == [None] * attempts
    finally:
        gc.enable()


def test_a_coroutine_that_is_closed_in_its_wait_is_cancelled_once():
    events: list[Any] = []

    async def fails():
        raise status_error(503)

    async def main():
        guarded = mulligan.retry(effects="read", listeners=[events.append])(fails)()
        waiting = guarded.send(None)  # up to the first wait
        assert waiting is not None
        guarded.close()

    asyncio.run(main())
    assert [type(each) for each in events].count(Cancelled) == 1


def test_a_stream_that_is_closed_closes_its_source_and_is_cancelled():
    closed: list[str] = []

    def numbers():
        try:
            yield 1
            yield 2
        finally:
            closed.append("source")

    stream: Any = mulligan.Guard("api", effects="read").stream(numbers)
    assert next(stream) == 1
    stream.close()
    assert closed == ["source"]
    assert list(stream) == []


def test_an_async_stream_that_is_closed_awaits_the_closing_of_its_source():
    closed: list[str] = []

    async def numbers():
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            closed.append("source")

    async def main():
        stream: Any = mulligan.Guard("api", effects="read").astream(numbers)
        assert await anext(stream) == 1
        await stream.aclose()

    asyncio.run(main())
    assert closed == ["source"]


def test_what_a_consumer_throws_into_a_stream_reaches_its_source():
    def numbers():
        try:
            yield 1
        except KeyError:
            yield "caught"

    stream: Any = mulligan.Guard("api", effects="read").stream(numbers)
    assert next(stream) == 1
    assert stream.throw(KeyError()) == "caught"


def test_a_plain_function_that_returns_a_coroutine_is_retried_where_it_is_awaited():
    flaky = Scripted(status_error(503), "well")

    async def work():
        return flaky()

    async def main():
        return await mulligan.Guard("api", effects="read").call(lambda *_: work())

    with virtual_time():
        assert asyncio.run(main()) == "well"
