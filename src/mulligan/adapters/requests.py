"""Guarded views of requests sessions: retries in `Session.send`.

A view shares the session's state. Its adapters are copies with urllib3's own retries off, on the
same connections.
"""

from __future__ import annotations

import copy
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..calls.notes import attach
from ..errors import FailedAnswer, NotAdmitted
from .runtime_classes import guarded_view
from .sender import (
    KEY_HEADER,
    Exchange,
    RequestFacts,
    as_client_error,
    least,
    read_once_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from .sender import Sender

__all__ = ("guarded",)

# Whether an attempt is being made: redirects are followed by `send`, too, and are part of it.
_is_inside: ContextVar[bool] = ContextVar("mulligan.requests", default=False)


def guarded(session: Any, sender: Sender) -> Any:
    """A view of `session` that sends by `sender`; of the original where it is a view already."""
    return guarded_view(session, _View, sender)


class _View:
    """A guarded Session."""

    __slots__ = ()
    _mulligan: tuple[Sender, Any]

    def get_adapter(self, url: str) -> Any:
        adapter = super().get_adapter(url)  # type: ignore[misc]
        retries = getattr(adapter, "max_retries", None)
        if retries is None or not retries.total:
            return adapter
        view = copy.copy(adapter)  # HTTPAdapter copies its settings; the connections are shared
        view.__dict__ = {**adapter.__dict__, "max_retries": type(retries)(0, read=False)}
        return view

    def send(self, request: Any, **options: Any) -> Any:
        send: Any = super().send  # type: ignore[misc]
        if _is_inside.get():
            return send(request, **options)
        attach(request, None)
        rewind = _rewinder(request)
        body = request.body if isinstance(request.body, bytes) else (request.body or "")
        body = body.encode() if isinstance(body, str) else body
        facts = RequestFacts(
            request.method, request.url, request.headers, body if isinstance(body, bytes) else b""
        )
        is_stream = bool(options.get("stream", getattr(self, "stream", False)))
        exchange = Exchange(self._mulligan[0], facts, is_stream=False)
        if exchange.key:
            request.headers[KEY_HEADER] = exchange.key
        timeout, policy = options.pop("timeout", None), exchange.guard.policy.timeouts

        def attempt(limit: float) -> Any:
            rewind()
            token = _is_inside.set(True)
            try:
                response = send(request, timeout=_timeout(timeout, policy, limit), **options)
                if is_stream and response.status_code >= 400:
                    # Read, so that it can be judged and its connection is free.
                    response.content  # noqa: B018 -- a property that reads
            except Exception as error:
                raise exchange.lost(error, request)
            finally:
                _is_inside.reset(token)
            return exchange.judged(response)

        try:
            return exchange.guard.call(exchange.attempt(attempt), request)
        except FailedAnswer as over:
            return exchange.returned(over)
        except NotAdmitted as refusal:
            from requests.exceptions import ConnectionError as ConnectionFailed

            raise exchange.raised(as_client_error(refusal, ConnectionFailed))
        except Exception as error:
            raise exchange.raised(error)


def _rewinder(request: Any) -> Callable[[], object]:
    """What makes the body of `request` readable again; raises SettingError if nothing can."""
    body = request.body
    if body is None or isinstance(body, str | bytes):
        return lambda: None
    position = getattr(request, "_body_position", None)
    if isinstance(position, int) and hasattr(body, "seek"):
        return lambda: body.seek(position)
    if not hasattr(body, "__next__") and not hasattr(body, "read"):
        return lambda: None  # a list, or an object that iterates from the start each time
    raise read_once_error(request, body, "session")


def _timeout(given: Any, policy: Any, limit: float) -> tuple[float | None, float | None]:
    """The least of what the caller, the policy and the deadline allow: to connect, to read."""
    connect, read = given if isinstance(given, tuple) else (given, given)
    by_policy = getattr(policy, "connect", None), getattr(policy, "read", None)
    return least(connect, by_policy[0], limit), least(read, by_policy[1], limit)
