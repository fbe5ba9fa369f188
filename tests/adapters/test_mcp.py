"""Tool calls of MCP sessions through a guarded HTTP client, with the real server of the package."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

import mulligan
from mulligan.adapters.mcp import guarded_session, tool_effects

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

CALLS: list[str] = []


def application() -> Any:
    server = MCPServer("shop")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def price(item: str) -> int:
        CALLS.append(f"price {item}")
        return 7

    @server.tool()
    def pay(item: str) -> str:
        CALLS.append(f"pay {item}")
        return "paid"

    return server.streamable_http_app(stateless_http=True, json_response=True)


class Flaky:
    """The server behind a proxy that fails: before a tool call arrives, or after it was done."""

    def __init__(self, app: Any) -> None:
        self.app, self.before, self.after = app, 0, 0
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = await _body(receive)
        is_call = b"tools/call" in body
        self.asked += is_call

        async def replay() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def nothing(message: Any) -> None: ...

        if is_call and self.before:
            self.before -= 1
            await _answer(send, 429)
        elif is_call and self.after:
            self.after -= 1
            await self.app(scope, replay, nothing)
            await _answer(send, 502)
        else:
            await self.app(scope, replay, send)


async def _body(receive: Any) -> bytes:
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def _answer(send: Any, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def shop():
    CALLS.clear()
    flaky = Flaky(application())
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(flaky, log_level="critical", lifespan="on"))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    flaky.url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"  # type: ignore[attr-defined]
    yield flaky
    server.should_exit = True
    thread.join(10)
    listening.close()


@asynccontextmanager
async def session(shop: Any, guard: mulligan.Guard) -> Any:
    async with (
        httpx2.AsyncClient(timeout=10) as http,
        streamable_http_client(shop.url, http_client=guard.wrap(http)) as streams,
        ClientSession(streams[0], streams[1]) as made,
    ):
        await made.initialize()
        yield guarded_session(made)


def call(shop: Any, tool: str, **options: Any) -> Any:
    async def main() -> Any:
        guard = mulligan.Guard("shop", attempts=4, **options)
        async with session(shop, guard) as made:
            return await made.call_tool(tool, {"item": "x"})

    return asyncio.run(main())


def cause(caught: Any) -> BaseException:
    """The exception itself: task groups wrap it."""
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def test_a_refused_call_is_repeated_whatever_the_tool_does(shop, clock):
    shop.before = 2
    assert call(shop, "pay").is_error is False
    assert (CALLS, shop.asked) == (["pay x"], 3)


def test_a_call_that_may_have_been_done_is_repeated_for_a_tool_that_only_reads(shop, clock):
    shop.after = 2
    assert call(shop, "price").is_error is False
    assert CALLS == ["price x"] * 3


def test_a_call_that_may_have_been_done_is_not_repeated_for_a_tool_with_effects(shop, clock):
    shop.after = 2
    with pytest.raises(Exception) as caught:  # noqa: PT011 -- see `cause`
        call(shop, "pay")
    assert CALLS == ["pay x"]
    story = mulligan.story(cause(caught))
    assert story is not None
    assert story.ending == "maybe_applied"
    assert type(cause(caught)).__name__ == "MCPError"


def test_the_story_of_a_call_that_was_given_up_is_on_the_exception(shop, clock):
    shop.before = 9
    with pytest.raises(Exception) as caught:  # noqa: PT011 -- see `cause`
        call(shop, "price")
    story = mulligan.story(cause(caught))
    assert story is not None
    assert story.attempts == shop.asked == 4


class Version1:
    readOnlyHint = True  # noqa: N815 -- the name in mcp 1
    idempotentHint = None  # noqa: N815 -- the name in mcp 1


@pytest.mark.parametrize(
    ("annotations", "effects"),
    [
        (None, "unsafe"),
        (ToolAnnotations(), "unsafe"),
        (ToolAnnotations(read_only_hint=False), "unsafe"),
        (ToolAnnotations(read_only_hint=True), "read"),
        (ToolAnnotations(idempotent_hint=True), "idempotent"),
        (Version1(), "read"),
    ],
)
def test_hints_of_both_versions_are_read(annotations, effects):
    assert tool_effects(annotations) == effects
