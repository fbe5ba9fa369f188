"""Responses that are kept under a key: which ones, in what form, and how they are sent again.

Pure. A failure that passes by itself is not kept, or it would answer every repeat (E-F6). A
response that cannot be kept whole leaves a remark: it was executed and is not executed again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .. import events

if TYPE_CHECKING:
    from .messages import Message

__all__ = (
    "REPLAYED",
    "is_event_stream",
    "is_in_doubt",
    "is_kept",
    "kept",
    "messages",
    "not_kept",
    "why_not_kept",
)

Pairs = Iterable[tuple[bytes, bytes]]

# On every response that comes from the store, as Stripe has it; the draft names no header.
REPLAYED = (b"idempotent-replayed", b"true")

# Of a request that was understood, answers that do not change by waiting.
_KEPT = frozenset({400, 404, 422})

# A cookie is for the session that asked, and the others for the connection; RFC 9110, 7.6.1.
_OWN = frozenset(
    {b"set-cookie", b"set-cookie2", b"connection", b"keep-alive", b"transfer-encoding", b"date"}
    | {b"upgrade", b"proxy-connection", b"te"}
)


def is_kept(status: int) -> bool:
    """Whether a response of this status answers later requests with the same key."""
    return 200 <= status < 400 or status in _KEPT


def is_in_doubt(status: int) -> bool:
    """Whether a request with this status, which is not kept, may have been applied."""
    return status >= 500 or status == 408


def is_event_stream(headers: Pairs) -> bool:
    """Whether the response is a stream of server-sent events, which is never kept."""
    kinds = (value for name, value in headers if name.lower() == b"content-type")
    return any(events.is_event_stream(kind.decode("latin-1")) for kind in kinds)


def kept(start: Message, body: bytes, trailers: Pairs = ()) -> str:
    """A response as JSON, without what belongs to one session or connection."""
    return json.dumps(
        {
            "status": start["status"],
            "headers": _readable(start.get("headers", ())),
            "body": base64.b64encode(body).decode("ascii"),
            "trailers": _readable(trailers),
        },
        separators=(",", ":"),
    )


def not_kept(why: str) -> str:
    """The remark that a request was executed, and why its response is not here."""
    return json.dumps({"not_kept": why})


def why_not_kept(value: str) -> str:
    """Why the response is not in `value`; empty if it is."""
    why = json.loads(value).get("not_kept", "")
    return why if isinstance(why, str) else ""


def messages(value: str, *, has_trailers: bool) -> list[Message]:
    """The messages that send a kept response again, marked as replayed.

    `has_trailers` is whether the server can send trailers.
    """
    found = json.loads(value)
    trailers = _raw(found["trailers"]) if has_trailers else []
    headers = [*_raw(found["headers"]), REPLAYED]
    sent: list[Message] = [
        {"type": "http.response.start", "status": found["status"], "headers": headers},
        {"type": "http.response.body", "body": base64.b64decode(found["body"])},
    ]
    if trailers:
        sent[0]["trailers"] = True
        sent.append({"type": "http.response.trailers", "headers": trailers})
    return sent


def _readable(headers: Pairs) -> list[list[str]]:
    return [
        [name.decode("latin-1"), value.decode("latin-1")]
        for name, value in headers
        if name.lower() not in _OWN
    ]


def _raw(headers: list[list[str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
