"""Streams are closed at their source, and what has not started is no success.

What happened: closing a guarded stream closed the iterator that had been made of the SDK's stream,
not the stream itself; the connection stayed open until the garbage collector came (seen with the
real openai and anthropic SDKs against a server that goes silent: it never saw the client leave).
And `guard.call(client.messages.stream, …)` returned a context manager that had sent nothing yet:
it counted as a success, and the request was then made unguarded.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import anthropic
import httpx
import openai
import pytest

import mulligan
from mulligan.testing import FaultServer, Scripted, VirtualClock, status_error

ASK: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def endings(server, wanted="left"):
    """How the server saw its requests end, as soon as none is open."""
    found: list[str] = []
    until = time.monotonic() + 1
    while time.monotonic() < until and set(found) != {wanted}:
        time.sleep(0.01)
        found = [entry.ending for entry in server.requests]
    return found


def opened(sdk, url, *, is_async):
    if sdk == "openai":
        client: Any = (openai.AsyncOpenAI if is_async else openai.OpenAI)(
            base_url=f"{url}/v1", api_key="k", max_retries=0
        )
        return client, lambda: client.chat.completions.create(stream=True, **ASK)
    client = (anthropic.AsyncAnthropic if is_async else anthropic.Anthropic)(
        base_url=url, api_key="k", max_retries=0
    )
    return client, lambda: client.messages.create(stream=True, max_tokens=9, **ASK)


@pytest.mark.real
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_closing_an_async_stream_closes_the_connection(sdk):
    async def main(server):
        client, create = opened(sdk, server.url, is_async=True)
        guard = mulligan.Guard("model", effects="idempotent")
        stream: Any = guard.astream(create)
        await anext(stream)
        await stream.aclose()
        found = await asyncio.to_thread(endings, server)
        await client.close()
        return found

    with FaultServer("stall(3)") as server:
        assert asyncio.run(main(server)) == ["left"]


@pytest.mark.real
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_closing_a_plain_stream_closes_the_connection(sdk):
    with FaultServer("stall(3)") as server:
        client, create = opened(sdk, server.url, is_async=False)
        stream: Any = mulligan.Guard("model", effects="idempotent").stream(create)
        next(stream)
        stream.close()
        assert endings(server) == ["left"]
        client.close()


class Source:
    """A stream as SDKs have them: it iterates through another object, and is closed itself."""

    def __init__(self, *items: Any) -> None:
        self.items, self.closed = items, 0

    def __iter__(self):
        for each in self.items:
            if isinstance(each, BaseException):
                raise each
            yield each

    async def __aiter__(self):
        for each in self.items:
            if isinstance(each, BaseException):
                raise each
            yield each

    def close(self):
        self.closed += 1


class AsyncSource(Source):
    async def close(self):
        self.closed += 1


def read(drive, sources, *, most=None):
    """Take at most `most` items of a guarded stream of these sources, in turn."""
    waiting = list(sources)
    guard = mulligan.Guard("model", effects="read", clock=drive.clock)
    seen = []
    if drive.name == "sync":
        with guard.stream(lambda: waiting.pop(0)) as stream:
            for each in stream:
                seen.append(each)
                if len(seen) == most:
                    break
        return seen

    async def main():
        async with guard.astream(lambda: waiting.pop(0)) as stream:
            async for each in stream:
                seen.append(each)
                if len(seen) == most:
                    break

    drive.arun(main)
    return seen


@pytest.mark.parametrize("cls", [Source, AsyncSource])
def test_the_source_is_closed_however_the_stream_ends_early(drive, cls):
    if drive.name == "sync":
        cls = Source
    left, broken, refused = cls(1, 2, 3), cls(1, KeyError("x")), cls(ConnectionRefusedError())
    whole = cls(1, 2)
    assert read(drive, [left], most=2) == [1, 2]
    with pytest.raises(KeyError):
        read(drive, [broken])
    assert read(drive, [refused, whole]) == [1, 2]
    assert (left.closed, broken.closed, refused.closed, whole.closed) == (1, 1, 1, 0)


def test_a_block_that_raises_closes_the_source_and_keeps_its_error(drive):
    source = Source(1, 2)
    guard = mulligan.Guard("model", effects="read", clock=drive.clock)

    def plain():
        with guard.stream(lambda: source) as stream:
            next(stream)
            raise KeyError("mine")

    async def main():
        async with guard.astream(lambda: source) as stream:
            await anext(stream)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        plain() if drive.name == "sync" else drive.arun(main)
    assert source.closed == 1
    assert mulligan.story(caught.value) is None


def test_a_stream_that_was_read_to_its_end_may_be_closed(drive):
    source = Source(1, 2)
    assert read(drive, [source]) == [1, 2]
    assert read(drive, [Source()]) == []
    assert source.closed == 0


def test_a_stream_left_early_closes_that_of_its_fallback(drive):
    other = Source("x", "y")
    guard = mulligan.Guard("model", attempts=1, fallback=lambda _: other, clock=drive.clock)

    def plain():
        with guard.stream(Scripted(ConnectionRefusedError())) as stream:
            return next(stream)

    async def main():
        async with guard.astream(Scripted(ConnectionRefusedError())) as stream:
            return await anext(stream)

    assert (plain() if drive.name == "sync" else drive.arun(main)) == "x"
    assert other.closed == 1


def test_a_guard_closes_the_stream_of_a_guard_inside(drive):
    source = Source(1, 2)
    outer, inner = (mulligan.Guard(name, clock=drive.clock) for name in ("outer", "inner"))

    def plain():
        with outer.stream(inner.stream, lambda: source) as stream:
            return next(stream)

    async def main():
        async with outer.astream(inner.astream, lambda: source) as stream:
            return await anext(stream)

    assert (plain() if drive.name == "sync" else drive.arun(main)) == 1
    assert source.closed == 1


# Work that has not started


def generator():
    yield "item"


async def agenerator():
    yield "item"


@contextlib.contextmanager
def manager():
    yield "inside"


@contextlib.asynccontextmanager
async def amanager():
    yield "inside"


@pytest.fixture(params=["calm", "watched", "observed"])
def guard(request):
    options: dict[str, Any] = {
        "calm": {},
        "watched": {"judge": lambda answer: None},
        "observed": {"observe": mulligan.headers_of},
    }[request.param]
    return mulligan.Guard("model", clock=VirtualClock(), **options)


def hands_out_a_generator():
    return generator()


def hands_out_a_manager():
    return manager()


def hands_out_a_guarded_stream():
    return mulligan.Guard("inner").stream(generator)


def hands_out_a_guarded_async_stream():
    return mulligan.Guard("inner").astream(agenerator)


HANDED_OUT = [
    hands_out_a_generator,
    hands_out_a_manager,
    hands_out_a_guarded_stream,
    hands_out_a_guarded_async_stream,
]
LAZY = [generator, agenerator, manager, amanager, *HANDED_OUT]


@pytest.mark.parametrize("function", LAZY)
def test_work_that_has_not_begun_is_refused(guard, function):
    with pytest.raises(mulligan.SettingError, match=r"has not (started|been entered)"):
        guard.call(function)

    async def main():
        with pytest.raises(mulligan.SettingError, match=r"has not (started|been entered)"):
            await guard.acall(function)

    asyncio.run(main())


@pytest.mark.parametrize("function", HANDED_OUT)
def test_a_decorated_function_that_hands_it_out_is_refused_as_well(function):
    with pytest.raises(mulligan.SettingError, match=r"has not (started|been entered)"):
        mulligan.retry(function)()


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_the_managers_of_the_sdks_are_refused(guard, sdk):
    if sdk == "openai":
        gpt = openai.OpenAI(api_key="k")
        lazy: list[Any] = [gpt.chat.completions.with_streaming_response.create]
    else:
        claude = anthropic.Anthropic(api_key="k")
        lazy = [claude.messages.stream, claude.messages.with_streaming_response.create]
    for function in lazy:
        options = {"max_tokens": 9} if sdk == "anthropic" else {}
        with pytest.raises(mulligan.SettingError, match="Manager that has not been entered"):
            guard.call(function, **ASK, **options)


def test_a_stream_of_a_manager_is_refused_with_the_reason(drive):
    with pytest.raises(mulligan.SettingError, match="put the with statement into a function"):
        read(drive, [manager()])


def test_the_right_way_works(drive):
    script = Scripted(status_error(529), "item")

    def items():
        with contextlib.nullcontext(script()) as item:
            yield item

    stream = mulligan.Guard("model", clock=drive.clock).stream(items)
    assert list(stream) == ["item"]


def begun():
    items = generator()
    next(items)
    return items


async def abegun():
    items = agenerator()
    await anext(items)
    return items


def test_what_has_begun_is_a_result(guard):
    assert guard.call(begun) is not None
    assert asyncio.run(guard.acall(abegun)) is not None
    assert list(guard.call(lambda: (each for each in "ab"))) == ["a", "b"]
    with guard.call(open, __file__) as file:
        assert file.readable()
    assert isinstance(guard.call(httpx.Client), httpx.Client)
