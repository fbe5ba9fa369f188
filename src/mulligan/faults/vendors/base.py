"""What a vendor module provides: answers, streams, errors.

A request is read into `ClientRequest`, an answer is made from `VendorReply`, a refusal from
`RefusalReason`. These are common to the four APIs, which differ only in format.
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
    "Page",
    "Refusal",
    "RefusalReason",
    "ResponseStream",
    "Tool",
    "ToolCall",
    "Vendor",
    "VendorErrors",
    "VendorReply",
    "a_list",
    "a_table",
    "count_tokens",
    "sse",
)

# Bodies of other people's APIs: their shape is what this package is about.
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that the client offers.

    Args:
        name: As the client calls it.
        schema: What it takes.
        is_free: It takes text instead of arguments (OpenAI's custom tools).
    """

    name: str
    is_free: bool = False
    schema: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool that the model asks for.

    Args:
        name: As the client calls it.
        arguments: What it is given.
        text: What a tool that takes text is given instead.
    """

    name: str
    arguments: Json
    text: str | None = None

    @property
    def written(self) -> str:
        return json.dumps(self.arguments) if self.text is None else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """What the client asked for.

    Args:
        model: The model's name as the client wrote it.
        is_stream: Whether it wants events.
        is_count: It only wants its tokens counted.
        tools: What it offers.
        tokens: About how many tokens the request has.
        wants_usage: Chat Completions only: a last chunk with the usage.
        wants_array: Gemini only: the stream as one JSON array instead of events.
    """

    model: str = ""
    is_stream: bool = False
    is_count: bool = False
    tools: tuple[Tool, ...] = ()
    tokens: int = 0
    wants_usage: bool = False
    wants_array: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorReply:
    """A good answer, before it is spelled.

    Args:
        id: Sixteen hexadecimal digits; vendors put their own prefix before it.
        text: What the model says; empty for an empty answer.
        call: The tool it asks for instead.
        now: When, in epoch seconds.
    """

    id: str
    text: str = ""
    call: ToolCall | None = None
    now: float = 0.0

    @property
    def tokens(self) -> int:
        return count_tokens(self.text + (self.call.written if self.call else ""))

    @property
    def pieces(self) -> tuple[str, ...]:
        """The text as a stream delivers it: two words at a time."""
        return tuple(re.findall(r"\s*\S+(?:\s+\S+)?\s*", self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseStream:
    """A streamed answer: what goes into each chunk.

    Args:
        frames: Bytes of the events, one event each.
        middle: How many of them make half an answer: some text, no end.
        content_type: As the vendor says it.
    """

    frames: tuple[bytes, ...]
    middle: int
    content_type: str = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalReason:
    """Why a request is refused, before it is spelled.

    Args:
        name: A name of the menu: ``429``, ``plan``, ``context`` …; ``limit`` for our own limits.
        id: Sixteen hexadecimal digits for the request id.
        now: When, in epoch seconds.
        status: The status it is named by; None where the vendor chooses.
        message: The words; None for the vendor's.
        code: The vendor's code; None for the vendor's.
        retry_after: The header, where the script names one: Gemini repeats it in the body.
        is_retriable: What a problem document says about it; None to go by the status.
        reset_at: When a plan's limit ends.
        lasts: How long the plan's window is.
        admission: What our own limits said.
        is_first: No event of the stream comes before the error.
        asked: The request.
    """

    name: str
    id: str
    now: float
    asked: ClientRequest
    status: int | None = None
    message: str | None = None
    code: str | None = None
    retry_after: str | None = None
    is_retriable: bool | None = None
    reset_at: float | None = None
    lasts: float = 0.0
    admission: LimitCheck | None = None
    is_first: bool = False

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal, spelled."""

    status: int
    body: Json
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole answer that is not a refusal."""

    body: Json
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class VendorErrors(Protocol):
    """An API that can refuse a request in its own format."""

    name: str

    def refusal(self, reason: RefusalReason) -> Refusal:
        """The refusal: status, headers, body."""
        ...

    def headers(self, id_: str, admission: LimitCheck | None, now: float) -> dict[str, str]:
        """What every answer carries: the request id, and what is left of the limits."""
        ...


class Vendor(VendorErrors, Protocol):
    """One API, spelled."""

    def read(self, method: str, path: str, query: str, body: Json) -> ClientRequest | None:
        """What the client asked for; None if the path is not this API's."""
        ...

    def page(self, asked: ClientRequest, reply: VendorReply) -> Json:
        """The whole answer."""
        ...

    def count(self, asked: ClientRequest) -> Json:
        """The answer to a question for the number of tokens."""
        ...

    def stream(self, asked: ClientRequest, reply: VendorReply) -> ResponseStream:
        """The answer as events."""
        ...

    def error_event(self, reason: RefusalReason) -> bytes:
        """An error inside a stream that began well."""
        ...


def a_table(value: object) -> Json:
    """`value` if it is an object; clients send what they like."""
    return value if isinstance(value, dict) else {}


def a_list(value: object) -> list[Any]:
    """`value` if it is an array; clients send what they like."""
    return value if isinstance(value, list) else []


def count_tokens(text: str) -> int:
    """About how many tokens that is: four characters each, as vendors' rules of thumb have it."""
    return (len(text) + 3) // 4


def sse(data: Json, event: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()
