"""pydantic-ai: a toolbox as tools of an agent, and a capability around tools that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pydantic_ai
from pydantic_ai import Tool
from pydantic_ai.capabilities import AbstractCapability

from .hints import declared_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..definition import ToolDefinition, ToolOptions
    from ..toolbox import Toolbox

__all__ = ("capability", "tools_of")

# Corrections of arguments that one tool may ask for; identical ones are told to stop before.
_CORRECTIONS = 5

# What tools raise to steer the framework itself.
_STEERING = (
    *("ModelRetry", "ToolFailed", "CallDeferred", "ApprovalRequired", "SkipToolExecution"),
    *("SkipToolValidation", "ToolRetryError", "ToolFailedError", "AgentRunError", "UserError"),
)


def tools_of(box: Toolbox) -> list[Tool[Any]]:
    """The tools of `box`."""
    return [_made(box, each) for each in box.tools]


def _made(box: Toolbox, tool: ToolDefinition) -> Tool[Any]:
    async def call(ctx: Any, **arguments: Any) -> Any:
        run = box.named_run or ctx.run_id or ""
        result = await box.run(tool.name, arguments, call_id=ctx.tool_call_id or "", run=run)
        return result.to_pydantic_ai()

    made: Tool[Any] = Tool.from_schema(
        call, tool.name, tool.description, tool.schema, takes_ctx=True
    )
    made.max_retries = _CORRECTIONS
    return made


def capability(box: Toolbox, declared: Mapping[str, ToolOptions]) -> AbstractCapability[Any]:
    """A capability that runs every tool of the agent as `box` runs its own."""
    found = (getattr(pydantic_ai.exceptions, each, None) for each in _STEERING)
    steering = tuple(each for each in found if isinstance(each, type))

    class Tools(AbstractCapability[Any]):
        """Runs tools with retries, keys and words for the model."""

        async def wrap_tool_execute(
            self,
            ctx: Any,
            *,
            call: Any,
            tool_def: Any,
            args: dict[str, Any],
            handler: Callable[[dict[str, Any]], Any],
        ) -> Any:
            async def invoke(**arguments: Any) -> Any:
                return await handler(arguments)

            result = await box.perform(
                declared_tool(call.tool_name, declared, tool_def.metadata),
                args,
                invoke,
                call_id=call.tool_call_id,
                run=box.named_run or ctx.run_id or "",
                passing=steering,
            )
            return result.to_pydantic_ai()

    return Tools()
