"""An answer's body, read for what it says about a failure.

Vendors agree on little: the message may stand under ``error.message``, ``message``, ``detail``
or in a JSON text inside another, the codes under ``type``, ``code``, ``status``, ``__type`` or
``reason``. All of them are collected here, so that the rules behind look at one shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ("NOTHING", "Body", "read_body")

# A body larger than this is a document, not an error; its beginning is looked at as text.
_MOST_JSON = 262_144
_MOST_TEXT = 4_096
_MOST_CODES = 12


@dataclass(frozen=True, slots=True)
class Body:
    """What a body says.

    Args:
        data: The parsed JSON, or None where there was none.
        message: The vendor's own sentence, raw.
        codes: The vendor's words for it in lower case, the most specific ones last.
        code: The most telling of them, as it was written.
        status: A status that the body names itself.
        quotas: Names of the quotas that were exceeded, where the vendor (Google) names them.
        is_error: Whether the body presents itself as an error, whatever the HTTP status.
    """

    data: Any = None
    message: str = ""
    codes: tuple[str, ...] = ()
    code: str | None = None
    status: int | None = None
    is_error: bool = False
    quotas: tuple[str, ...] = ()


NOTHING = Body()


def read_body(body: object) -> Body:
    """`body` (bytes, text, parsed JSON or None) as far as it can be read."""
    if body is None:
        return NOTHING
    if isinstance(body, bytes | bytearray | memoryview):
        body = bytes(body[: _MOST_JSON + 1]).decode("utf-8", "replace")
    if isinstance(body, str):
        text = body
        body = _parsed(text)
        if body is None:
            return Body(message=_words(text)) if text.strip() else NOTHING
    if isinstance(body, list):
        # Gemini's stream wraps its error in a list.
        body = body[0] if body and isinstance(body[0], dict) else None
    if not isinstance(body, dict):
        return NOTHING
    reader = _Reader()
    reader.read(body, depth=0)
    codes = tuple(dict.fromkeys(code.lower() for code in reader.codes))
    return Body(
        data=body,
        message=reader.message[:_MOST_TEXT],
        codes=codes,
        code=reader.codes[-1][:200] if reader.codes else None,
        status=reader.status,
        is_error=_is_error(body),
        quotas=tuple(reader.quotas),
    )


class _Reader:
    """Collects codes, message and status from an error object, outer before inner."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.message = ""
        self.status: int | None = None
        self.quotas: list[str] = []

    def read(self, data: dict[Any, Any], *, depth: int) -> None:
        if depth > 4:
            return
        for key in ("type", "__type", "status", "error_code", "errorCode", "reason", "code"):
            self._code(key, data.get(key))
        for key in ("title", "detail", "error_description", "Message", "msg", "message"):
            self._message(data.get(key), depth)
        for key in ("error", "Error", "response", "extensions", "metadata", "fault", "details"):
            inner = data.get(key)
            if isinstance(inner, dict):
                self.read(inner, depth=depth + 1)
        for key in ("details", "errors"):
            several = data.get(key)
            for one in several[:8] if isinstance(several, list) else ():
                if isinstance(one, dict):
                    self._detail(one, depth)
        # {"error": "ratelimited"} is a code, {"error": "Please slow down"} a sentence.
        self._code("code", data.get("error"))
        if not self.message:
            self._message(data.get("error"), depth)
        self._message(data.get("raw"), depth)  # OpenRouter: the upstream's own words

    def _code(self, key: str, value: object) -> None:
        if isinstance(value, bool) or len(self.codes) >= _MOST_CODES:
            return
        if isinstance(value, int):
            self._status(value)
        elif isinstance(value, str) and 0 < len(value) <= 200:
            if value.isascii() and value.isdigit():
                self._status(int(value[:6]))
                if len(value) == 3:
                    return
            if key == "__type":
                value = value.rpartition("#")[2]
            if " " not in value and value not in ("error", "failed"):
                # A problem type is an address; its last part is the word that matters.
                word = value.rstrip("/").rpartition("/")[2] if "://" in value else value
                if word and word != "about:blank":
                    self.codes.append(word)

    def _status(self, value: int) -> None:
        if 400 <= value <= 599:
            self.status = value

    def _message(self, value: object, depth: int) -> None:
        if not isinstance(value, str) or not value.strip():
            return
        inner = _parsed(value) if depth < 3 else None
        if isinstance(inner, dict):
            self.read(inner, depth=depth + 1)
        else:
            self.message = value

    def _detail(self, one: dict[Any, Any], depth: int) -> None:
        for key in ("type", "code", "reason"):
            if not str(one.get(key, "")).startswith("type.googleapis"):
                self._code(key, one.get(key))
        violations = one.get("violations")
        if isinstance(violations, list):
            ids = (broken.get("quotaId") for broken in violations[:16] if isinstance(broken, dict))
            self.quotas.extend(name for name in ids if isinstance(name, str))
        extensions = one.get("extensions")
        if isinstance(extensions, dict):
            self._code("code", extensions.get("code"))
        if not self.message:
            self._message(one.get("message"), depth + 1)


def _parsed(text: str) -> Any:
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith(("event:", "data:")):
        start = _event_data(start)
    if not start.startswith(("{", "[")) or len(start) > _MOST_JSON:
        return None
    import json

    try:
        return json.loads(start)
    except (ValueError, RecursionError):
        return None


def _event_data(text: str) -> str:
    """The data of the first event that speaks of an error, in a stream that was cut off by it."""
    for line in text[:_MOST_JSON].splitlines():
        if line.startswith("data:") and '"error"' in line:
            return line[5:].strip()
    return ""


def _words(text: str) -> str:
    """A body that is no JSON: plain words, or the title of a page."""
    text = text[:_MOST_TEXT].strip()
    if text.startswith("<"):
        lowered = text.lower()
        start, end = lowered.find("<title>"), lowered.find("</title>")
        return text[start + 7 : end].strip() if 0 <= start < end else ""
    return text


def _is_error(data: dict[Any, Any]) -> bool:
    error = data.get("error")
    if isinstance(error, dict):
        return any(error.get(key) for key in ("message", "type", "code", "status"))
    if isinstance(error, str) and error:
        return data.get("ok") is False or data.get("success") is False
    if data.get("type") in ("error", "response.failed"):
        return True
    errors = data.get("errors")  # GraphQL: no data, only errors
    return (
        isinstance(errors, list)
        and bool(errors)
        and isinstance(errors[0], dict)
        and "message" in errors[0]
        and not data.get("data")
    )
