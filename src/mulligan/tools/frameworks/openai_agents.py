"""openai-agents: a toolbox as tools of an agent.

A tool that does not exist ends the run before any tool is asked; to have it told to the model, run
with ``RunConfig(tool_not_found_behavior="return_error_to_model")``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import FunctionTool

if TYPE_CHECKING:
    from ..definition import ToolDefinition
    from ..toolbox import Toolbox

__all__ = ("tools_of",)


def tools_of(box: Toolbox) -> list[FunctionTool]:
    """The tools of `box`."""
    return [_made(box, each) for each in box.tools]


def _made(box: Toolbox, tool: ToolDefinition) -> FunctionTool:
    async def call(context: Any, arguments: str) -> str:
        return (await box.run(tool.name, arguments, call_id=context.tool_call_id)).text

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.schema,
        on_invoke_tool=call,
        strict_json_schema=False,  # a strict schema has no optional arguments
    )
