"""Deliveries: what is sent on a connection for one answer, and when.

A delivery is a list of acts: send these bytes, wait so long, fall silent, reset. It is made without
a socket, so every half-sent chunk can be tested as data; `connection` carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from .vendors.base import ResponseStream
from .wire import LAST_CHUNK, chunk, head, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .fault_names import Fault

__all__ = (
    "Act",
    "Close",
    "ClosePort",
    "DeliveryPause",
    "Hang",
    "PlannedResponse",
    "Reset",
    "Send",
    "deliver",
)

# Seconds for sent bytes to arrive before the reset discards them.
_SETTLE = 0.02
# Between the events of a drip that does not say.
_GAP = 0.1
# How long the port stays closed where the script does not say.
_REFUSE = 5.0
# RFC 9110: a 204 states no length, and a 304 not that of an empty body.
_LENGTHLESS = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class Send:
    """Send these bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class DeliveryPause:
    """Wait so many seconds, then go on."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hang:
    """Send nothing until the client disconnects, so many seconds at most."""

    seconds: float = inf


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection: the client sees ECONNRESET."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection: the client sees the end of the file."""


@dataclass(frozen=True, slots=True)
class ClosePort:
    """Close the port for so many seconds, and reset every connection."""

    seconds: float


Act = Send | DeliveryPause | Hang | Reset | Close | ClosePort


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedResponse:
    """The complete answer, before a fault is applied to it."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""  # unused where there is a stream
    stream: ResponseStream | None = None
    error_event: bytes = b""  # what a stream says when it fails in the middle
    error_body: bytes = b""  # what a whole answer says when it fails with status 200
    is_bodiless: bool = False  # the client asked for the head alone
    is_chunked: bool = True  # whether a stream comes in chunks; else its end is the connection's


def deliver(fault: Fault, answer: PlannedResponse, now: float) -> tuple[Act, ...]:
    """The acts that send this answer with this fault."""
    delay = fault.seconds("delay")
    acts = tuple(_acts(fault, answer, now))
    return (DeliveryPause(delay), *acts) if delay else acts


def _acts(fault: Fault, answer: PlannedResponse, now: float) -> Iterable[Act]:  # noqa: PLR0911 -- one return per case
    match fault.name:
        case "reset" | "lost":
            return (Reset(),)
        case "refuse":
            lasts = fault.seconds("for")
            return (ClosePort(_REFUSE if lasts is None else lasts), Reset())
        case "close":
            return (Close(),)
        case "hang":
            return (_hang(fault), Close())
        case _ if answer.status in _LENGTHLESS:
            return (Send(head(answer.status, answer.headers, now)),)
        case _ if answer.is_bodiless:
            return (Send(head(answer.status, {**answer.headers, "content-length": "0"}, now)),)
        case _ if answer.stream is not None:
            return _streamed(fault, answer, answer.stream, now)
        case _:
            return _whole(fault, answer, now)


def _hang(fault: Fault) -> Hang:
    lasts = fault.seconds("for")
    return Hang() if lasts is None else Hang(lasts)


def _gap(fault: Fault) -> DeliveryPause:
    lasts = fault.seconds("gap")
    return DeliveryPause(_GAP if lasts is None else lasts)


def _streamed(  # noqa: PLR0911 -- one return per case
    fault: Fault, answer: PlannedResponse, stream: ResponseStream, now: float
) -> Iterable[Act]:
    headers = {
        **answer.headers,
        "content-type": stream.content_type,
        "cache-control": "no-cache",
        **({"transfer-encoding": "chunked"} if answer.is_chunked else {"connection": "close"}),
    }
    framed = chunk if answer.is_chunked else bytes
    end = Send(LAST_CHUNK) if answer.is_chunked else Close()
    wanted = fault.count("after")
    some = stream.frames[: stream.middle if wanted is None else wanted]
    begun = [Send(head(answer.status, headers, now)), *(Send(framed(frame)) for frame in some)]
    match fault.name:
        case "stall":
            return [*begun, _hang(fault), Close()]
        case "drop":
            return [*begun, DeliveryPause(_SETTLE), Reset()]
        case "cut":
            missing = framed(stream.frames[min(len(some), len(stream.frames) - 1)])
            return [*begun, Send(missing[: len(missing) // 2]), Close()]
        case "truncate":
            return [*begun, end]
        case "error-event":
            # Before the last frame at the latest: after the end it is not read.
            return [*begun[: len(stream.frames)], Send(framed(answer.error_event)), end]
        case "badjson":
            return [begun[0], Send(framed(b'data: {"id": "half an ev\n\n')), end]
        case "drip":
            gap = _gap(fault)
            spread = [act for frame in stream.frames for act in (gap, Send(framed(frame)))]
            return [begun[0], *spread, end]
        case _:
            return [begun[0], *(Send(framed(frame)) for frame in stream.frames), end]


def _whole(fault: Fault, answer: PlannedResponse, now: float) -> Iterable[Act]:  # noqa: PLR0911 -- one return per case
    body = answer.body
    half = body[: len(body) // 2]
    full = whole(answer.status, answer.headers, body, now)
    begun = Send(full[: len(full) - len(body) + len(half)])
    match fault.name:
        case "stall":
            return [begun, _hang(fault), Close()]
        case "drop":
            return [begun, DeliveryPause(_SETTLE), Reset()]
        case "cut":
            return [begun, Close()]
        case "truncate":
            # No length is stated, so the end of the connection is a clean end of the body.
            return [
                Send(head(answer.status, {**answer.headers, "connection": "close"}, now) + half),
                Close(),
            ]
        case "error-event":
            return [Send(whole(answer.status, answer.headers, answer.error_body, now))]
        case "badjson":
            return [Send(whole(answer.status, answer.headers, half, now))]
        case "drip":
            gap = _gap(fault)
            opening = full[: len(full) - len(body)]
            step = max(1, len(body) // 8)
            parts = [body[place : place + step] for place in range(0, len(body), step)]
            return [Send(opening), *(act for part in parts for act in (gap, Send(part)))]
        case _:
            return [Send(full)]
