"""openai-agents: a toolbox as tools of an agent.

A tool that does not exist ends the run before any tool is asked; to have it told to the model, run
with ``RunConfig(tool_not_found_behavior="return_error_to_model")``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import FunctionTool

if TYPE_CHECKING:
    from ..toolbox import Toolbox

__all__ = ("tools_of",)


def tools_of(box: Toolbox) -> list[FunctionTool]:
    """The tools of `box`."""
    return [_made(box, each.name, each.description, each.schema) for each in box.tools]


def _made(box: Toolbox, name: str, description: str, schema: dict[str, Any]) -> FunctionTool:
    async def call(context: Any, arguments: str) -> str:
        return (await box.run(name, arguments, call_id=context.tool_call_id)).text

    return FunctionTool(
        name=name,
        description=description,
        params_json_schema=schema,
        on_invoke_tool=call,
        strict_json_schema=False,  # a strict schema has no optional arguments
    )
