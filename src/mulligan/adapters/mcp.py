"""Guarded sessions of MCP: what a tool's hints say about repeating, and the story of a failed call.

The requests are guarded by their HTTP client, ``streamable_http_client(url,
http_client=guard.wrap(httpx2.AsyncClient()))``. It cannot know what a tool does, so a session tells
it: a tool with `readOnlyHint` is a read, one with `idempotentHint` may be repeated, every other is
unsafe. The exceptions of MCP do not refer to the request; the session attaches its story to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..calls.notes import attach, story
from ..core.failure import Effects
from .effects import effects
from .runtime_classes import view_of
from .sender import heard

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ..core.story import Story

S = TypeVar("S")

__all__ = ("guarded_session", "tool_effects")


def guarded_session(session: S) -> S:
    """A view of an `mcp.ClientSession` whose tool calls say what repeating them does.

    Args:
        session: An initialised session, of mcp 1 or 2.
    """
    if isinstance(session, _View):
        return session
    return view_of(session, _View, {})  # type: ignore[no-any-return]


def tool_effects(annotations: Any) -> Effects:
    """What repeating a tool does, by its annotations; unsafe where it has none."""
    for names, found in (
        (("read_only_hint", "readOnlyHint"), Effects.READ),
        (("idempotent_hint", "idempotentHint"), Effects.IDEMPOTENT),
    ):
        if any(getattr(annotations, name, None) is True for name in names):
            return found
    return Effects.UNSAFE


class _View:
    """A guarded ClientSession."""

    __slots__ = ()
    _mulligan: dict[str, Effects]  # by the name of the tool

    async def list_tools(self, *args: Any, **kwargs: Any) -> Any:
        listing: Any = super().list_tools  # type: ignore[misc]
        with effects("read"):
            found = await _told(listing(*args, **kwargs))
        self._mulligan.update({tool.name: tool_effects(tool.annotations) for tool in found.tools})
        return found

    async def call_tool(self, name: str, *args: Any, **kwargs: Any) -> Any:
        calling: Any = super().call_tool  # type: ignore[misc]
        if name not in self._mulligan:
            await self.list_tools()
        # A tool that is not listed is the server's to refuse.
        with effects(self._mulligan.get(name, Effects.UNSAFE)):
            return await _told(calling(name, *args, **kwargs))


async def _told(call: Awaitable[Any]) -> Any:
    """What `call` returns; its exception tells the story of the request behind it."""
    stories: list[Story] = []
    token = heard.set(stories)
    try:
        return await call
    except Exception as error:
        if stories and story(error) is None:
            attach(error, stories[-1])
        raise
    finally:
        heard.reset(token)
