"""Streams: restarted unseen until the first item, committed from then on (E-E5)."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator

import pytest

import mulligan
from mulligan.testing import VirtualClock, virtual_time

REFUSED = ConnectionRefusedError("no")


class Source:
    """A stream that fails as told: one list of items or errors an opening."""

    def __init__(self, *openings) -> None:
        self.openings = list(openings)
        self.opened = 0

    def items(self) -> Iterator[str]:
        script = self.openings[min(self.opened, len(self.openings) - 1)]
        self.opened += 1
        for each in script:
            if isinstance(each, BaseException):
                raise each
            yield each

    async def aitems(self):
        for each in self.items():
            yield each


@pytest.fixture
def collect(drive):
    """Read a guarded stream to its end: the items, and what ended it."""

    def run(source, how="decorated", **options):
        seen: list[str] = []
        guard = mulligan.Guard(clock=drive.clock, **options)

        def read():
            stream = (
                guard.retry(source.items)() if how == "decorated" else guard.stream(source.items)
            )
            seen.extend(stream)

        async def aread():
            opened = (
                guard.retry(source.aitems)() if how == "decorated" else guard.astream(source.aitems)
            )
            async for each in opened:
                seen.append(each)  # noqa: PERF401 -- kept if the stream breaks

        error = None
        try:
            read() if drive.name == "sync" else drive.arun(aread)
        except ConnectionError as caught:
            error = caught
        return seen, error

    return run


@pytest.mark.parametrize("how", ["decorated", "stream"])
def test_a_stream_that_has_delivered_nothing_restarts_unseen(collect, how):
    source = Source([REFUSED], [REFUSED], ["a", "b"])
    assert collect(source, how) == (["a", "b"], None)
    assert source.opened == 3


@pytest.mark.parametrize("how", ["decorated", "stream"])
def test_a_stream_that_has_delivered_something_is_never_replayed(collect, how):
    broken = ConnectionResetError("mid-stream")
    source = Source(["a", "b", broken])
    seen, error = collect(source, how, effects="read")
    assert seen == ["a", "b"]
    assert error is broken
    assert source.opened == 1
    story = mulligan.story(broken)
    assert story is not None
    assert (story.ending, story.delivered) == ("committed", 2)
    assert story.because == "the stream had delivered 2 items: not replayed"


def test_an_empty_stream_is_a_success(collect):
    assert collect(Source([])) == ([], None)


def test_a_stream_that_cannot_be_opened_raises_its_own_error(collect):
    seen, error = collect(Source([REFUSED]), attempts=3)
    assert (seen, error) == ([], REFUSED)
    story = mulligan.story(REFUSED)
    assert story is not None
    assert (story.ending, story.attempts) == ("exhausted", 3)


def test_a_fallback_stands_for_the_whole_stream():
    source = Source([REFUSED])
    guard = mulligan.Guard(attempts=2, clock=VirtualClock(), fallback=lambda _: iter(["cached"]))
    assert list(guard.stream(source.items)) == ["cached"]


def test_decorated_generators_keep_their_flavour():
    source = Source(["a"])
    assert inspect.isgeneratorfunction(mulligan.retry(source.items))
    assert inspect.isasyncgenfunction(mulligan.retry(source.aitems))


def test_values_sent_and_thrown_reach_the_generator():
    got: list[object] = []

    @mulligan.retry
    def talk():
        while True:
            try:
                got.append((yield len(got)))
            except ValueError as error:
                got.append(error.args[0])

    stream = talk()
    assert next(stream) == 0
    assert stream.send("hello") == 1
    assert stream.throw(ValueError("oops")) == 2
    stream.close()
    assert got == ["hello", "oops"]


def test_a_generators_return_value_comes_through():
    @mulligan.retry
    def count():
        yield 1
        return "done"

    def outer():
        return (yield from count())

    stream = outer()
    next(stream)
    with pytest.raises(StopIteration) as stop:
        next(stream)
    assert stop.value.value == "done"


def test_closing_a_stream_closes_what_it_reads(adrive):
    closed = []

    @mulligan.retry
    async def numbers():
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    async def main():
        async with contextlib.aclosing(numbers()) as stream:
            async for _ in stream:
                break

    adrive.arun(main)
    assert closed == [True]


def test_a_guarded_async_context_manager_sees_the_error_of_its_block(adrive):
    seen = []

    @contextlib.asynccontextmanager
    @mulligan.retry
    async def session():
        try:
            yield "connection"
        except KeyError as error:
            seen.append(error)
            raise

    async def main():
        with pytest.raises(KeyError):
            async with session():
                raise KeyError("mine")

    adrive.arun(main)
    assert [str(error) for error in seen] == ["'mine'"]


def test_a_stream_behind_a_coroutine_is_opened_again(adrive):
    opened = []

    async def create(model):
        opened.append(model)
        if len(opened) == 1:
            raise ConnectionRefusedError

        async def chunks():
            yield "a"
            yield "b"

        return chunks()

    async def main():
        with virtual_time(adrive.clock):
            guard = mulligan.Guard("openai")
            return [each async for each in guard.astream(create, model="gpt")]

    assert adrive.arun(main) == ["a", "b"]
    assert opened == ["gpt", "gpt"]
