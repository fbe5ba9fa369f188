"""Events of Claude Code, shared in part by Qwen, Cursor, Gemini: `result` is the last word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...bodies import read_body, status_in
from ..evidence import Evidence, Role, ended

if TYPE_CHECKING:
    from ..evidence import Event

__all__ = ("assistant", "hook", "rate_limit_event", "result", "system")

# [API Error: 401 …] at the end of what should be an answer; with words behind the box it is one
_BOX = "[API Error: "
_WORDS_BEHIND = re.compile(r"\]\s{1,8}\w")


def result(event: Event) -> Evidence | None:
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
        content = event.get("content")
        if isinstance(content, Mapping) and content.get("success") is False:
            return ended(event, content, "result event", "")
        text = event.get("result")
        text = text if isinstance(text, str) else ""
        if (words := _handed_over(text, event)) is not None:
            return ended(event, words, "result event", "")
        # error_max_turns without is_error: neither a failure nor a success
        role = Role.OTHER if subtype.startswith("error") else Role.DONE
        is_written = bool(_output_tokens(event))
        return Evidence(role=role, text=text, source="result event", is_written=is_written)
    said = [read_body(part) for part in (event.get("result"), event.get("errors"), error) if part]
    reasons = [subtype, str(event.get("terminal_reason") or "")]
    codes = [code for one in said for code in one.codes]
    codes += [one for one in reasons if one not in ("", "success")]
    is_gemini = "status" in event
    return Evidence(
        role=Role.ENDED,
        text=" ".join(one.words for one in said),
        codes=tuple(codes),
        source="gemini result event" if is_gemini else "result event",
        agent="gemini" if is_gemini else "claude" if "api_error_status" in event else "",
        status=status_in({"status": event.get("api_error_status")}) or status_in(error),
        code=str(event.get("api_error_type") or "") or read_body(error).code or "",
        fields=event,
    )


def _handed_over(text: str, event: Event) -> str | None:
    """The API's error that Qwen (0.15) and Claude (2.0) handed over as the answer of a success.

    A model that talks about such an error says more than that, and has written some tokens.
    """
    tokens = _output_tokens(event)
    if tokens:
        return None
    bare = text.rstrip()
    start = bare.rfind(_BOX)
    boxed = bare[start + len(_BOX) : -1] if start >= 0 and bare.endswith("]") else ""
    if boxed and not _WORDS_BEHIND.search(boxed):
        return boxed if start == 0 or tokens == 0 else None
    return text if tokens == 0 and text.startswith("API Error: ") else None


def _output_tokens(event: Event) -> object:
    usage = event.get("usage")
    return usage.get("output_tokens") if isinstance(usage, Mapping) else None


def assistant(event: Event) -> Evidence | None:
    """A message of the model, or what Claude puts in its place when the API failed."""
    failed = (
        event.get("error") or event.get("isApiErrorMessage") or event.get("is_api_error_message")
    )
    message = event.get("message")
    # No model wrote it: it stands where an answer should be.
    is_made = isinstance(message, Mapping) and message.get("model") == "<synthetic>"
    if not (failed or is_made):
        return Evidence(role=Role.WORK)
    content = message.get("content") if isinstance(message, Mapping) else message
    text = read_body(content).words
    if not failed and text.startswith("No response requested"):
        return Evidence(role=Role.OTHER)
    return Evidence(
        role=Role.FAILED,
        text=text,
        source="claude assistant error",
        agent="claude",
        status=status_in({"status": event.get("api_error_status")}),
        code=str(event.get("api_error_type") or event.get("error") or ""),
        fields=event,
    )


def hook(event: Event) -> Evidence | None:
    """What Claude tells a hook when it stops."""
    said = event.get("last_assistant_message")
    if not isinstance(said, str) or "hook_event_name" not in event:
        return None
    if event["hook_event_name"] == "StopFailure":
        return Evidence(
            role=Role.ENDED,
            text=said,
            source="claude StopFailure hook",
            agent="claude",
            code=str(event.get("error") or ""),
        )
    return Evidence(role=Role.DONE, text=said, source="claude Stop hook", agent="claude")


def rate_limit_event(event: Event) -> Evidence | None:
    """A plan's window: sent on healthy runs too, so only `rejected` counts."""
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


def system(event: Event) -> Evidence | None:
    """What the program says about itself: `api_retry` is progress."""
    subtype = event.get("subtype")
    if subtype == "api_retry":
        return Evidence(
            role=Role.PROGRESS,
            text=str(event.get("error") or "the API failed"),
            source="claude api_retry event",
            agent="claude",
            status=status_in(event),
        )
    return Evidence(
        role=Role.OTHER, agent="claude" if subtype == "init" and "mcp_servers" in event else ""
    )
