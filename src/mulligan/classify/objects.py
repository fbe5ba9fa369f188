"""Status, headers, body and code of exceptions and responses of unknown classes.

No method of the object is called, no stream is read, and a property that raises is survived. A body
is used only where the client has read it already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NamedTuple

from .bodies import NOTHING, Body, read_body
from .headers import fold
from .quotas import read_quotas

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .quotas import Quota

    Get = Callable[[object, str, None], Any]

__all__ = (
    "HttpEvidence",
    "careful_get",
    "evidence_in",
    "headers_of",
    "quotas_in_error",
    "response_evidence",
)


class HttpEvidence(NamedTuple):
    """What an object says about an HTTP answer.

    Args:
        status: The HTTP status, where there is one.
        headers: Folded headers.
        body: What the body says, an own code of the object included.
        text: The object's own sentence.
    """

    status: int | None
    headers: Mapping[str, str]
    body: Body
    text: str


_NO_HEADERS: Mapping[str, str] = {}
_JSON = (dict, list)


def careful_get(thing: object, name: str, default: None = None) -> Any:
    """`getattr` that survives properties which raise."""
    try:
        return getattr(thing, name, default)
    except Exception:  # noqa: BLE001 -- a property of a stranger; what it wanted to say is lost
        return default


def evidence_in(error: BaseException, *, is_known: bool) -> HttpEvidence:
    """What `error` carries. `is_known`: its package speaks HTTP, so a bare `code` is a status."""
    try:
        return _evidence(error, getattr, is_known)
    except Exception:  # noqa: BLE001 -- a property raised: once more, slowly, one by one
        return _evidence(error, careful_get, is_known)


def _evidence(error: BaseException, get: Get, is_known: bool) -> HttpEvidence:  # noqa: FBT001 -- private, and its callers say what it is
    response = get(error, "response", None)
    if isinstance(response, dict):
        return _botocore(response, error)
    headers = get(error, "headers", None)
    code = get(error, "code", None)
    body = get(error, "body", None)
    details = get(error, "details", None)
    status = _status_on(error, get)
    # `requests.Response` is falsy for a 4xx: never ask for its truth (E-G5).
    if response is not None:
        status = _status_on(response, get) if status is None else status
        headers = get(response, "headers", None) if headers is None else headers
    if is_known and (provider := get(error, "litellm_response_headers", None)) is not None:
        headers = provider  # litellm's own response is made up, and its headers are empty
    if details is not None and not isinstance(details, _JSON):
        details = None
    if status is None and (is_known or headers is not None or details is not None):
        status = status_of(code)
    if body is None:
        body = details
    said = NOTHING if body is None else read_body(body)
    if said is NOTHING and response is not None:
        said = read_body(body_of(response, get))
    kind = get(error, "type", None)
    if code is not None or kind is not None:
        said = _with_codes(said, code, kind)
    text = get(error, "message", None)
    folded = _NO_HEADERS if headers is None else _as_sent(fold(headers), response)
    return HttpEvidence(status, folded, said, text if isinstance(text, str) else "")


def _as_sent(headers: Mapping[str, str], response: object) -> Mapping[str, str]:
    """`headers` without the ``x-should-retry`` that a guarded client put on its last response.

    It tells an SDK to stop; what the server said about repeating is in the story.
    """
    if "x-should-retry" in headers and "__mulligan__" in (careful_get(response, "__dict__") or ()):
        return {name: value for name, value in headers.items() if name != "x-should-retry"}
    return headers


def _status_on(thing: object, get: Get) -> int | None:
    for name in ("status_code", "status"):
        value = get(thing, name, None)
        if value is not None and (status := status_of(value)) is not None:
            return status
    return None


def _botocore(response: dict[Any, Any], error: BaseException) -> HttpEvidence:
    """``{"Error": {"Code", "Message"}, "ResponseMetadata": {"HTTPStatusCode", "HTTPHeaders"}}``."""
    metadata = response.get("ResponseMetadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    said = response.get("Error")
    said = said if isinstance(said, dict) else {}
    body = read_body({"code": said.get("Code"), "message": said.get("Message")})
    status = status_of(metadata.get("HTTPStatusCode"))
    text = body.message or str(error)
    return HttpEvidence(status, fold(metadata.get("HTTPHeaders")), body, text)


def response_evidence(response: object) -> HttpEvidence | None:
    """What a response object of any HTTP client says; None for other objects."""
    status = _status_on(response, careful_get)
    headers = careful_get(response, "headers")
    if status is None or headers is None:
        return None
    reason = careful_get(response, "reason_phrase") or careful_get(response, "reason")
    said = read_body(body_of(response, careful_get))
    folded = _as_sent(fold(headers), response)
    return HttpEvidence(status, folded, said, reason if isinstance(reason, str) else "")


def status_of(value: object) -> int | None:
    """An HTTP status, as an int, an IntEnum or three digits."""
    if type(value) is int:
        return value if 100 <= value <= 599 else None
    if isinstance(value, int) and not isinstance(value, bool):
        return status_of(int(value))
    if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isdigit():
        return status_of(int(value))
    return None


# Where clients keep a body that they have read: httpx and requests, aiohttp and urllib3; then
# plain attributes. `content`, `text` and `data` as properties would read from the network.
_READ = ("_content", "_body")
_PLAIN = ("body", "text", "content", "data")


def body_of(response: object, get: Get) -> object:
    """The body of `response` where it has been read already; never reads it."""
    for name in _READ:
        body = get(response, name, None)
        if isinstance(body, bytes | str) and body:
            return body
    for name in _PLAIN:
        if _is_plain(response, name):
            body = get(response, name, None)
            if isinstance(body, bytes | str | dict | list) and body:
                return body
    return None


def _is_plain(thing: object, name: str) -> bool:
    """Whether `name` is stored on `thing`, so that looking at it runs no code."""
    if name in (careful_get(thing, "__dict__") or ()):
        return True
    return isinstance(getattr(type(thing), name, None), MemberDescriptorType)


def _with_codes(body: Body, *codes: object) -> Body:
    for code in codes:
        if isinstance(code, str) and 0 < len(code) <= 200:
            lowered = code.lower()
            if lowered not in body.codes and not lowered.isdigit():
                # What the body said is more specific than what the client made of it.
                known = (lowered, *body.codes)
                body = replace(body, codes=known, code=body.code or code)
    return body


def quotas_in_error(error: Any, /, *, now: float) -> Sequence[Quota]:
    """The quotas in the headers of an exception, found by its shape."""
    headers = evidence_in(error, is_known=False).headers
    return read_quotas(headers, now=now) if headers else ()


def headers_of(answer: Any, /) -> Any:
    """The headers of an answer, found by its shape; for ``Guard(observe=…)``.

    Responses of HTTP clients carry them, and what SDKs make of a response often has it behind
    ``response`` or ``_response``. None where there are none.
    """
    for thing in (answer, careful_get(answer, "response"), careful_get(answer, "_response")):
        headers = careful_get(thing, "headers")
        if headers is not None and (isinstance(headers, Mapping) or hasattr(headers, "items")):
            return headers
    return None
