"""LangChain and LangGraph: a toolbox as tools of an agent, and a middleware around its tools."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from ..toolbox import driven
from .hints import declared_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain.agents.middleware import AgentMiddleware

    from ..definition import ToolOptions
    from ..results import ToolResult
    from ..toolbox import Toolbox

__all__ = ("middleware", "tools_of")

# The id of the call and the thread of the conversation: LangChain gives a tool neither.
_call: ContextVar[tuple[str, str]] = ContextVar("mulligan.tools.langchain", default=("", ""))


def tools_of(box: Toolbox) -> list[BaseTool]:
    """The tools of `box`."""

    class Made(BaseTool):
        """A tool of a toolbox."""

        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002 -- LangChain's name
            token = _call.set(_identity(input, config))
            try:
                return super().invoke(input, config, **kwargs)
            finally:
                _call.reset(token)

        async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002 -- LangChain's name
            token = _call.set(_identity(input, config))
            try:
                return await super().ainvoke(input, config, **kwargs)
            finally:
                _call.reset(token)

        def _run(self, **arguments: Any) -> Any:
            call_id, thread = _call.get()
            run = box.named_run or thread
            return _shown(box.run_sync(self.name, arguments, call_id=call_id, run=run))

        async def _arun(self, **arguments: Any) -> Any:
            call_id, thread = _call.get()
            run = box.named_run or thread
            return _shown(await box.run(self.name, arguments, call_id=call_id, run=run))

    return [
        Made(name=each.name, description=each.description, args_schema=each.schema)
        for each in box.tools
    ]


def _identity(asked: Any, config: Any) -> tuple[str, str]:
    """The id of a tool call and the thread that it belongs to, or empty."""
    is_call = isinstance(asked, dict) and asked.get("type") == "tool_call"
    return (asked.get("id") or "" if is_call else ""), _thread(config)


def _thread(config: Any) -> str:
    known = (config or {}).get("configurable") or {}
    return str(known.get("thread_id") or "")


def _shown(result: ToolResult) -> Any:
    """A message where a model asked; the text where plain code did, which has no call id."""
    return result.to_langchain() if result.call_id else result.text


def middleware(box: Toolbox, declared: Mapping[str, ToolOptions]) -> AgentMiddleware[Any, Any]:
    """A middleware that runs every tool of the agent as `box` runs its own."""
    from langchain.agents.middleware import AgentMiddleware
    from langgraph.errors import GraphBubbleUp

    def ask(request: Any, invoke: Callable[..., Any], *, is_inline: bool) -> Any:
        call = request.tool_call
        metadata = getattr(request.tool, "metadata", None)
        config = getattr(request.runtime, "config", None)
        return box.perform(
            declared_tool(call["name"], declared, metadata),
            dict(call["args"]),
            invoke,
            call_id=call["id"] or "",
            run=box.named_run or _thread(config),
            is_inline=is_inline,
            passing=(GraphBubbleUp,),
        )

    class ToolsMiddleware(AgentMiddleware[Any, Any]):
        """Runs tools with retries, keys and words for the model."""

        def wrap_tool_call(self, request: Any, handler: Callable[..., Any]) -> Any:
            def invoke(**_: Any) -> Any:
                return handler(request)

            return _message(driven(lambda: ask(request, invoke, is_inline=True)))

        async def awrap_tool_call(self, request: Any, handler: Callable[..., Any]) -> Any:
            async def invoke(**_: Any) -> Any:
                return await handler(request)

            return _message(await ask(request, invoke, is_inline=False))

    return ToolsMiddleware()


def _message(result: ToolResult) -> Any:
    """What the handler returned; for a result that was kept, the message that it was."""
    if result.is_error:
        return result.to_langchain()
    value = result.value
    if isinstance(value, dict) and value.get("type") == "tool":
        value = ToolMessage.model_validate(value)
    if isinstance(value, ToolMessage):
        return value.model_copy(update={"tool_call_id": result.call_id})
    return value
