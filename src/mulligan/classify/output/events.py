"""Events of agent programs, by their shape.

A shape is read by what it looks like, never by which program is expected: wrappers, forks,
transcripts carry each other's events. What the model or a tool said is WORK or OTHER, so a banner
that stands in it is not evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .bodies import body_evidence, error_text, status_of
from .evidence import Evidence, Role

__all__ = ("event_evidence",)

_Event = Mapping[str, Any]


def event_evidence(data: object) -> list[Evidence]:
    """What a JSON value says: one piece of evidence for each event in it."""
    if isinstance(data, list):
        return [one for part in data[-512:] for one in event_evidence(part)]
    if not isinstance(data, Mapping):
        return []
    kind = data.get("type")
    if isinstance(kind, str) and (reader := _READERS.get(kind)) is not None:
        found = reader(data)
        return [] if found is None else [found]
    found = _by_shape(data)
    return [] if found is None else [found]


def _result(event: _Event) -> Evidence | None:
    """The last word: Claude, Qwen, Cursor (`is_error`), Gemini (`status`), Copilot (`exitCode`)."""
    error, subtype = event.get("error"), str(event.get("subtype") or "")
    says_error = event.get("is_error") is True or event.get("status") == "error"
    if not says_error and "exitCode" in event:
        code = event["exitCode"]
        return Evidence(
            role=Role.DONE if code == 0 else Role.OTHER,
            source="copilot result event",
            agent="copilot",
        )
    if not says_error and not (subtype.startswith("error") and event.get("is_error") is not False):
        text = event.get("result")
        return Evidence(
            role=Role.DONE, text=text if isinstance(text, str) else "", source="result event"
        )
    parts = [event.get("result"), event.get("errors"), error]
    text = " ".join(error_text(part)[0] for part in parts if part)
    code = str(event.get("api_error_type") or "") or error_text(error)[1]
    reason = " ".join(
        f"[{one}]"
        for one in (subtype, event.get("terminal_reason"))
        if one not in ("", None, "success")
    )
    is_gemini = "status" in event
    return Evidence(
        role=Role.ENDED,
        text=f"{text} {reason}".strip(),
        source="gemini result event" if is_gemini else "result event",
        agent="gemini" if is_gemini else "claude" if "api_error_status" in event else "",
        status=status_of({"status": event.get("api_error_status")}) or status_of(error),
        code=code,
        fields=event,
    )


def _assistant(event: _Event) -> Evidence | None:
    """A message of the model, or what Claude puts in its place when the API failed."""
    failed = (
        event.get("error") or event.get("isApiErrorMessage") or event.get("is_api_error_message")
    )
    message = event.get("message")
    if not failed:
        return Evidence(role=Role.WORK)
    content = message.get("content") if isinstance(message, Mapping) else message
    text, _ = error_text(content)
    return Evidence(
        role=Role.FAILED,
        text=text,
        source="claude assistant error",
        agent="claude",
        status=status_of({"status": event.get("api_error_status")}),
        code=str(event.get("api_error_type") or event.get("error") or ""),
        fields=event,
    )


def _rate_limit_event(event: _Event) -> Evidence | None:
    info = event.get("rate_limit_info")
    info = info if isinstance(info, Mapping) else event
    # Paid overage lets the run go on; the work that follows then clears this.
    if info.get("status") != "rejected":
        return Evidence(role=Role.OTHER)
    window = str(info.get("rateLimitType") or "usage").replace("_", " ")
    return Evidence(
        role=Role.FAILED,
        text=f"{window} limit reached",
        source="claude rate_limit_event",
        agent="claude",
        fields={"resetsAt": info.get("resetsAt")},
        is_limit=True,
    )


def _system(event: _Event) -> Evidence | None:
    subtype = event.get("subtype")
    if subtype == "api_retry":
        return Evidence(
            role=Role.PROGRESS,
            text=str(event.get("error") or "the API failed"),
            source="claude api_retry event",
            agent="claude",
            status=status_of(event),
        )
    return Evidence(
        role=Role.OTHER, agent="claude" if subtype == "init" and "mcp_servers" in event else ""
    )


def _error(event: _Event) -> Evidence | None:
    """`error` of Codex, opencode, Cline, Goose and bare APIs: progress as often as not."""
    body = body_evidence(event)
    if body is None:
        return None
    is_opencode = "sessionID" in event
    return Evidence(
        role=Role.FAILED,
        text=body.text,
        source="opencode error event" if is_opencode else "error event",
        agent="opencode" if is_opencode else "",
        status=body.status,
        code=body.code,
        fields=event,
        # {"type":"error","error":{…}} is also a plain body of an API.
        is_event=is_opencode or "ts" in event or not isinstance(event.get("error"), Mapping),
    )


def _ended(
    event: _Event, inner: object, source: str, agent: str, role: Role = Role.ENDED
) -> Evidence:
    text, code = error_text(inner)
    return Evidence(
        role=role,
        text=text,
        source=source,
        agent=agent,
        status=status_of(inner),
        code=code,
        fields=event,
    )


def _turn_failed(event: _Event) -> Evidence | None:
    return _ended(event, event.get("error"), "codex turn.failed event", "codex")


def _response_failed(event: _Event) -> Evidence | None:
    response = event.get("response")
    inner = response.get("error") if isinstance(response, Mapping) else event.get("error")
    return _ended(event, inner, "response.failed event", "", Role.FAILED)


def _item(event: _Event) -> Evidence | None:
    item = event.get("item")
    # An item of type error is a warning of Codex's own ("metadata not found").
    is_work = isinstance(item, Mapping) and item.get("type") != "error"
    return Evidence(role=Role.WORK if is_work else Role.OTHER, agent="codex")


def _session_error(event: _Event) -> Evidence | None:
    return _ended(event, event.get("data"), "copilot session.error event", "copilot")


def _agent_event(event: _Event) -> Evidence | None:
    """Cline wraps everything that happens."""
    inner = event.get("event")
    if not isinstance(inner, Mapping):
        return None
    if inner.get("type") == "error":
        role = Role.PROGRESS if inner.get("recoverable") is True else Role.FAILED
        error = inner.get("error")
        error = {"message": error.get("message")} if isinstance(error, Mapping) else error
        return _ended(event, error, "cline error event", "cline", role)
    is_work = str(inner.get("type")).startswith(("content", "tool", "iteration_end"))
    return Evidence(role=Role.WORK if is_work else Role.OTHER, agent="cline")


def _run_result(event: _Event) -> Evidence | None:
    if event.get("finishReason") == "error":
        return _ended(event, {"message": event.get("text")}, "cline run_result event", "cline")
    return Evidence(role=Role.DONE, agent="cline", source="cline run_result event")


def _pi_message(event: _Event) -> Evidence | None:
    """pi: a message that stopped by an error carries it."""
    messages = event.get("messages")
    message = event.get(
        "message", messages[-1] if isinstance(messages, list) and messages else None
    )
    if not isinstance(message, Mapping):
        return None
    if message.get("stopReason") == "error":
        return _ended(
            event, {"message": message.get("errorMessage")}, "pi message", "pi", Role.FAILED
        )
    is_work = message.get("role") == "assistant" and "stopReason" in message
    return Evidence(role=Role.WORK, agent="pi") if is_work else Evidence(role=Role.OTHER)


def _pi_retry_end(event: _Event) -> Evidence | None:
    if event.get("success") is True:
        return Evidence(role=Role.WORK, agent="pi")
    return _ended(
        event, {"message": event.get("finalError")}, "pi auto_retry_end event", "pi", Role.FAILED
    )


def _progress(source: str, agent: str) -> Callable[[_Event], Evidence]:
    def read(event: _Event) -> Evidence:
        inner = event.get("data") if isinstance(event.get("data"), Mapping) else event
        text, code = error_text(inner)
        return Evidence(
            role=Role.PROGRESS,
            text=text,
            source=source,
            agent=agent,
            status=status_of(inner),
            code=code,
        )

    return read


def _role(role: Role, agent: str = "") -> Callable[[_Event], Evidence]:
    return lambda _: Evidence(role=role, agent=agent)


def _app_server(event: _Event) -> Evidence | None:
    """Codex app-server: a notification whose parameters carry the error."""
    params = event.get("params")
    if not isinstance(params, Mapping) or not isinstance(params.get("error"), Mapping):
        return None
    role = Role.PROGRESS if params.get("willRetry") is True else Role.FAILED
    return _ended(event, params["error"], "codex app-server error", "codex", role)


def _conversation(event: _Event) -> Evidence | None:
    """A message of a transcript: what was said, not what happened."""
    if event.get("role") in ("user", "tool") or "tool_result" in event or "tool_use_id" in event:
        return Evidence(role=Role.OTHER)
    if event.get("role") == "assistant" and not event.get("error"):
        return Evidence(role=Role.WORK)
    return None


def _gemini_json(event: _Event) -> Evidence | None:
    if "session_id" not in event or not ("response" in event or "error" in event):
        return None
    if event.get("error"):
        return _ended(event, event["error"], "gemini json output", "gemini")
    return Evidence(role=Role.DONE, source="gemini json output", agent="gemini")


def _continue_json(event: _Event) -> Evidence | None:
    if event.get("status") == "error" and isinstance(event.get("message"), str):
        return _ended(event, event["message"], "json output", "")
    return None


def _answer_json(event: _Event) -> Evidence | None:
    if isinstance(event.get("response"), str):
        return Evidence(role=Role.DONE, source="json output")
    return None


def _unknown_event(event: _Event) -> Evidence | None:
    kind = str(event.get("type") or "")
    if "retry" in kind:
        return _progress(f"{kind[:40]} event", "")(event)
    work = ("assistant", "tool", "message", "text", "content", "step", "thinking")
    return Evidence(role=Role.WORK if kind.startswith(work) else Role.OTHER)


# Values without a type that is known: the first shape that fits.
_SHAPES: tuple[Callable[[_Event], Evidence | None], ...] = (
    _app_server,
    _conversation,
    _gemini_json,
    _continue_json,
    body_evidence,
    _answer_json,
    _unknown_event,
)


def _by_shape(event: _Event) -> Evidence | None:
    return next((found for shape in _SHAPES if (found := shape(event)) is not None), None)


_READERS: dict[str, Callable[[_Event], Evidence | None]] = {
    "result": _result,
    "assistant": _assistant,
    "user": _role(Role.OTHER),
    "system": _system,
    "rate_limit_event": _rate_limit_event,
    "error": _error,
    "thread.started": _role(Role.OTHER, "codex"),
    "turn.failed": _turn_failed,
    "turn.completed": _role(Role.DONE, "codex"),
    "item.completed": _item,
    "item.started": _item,
    "response.failed": _response_failed,
    "response.completed": _role(Role.WORK),
    "session.error": _session_error,
    "assistant.turn_retry": _progress("copilot turn_retry event", "copilot"),
    "model.call_failure": _progress("copilot call_failure event", "copilot"),
    "assistant.message": _role(Role.WORK, "copilot"),
    "assistant.idle": _role(Role.OTHER, "copilot"),
    "assistant.turn_start": _role(Role.OTHER, "copilot"),
    "assistant.turn_end": _role(Role.OTHER, "copilot"),
    "agent_event": _agent_event,
    "run_result": _run_result,
    "auto_retry_start": _progress("pi auto_retry_start event", "pi"),
    "auto_retry_end": _pi_retry_end,
    "message_end": _pi_message,
    "turn_end": _pi_message,
    "agent_end": _pi_message,
    "step_start": _role(Role.OTHER, "opencode"),
    "complete": _role(Role.DONE, "goose"),
}
