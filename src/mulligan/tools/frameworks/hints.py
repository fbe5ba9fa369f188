"""Effects of a tool as MCP's hints state them, read and written.

A hint is a statement of the server about itself: believe those of servers that you trust.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.failure import Effects
from ..definition import ToolDefinition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..definition import ToolOptions

__all__ = ("declared_tool", "effects_of", "hints_of")


def hints_of(effects: Effects) -> dict[str, bool]:
    """The hints for a tool with these effects, by their names on the wire."""
    if effects is Effects.READ:
        return {"readOnlyHint": True}
    # A key makes our own repeats harmless; a client that calls again makes a new one.
    return {"readOnlyHint": False, "idempotentHint": effects is Effects.IDEMPOTENT}


def effects_of(hints: Any) -> Effects:
    """The effects that hints state: those of mcp 1.x and 2.x, or the names on the wire."""
    if _stated(hints, "readOnlyHint", "read_only_hint"):
        return Effects.READ
    if _stated(hints, "idempotentHint", "idempotent_hint"):
        return Effects.IDEMPOTENT
    return Effects.UNSAFE


def _stated(hints: Any, *names: str) -> bool:
    if isinstance(hints, dict):
        return any(hints.get(each) is True for each in names)
    return any(getattr(hints, each, None) is True for each in names)


def declared_tool(
    name: str, declared: Mapping[str, ToolOptions], metadata: Mapping[str, Any] | None
) -> ToolDefinition:
    """A tool that a framework has already, as far as it is known how it behaves."""

    async def elsewhere(**arguments: Any) -> Any:
        raise NotImplementedError(f"{name} is called by its framework, with {arguments}")

    known = metadata or {}
    options: ToolOptions = {"effects": effects_of(known.get("annotations", known))}
    options = {**declared.get(name, options), "name": name}
    return ToolDefinition(elsewhere, schema={}, **options)
