"""Events of Copilot, Cline, pi, Gemini: a few shapes each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..evidence import Evidence, Role, ended

if TYPE_CHECKING:
    from ..evidence import Event

__all__ = (
    "agent_event",
    "answer_json",
    "completion",
    "gemini_json",
    "pi_message",
    "pi_retry_end",
    "run_result",
    "session_error",
)


def session_error(event: Event) -> Evidence | None:
    """Copilot, opencode's server: the end of a run."""
    properties = event.get("properties")
    if isinstance(properties, Mapping):
        return ended(event, properties.get("error"), "opencode session.error event", "opencode")
    return ended(event, event.get("data"), "copilot session.error event", "copilot")


def agent_event(event: Event) -> Evidence | None:
    """Cline wraps everything that happens."""
    inner = event.get("event")
    if not isinstance(inner, Mapping):
        return None
    if inner.get("type") == "error":
        role = Role.PROGRESS if inner.get("recoverable") is True else Role.FAILED
        error = inner.get("error")
        error = {"message": error.get("message")} if isinstance(error, Mapping) else error
        return ended(event, error, "cline error event", "cline", role)
    is_work = str(inner.get("type")).startswith(("content", "tool", "iteration_end"))
    return Evidence(role=Role.WORK if is_work else Role.OTHER, agent="cline")


def run_result(event: Event) -> Evidence | None:
    """Cline: the last word."""
    if event.get("finishReason") == "error":
        return ended(event, {"message": event.get("text")}, "cline run_result event", "cline")
    return Evidence(role=Role.DONE, agent="cline", source="cline run_result event")


def pi_message(event: Event) -> Evidence | None:
    """pi: a message that stopped by an error carries it."""
    messages = event.get("messages")
    message = event.get(
        "message", messages[-1] if isinstance(messages, list) and messages else None
    )
    if not isinstance(message, Mapping):
        return None
    if message.get("stopReason") == "error":
        return ended(
            event, {"message": message.get("errorMessage")}, "pi message", "pi", Role.FAILED
        )
    is_work = message.get("role") == "assistant" and "stopReason" in message
    return Evidence(role=Role.WORK, agent="pi") if is_work else Evidence(role=Role.OTHER)


def pi_retry_end(event: Event) -> Evidence | None:
    """pi: its own retries are over."""
    if event.get("success") is True:
        return Evidence(role=Role.WORK, agent="pi")
    return ended(
        event, {"message": event.get("finalError")}, "pi auto_retry_end event", "pi", Role.FAILED
    )


def gemini_json(event: Event) -> Evidence | None:
    """Gemini with `-o json`: one object, on stderr if it failed."""
    if "session_id" not in event or not ("response" in event or "error" in event):
        return None
    if event.get("error"):
        return ended(event, event["error"], "gemini json output", "gemini")
    return Evidence(role=Role.DONE, source="gemini json output", agent="gemini")


def completion(event: Event) -> Evidence | None:
    """An answer of the Chat Completions API; gateways put their errors where the answer belongs."""
    choices = event.get("choices")
    if event.get("object") != "chat.completion" or not isinstance(choices, list):
        return None
    first = choices[0] if choices and isinstance(choices[0], Mapping) else {}
    message = first.get("message")
    said = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(said, str) and said.startswith(("Error: API ", "API Error: ")):
        return ended(event, said, "answer of a gateway", "", Role.FAILED)
    return Evidence(role=Role.DONE, source="json output")


def answer_json(event: Event) -> Evidence | None:
    """Any program that prints its answer as one object."""
    answer = event.get("response")
    if isinstance(answer, str):
        return Evidence(role=Role.DONE, source="json output")
    if set(event) == {"result"} and isinstance(event["result"], str):
        return Evidence(role=Role.DONE, text=event["result"], source="json output")
    return None
