"""Guarded views of httpx and httpx2 clients: retries in `Client.send` and `AsyncClient.send`.

`send` is the layer that sees everything: statuses, lost connections, bodies that are cut, streams.
A view is an object of a subclass made at run time that shares the client's state, so proxies,
timeouts, cookies and connections are the client's own. The two libraries have the same names; this
module imports neither.
"""

from __future__ import annotations

import logging
import sys
from math import inf
from typing import TYPE_CHECKING, Any

from ..calls.notes import attach
from ..errors import FailedAnswer, NotAdmitted
from .httpx_streams import ResponseSource
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

__all__ = ("HttpxCall", "guarded", "is_client")

_ROOTS = ("httpx", "httpx2")


def is_client(thing: object) -> bool:
    """Whether `thing` is a Client or AsyncClient of httpx or httpx2."""
    return _base(type(thing)) is not None


def guarded(client: Any, sender: Sender) -> Any:
    """A view of `client` that sends by `sender`; of the original where it is a view already."""
    for transport in (client._transport, *client._mounts.values()):
        _report_retries(transport)
    cls = type(client)
    mixin = _AsyncView if issubclass(cls, _library(cls).AsyncClient) else _View
    return guarded_view(client, mixin, sender)


_reported: set[str] = set()


def _report_retries(transport: Any) -> None:
    """Say once which transport retries by itself: it stands inside `send`, out of reach."""
    name = type(transport).__name__
    connects = getattr(getattr(transport, "_pool", None), "_retries", 0)
    if connects:
        name += f"(retries={connects})"
    elif not any(word in name.lower() for word in ("retry", "tenacity")):
        return
    if name not in _reported:
        _reported.add(name)
        logging.getLogger("mulligan").warning(
            "%s retries by itself, and a guard cannot switch it off: its requests are not counted "
            "as attempts; make the client without it",
            name,
        )


def _base(cls: type) -> type | None:
    for each in cls.__mro__:
        is_client = each.__name__ in ("Client", "AsyncClient")
        if is_client and each.__module__.partition(".")[0] in _ROOTS:
            return each
    return None


def _library(cls: type) -> Any:
    base = _base(cls)
    assert base is not None  # noqa: S101 -- only views of clients come here
    return sys.modules[base.__module__.partition(".")[0]]


class _View:
    """A guarded Client."""

    __slots__ = ()
    _mulligan: tuple[Sender, Any]

    def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        send: Any = super().send  # type: ignore[misc]
        call = HttpxCall(self, request, is_stream=stream)

        def attempt(limit: float) -> Any:
            call.prepare(limit)
            try:
                response = send(request, stream=stream, **options)
            except Exception as error:
                raise call.exchange.lost(error, request)
            if not stream:
                return call.exchange.judged(response)
            source = ResponseSource(call, response)
            if response.status_code >= 400:
                source.read_error()
            return source

        try:
            if not stream:
                return call.exchange.guard.call(call.exchange.attempt(attempt), request)
            items = call.exchange.guard.stream(call.exchange.attempt(attempt), request)
            source = next(items)
        except FailedAnswer as over:
            return call.exchange.returned(over)
        except Exception as error:
            raise call.raised(error)
        return source.handed_over(items)

    def __del__(self) -> None:
        """The connections are the client's, which closes them when it is collected itself."""


class _AsyncView:
    """A guarded AsyncClient."""

    __slots__ = ()
    _mulligan: tuple[Sender, Any]

    async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        send: Any = super().send  # type: ignore[misc]
        call = HttpxCall(self, request, is_stream=stream)

        async def attempt(limit: float) -> Any:
            call.prepare(limit)
            try:
                response = await send(request, stream=stream, **options)
            except Exception as error:
                raise call.exchange.lost(error, request)
            if not stream:
                return call.exchange.judged(response)
            source = ResponseSource(call, response)
            if response.status_code >= 400:
                await source.aread_error()
            return source

        try:
            if not stream:
                return await call.exchange.guard.acall(call.exchange.attempt(attempt), request)
            items = call.exchange.guard.astream(call.exchange.attempt(attempt), request)
            source = await anext(items)
        except FailedAnswer as over:
            return call.exchange.returned(over)
        except Exception as error:
            raise call.raised(error)
        return source.handed_over(items)

    def __del__(self) -> None:
        """The connections are the client's, which closes them when it is collected itself."""


class HttpxCall:
    """One request of a view; the same object is sent on every attempt.

    Raises:
        SettingError: Its body can be read only once.
    """

    def __init__(self, client: Any, request: Any, *, is_stream: bool) -> None:
        self.library = _library(type(client))
        self.request = request
        attach(request, None)
        self._rewind = _rewinder(request)
        # The attribute, not the property: that one raises where the body is a stream.
        body = getattr(request, "_content", b"")
        facts = RequestFacts(request.method, str(request.url), request.headers, body)
        self.exchange = Exchange(client._mulligan[0], facts, is_stream=is_stream)
        if self.exchange.key:
            request.headers[KEY_HEADER] = self.exchange.key
        stated = request.extensions.get("timeout") or client.timeout.as_dict()
        policy = self.exchange.guard.policy.timeouts
        self._timeout = {
            part: least(stated.get(part), getattr(policy, part, None))
            for part in ("connect", "read", "write", "pool")
        }

    @property
    def idle(self) -> float:
        """How long a stream may be without content: as long as the client waits for bytes."""
        return self._timeout.get("read") or inf

    def prepare(self, limit: float) -> None:
        """Make the request ready for an attempt of at most `limit` seconds."""
        self._rewind()
        timeout = {part: least(each, limit) for part, each in self._timeout.items()}
        self.request.extensions = {**self.request.extensions, "timeout": timeout}

    def raised(self, error: Exception) -> Exception:
        """`error` as the client raises it, once it has ended the call."""
        library = self.library
        if isinstance(error, NotAdmitted):
            error = as_client_error(error, library.ConnectError)
        elif isinstance(error, TimeoutError):
            cut, error = error, library.ReadTimeout(str(error))
            error.__cause__ = cut
        if isinstance(error, library.RequestError):
            setattr(error, "request", self.request)  # noqa: B010 -- a property of the library's class
        return self.exchange.raised(error)


def _rewinder(request: Any) -> Callable[[], object]:
    """What makes the body of `request` readable again; raises SettingError if nothing can."""
    stream = request.stream
    if hasattr(request, "_content"):
        return lambda: None
    fields = getattr(stream, "fields", None)
    if fields is not None:  # a form; its files are read from their start
        files = [field.file for field in fields if hasattr(field, "file")]
        if all(isinstance(file, str | bytes) or _can_seek(file) for file in files):
            return lambda: None
    source = getattr(stream, "_stream", stream)
    if _can_seek(source):
        start = source.tell()
        return lambda: source.seek(start)
    iterate = getattr(source, "__iter__", None) or getattr(source, "__aiter__", None)
    is_one_shot = hasattr(source, "__next__") or hasattr(source, "__anext__")
    if fields is None and iterate is not None and not is_one_shot and not hasattr(source, "read"):
        return lambda: None  # a list, or an object that iterates from the start each time
    raise read_once_error(request, source, "client")


def _can_seek(file: Any) -> bool:
    try:
        return bool(file.seekable())
    except Exception:
        return False
