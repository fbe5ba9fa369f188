"""One execution of a request under its key: runs the application and records its response.

A response that comes in one piece, or states its length, is recorded before the client sees any of
it. Every other one is a stream: it passes piece by piece, a copy is collected, and its last piece
is sent when the copy is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import KeyReused, StoreError
from ...once.claims import Busy, Done, Mine
from .kept_response import is_event_stream, is_in_doubt, is_kept, kept, not_kept
from .request_key import header_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ...once.holder import KeyHold
    from .messages import App, Message, Receive, Scope, Send

__all__ = ("Execution", "claimed", "log")

_PARTS = ("http.response.body", "http.response.trailers")


async def claimed(hold: KeyHold) -> Mine | Busy | Done:
    """What the store says about the key; from then on it is renewed, if it is ours.

    Raises:
        KeyReused: The key stands for another payload.
        StoreError: The store does not answer.
    """
    terms = hold.terms
    try:
        answer = await terms.keys.atransact(terms.place, hold.take())
    except BaseException:
        hold.leave()  # cancelled, or the store's answer was lost: the key may be ours
        raise
    return hold.taken(answer)


class Execution:
    """One execution of a request whose key is ours.

    `replace` answers the client with what a successor did (see `_record`); bodies of up to `limit`
    bytes are kept.
    """

    def __init__(
        self,
        hold: KeyHold,
        send: Send,
        replace: Callable[[Busy | Done], Awaitable[None]],
        limit: int,
    ) -> None:
        self._hold, self._send, self._replace, self._limit = hold, send, replace, limit
        self._start: Message | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._trailers: list[tuple[bytes, bytes]] = []
        self._last: list[Message] = []  # what is held back
        self._is_held = False  # whether all of the response is, until it is recorded
        self._why_not = ""  # why the response cannot be kept
        self._is_begun = False  # whether the client has seen its start
        self._is_settled = False  # whether the key is finished or given back
        self._is_replaced = False  # whether the client was sent another response

    async def run(self, app: App, scope: Scope, receive: Receive) -> None:
        """Run the application; its own errors pass."""
        try:
            await app(scope, receive, self._sent)
        except Exception:
            await self._drop(in_doubt=True)
            raise
        except BaseException:
            if not self._is_settled:
                self._hold.leave()
            raise
        await self._drop(in_doubt=True)  # if it returned without a whole response

    async def _sent(self, message: Message) -> None:
        """The application sends `message`."""
        kind, start = message["type"], self._start
        if self._is_replaced:
            return
        if kind == "http.response.start" and not self._is_settled:
            await self._started(message)
        elif start is None or self._is_settled or kind not in _PARTS:
            await self._send(message)  # an extension, or a mistake that the server knows to answer
        else:
            await self._continued(start, message)

    async def _started(self, start: Message) -> None:
        self._start, headers = start, start.get("headers", ())
        if is_event_stream(headers):
            self._why_not = "was a stream of events, which is not kept"
            await self._flush()
        else:
            self._is_held = bool(header_of(headers, b"content-length"))

    async def _continued(self, start: Message, message: Message) -> None:
        """A piece of the body, or trailers."""
        self._last.append(message)
        if message["type"] == "http.response.trailers":
            self._trailers += message.get("headers", ())
            is_whole = not message.get("more_trailers", False)
        else:
            self._collect(message.get("body", b""))
            if message.get("more_body", False):
                if not self._is_held:
                    await self._flush()
                return
            is_whole = not start.get("trailers", False)
        if is_whole:
            await self._complete(start)

    def _collect(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit and not self._why_not:
            self._why_not = f"was larger than {self._limit} bytes and was not kept"
        if self._why_not:
            self._pieces.clear()
            self._is_held = False
        elif piece:
            self._pieces.append(bytes(piece))

    async def _flush(self) -> None:
        """Send what was held back."""
        waiting, self._last = self._last, []
        if not self._is_begun and self._start is not None:
            self._is_begun = True
            await self._send(self._start)
        for each in waiting:
            await self._send(each)

    async def _complete(self, start: Message) -> None:
        """The response is whole: record it, then let the client see the end of it."""
        status = start["status"]
        if is_kept(status):
            body, why_not = b"".join(self._pieces), self._why_not
            successor = await self._record(
                not_kept(why_not) if why_not else kept(start, body, self._trailers)
            )
            if successor is not None and not self._is_begun:
                self._is_replaced = True
                await self._replace(successor)
                return
        else:
            await self._drop(in_doubt=is_in_doubt(status))
        await self._flush()

    async def _record(self, value: str) -> Busy | Done | None:
        """Record the response; what a successor did, if this holder was silent for too long."""
        self._is_settled = True
        hold, terms = self._hold, self._hold.terms
        while True:
            finish = hold.finish(value)
            try:
                is_recorded = await terms.keys.atransact(terms.place, finish)
            except BaseException as error:
                # It was executed. This process knows that from now on, and tells the store later.
                hold.settle(finish)
                hold.end()
                if not isinstance(error, Exception):
                    raise
                log("request %r was executed, which could not be recorded yet (%s)", hold, error)
                return None
            if is_recorded:
                break
            log("request %r was overtaken by another server after its lease%s", hold, "")
            try:
                found = await claimed(hold)
            except (KeyReused, StoreError):
                break
            if not isinstance(found, Mine):
                hold.end()
                return found
        hold.end()
        return None

    async def _drop(self, *, in_doubt: bool) -> None:
        """Give the key back, unless it is settled: the next request executes."""
        if self._is_settled:
            return
        self._is_settled = True
        hold, terms = self._hold, self._hold.terms
        try:
            await terms.keys.atransact(terms.place, hold.drop(in_doubt=in_doubt))
        except Exception:  # noqa: BLE001, S110 -- the response, or the application's error, is on its way
            pass  # the lease ends by itself
        except BaseException:
            hold.leave()
            raise
        finally:
            hold.end()


def log(message: str, hold: KeyHold, more: object) -> None:
    """Log a warning for the operator; `message` has a place for the key and one for `more`."""
    import logging

    logging.getLogger("mulligan").warning(message, hold.label, more)
