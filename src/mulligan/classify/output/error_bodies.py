"""Whether an object that a program printed is an error body.

A program prints many objects. One counts as an error body if its shape is that of an error;
what it says is then read by `bodies.read_body`, as in an answer.
"""

from __future__ import annotations

import re
from typing import Any

from ..bodies import (
    NESTED_KEYS,
    is_error_type,
    is_tool_error,
    opened,
    read_body,
    status_in,
    with_lower_keys,
)
from .evidence import Evidence, Role

__all__ = ("body_evidence",)

_PROBLEM_TYPE = re.compile(r"about:blank|https?://|urn:|/|[45]\d\d ")
_FEWEST_TEXTS = 3
# Beside a message, these make an object an error body.
_SIGNS = ("documentation_url", "__type", "code", "request_id", "stack")


def body_evidence(data: dict[Any, Any]) -> Evidence | None:
    """What an error body says, or None if `data` is something else."""
    data = with_lower_keys(data)
    says = any(isinstance(data.get(key), str) for key in ("message", "msg", "detail"))
    is_error = (
        bool(data.get("error"))
        or (isinstance(data.get("errors"), list) and bool(data["errors"]))
        or data.get("type") == "error"
        or (says and data.get("status") in ("error", "failed", "failure"))
        or (says and (status_in(data) is not None or any(key in data for key in _SIGNS)))
        or (set(data) == {"detail"} and says)
        or "RetryInfo" in str(data.get("@type", ""))
        or "$fault" in data  # an exception of the AWS SDK
        or isinstance(data.get("errorMessage"), str)
        or ((says or len(data) == 1) and any(_holds_error(data.get(key)) for key in NESTED_KEYS))
        or isinstance(data.get("exception"), dict)
        # an exchange that was kept: {"response": {"status": 403, "body": …}}
        or any(status_in(data.get(key)) is not None for key in ("response", "status_details"))
        or _holds_error(opened(str(data.get("status_message") or "")))
        # as opencode keeps it
        or (is_error_type(str(data.get("name", ""))) and isinstance(data.get("data"), dict))
        or _is_problem(data)
        or isinstance(data.get("last_error"), dict)
        or is_tool_error(data)
        or _blocked(data)
        # a response as its client printed it
        or (status_in(data) is not None and any(key in data for key in ("headers", "body")))
    )
    is_doubtful = not is_error and (
        (says and is_error_type(str(data.get("type", "")))) or (set(data) == {"message"} and says)
    )
    if not (is_error or is_doubtful) or _is_success(data) or _is_locale(data):
        return None
    more = {"fields": data, "is_event": False, "is_doubtful": is_doubtful}
    return Evidence.of(read_body(data), Role.FAILED, "error body", **more)


def _blocked(data: dict[Any, Any]) -> bool:
    """Whether Gemini answers with nothing but the reason why it does not."""
    feedback = data.get("promptFeedback")
    return isinstance(feedback, dict) and bool(feedback.get("blockReason"))


def _is_success(data: dict[Any, Any]) -> bool:
    """Whether `data` is an answer in an envelope that says itself that all went well."""
    if data.get("error") or data.get("errors"):
        return False
    code = data.get("code", data.get("status"))
    return data.get("success") is True or str(code).lower() in ("0", "200", "ok", "success")


def _is_locale(data: dict[Any, Any]) -> bool:
    """Whether `data` holds the texts of a program by their names, as files of a language do."""
    inner = data.get("error") or data.get("errors")
    if not isinstance(inner, dict) or len(inner) < _FEWEST_TEXTS:
        return False
    is_said = any(key in inner for key in ("message", "msg", "type", "code", "status", "detail"))
    return not is_said and all(isinstance(value, str) for value in inner.values())


def _is_problem(data: dict[Any, Any]) -> bool:
    """Whether `data` is an RFC 9457 problem: its title beside a status, or beside its type."""
    if not isinstance(data.get("title"), str):
        return False
    kind = data.get("type")
    is_typed = isinstance(kind, str) and _PROBLEM_TYPE.match(kind) is not None
    return status_in(data) is not None or (is_typed and isinstance(data.get("detail"), str))


def _holds_error(value: object) -> bool:
    error = value.get("error") if isinstance(value, dict) else None
    return isinstance(error, dict) or (isinstance(error, str) and bool(error))
