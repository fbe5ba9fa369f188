"""ToolResult: what a tool call came to, as text for a model and in the shape of each framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.failure import Failure
from ..core.record import record
from ..core.redaction import clean, presentable
from ..core.story import Story
from .advice import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("LARGEST", "ToolResult", "failure_text")

# What a model has to read about one failure, in bytes of UTF-8.
LARGEST = 1024

# Of the arguments a model reads as many characters (R-A1); it has written them itself.
_ARGUMENTS = 300


@record(kw_only=True, eq=False)
class ToolResult:
    """What one tool call came to. A failure is a result, not an exception.

    Args:
        tool: The tool's name, as the model wrote it.
        call_id: The id of the call, as the framework gave it; or empty.
        text: What the model reads: the answer, or what failed and what to do next.
        is_error: Whether it failed.
        action: What the model is told to do next, in one word; ``none`` after a success.
        value: What the tool returned.
        failure: What went wrong, where an attempt failed.
        story: What was tried, where an attempt failed.
        error: What the tool raised last, for the program; a model never sees it.
        attempts: How often the tool was called.
        key: The idempotency key that it was called under; or empty.
        retry_at: When the same call could pass, in epoch seconds, if the service said so.
        answered_by: The tool that answered: the fallback's name where it stepped in.
    """

    tool: str
    call_id: str
    text: str
    is_error: bool
    action: Action = "none"
    value: Any = None
    failure: Failure | None = None
    story: Story | None = None
    error: Exception | None = None
    attempts: int = 0
    key: str = ""
    retry_at: float | None = None
    answered_by: str = ""

    def to_anthropic(self) -> dict[str, Any]:
        """A ``tool_result`` block of the Messages API."""
        return {
            "type": "tool_result",
            "tool_use_id": self.call_id,
            "content": self.text,
            "is_error": self.is_error,
        }

    def to_openai_responses(self) -> dict[str, Any]:
        """A ``function_call_output`` item of the Responses API, which has no flag for errors."""
        return {"type": "function_call_output", "call_id": self.call_id, "output": self.text}

    def to_openai_chat(self) -> dict[str, Any]:
        """A ``tool`` message of the Chat Completions API, which has no flag for errors."""
        return {"role": "tool", "tool_call_id": self.call_id, "content": self.text}

    def to_mcp(self) -> Any:
        """An ``mcp.types.CallToolResult``, of mcp 1.x and 2.x."""
        from mcp.types import CallToolResult

        # By the names on the wire: those of the fields differ between the two versions.
        content = [{"type": "text", "text": self.text}]
        return CallToolResult.model_validate({"content": content, "isError": self.is_error})

    def to_langchain(self) -> Any:
        """A ``langchain_core.messages.ToolMessage``."""
        from langchain_core.messages import ToolMessage

        return ToolMessage(
            content=self.text,
            tool_call_id=self.call_id,
            name=self.tool,
            status="error" if self.is_error else "success",
        )

    def to_pydantic_ai(self) -> Any:
        """The tool's value; pydantic-ai takes failures as exceptions.

        Raises:
            ModelRetry: The arguments can be corrected. It counts against the tool's retries.
            ToolFailed: Everything else.
        """
        if not self.is_error:
            return self.value
        from pydantic_ai import ModelRetry, ToolFailed

        raise ModelRetry(self.text) if self.action == "fix_arguments" else ToolFailed(self.text)


def failure_text(
    *,
    headline: str,
    said: str,
    arguments: str,
    fields: Sequence[tuple[str, str]],
    tried: str,
    advice: str,
) -> str:
    """What a model reads about a failure: at most `LARGEST` bytes, masked, no stack trace.

    What to do next is never cut. The arguments and the original message give way first.
    """
    headline, advice = presentable(headline, 120), clean(advice, 400)
    kept, message = presentable(arguments, _ARGUMENTS), presentable(said, 300)
    wrong = presentable("; ".join(f"{name}: {about}" for name, about in fields), 200)
    while True:
        lines = [f"{headline}: {message}" if message else headline]
        lines += [f"fields: {wrong}"] * bool(wrong)
        lines += [f"arguments: {kept}"] * bool(kept)
        lines += [f"tried: {tried}"] * bool(tried)
        text = "\n".join([*lines, f"next: {advice}"])
        if len(text.encode()) <= LARGEST:
            return text
        longest = max((kept, message, wrong, headline), key=lambda part: len(part.encode()))
        if len(longest) < 2:
            return text.encode()[:LARGEST].decode(errors="ignore")
        shorter = clean(longest, len(longest) // 2)
        kept, message, wrong, headline = (
            shorter if part is longest else part for part in (kept, message, wrong, headline)
        )
