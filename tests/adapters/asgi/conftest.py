"""An ASGI client without a network: sends one request, keeps every message of the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from mulligan.adapters.asgi import IdempotencyMiddleware
from mulligan.stores.memory import Memory

from ...contracts.conftest import common, flaky, place, servers

__all__ = ("common", "flaky", "place", "servers")


class Answer:
    """What the client saw."""

    def __init__(self, messages: list[Any]) -> None:
        self.messages = messages
        starts = [each for each in messages if each["type"] == "http.response.start"]
        assert len(starts) <= 1
        self.start = starts[0] if starts else {"status": None, "headers": []}
        self.status = self.start["status"]
        self.headers = [(name.decode(), value.decode()) for name, value in self.start["headers"]]
        self.body = b"".join(
            each.get("body", b"") for each in messages if each["type"] == "http.response.body"
        )

    def header(self, name: str) -> str | None:
        return next((value for each, value in self.headers if each == name), None)

    @property
    def document(self) -> dict[str, Any]:
        assert self.header("content-type") == "application/problem+json"
        found = json.loads(self.body)
        assert isinstance(found, dict)
        assert found["status"] == self.status
        return found

    @property
    def is_replayed(self) -> bool:
        return self.header("idempotent-replayed") == "true"


async def ask(
    app: Any,
    key: str | None = '"k-1"',
    body: bytes | Iterable[bytes] = b'{"amount": 25}',
    *,
    method: str = "POST",
    path: str = "/orders",
    query: bytes = b"",
    caller: str = "ada",
    content_type: str = "application/json",
    headers: Iterable[tuple[bytes, bytes]] = (),
    gone: bool = False,
    send: Callable[[Any], Awaitable[None]] | None = None,
    extensions: dict[str, Any] | None = None,
) -> Answer:
    """What the application answers to one request; `gone` leaves before the body is complete."""
    sent = [(b"content-type", content_type.encode()), (b"x-account", caller.encode()), *headers]
    if key is not None:
        sent.append((b"idempotency-key", key.encode()))
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": sent,
        "extensions": extensions,
    }
    pieces = [body] if isinstance(body, bytes) else list(body)
    waiting: list[Any] = [
        {"type": "http.request", "body": each, "more_body": number < len(pieces) or gone}
        for number, each in enumerate(pieces, 1)
    ]
    messages: list[Any] = []

    async def receive() -> Any:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def keep(message: Any) -> None:
        messages.append(message)
        if send is not None:
            await send(message)

    await app(scope, receive, keep)
    return Answer(messages)


def account(scope: Any) -> str | None:
    """The caller: the header x-account; None if it is empty."""
    return dict(scope["headers"])[b"x-account"].decode() or None


class Shop:
    """An application that counts what it executes, and answers what it is told to."""

    def __init__(self, status: int = 201, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self.status, self.headers = status, list(headers)
        self.executed: list[bytes] = []
        self.scopes: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        self.executed.append(body)
        self.scopes.append(scope)
        start = {"type": "http.response.start", "status": self.status, "headers": self.headers}
        await send(start)
        await send({"type": "http.response.body", "body": b"order %d" % len(self.executed)})


def guarded(app: Any, **options: Any) -> IdempotencyMiddleware:
    """The application under the middleware, with a memory of its own."""
    options.setdefault("store", Memory())
    options.setdefault("caller", account)
    return IdempotencyMiddleware(app, **options)


def _on_asyncio(work: Any, *args: Any) -> Any:
    return asyncio.run(work(*args))


@pytest.fixture(params=[_on_asyncio, trio.run], ids=["asyncio", "trio"])
def run(request):
    """Run a coroutine function to its end: on asyncio, on trio."""
    return request.param


@pytest.fixture(scope="session")
def asgi():
    """The tools of this file, for tests that cannot import it."""
    return SimpleNamespace(ask=ask, Shop=Shop, guarded=guarded)
