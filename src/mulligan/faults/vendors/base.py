"""What the APIs of all vendors share: requests, replies, refusals before they get a format.

A request is read into `ClientRequest`, an answer is made from `VendorReply`, a refusal from
`RefusalReason`. `Vendor` is what each API implements.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..limits import LimitCheck

__all__ = (
    "ClientRequest",
    "Json",
    "JsonResponse",
    "RefusalReason",
    "ResponseStream",
    "Tool",
    "ToolCall",
    "Vendor",
    "VendorReply",
    "a_list",
    "a_table",
    "count_tokens",
    "sse",
    "status_words",
)

# Bodies of other people's APIs: their shape is what this package is about.
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that the client offers."""

    name: str
    is_free: bool = False  # it takes text instead of arguments (OpenAI's custom tools)
    schema: Json = field(default_factory=dict)  # of its arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool that the model asks for."""

    name: str
    arguments: Json
    text: str | None = None  # for a tool that takes text instead of arguments

    @property
    def written(self) -> str:
        return json.dumps(self.arguments) if self.text is None else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """What the client asked for."""

    model: str = ""
    is_stream: bool = False
    is_count: bool = False  # it only wants its tokens counted
    tools: tuple[Tool, ...] = ()
    tokens: int = 0  # estimated
    wants_usage: bool = False  # Chat Completions only: a last chunk with the usage
    wants_array: bool = False  # Gemini only: the stream as one JSON array instead of events


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorReply:
    """A good answer, before a vendor formats it."""

    id: str  # sixteen hexadecimal digits; vendors put their own prefix before it
    text: str = ""  # what the model says; empty for an empty answer
    call: ToolCall | None = None  # the tool it asks for instead
    now: float = 0.0  # in epoch seconds

    @property
    def tokens(self) -> int:
        return count_tokens(self.text + (self.call.written if self.call else ""))

    @property
    def pieces(self) -> tuple[str, ...]:
        """The text as a stream delivers it: two words at a time."""
        return tuple(re.findall(r"\s*\S+(?:\s+\S+)?\s*", self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseStream:
    """A streamed answer."""

    frames: tuple[bytes, ...]  # one event each
    middle: int  # how many of them make half an answer: some text, no end
    content_type: str = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalReason:
    """Why a request is refused, before a vendor formats it."""

    name: str  # a name of the menu: `429`, `plan`, `context` …; `limit` for our own limits
    id: str  # sixteen hexadecimal digits
    now: float  # in epoch seconds
    asked: ClientRequest
    status: int | None = None  # the status it is named by; None where the vendor chooses
    message: str | None = None  # None for the vendor's
    code: str | None = None  # None for the vendor's
    retry_after: str | None = None  # as the script wrote it; Gemini repeats it in the body
    is_retriable: bool | None = None  # in a problem document; None to go by the status
    reset_at: float | None = None  # when a plan's limit ends
    lasts: float = 0.0  # length of the plan's window in seconds
    admission: LimitCheck | None = None  # what our own limits said
    is_first: bool = False  # no event of the stream comes before the error

    @property
    def wait(self) -> float | None:
        """Seconds that the client should stay away; None where nothing is known."""
        if self.reset_at is not None:
            return max(0.0, self.reset_at - self.now)
        if self.admission is not None:
            return self.admission.retry_after
        if self.retry_after is not None and re.fullmatch(r"[0-9]+(\.[0-9]+)?", self.retry_after):
            return float(self.retry_after)
        return None

    @property
    def refused_by(self) -> str:
        """``requests`` or ``tokens``: which of our own limits refused it."""
        return self.admission.refused_by if self.admission else "requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonResponse:
    """A whole answer in the format of its API."""

    body: Json
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


class Vendor(Protocol):
    """One API: reads requests and formats answers."""

    name: str

    def refusal(self, reason: RefusalReason) -> JsonResponse: ...

    def headers(self, id_: str, admission: LimitCheck | None, now: float) -> dict[str, str]:
        """What every answer carries: the request id, and what is left of the limits."""
        ...

    def read(self, method: str, path: str, query: str, body: Json) -> ClientRequest | None:
        """What the client asked for; None if the path is not this API's."""
        ...

    def page(self, asked: ClientRequest, reply: VendorReply) -> Json:
        """The whole answer, where the client did not ask for a stream."""
        ...

    def count(self, asked: ClientRequest) -> Json:
        """The answer to a question for the number of tokens."""
        ...

    def stream(self, asked: ClientRequest, reply: VendorReply) -> ResponseStream: ...

    def error_event(self, reason: RefusalReason) -> bytes:
        """An error inside a stream that began well."""
        ...


def a_table(value: object) -> Json:
    """`value` if it is an object; clients send what they like."""
    return value if isinstance(value, dict) else {}


def a_list(value: object) -> list[Any]:
    """`value` if it is an array; clients send what they like."""
    return value if isinstance(value, list) else []


def status_words(known: dict[int, str], status: int) -> str:
    """What an error of this status says."""
    return known.get(status, f"The request failed with status {status}")


def count_tokens(text: str) -> int:
    """An estimate: four characters a token, the vendors' rule of thumb."""
    return (len(text) + 3) // 4


def sse(data: Json, event: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()
