"""An MCP session whose tools are repeated only where that is harmless, as their hints say.

Runs against a server of its own, without an account: python examples/wrap_mcp.py
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import httpx2
import uvicorn
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

import mulligan
from mulligan.adapters.mcp import guarded_session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

shop = MCPServer("shop", log_level="ERROR")
done: list[str] = []


@shop.tool(annotations=ToolAnnotations(read_only_hint=True))
def price(item: str) -> int:
    """What an item costs."""
    done.append("price")
    return len(item)


@shop.tool()
def pay(item: str) -> str:
    """Pay for an item."""
    done.append("pay")
    return f"paid for {item}"


class LosesReplies:
    """The server behind a proxy that loses the first reply to each tool: done, but not known."""

    def __init__(self) -> None:
        self.app = shop.streamable_http_app(stateless_http=True, json_response=True)

    async def __call__(
        self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]
    ) -> None:
        before = len(done)

        async def lossy(message: Any) -> None:
            if done[before:] and done.count(done[-1]) == 1:
                if message["type"] == "http.response.body":
                    await send({"type": "http.response.start", "status": 502, "headers": []})
                    await send({"type": "http.response.body", "body": b""})
                return
            await send(message)

        await self.app(scope, receive, lossy)


async def ask(url: str) -> None:
    guard = mulligan.Guard("shop", wait="10ms")
    async with (
        httpx2.AsyncClient() as http,
        streamable_http_client(url, http_client=guard.wrap(http)) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        tools = guarded_session(session)
        for tool in ("price", "pay"):
            try:
                answer = await tools.call_tool(tool, {"item": "tea"})
                print(f"{tool}: {answer.structured_content}, done {done.count(tool)} times")
            except Exception as error:  # noqa: BLE001 -- of MCP, with the story of the request
                story = mulligan.story(error)
                assert story is not None  # noqa: S101 -- whatever passes a guard has one
                print(f"{tool}: {story.ending}, done {done.count(tool)} time")


async def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(LosesReplies(), log_level="critical"))
    serving = asyncio.create_task(server.serve([listening]))
    try:
        await ask(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")
    finally:
        server.should_exit = True
        await serving


if __name__ == "__main__":
    asyncio.run(main())
