"""Tool calls in the answers of the anthropic and openai SDKs, known by their shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import SettingError

if TYPE_CHECKING:
    from ..toolbox import Toolbox

__all__ = ("answer",)


async def answer(box: Toolbox, response: Any) -> list[dict[str, Any]]:
    """The results of all tool calls in `response`, in its API's own shape."""
    if hasattr(response, "stop_reason"):  # anthropic: Message
        return [
            (await box.run(each.name, each.input, call_id=each.id)).to_anthropic()
            for each in response.content
            if each.type == "tool_use"
        ]
    if hasattr(response, "output"):  # openai: Response
        return [
            (await box.run(each.name, each.arguments, call_id=each.call_id)).to_openai_responses()
            for each in response.output
            if each.type == "function_call"
        ]
    if hasattr(response, "choices"):  # openai: ChatCompletion
        return [
            (
                await box.run(each.function.name, each.function.arguments, call_id=each.id)
            ).to_openai_chat()
            for each in response.choices[0].message.tool_calls or ()
            if each.type == "function"
        ]
    raise SettingError(
        f"answer needs a Message of anthropic, a Response or a ChatCompletion of openai; "
        f"got a {type(response).__name__}"
    )
