"""Error bodies of APIs, whatever wraps them.

Vendors agree on little, but all of them say what happened under one of a few keys: ``message``,
``type``, ``code``, ``status``. The body is flattened to one message, and nested bodies (quoted as
strings by proxies and SDKs) are opened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .evidence import Evidence, Role

__all__ = ("body_evidence", "error_text", "opened", "status_of")

_MESSAGE_KEYS = (
    "message", "error_description", "detail", "msg", "errorMessage", "error_message", "reason",
    "title", "text", "raw", "finalError", "description",
)  # fmt: skip
_CODE_KEYS = (
    "code",
    "type",
    "status",
    "errorType",
    "error_code",
    "name",
    "__type",
    "Code",
    "errorClass",
)
_NESTED_KEYS = (
    "error",
    "errors",
    "details",
    "metadata",
    "data",
    "response",
    "cause",
    "responseBody",
    "quota_limit",
)
_STATUS_KEYS = (
    "status",
    "statusCode",
    "status_code",
    "code",
    "api_error_status",
    "httpStatusCode",
    "error_status",
)
_DEPTH = 6
_LONGEST = 4000


def body_evidence(data: Mapping[str, Any]) -> Evidence | None:
    """What an error body says, or None if `data` is no error body."""
    is_error = (
        bool(data.get("error"))
        or (isinstance(data.get("errors"), list) and bool(data["errors"]))
        or data.get("type") == "error"
        or data.get("status") == "error"
        or (
            "message" in data
            and ("documentation_url" in data or "__type" in data or "code" in data)
        )
        or "RetryInfo" in str(data.get("@type", ""))
    )
    if not is_error:
        return None
    text, code = error_text(data)
    return Evidence(
        role=Role.FAILED,
        text=text,
        source="error body",
        status=status_of(data),
        code=code,
        fields=data,
        is_event=False,
    )


def error_text(data: object) -> tuple[str, str]:
    """All that an error object says, on one line, with the vendor's word for it."""
    parts: list[str] = []
    codes: list[str] = []
    _collect(data, parts, codes, 0)
    unique = list(dict.fromkeys(part for part in parts if part))
    return " ".join(unique)[:_LONGEST], (codes[0] if codes else "")


def _collect(data: object, parts: list[str], codes: list[str], depth: int) -> None:
    if depth > _DEPTH or len(parts) > 64:  # a body, not a data dump
        return
    if isinstance(data, str):
        inner = opened(data)
        if inner is None:
            parts.append(data[:_LONGEST])
        else:
            _collect(inner, parts, codes, depth + 1)
    elif isinstance(data, list):
        for one in data[:16]:
            _collect(one, parts, codes, depth + 1)
    elif isinstance(data, Mapping):
        _collect_object(data, parts, codes, depth + 1)


def _collect_object(
    data: Mapping[str, Any], parts: list[str], codes: list[str], depth: int
) -> None:
    for key in _MESSAGE_KEYS:
        if isinstance(data.get(key), str):
            _collect(data[key], parts, codes, depth)
    for key in _CODE_KEYS:
        value = data.get(key)
        if isinstance(value, str) and value not in ("error", "Error", "result"):
            parts.append(f"[{value[:120]}]")
            if not value.isdigit():
                codes.append(value[:120])
    for key in _NESTED_KEYS:
        value = data.get(key)
        if isinstance(value, Mapping | list) or (isinstance(value, str) and key != "data"):
            _collect(value, parts, codes, depth)


def opened(text: str) -> object:
    """The JSON that was quoted as `text`, or None."""
    inner = text.strip()
    if not inner.startswith(("{", "[{")):
        return None
    try:
        return json.loads(inner, strict=False)
    except (ValueError, RecursionError):
        return None


def status_of(data: object, depth: int = 0) -> int | None:
    """The HTTP status that an error object carries, the outermost first."""
    if isinstance(data, list):
        data = data[0] if data else None
    if not isinstance(data, Mapping) or depth > _DEPTH:
        return None
    for key in _STATUS_KEYS:
        value = data.get(key)
        if isinstance(value, str) and value.isdigit():
            value = int(value[:4])
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
    for key in _NESTED_KEYS:
        found = status_of(data.get(key), depth + 1)
        if found is not None:
            return found
    return None
