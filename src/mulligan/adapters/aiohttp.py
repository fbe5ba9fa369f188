"""A client middleware for aiohttp: ``ClientSession(middlewares=[guarded(guard)])``.

The body is read inside the attempt, so that one which is cut is retried. A stream of events is
handed on as it comes: once its head has arrived, it is the caller's. The session's
``ClientTimeout(total=…)``, five minutes by default, spans all attempts: give it ``total=None`` with
``sock_connect`` and ``sock_read``, which bound each of them.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..calls.notes import annotate
from ..errors import FailedAnswer, NotAdmitted, SettingError
from .events import is_event_stream
from .sender import KEY_HEADER, Exchange, RequestFacts, Sender, as_client_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..api.guard import Guard

__all__ = ("guarded",)

_ONE_SHOT = ("AsyncIterablePayload", "StreamReaderPayload")

# The timer of the last call in this context that ended with an exception, with that exception.
# aiohttp makes one timer per call, and sends a GET whose connection was lost again by itself.
_ended: ContextVar[tuple[object, Exception] | None] = ContextVar("mulligan.aiohttp", default=None)


def guarded(guard: Guard, *, keys: bool = False) -> Callable[[Any, Any], Awaitable[Any]]:
    """A middleware whose requests `guard` retries.

    Args:
        guard: What decides about retries.
        keys: Whether to send an ``Idempotency-Key`` with requests that are unsafe to repeat.

    Raises:
        SettingError: The guard has options that mean nothing for a client.
    """
    sender = Sender(guard, keys=keys)

    async def middleware(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        timer = getattr(request, "_timer", None)
        ended = _ended.get()
        if ended is not None and timer is not None and ended[0] is timer:
            raise ended[1]
        exchange = _exchange(sender, request)

        async def attempt(_limit: float) -> Any:
            response = await handler(request)
            if response.status >= 400 or not is_event_stream(response.headers.get("content-type")):
                await response.read()
            return exchange.judged(response)

        try:
            return await exchange.guard.acall(exchange.attempt(attempt), request)
        except FailedAnswer as over:
            return _final(exchange.returned(over))
        except NotAdmitted as refusal:
            from aiohttp import ClientConnectionError

            refused = as_client_error(refusal, ClientConnectionError)
            _ended.set((timer, refused))
            raise refused from None
        except Exception as error:
            _ended.set((timer, error))
            raise

    return middleware


def _final(response: Any) -> Any:
    """`response`, whose `raise_for_status` tells the story: its exception carries no response."""
    told, check = response.__mulligan__.story, response.raise_for_status

    def raise_for_status() -> None:
        try:
            check()
        except Exception as error:
            annotate(error, told, note=True)
            raise

    response.raise_for_status = raise_for_status
    return response


def _exchange(sender: Sender, request: Any) -> Exchange:
    payload = request.body
    if type(payload).__name__ in _ONE_SHOT:
        raise SettingError(
            f"the body of this {request.method} is read from an iterator, which works only once: "
            f"a second attempt would send nothing; pass bytes or a file that can seek, or send it "
            f"with a session without this middleware"
        )
    body = getattr(payload, "_value", payload)
    facts = RequestFacts(
        request.method,
        str(request.url),
        request.headers,
        body if isinstance(body, bytes) else b"",
    )
    exchange = Exchange(sender, facts, is_stream=False)
    if exchange.key:
        request.headers[KEY_HEADER] = exchange.key
    return exchange
