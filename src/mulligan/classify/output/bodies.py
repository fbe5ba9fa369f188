"""Error bodies of APIs, whatever wraps them.

Vendors agree on little, but all of them say what happened under one of a few keys: ``message``,
``type``, ``code``, ``status``. The body is flattened to one message, and nested bodies (quoted as
strings by proxies and SDKs) are opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..vocabulary import CODES
from .evidence import Evidence, Role

__all__ = ("Words", "body_evidence", "error_words", "opened", "status_of")

_MESSAGE_KEYS = (
    "message", "error_description", "detail", "msg", "errorMessage", "error_message", "reason",
    "title", "text", "raw", "blockReason", "statusText",
    "stdout", "stderr", "output", "finalError", "description", "errorDescription",
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
    "detail",
    "details",
    "metadata",
    "data",
    "response",
    "$metadata",
    "cause",
    "responseBody",
    "quota_limit",
    "exception",
    "status_message",
    "status_details",
    "last_error",
    "promptFeedback",
    "body",
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
# {"type": "overloaded_error", "message": …}: the inside of a body, alone
_ERROR_TYPE = re.compile(r"\w{3,60}(?:_error|_exception|Error|Exception)")
_PROBLEM_TYPE = re.compile(r"about:blank|https?://|urn:|/|[45]\d\d ")
_DEPTH = 6
_LONGEST = 4000


# Beside a message, these make an object an error body.
_SIGNS = ("documentation_url", "__type", "code", "request_id", "stack")
# A body, not a data dump.
_MOST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What an error object says.

    Args:
        text: Its messages, on one line.
        aside: Its codes, for matching.
        code: The first code that is a word.
    """

    text: str = ""
    aside: str = ""
    code: str = ""


def body_evidence(data: Mapping[str, Any]) -> Evidence | None:
    """What an error body says, or None if `data` is no error body."""
    data = _plain(data)
    says = any(isinstance(data.get(key), str) for key in ("message", "msg", "detail"))
    is_error = (
        bool(data.get("error"))
        or (isinstance(data.get("errors"), list) and bool(data["errors"]))
        or data.get("type") == "error"
        or (says and data.get("status") in ("error", "failed", "failure"))
        or (says and (status_of(data) is not None or any(key in data for key in _SIGNS)))
        or (set(data) == {"detail"} and says)
        or "RetryInfo" in str(data.get("@type", ""))
        or "$fault" in data  # an exception of the AWS SDK
        or isinstance(data.get("errorMessage"), str)
        or ((says or len(data) == 1) and any(_holds_error(data.get(key)) for key in _NESTED_KEYS))
        or isinstance(data.get("exception"), Mapping)
        # an exchange that was kept: {"response": {"status": 403, "body": …}}
        or any(status_of(data.get(key)) is not None for key in ("response", "status_details"))
        or _holds_error(opened(str(data.get("status_message") or "")))
        # as opencode keeps it
        or (_is_error_type(str(data.get("name", ""))) and isinstance(data.get("data"), Mapping))
        or _is_problem(data)
        or isinstance(data.get("last_error"), Mapping)
        or _is_tool_error(data)
        or _blocked(data)
        # a response as its client printed it
        or (status_of(data) is not None and any(key in data for key in ("headers", "body")))
    )
    is_doubtful = not is_error and (
        (says and _is_error_type(str(data.get("type", "")))) or (set(data) == {"message"} and says)
    )
    if not (is_error or is_doubtful) or _is_success(data):
        return None
    words = error_words(data)
    return Evidence(
        role=Role.FAILED,
        text=words.text,
        aside=words.aside,
        source="error body",
        status=status_of(data),
        code=words.code,
        fields=data,
        is_event=False,
        is_doubtful=is_doubtful,
    )


def _is_tool_error(data: Mapping[str, Any]) -> bool:
    """Whether a server of MCP answers that its tool failed."""
    answer = data.get("result")
    return isinstance(answer, Mapping) and answer.get("isError") is True


def _blocked(data: Mapping[str, Any]) -> bool:
    """Whether Gemini answers with nothing but the reason why it does not."""
    feedback = data.get("promptFeedback")
    return isinstance(feedback, Mapping) and bool(feedback.get("blockReason"))


def _is_error_type(name: str) -> bool:
    return _ERROR_TYPE.fullmatch(name) is not None or name.lower() in CODES


def _is_success(data: Mapping[str, Any]) -> bool:
    """Whether `data` is an answer in an envelope that says itself that all went well."""
    if data.get("error") or data.get("errors"):
        return False
    code = data.get("code", data.get("status"))
    return data.get("success") is True or str(code).lower() in ("0", "200", "ok", "success")


def _is_problem(data: Mapping[str, Any]) -> bool:
    """Whether `data` is an RFC 9457 problem: its title beside a status, or beside its type."""
    if not isinstance(data.get("title"), str):
        return False
    kind = data.get("type")
    is_typed = isinstance(kind, str) and _PROBLEM_TYPE.match(kind) is not None
    return status_of(data) is not None or (is_typed and isinstance(data.get("detail"), str))


def _holds_error(value: object) -> bool:
    error = value.get("error") if isinstance(value, Mapping) else None
    return isinstance(error, Mapping) or (isinstance(error, str) and bool(error))


def error_words(data: object) -> Words:
    """All that an error object says."""
    collected = _Collected()
    collected.add(data, 0)
    said = " ".join(dict.fromkeys(one for one in collected.messages if one))[:_LONGEST]
    aside = " ".join(dict.fromkeys(f"[{code}]" for code in collected.codes))[:_LONGEST]
    code = next((code for code in collected.codes if not code.isdigit()), "")
    return Words(text=said, aside=aside, code=code)


class _Collected:
    """Messages and codes while an object is being read."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.codes: list[str] = []

    def add(self, data: object, depth: int) -> None:
        if depth > _DEPTH or len(self.messages) + len(self.codes) > _MOST:
            return
        if isinstance(data, str):
            inner = opened(data)
            if inner is None:
                self.messages.append(data[:_LONGEST])
            else:
                self.add(inner, depth + 1)
        elif isinstance(data, list):
            for one in data[:16]:
                self.add(one, depth + 1)
        elif isinstance(data, Mapping):
            self._add_object(data, depth + 1)

    def _add_object(self, data: Mapping[str, Any], depth: int) -> None:
        data = _plain(data)
        for key in _MESSAGE_KEYS:
            if isinstance(data.get(key), str):
                self.add(data[key], depth)
        for key in _CODE_KEYS:
            value = data.get(key)
            if isinstance(value, str) and value not in ("error", "Error", "result"):
                self.codes.append(value[:120])
        nested = ("result", "content", *_NESTED_KEYS) if _says_error(data) else _NESTED_KEYS
        for key in nested:
            value = data.get(key)
            if isinstance(value, Mapping | list) or (isinstance(value, str) and key != "data"):
                self.add(value, depth)


def _says_error(data: Mapping[str, Any]) -> bool:
    return data.get("isError") is True or _is_tool_error(data)


def _plain(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """`data` with its keys as most write them: ``Error`` is ``error``."""
    # What Python printed may have keys that are no strings.
    names = {str(key): value for key, value in data.items()}
    if not any(name[:1].isupper() for name in names):
        return data
    return {**{f"{name[:1].lower()}{name[1:]}": value for name, value in names.items()}, **data}


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
    data = _plain(data)
    for key in _STATUS_KEYS:
        value = data.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value[:4])
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
    for key in _NESTED_KEYS:
        found = status_of(data.get(key), depth + 1)
        if found is not None:
            return found
    return None
