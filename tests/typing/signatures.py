"""What type checkers must see: decorating changes nothing. Checked, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, assert_type

import anthropic
import httpx
import httpx2
import openai
import requests
from google import genai

import mulligan
from mulligan import Guard
from mulligan.calls.guarded_streams import GuardedAsyncStream, GuardedStream


@mulligan.retry
def plain(url: str, *, limit: int = 1) -> bytes:
    return url.encode() * limit


@mulligan.retry(effects="read", deadline="90s", attempts=3)
def with_options(url: str) -> bytes:
    return url.encode()


@mulligan.retry
async def coroutine(url: str) -> bytes:
    return url.encode()


@mulligan.retry(policy="skill")
def generator(count: int) -> Iterator[int]:
    yield from range(count)


@mulligan.retry
async def async_generator(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


@mulligan.retry(fallback=None)
def maybe(url: str) -> bytes:
    return url.encode()


@mulligan.retry(fallback=None, effects="read")
async def amaybe(url: str) -> bytes:
    return url.encode()


guard = Guard("api", effects="idempotent", fallback=0)


@guard.retry
def guarded(name: str) -> int:
    return len(name)


@guard
def decorated(name: str) -> int:
    return len(name)


@guard.once_per("name", exclude=())
@mulligan.replayable("once per")
def once_per(name: str) -> int:
    return len(name)


@guard.once_per()
async def aonce_per(name: str) -> int:
    return len(name)


class Client:
    @mulligan.retry
    def method(self, name: str) -> int:
        return len(name)

    @mulligan.retry(effects="read")
    async def amethod(self, name: str) -> int:
        return len(name)


async def check() -> None:
    assert_type(plain("u", limit=2), bytes)
    assert_type(with_options("u"), bytes)
    assert_type(await coroutine("u"), bytes)
    assert_type(generator(3), Iterator[int])
    assert_type(async_generator(3), AsyncIterator[int])
    assert_type(maybe("u"), bytes | None)
    assert_type(await amaybe("u"), bytes | None)
    assert_type(guarded("n"), int)
    assert_type(decorated("n"), int)
    assert_type(Client().method("n"), int)
    assert_type(await Client().amethod("n"), int)
    assert_type(mulligan.call(plain, "u", limit=2), bytes)
    assert_type(await mulligan.acall(coroutine, "u"), bytes)
    assert_type(guard.call(plain, "u"), bytes)
    assert_type(await guard.acall(coroutine, url="u"), bytes)
    assert_type(guard.once("k", plain, "u", limit=2), bytes)
    assert_type(guard.once(mulligan.Once("k", dump=str), plain, "u"), bytes)
    assert_type(await guard.aonce("k", coroutine, "u"), bytes)
    assert_type(once_per("n"), int)
    assert_type(await aonce_per("n"), int)
    assert_type(guard.stream(generator, 3), GuardedStream[int])
    assert_type(guard.astream(async_generator, 3), GuardedAsyncStream[int])
    numbers: Iterator[int] = guard.stream(generator, 3)
    anumbers: AsyncIterator[int] = guard.astream(async_generator, 3)
    assert_type((next(numbers), await anext(anumbers)), tuple[int, int])
    with guard.stream(generator, 3) as items:
        for item in items:
            assert_type(item, int)
    async with guard.astream(async_generator, 3) as aitems:
        async for item in aitems:
            assert_type(item, int)
    function: Callable[[str], Coroutine[Any, Any, bytes]] = coroutine
    await function("u")
    for attempt in mulligan.attempts(effects="read"):
        with attempt:
            assert_type(attempt.number, int)
    async for attempt in guard.attempts():
        with attempt:
            break
    assert_type(guard.wrap(httpx.Client()), httpx.Client)
    assert_type(guard.wrap(httpx2.AsyncClient(), keys=True), httpx2.AsyncClient)
    assert_type(guard.wrap(requests.Session()), requests.Session)
    assert_type(guard.wrap(openai.AsyncOpenAI()), openai.AsyncOpenAI)
    assert_type(guard.wrap(anthropic.Anthropic()), anthropic.Anthropic)
    assert_type(guard.wrap(genai.Client()), genai.Client)
    assert_type(guard.but(attempts=3), Guard)
    with mulligan.effects("read"):
        assert_type(mulligan.is_unjudged(ValueError()), bool)
    story = mulligan.story(ValueError())
    if story is not None:
        assert_type(story.retry_at, float | None)
    here = mulligan.current()
    if here is not None:
        assert_type(here.attempt, int)


def wrong() -> None:
    plain(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    mulligan.call(plain, 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    mulligan.retry(effects="reads")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType,reportCallIssue]
    guard.once("k", plain, 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    guard.once_per(exclud=())  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    mulligan.effects("reads")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Guard("api", attempt=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
