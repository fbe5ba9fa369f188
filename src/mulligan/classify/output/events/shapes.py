"""Events of agent programs in JSON, recognised by their shape.

The program that is expected does not matter: wrappers, forks and transcripts carry each other's
events. What the model or a tool said is WORK or OTHER, so a banner inside it is not evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..error_bodies import body_evidence
from ..evidence import Event, Evidence, Role, ended, progress, role_only
from .claude import assistant, hook, rate_limit_event, result, system
from .codex import app_server, event_msg, item, response_failed, turn_failed
from .others import (
    agent_event,
    answer_json,
    completion,
    gemini_json,
    pi_message,
    pi_retry_end,
    run_result,
    session_error,
)

__all__ = ("event_evidence",)

# An array of events, not a data structure.
_DEEPEST = 8


def event_evidence(data: object, depth: int = 0) -> list[Evidence]:
    """What a JSON value says: one piece of evidence for each event in it."""
    if isinstance(data, list) and depth < _DEEPEST:
        return [one for part in data[-512:] for one in event_evidence(part, depth + 1)]
    if not isinstance(data, dict):
        return []
    kind = data.get("type")
    if isinstance(kind, str) and (reader := _READERS.get(kind)) is not None:
        found = reader(data)
        return [] if found is None else [found]
    found = _by_shape(data)
    return [] if found is None else [found]


def _error(event: Event) -> Evidence | None:
    """`error` of Codex, opencode, Cline, Goose and bare APIs: progress as often as not."""
    body = body_evidence(event)
    if body is None:
        return None
    is_opencode = "sessionID" in event
    return replace(
        body,
        source="opencode error event" if is_opencode else "error event",
        agent="opencode" if is_opencode else "",
        fields=event,
        # {"type":"error","error":{…}} is also a plain body of an API.
        is_event=is_opencode or "ts" in event or not isinstance(event.get("error"), Mapping),
    )


# What a tool answered is not how the run ended.
_TOOL_KEYS = ("tool_result", "tool_use_id", "tool", "tool_name", "toolName")


def _conversation(event: Event) -> Evidence | None:
    """A message of a transcript: what was said, not what happened."""
    if event.get("role") in ("user", "tool") or any(key in event for key in _TOOL_KEYS):
        return Evidence(role=Role.OTHER)
    if event.get("stopReason") == "error":
        return pi_message({"message": event})
    if event.get("role") == "assistant" and not event.get("error"):
        return Evidence(role=Role.WORK)
    return None


# run.failed, task_error: events with these names are about the run
_FAILED = re.compile(
    r"(?:(?:agent|run|turn|task|session|response|retry|retries|job|workflow|step)[._-])?"
    r"(?:failed|failure|error|aborted|exhausted)"
)


_FINISHED = re.compile(r"(?:agent|run|task|session|job|workflow)[._-](?:completed|succeeded)")


def _unknown_event(event: Event) -> Evidence | None:
    kind = str(event.get("type") or event.get("event") or "")
    if _FAILED.fullmatch(kind) and "level" not in event:
        return ended(event, event, f"{kind[:40]} event", "", Role.FAILED)
    if _FINISHED.fullmatch(kind) and not event.get("error"):
        return Evidence(role=Role.DONE, source=f"{kind[:40]} event")
    if "retry" in kind:
        return progress(f"{kind[:40]} event", "")(event)
    work = ("assistant", "tool", "message", "text", "content", "step", "thinking")
    return Evidence(role=Role.WORK if kind.startswith(work) else Role.OTHER)


def _window(event: Event) -> Evidence | None:
    """What stands in a `rate_limit_event`, by itself."""
    if "rateLimitType" not in event and "rate_limit_info" not in event:
        return None
    found = rate_limit_event(event)
    return found if found is not None and found.is_limit else None


def _message(event: Event) -> Evidence | None:
    """`message` of pi; of others, whatever its shape says."""
    inner = event.get("message")
    is_pis = isinstance(inner, Mapping) and "stopReason" in inner
    return pi_message(event) if is_pis else _by_shape(event)


def _bare_result(event: Event) -> Evidence | None:
    """A `result` event that lost its type on the way."""
    is_result = event.get("is_error") is True and isinstance(event.get("result"), str)
    return result(event) if is_result and "type" not in event else None


def _wrapped(event: Event) -> Evidence | None:
    """An event of Codex 0.2x, in an envelope with its id."""
    inner = event.get("msg")
    if not isinstance(inner, dict) or "type" not in inner:
        return None
    return next(iter(event_evidence(inner)), None)


# Values without a type that is known: the first shape that fits.
_SHAPES: tuple[Callable[[Event], Evidence | None], ...] = (
    _window,
    _wrapped,
    app_server,
    _bare_result,
    hook,
    _conversation,
    gemini_json,
    body_evidence,
    completion,
    answer_json,
    _unknown_event,
)


def _by_shape(event: Event) -> Evidence | None:
    return next((found for shape in _SHAPES if (found := shape(event)) is not None), None)


_READERS: dict[str, Callable[[Event], Evidence | None]] = {
    "result": result,
    "assistant": assistant,
    "user": role_only(Role.OTHER),
    "system": system,
    "rate_limit_event": rate_limit_event,
    "error": _error,
    "thread.started": role_only(Role.OTHER, "codex"),
    "turn.failed": turn_failed,
    "turn.completed": role_only(Role.DONE, "codex"),
    "item.completed": item,
    "item.started": item,
    "event_msg": event_msg,
    "response.failed": response_failed,
    "response.completed": role_only(Role.WORK),
    "response.done": response_failed,
    "session.error": session_error,
    "assistant.turn_retry": progress("copilot turn_retry event", "copilot"),
    "model.call_failure": progress("copilot call_failure event", "copilot"),
    "assistant.message": role_only(Role.WORK, "copilot"),
    "assistant.idle": role_only(Role.OTHER, "copilot"),
    "assistant.turn_start": role_only(Role.OTHER, "copilot"),
    "assistant.turn_end": role_only(Role.OTHER, "copilot"),
    "agent_event": agent_event,
    "run_result": run_result,
    "auto_retry_start": progress("pi auto_retry_start event", "pi"),
    "auto_retry_end": pi_retry_end,
    "message": _message,
    "message_end": pi_message,
    "turn_end": pi_message,
    "agent_end": pi_message,
    "step_start": role_only(Role.OTHER, "opencode"),
    "complete": role_only(Role.DONE, "goose"),
}
