"""Streams: restarted unseen until the first item, committed from then on.

A committed stream is never replayed. Where the guard has ``resume=``, that function continues it.

The loop around the first item is `calls.loop.attempts`; `stream` and `astream` run a loop that also
hands items to the caller.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from .async_time import cut
from .callables import is_unentered_manager, refuse_unstarted
from .emit import report
from .loop import Blocking, Invoke, Raised, attempts, awaited, succeeded, with_limit
from .notes import caused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from .loop import Steps
    from .session import Session

__all__ = ("HandOver", "astream", "stream", "streaming")


class OpenedStream(NamedTuple):
    """A stream that has something to deliver: its iterator, its first item, and what to close."""

    items: Any
    item: Any
    source: Any


class EndOfStream(NamedTuple):
    """A stream has no more items; what a generator returned."""

    answer: Any


class BrokenStream(NamedTuple):
    """A stream has failed after it had delivered something, and ``resume=`` may continue it."""

    error: Exception


class FallbackItems(NamedTuple):
    """What a fallback delivers in place of a stream of which nothing was seen."""

    items: Any


class ClosedByConsumer(BaseException):
    """The consumer of a stream has closed it.

    Thrown in place of GeneratorExit, at which a generator may not wait for anything.
    """


def streaming(
    session: Session, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Steps:
    """Open a stream, as often as it takes, then hand over its items; or the fallback's."""
    session.delivers = True
    resume = session.settings.resume
    delivered: list[Any] | None = None if resume is None else []
    broken: Exception | None = None
    try:
        ended = yield from attempts(session, function, args, kwargs, invoke=_OPEN)
        while isinstance(ended, OpenedStream):
            ended = yield from _delivering(session, *ended, delivered)
            if isinstance(ended, BrokenStream):
                assert resume is not None and delivered is not None  # noqa: PT018, S101 -- see there
                session.progress()
                broken = ended.error
                work = resume, (tuple(delivered), *args), kwargs
                ended = yield from attempts(session, *work, broken, invoke=_OPEN)
                if isinstance(ended, Raised) and ended.error is not None:
                    caused(ended.error, broken)
        if isinstance(ended, EndOfStream):
            yield from succeeded(session)
            return ended.answer
        return ended if isinstance(ended, Raised) else FallbackItems(ended)
    except BaseException:
        session.cancelled()
        raise
    finally:
        ended = broken = None


def _delivering(  # noqa: C901, PLR0912 -- the life of a stream from its first item on
    session: Session, items: Any, item: Any, source: Any, delivered: list[Any] | None
) -> Steps:
    """Hand over one item after another. What fails now is committed, never replayed.

    `delivered` keeps the items for ``resume=``; it is None without one.
    """
    admissions = session.admissions
    if (
        admissions is not None
        and session.settings.observe is not None
        and hasattr(source, "response")
    ):
        admissions.observe(source)
    session.leave_context()
    takes_errors = hasattr(items, "throw") or hasattr(items, "athrow")
    while True:
        session.delivered += 1
        if delivered is not None:
            delivered.append(item)
        thrown: BaseException | None = None
        sent: Any = None
        try:
            sent = yield HandOver(item)
        except GeneratorExit:  # collected as garbage, with all that it holds: no step can follow
            raise
        except BaseException as caught:
            if isinstance(caught, ClosedByConsumer) or not takes_errors:
                yield CloseStream(source, items)
                raise
            thrown = caught
        try:
            item = yield NextItem(items, sent, thrown)
        except Exception as caught:  # noqa: BLE001 -- returned, to be raised
            if delivered is not None and thrown is None:
                yield CloseStream(source)
                return BrokenStream(caught)
            decision = session.stream_failed(caught)
            if admissions is not None:
                yield Blocking(admissions.leave, "failed", session.failure, session.failed_at)
            session.end(caught, decision)
            yield CloseStream(source)
            return Raised(caught)
        except GeneratorExit:
            raise
        except BaseException:
            yield CloseStream(source)
            raise
        finally:
            thrown = None
        if isinstance(item, EndOfStream):
            return item


def stream(session: Session, steps: Steps) -> Generator[Any, Any, Any]:
    """As `loop.run`, with items handed to the caller."""
    value: Any = None
    error: BaseException | None = None
    try:
        while True:
            step = steps.send(value) if error is None else steps.throw(error)
            value = error = None
            try:
                value = (yield step.item) if step.__class__ is HandOver else step.plain(session)
            except GeneratorExit:
                error = ClosedByConsumer()
            except BaseException as caught:  # noqa: BLE001 -- the loop decides
                error = caught
    except StopIteration as end:
        value = end.value
    except ClosedByConsumer:
        return None
    finally:
        error = step = None
    if value.__class__ is FallbackItems:
        try:
            yield from value.items
        except BaseException:
            CloseStream(value.items).plain(session)
            raise
        return None
    return value if value.__class__ is not Raised else value.throw()


async def astream(  # noqa: C901, PLR0912 -- the generator protocol, in one place
    session: Session, steps: Steps
) -> AsyncGenerator[Any, Any]:
    """As `loop.arun`, with items handed to the caller."""
    session.is_async = True
    value: Any = None
    error: BaseException | None = None
    try:
        while True:
            step = steps.send(value) if error is None else steps.throw(error)
            value = error = None
            try:
                if step.__class__ is HandOver:
                    value = yield step.item
                else:
                    value = await step.awaited(session)
            except GeneratorExit:
                error = ClosedByConsumer()
            except BaseException as caught:  # noqa: BLE001 -- the loop decides
                error = caught
    except StopIteration as end:
        value = end.value
    except ClosedByConsumer:
        return
    finally:
        error = step = None
    if value.__class__ is Raised:
        value.throw()
    if value.__class__ is FallbackItems:
        is_plain = not hasattr(value.items, "__aiter__")  # a fallback may be a plain list
        items: Any = iter(value.items) if is_plain else aiter(value.items)
        try:
            if is_plain:
                for item in items:
                    yield item
            else:
                async for item in items:
                    yield item
        except BaseException:
            await CloseStream(value.items, items).awaited(session)
            raise


# Steps


class HandOver:
    """Hand `item` to the caller; what the caller sends comes back."""

    __slots__ = ("item",)

    def __init__(self, item: Any) -> None:
        self.item = item


class OpenStream(Invoke):
    """Begin a stream and take its first item. SDKs hand streams out behind a coroutine."""

    __slots__ = ()

    def plain(self, session: Session) -> OpenedStream | EndOfStream:
        items: Any = None
        source: Any = super().plain(session)
        try:
            if is_unentered_manager(source):
                refuse_unstarted(source, session.call.name)
            items = iter(source)
            return OpenedStream(items, next(items), source)
        except StopIteration as empty:
            return EndOfStream(empty.value)
        except BaseException:
            CloseStream(source, items).plain(session)
            raise

    async def awaited(self, session: Session) -> Any:
        limit, is_deadline = session.limit()
        first = self._first(session, limit)
        if limit == inf:
            return await first
        return await cut(first, limit, lambda: session.overtime(limit, is_deadline=is_deadline))

    @staticmethod
    async def _first(session: Session, limit: float) -> OpenedStream | EndOfStream:
        function, args, kwargs = session.work  # type: ignore[misc]
        items: Any = None
        source: Any = await awaited(function(*args, **with_limit(session, kwargs, limit)))
        try:
            if is_unentered_manager(source):
                refuse_unstarted(source, session.call.name)
            items = aiter(source)
            return OpenedStream(items, await anext(items), source)
        except StopAsyncIteration:
            return EndOfStream(None)
        except BaseException:
            await CloseStream(source, items).awaited(session)
            raise


class NextItem:
    """Take the next item of a stream, with what the caller sent or threw."""

    __slots__ = ("items", "sent", "thrown")

    def __init__(self, items: Any, sent: Any, thrown: BaseException | None) -> None:
        self.items, self.sent, self.thrown = items, sent, thrown

    def plain(self, _session: Session) -> Any:
        items = self.items
        try:
            if self.thrown is not None:
                return items.throw(self.thrown)
            return next(items) if self.sent is None else items.send(self.sent)
        except StopIteration as end:
            return EndOfStream(end.value)

    async def awaited(self, _session: Session) -> Any:
        items = self.items
        try:
            if self.thrown is not None:
                return await items.athrow(self.thrown)
            return await (anext(items) if self.sent is None else items.asend(self.sent))
        except StopAsyncIteration:
            return EndOfStream(None)


class CloseStream:
    """Close the iterator of a stream, then the stream itself, which has the connection.

    What that raises is reported: it must not take the place of what is on its way.
    """

    __slots__ = ("streams",)

    def __init__(self, source: Any, items: Any = None) -> None:
        self.streams = (items,) if items is source else (items, source)

    def plain(self, _session: Session) -> None:
        for each in self.streams:
            try:
                if (close := getattr(each, "close", None)) is not None:
                    close()
            except Exception as trouble:  # noqa: BLE001 -- reported
                report("stream", each, trouble)

    async def awaited(self, _session: Session) -> None:
        for each in self.streams:
            try:
                if close := getattr(each, "aclose", None) or getattr(each, "close", None):
                    await awaited(close())
            except Exception as trouble:  # noqa: BLE001 -- reported
                report("stream", each, trouble)


_OPEN = OpenStream()
