"""Events of Codex: only `turn.failed` is the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...bodies import status_in
from ..evidence import Evidence, Role, ended

if TYPE_CHECKING:
    from ..evidence import Event

__all__ = ("app_server", "event_msg", "item", "response_failed", "turn_failed")


def turn_failed(event: Event) -> Evidence | None:
    """The end of a run."""
    return ended(event, event.get("error"), "codex turn.failed event", "codex")


def response_failed(event: Event) -> Evidence | None:
    """An answer of the Responses API that failed in its stream."""
    response = event.get("response")
    if event.get("type") == "response.done" and status_in(response) is None:
        is_failed = isinstance(response, Mapping) and response.get("status") == "failed"
        if not is_failed:
            return Evidence(role=Role.WORK)
    inner = response if isinstance(response, Mapping) else event.get("error")
    if isinstance(inner, Mapping):
        inner = inner.get("error") or inner.get("status_details") or inner
    return ended(event, inner, "response.failed event", "", Role.FAILED)


def item(event: Event) -> Evidence | None:
    """A step of the run."""
    item = event.get("item")
    # An item of type error is a warning of Codex's own ("metadata not found").
    is_work = isinstance(item, Mapping) and item.get("type") != "error"
    return Evidence(role=Role.WORK if is_work else Role.OTHER, agent="codex")


def event_msg(event: Event) -> Evidence | None:
    """A line of the transcript that Codex keeps of a session."""
    payload = event.get("payload")
    kind = payload.get("type") if isinstance(payload, Mapping) else None
    is_failed = isinstance(payload, Mapping) and isinstance(payload.get("error"), Mapping)
    if kind == "error" or is_failed:
        return ended(event, payload, "codex transcript error", "codex", Role.FAILED)
    is_work = kind in ("agent_message", "exec_command_end", "patch_apply_end", "mcp_tool_call_end")
    role = Role.DONE if kind == "task_complete" else Role.WORK if is_work else Role.OTHER
    return Evidence(role=role, source="codex transcript", agent="codex")


def app_server(event: Event) -> Evidence | None:
    """Codex app-server: a notification whose parameters carry the error."""
    params = event.get("params")
    turn = params.get("turn") if isinstance(params, Mapping) else None
    params = turn if isinstance(turn, Mapping) and turn.get("error") else params
    if not isinstance(params, Mapping) or not isinstance(params.get("error"), Mapping):
        return None
    role = Role.PROGRESS if params.get("willRetry") is True else Role.FAILED
    return ended(event, params["error"], "codex app-server error", "codex", role)
