"""MCP: a toolbox as tools of a server, of mcp 1.x and 2.x.

Ids of requests begin at 1 in every session, so no key is made from them: two customers would share
one charge. A keyed tool of a server names its operation with ``key=``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mcp.types import ToolAnnotations

from .hints import hints_of

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from ..toolbox import Toolbox

__all__ = ("tools_of",)


def tools_of(box: Toolbox) -> list[Any]:
    """The tools of `box`, with hints about their effects."""
    base: Any = _base()
    runs: MutableMapping[Any, str] = WeakKeyDictionary()

    class Made(base):  # type: ignore[misc]  # one of two classes
        """A tool of a toolbox; arguments are checked there."""

        async def run(
            self,
            arguments: dict[str, Any],
            context: Any = None,
            convert_result: bool = False,  # noqa: FBT001, FBT002 -- MCP's signature
        ) -> Any:
            result = await box.run(self.name, arguments, run=box.named_run or _session(context))
            return result.to_mcp() if convert_result or result.is_error else result.value

    def _session(context: Any) -> str:
        """A run for each session: what fails for one client says nothing about another."""
        try:
            return runs.setdefault(context.session, os.urandom(8).hex())
        except Exception:  # noqa: BLE001 -- called without a session
            return ""

    def unused() -> None: ...

    made = []
    for each in box.tools:
        tool = Made.from_function(
            unused,
            name=each.name,
            description=each.description,
            # By the names on the wire: those of the fields differ between the two versions.
            annotations=ToolAnnotations.model_validate(hints_of(each.effects)),
            structured_output=False,
        )
        tool.parameters = each.schema
        made.append(tool)
    return made


def _base() -> Any:
    """The class of a server's tools, in the version that is installed."""
    from importlib import import_module

    try:
        return import_module("mcp.server.mcpserver.tools").Tool
    except ImportError:
        return import_module("mcp.server.fastmcp.tools").Tool
