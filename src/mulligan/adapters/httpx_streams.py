"""Streamed responses of httpx and httpx2: restarted unseen until the first content, then committed.

What a model's stream sends before its first content (`message_start`, `response.created`, a chunk
with a role) is held back. Until then a failure restarts the request, and the caller sees nothing of
it. From then on a failure is the caller's: as the exception of the client, with a story that says
how much was delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..calls.clock import world
from ..core.failure import Failure, Kind
from ..errors import FailedAnswer
from .events import SseReader, is_event_stream
from .runtime_classes import runtime_class
from .sender import answer_error, is_final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from .httpx import HttpxCall

__all__ = ("ResponseSource",)

# An error body that a caller streams is read this far; no known API sends a longer one.
_LONGEST_ERROR = 1 << 20


class ResponseSource:
    """A response whose body is being streamed: what a guard restarts until its first content.

    Its items: itself, once there is content or if the body holds no events; then pieces of the
    body.
    """

    def __init__(self, call: HttpxCall, response: Any) -> None:
        self.call, self.response, self._raw = call, response, response.stream
        self.held: list[bytes] = []
        self.last = b""  # the piece with the error event
        self.is_finished = False  # the caller has closed a response that was complete
        headers = response.headers
        self.reader: SseReader | None = None
        if is_event_stream(headers.get("content-type")):
            self.reader = SseReader(headers.get("content-encoding"))
        self._content_at = world().clock.now()

    # Both worlds iterate and close in their own way; what they decide is the same

    def __iter__(self) -> Iterator[Any]:
        if self.reader is None:
            yield self
        for chunk in self._raw:
            yield from self._took(chunk)
            if self.is_finished:
                return
        yield from self._ended()

    async def __aiter__(self) -> AsyncIterator[Any]:
        if self.reader is None:
            yield self
        async for chunk in self._raw:
            for item in self._took(chunk):
                yield item
            if self.is_finished:
                return
        for item in self._ended():
            yield item

    def close(self) -> None:
        self._raw.close()

    async def aclose(self) -> None:
        await self._raw.aclose()

    def read_error(self) -> None:
        """Read the body of an error inside the attempt, and raise what it means."""
        body = b""
        try:
            for chunk in self._raw:
                body += chunk
                if len(body) > _LONGEST_ERROR:
                    break
        finally:
            self._raw.close()
        self._refuse(body)

    async def aread_error(self) -> None:
        """Like `read_error`."""
        body = b""
        try:
            async for chunk in self._raw:
                body += chunk
                if len(body) > _LONGEST_ERROR:
                    break
        finally:
            await self._raw.aclose()
        self._refuse(body)

    def _refuse(self, body: bytes) -> None:
        """Raise what the response means, unless it is no failure; the caller can still read it."""
        library, response = self.call.library, self.response
        read = library.Response(
            response.status_code, headers=response.headers, stream=library.ByteStream(body)
        )
        read.read()
        response.stream = library.ByteStream(body)
        self._raw = library.ByteStream(body)
        failure = self.call.exchange.sender.judge(read)
        if failure is not None:
            raise answer_error(failure, response)

    def _took(self, chunk: bytes) -> Iterator[Any]:
        """What a piece of the body makes of the stream: nothing yet, itself, or that piece."""
        reader, now = self.reader, world().clock.now()
        if reader is None:
            yield chunk
            return
        was_committed = reader.is_committed
        if reader.feed(chunk):
            self._content_at = now
        elif now - self._content_at > self.call.idle:
            raise self.call.library.ReadTimeout(
                f"no content for {now - self._content_at:.0f} s, only pings",
                request=self.call.request,
            )
        if reader.error is not None:
            self.last = chunk
            raise self._refusal(was_committed=was_committed)
        if was_committed:
            yield chunk
            return
        self.held.append(chunk)
        if reader.is_committed:
            yield self

    def _refusal(self, *, was_committed: bool) -> Exception:
        """What an error event means."""
        response, reader = self.response, self.reader
        assert reader is not None  # noqa: S101 -- it has read the event
        failure = self.call.exchange.sender.judge_event(response.headers, reader.error)
        if failure is None:
            failure = Failure(kind=Kind.SERVER, message="an error event that says nothing")
        error = answer_error(failure, response)
        if not was_committed:
            # Where it is final the SDK gets all of it, and raises its own exception.
            body = _body(self.call.library, _FinalBody)
            body._source, body._over = self, error
            response.stream = body
        return error

    def _ended(self) -> Iterator[Any]:
        """The body has ended: was that all?"""
        reader = self.reader
        if reader is None:
            return
        is_empty = not reader.is_known and not reader.is_committed
        is_missed = reader.is_known or (is_empty and self.call.exchange.asks_a_model)
        if is_missed and not reader.is_complete:
            raise self._cut_short("without its last event")
        if not reader.is_committed:
            yield self

    def _cut_short(self, how: str) -> Exception:
        error: Exception = self.call.library.RemoteProtocolError(
            f"the stream ended {how}", request=self.call.request
        )
        return error

    def handed_over(self, items: Any) -> Any:
        """The response, for the caller to read on."""
        body = _body(self.call.library, _CommittedBody)
        body._source, body._items = self, items
        self.response.stream = body
        return self.response

    def tell(self, error: Exception) -> None:
        """Put the story of `error` where the caller finds it."""
        self.call.exchange.broken(error, self.reader)
        if isinstance(error, FailedAnswer):
            is_final(self.response, error)

    def after_error_event(self, over: FailedAnswer) -> Exception:
        """What is raised once the error event is handed over.

        Most SDKs raise an exception of their own for the event, and do not come that far. That of
        OpenAI passes `response.failed` on like any other, and a plain client knows no events.
        """
        error = self._cut_short(f"with a failure: {over.failure}")
        error.__cause__ = over
        return error

    @property
    def elapsed(self) -> Any:
        return getattr(self._raw, "elapsed", None)


def _body(library: Any, mixin: type) -> Any:
    # Responses refuse to iterate in a world that their stream is not made for.
    streams = (library.SyncByteStream, library.AsyncByteStream)
    return object.__new__(runtime_class(mixin, *streams, like=mixin))


class _FinalBody:
    """A stream that failed before its first content, and is not restarted."""

    _source: ResponseSource
    _over: FailedAnswer

    def __iter__(self) -> Iterator[bytes]:
        yield from (*self._source.held, self._source.last)
        raise self._source.after_error_event(self._over)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk

    def close(self) -> None:
        """The connection is closed already."""

    async def aclose(self) -> None:
        """The connection is closed already."""


class _CommittedBody:
    """The rest of a stream that is committed; its failures are the client's exceptions."""

    _source: ResponseSource
    _items: Any

    def __iter__(self) -> Iterator[bytes]:
        source = self._source
        yield from source.held
        try:
            yield from self._items
        except FailedAnswer as over:
            source.tell(over)
            yield source.last
            raise source.after_error_event(over) from over
        except Exception as error:
            source.tell(error)
            raise

    def close(self) -> None:
        source = self._source
        if source.reader is not None and source.reader.is_complete:
            source.is_finished = True
            next(self._items, None)  # the guard hears that it succeeded
        self._items.close()
        source.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        source = self._source
        for chunk in source.held:
            yield chunk
        try:
            async for chunk in self._items:
                yield chunk
        except FailedAnswer as over:
            source.tell(over)
            yield source.last
            raise source.after_error_event(over) from over
        except Exception as error:
            source.tell(error)
            raise

    async def aclose(self) -> None:
        source = self._source
        if source.reader is not None and source.reader.is_complete:
            source.is_finished = True
            await anext(self._items, None)  # the guard hears that it succeeded
        await self._items.aclose()
        await source.aclose()

    @property
    def elapsed(self) -> Any:
        return self._source.elapsed
