"""Guards inside an operation belong to it: they have its key."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

import mulligan
from mulligan import Guard
from mulligan.stores.memory import Memory
from mulligan.testing import VirtualClock

from .conftest import key


def test_a_guard_inside_repeats_under_the_same_key(guard):
    seen, errors = [], [ConnectionResetError("reset")] * 2

    @mulligan.retry(effects="keyed", clock=VirtualClock())
    def post():
        seen.append(key())
        if errors:
            raise errors.pop()
        return 1

    assert guard.once("order-17", post) == 1
    assert seen == ["order-17"] * 3
    assert mulligan.current() is None


def test_every_way_of_calling_inside_an_operation_has_its_key(guard):  # E-F1, R-I4
    http = Guard("http", store=Memory(), effects="keyed")

    def pay():
        seen = [http.call(key), http.retry(key)(), *http.stream(lambda: iter([key()]))]
        for attempt in http.attempts():
            with attempt:
                seen.append(key())
        with mulligan.task(deadline=60):
            seen.append(http.call(key))
        with ThreadPoolExecutor(1) as pool:
            seen.append(pool.submit(copy_context().run, lambda: http.call(key)).result())
        return seen

    async def apay():
        async def akey():
            return key()

        seen = [await http.acall(akey), await http.retry(akey)()]
        seen += await asyncio.gather(http.acall(akey), asyncio.to_thread(http.call, key))
        return seen

    assert guard.once("order-17", pay) == ["order-17"] * 6
    assert asyncio.run(guard.aonce("order-18", apay)) == ["order-18"] * 4


def test_an_operation_inside_an_operation_has_its_own_key_and_gives_it_back(guard):
    def pay():
        return [key(), guard.once("receipt-17", key), key()]

    assert guard.once("order-17", pay) == ["order-17", "receipt-17", "order-17"]


def test_a_guard_inside_keeps_what_it_was_told_about_repeating(guard):
    @mulligan.retry(clock=VirtualClock())  # unsafe: it may do something else than what has the key
    def send():
        raise ConnectionResetError("reset")

    with pytest.raises(ConnectionResetError) as caught:
        guard.once("order-17", send)
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.ending, story.attempts) == ("maybe_applied", 1)
