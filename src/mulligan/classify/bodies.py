"""Error bodies: messages, codes, a status, failing fields, whatever the vendor.

Vendors agree on little: the message may stand under ``error.message``, ``message``, ``detail``
or in a JSON text inside another, the codes under ``type``, ``code``, ``status``, ``__type`` or
``reason``. All of them are collected here, for answers of a server and for bodies that a program
printed, so that the rules behind look at one shape.
"""

from __future__ import annotations

from typing import Any

from ..core.record import record
from ..core.redaction import MASK, mask, presentable
from .vocabulary import CODES

__all__ = (
    "NESTED_KEYS",
    "NOTHING",
    "Body",
    "failing_fields",
    "is_error_type",
    "is_tool_error",
    "opened",
    "read_body",
    "stated_retriable",
    "status_in",
    "with_lower_keys",
)

# A body larger than this is a document, not an error; its beginning is looked at as text.
_MOST_JSON = 262_144
_MOST_TEXT = 4_096
_MOST_ITEMS = 16
_MOST_FOUND = 64
_DEEPEST = 6

# Keys under which vendors put what they say, the most telling one first.
_MESSAGE_KEYS = (
    *("message", "msg", "error_description", "errorMessage", "error_message", "finalError"),
    *("detail", "title", "text", "statusText", "errorDescription", "description"),
    *("stdout", "stderr", "output"),
)
# The most specific one last.
_CODE_KEYS = (
    *("name", "errorClass", "errorType", "type", "__type", "status", "error_code", "errorCode"),
    *("reason", "blockReason", "code"),
)
_STATUS_KEYS = (
    *("status", "statusCode", "status_code", "code", "api_error_status", "httpStatusCode"),
    *("error_status", "error_code", "errorCode"),
)
# What stands inside of these says more than what stands around it ...
_INNER_KEYS = ("error", "response", "extensions", "metadata", "fault", "details", "errors")
# ... and what stands inside of these says less.
_SIDE_KEYS = (
    *("detail", "data", "$metadata", "cause", "responseBody", "quota_limit", "exception"),
    *("status_message", "status_details", "last_error", "promptFeedback", "body"),
)
_SIDE = frozenset((*_SIDE_KEYS, "isError", "result", "raw"))
NESTED_KEYS = (*_INNER_KEYS, *_SIDE_KEYS)
# Words that stand under the keys of codes and say nothing.
_NO_CODES = frozenset(("error", "Error", "failed", "result", "about:blank"))
_ERROR_ENDINGS = ("_error", "_exception", "Error", "Exception")


@record()
class Body:
    """What a body says.

    Args:
        data: The parsed JSON, or None where there was none.
        message: The vendor's own sentence, raw.
        words: All sentences of the body on one line, the outer ones first.
        codes: The vendor's words for it in lower case, the most specific ones last.
        code: The most specific of them, as it was written.
        status: A status that the body names itself; the outermost.
        quotas: Names of the quotas that were exceeded, where the vendor (Google) names them.
        is_error: Whether the body presents itself as an error, whatever the HTTP status.
    """

    data: Any = None
    message: str = ""
    words: str = ""
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
            said = _words(text)
            return Body(message=said, words=said) if said else NOTHING
    if not isinstance(body, dict | list) or not body:
        return NOTHING
    reader = _Reader()
    reader.read(body, 0, is_main=True)
    codes = (*reader.side_codes, *reader.codes)
    # Gemini's stream wraps its error in a list.
    data = body if isinstance(body, dict) else body[0] if isinstance(body[0], dict) else None
    return Body(
        data=data,
        message=reader.message[:_MOST_TEXT],
        words=" ".join(dict.fromkeys(reader.words))[:_MOST_TEXT],
        codes=tuple(dict.fromkeys(code.lower() for code in codes)),
        code=codes[-1] if codes else None,
        status=reader.status,
        is_error=data is not None and _is_error(data),
        quotas=tuple(reader.quotas),
    )


class _Reader:
    """Collects words, codes and the status of an error object, outer before inner."""

    def __init__(self) -> None:
        self.message = ""
        self.words: list[str] = []
        self.codes: list[str] = []
        self.side_codes: list[str] = []
        self.status: int | None = None
        self.quotas: list[str] = []

    def read(self, data: object, depth: int, *, is_main: bool, is_side: bool = False) -> None:
        """Collect from `data`.

        Args:
            data: JSON, or a text in which JSON may be quoted.
            depth: How deep it stands.
            is_main: Whether its message says more than the one that is known already.
            is_side: Whether its codes say less than those that are known already.
        """
        if depth > _DEEPEST or len(self.words) + len(self.codes) > _MOST_FOUND:
            return
        if isinstance(data, str):
            inner = opened(data)
            if inner is not None:
                self.read(inner, depth + 1, is_main=is_main, is_side=is_side)
            elif text := data.strip():
                self.words.append(text[:_MOST_TEXT])
                if is_main or not self.message:
                    self.message = data
        elif isinstance(data, list):
            for one in data[:_MOST_ITEMS]:
                self.read(one, depth + 1, is_main=False, is_side=is_side)
        elif isinstance(data, dict):
            self._object(with_lower_keys(data), depth + 1, is_main=is_main, is_side=is_side)

    def _object(self, data: dict[Any, Any], depth: int, *, is_main: bool, is_side: bool) -> None:
        if self.status is None:
            self.status = _own_status(data)
        for key in _CODE_KEYS:
            if key in data:
                self._code(key, data[key], is_side=is_side)
        is_first = is_main or not self.message
        for key in _MESSAGE_KEYS:
            if key in data and isinstance(value := data[key], str) and value.strip():
                self.read(value, depth, is_main=is_first, is_side=is_side)
                is_first = False
        if "violations" in data:
            self.quotas.extend(_quota_names(data["violations"]))
        for key in _INNER_KEYS:
            if key in data:
                self._inner(key, data[key], depth, is_main=is_main, is_side=is_side)
        if not _SIDE.isdisjoint(data):
            self._side(data, depth)

    def _side(self, data: dict[Any, Any], depth: int) -> None:
        failed = ("result", "content") if data.get("isError") is True or is_tool_error(data) else ()
        for key in (*_SIDE_KEYS, *failed):
            value = data.get(key)
            is_text = isinstance(value, str) and key not in ("data", "detail")
            if is_text or isinstance(value, dict | list):
                self.read(value, depth, is_main=False, is_side=True)
        self.read(data.get("raw"), depth, is_main=True)  # OpenRouter: the upstream's own words

    def _inner(self, key: str, value: object, depth: int, *, is_main: bool, is_side: bool) -> None:
        if isinstance(value, dict):
            self.read(value, depth, is_main=is_main, is_side=is_side)
        elif isinstance(value, list):
            self.read(value, depth, is_main=False, is_side=is_side)
        elif isinstance(value, str) and key == "error" and opened(value) is None:
            # {"error": "ratelimited"} is a code, {"error": "Please slow down"} a sentence.
            self._code("code", value, is_side=is_side)
            self.read(value, depth, is_main=False)
        elif isinstance(value, str):
            self.read(value, depth, is_main=False, is_side=is_side)

    def _code(self, key: str, value: object, *, is_side: bool) -> None:
        if not isinstance(value, str) or not 0 < len(value) <= 200 or value in _NO_CODES:
            return
        if " " in value:
            if key != "code":
                self.words.append(value)
            return
        if len(value) == 3 and value.isascii() and value.isdigit():
            return  # a status
        if key in ("name", "errorClass") and not is_error_type(value):
            return
        if value.startswith("type.googleapis"):
            return
        # A problem type is an address; its last part is the word that matters.
        word = value.rstrip("/").rpartition("/")[2] if "://" in value else value
        if word := word.rpartition("#")[2]:
            (self.side_codes if is_side else self.codes).append(word)


def _quota_names(violations: object) -> list[str]:
    """The names of exceeded quotas in the details of Google's errors."""
    several = violations[:_MOST_ITEMS] if isinstance(violations, list) else ()
    names = [one.get("quotaId") for one in several if isinstance(one, dict)]
    return [name for name in names if isinstance(name, str)]


def with_lower_keys(data: dict[Any, Any]) -> dict[Any, Any]:
    """`data` with its keys as most write them: ``Error`` is ``error``."""
    for key in data:
        # Objects that Python printed may have keys that are not strings.
        if not isinstance(key, str) or key[:1].isupper():
            break
    else:
        return data
    lower = {f"{name[:1].lower()}{name[1:]}": data[key] for key in data if (name := str(key))}
    return {**lower, **data}


def status_in(data: object, depth: int = 0) -> int | None:
    """The HTTP status that an error object carries, the outermost first."""
    if isinstance(data, list):
        data = data[0] if data else None
    if not isinstance(data, dict) or depth > _DEEPEST:
        return None
    data = with_lower_keys(data)
    found = _own_status(data)
    if found is None:
        for key in NESTED_KEYS:
            if key in data and (found := status_in(data[key], depth + 1)) is not None:
                return found
    return found


def _own_status(data: dict[Any, Any]) -> int | None:
    for key in _STATUS_KEYS:
        if key not in data:
            continue
        value = data[key]
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value[:4])
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return value
    return None


def is_error_type(name: str) -> bool:
    """Whether `name` is what vendors call a class of errors: ``APIError``, ``overloaded_error``."""
    is_word = 3 < len(name) <= 80 and name.isidentifier()
    return (is_word and name.endswith(_ERROR_ENDINGS)) or name.lower() in CODES


def is_tool_error(data: dict[Any, Any]) -> bool:
    """Whether a server of MCP answers that its tool failed."""
    answer = data.get("result")
    return isinstance(answer, dict) and answer.get("isError") is True


def opened(text: str) -> Any:
    """The JSON that was quoted as `text`, or None."""
    inner = text.strip()
    return _loaded(inner) if inner.startswith(("{", "[{")) else None


def _parsed(text: str) -> Any:
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith(("event:", "data:")):
        start = _event_data(start)
    return _loaded(start) if start.startswith(("{", "[")) else None


def _loaded(text: str) -> Any:
    if len(text) > _MOST_JSON:
        return None
    import json

    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _event_data(text: str) -> str:
    """The data of the first event that speaks of an error, in a stream that was cut off by it."""
    for line in text[:_MOST_JSON].splitlines():
        if line.startswith("data:") and '"error"' in line:
            return line[5:].strip()
    return ""


def _words(text: str) -> str:
    """A body that is not JSON: its words, or the title of a page."""
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


_MOST_FIELDS = 20
_MOST_WORDS = 200


def stated_retriable(data: Any) -> bool | None:
    """The boolean ``is_retriable`` of a problem, or of the error inside it; else None."""
    if not isinstance(data, dict):
        return None
    error = data.get("error")
    for place in (data, error, data.get("extensions")):
        if isinstance(place, dict):
            stated = place.get("is_retriable")
            if isinstance(stated, bool):
                return stated
    return None


def failing_fields(data: Any) -> tuple[tuple[str, str], ...]:
    """The failing fields of a rejected request, each with what is wrong about it (R-C12).

    - RFC 9457: ``errors`` of ``{"detail", "pointer"}``; RFC 7807: ``invalid-params``
    - pydantic, FastAPI: ``detail`` of ``{"loc", "msg"}``
    - Rails, Laravel, Django: ``errors`` as ``{"email": ["is taken"]}``
    - GitHub: ``errors`` of ``{"field", "code"}``; Google: ``fieldViolations``
    - OpenAI: ``param`` beside the message
    """
    if not isinstance(data, dict):
        return ()
    found: list[tuple[str, str]] = []
    error = data.get("error")
    for place in (data, error):
        if isinstance(place, dict):
            for key in ("errors", "detail", "details", "invalid-params", "invalid_params"):
                _collect(place.get(key), found)
    if not found and isinstance(error, dict):
        parameter = error.get("param")
        if isinstance(parameter, str):
            _add(found, parameter, error.get("message"))
    return tuple(dict.fromkeys(found))


def _collect(errors: Any, found: list[tuple[str, str]]) -> None:
    if isinstance(errors, dict):
        for name, wrong in list(errors.items())[:_MOST_FIELDS]:
            words = wrong[:3] if isinstance(wrong, list) else [wrong]
            text = "; ".join(word for word in words if isinstance(word, str))
            if isinstance(name, str) and text:
                _add(found, name, text)
    elif isinstance(errors, list):
        for one in errors[:_MOST_FIELDS]:
            if isinstance(one, dict):
                _collect_one(one, found)


def _collect_one(one: dict[Any, Any], found: list[tuple[str, str]]) -> None:
    violations = one.get("fieldViolations") or one.get("field_violations")
    if isinstance(violations, list):
        _collect(violations, found)
        return
    name = next(
        (
            path
            for key in ("pointer", "loc", "field", "name", "path", "parameter", "param", "source")
            if (path := _path(one.get(key)))
        ),
        "",
    )
    words = next(
        (
            one[key]
            for key in ("detail", "msg", "message", "description", "reason", "code")
            if isinstance(one.get(key), str)
        ),
        "",
    )
    if name:
        _add(found, name, words)


def _path(place: object) -> str:
    """``#/user/age``, ``["body", "user", "age"]`` or ``user.age``, all as ``user.age``."""
    if isinstance(place, dict):
        place = place.get("pointer") or place.get("parameter")
    if isinstance(place, list):
        parts = [str(part) for part in place[:16] if isinstance(part, str | int)]
        return ".".join(parts[1:] if len(parts) > 1 and parts[0] == "body" else parts)
    if not isinstance(place, str):
        return ""
    if place.startswith(("#/", "/")):
        return ".".join(part for part in place.lstrip("#").split("/") if part)
    return place


def _add(found: list[tuple[str, str]], name: str, words: object) -> None:
    if len(found) < _MOST_FIELDS:
        said = words if isinstance(words, str) else ""
        # What is wrong with a password quotes the password.
        is_secret = mask(f"{name}=x") != f"{name}=x"
        said = MASK if is_secret and said else presentable(said, _MOST_WORDS)
        found.append((presentable(name, _MOST_WORDS), said))
