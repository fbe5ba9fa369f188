"""HTTP/1.1 parsing.

Reading is strict where lenience is exploitable (one length, no folded lines). Writing does not use
a library, because much of what this server sends is wrong on purpose.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from email.utils import formatdate
from functools import cached_property
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

if TYPE_CHECKING:
    from .vendors.base import Json

__all__ = (
    "BODY_LIMIT",
    "LAST_CHUNK",
    "BadRequest",
    "Head",
    "HttpRequest",
    "chunk",
    "head",
    "read_head",
    "whole",
)

LAST_CHUNK = b"0\r\n\r\n"
# Agents send whole conversations; packed, a few kilobytes could be gigabytes.
BODY_LIMIT = 64 * 1024 * 1024
_ABSOLUTE = re.compile(r"http://([^/?#]+)(/.*)?")
# What zlib calls them.
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
# Levels of a JSON body. Python's own limit is about a thousand calls, ours included.
_DEEPEST = 200


class BadRequest(Exception):
    """The client sent something that is not a valid request; `status` is the answer to it."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A request without its body."""

    method: str
    path: str  # without the query, decoded
    query: str  # not decoded
    headers: dict[str, str]  # by lower-case name
    length: int | None  # bytes of the body; None if it comes in chunks
    keeps_alive: bool  # whether the connection may be used again
    is_old: bool = False  # HTTP/1.0, which knows neither chunks nor 100 Continue


@dataclass(frozen=True, kw_only=True)  # no slots: a body is parsed once, and kept
class HttpRequest:
    """A whole request."""

    head: Head
    body: bytes = b""

    @property
    def hash(self) -> str:
        return sha256(self.body).hexdigest()[:16]

    @property
    def json(self) -> Json:
        """The body as a JSON object; empty where it is none."""
        return self._parsed or {}

    @property
    def is_readable(self) -> bool:
        """Whether the body is a JSON object, or there is none."""
        return self._parsed is not None or not self.body.strip()

    @cached_property
    def _parsed(self) -> Json | None:
        try:
            found = json.loads(self._plain(), parse_constant=_no_number)
        except (ValueError, RecursionError, zlib.error):
            return None
        return found if isinstance(found, dict) and not _is_deep(found) else None

    @property
    def key(self) -> str:
        """The API key, wherever this vendor's clients put it."""
        headers = self.head.headers
        bearer = headers.get("authorization", "").removeprefix("Bearer ").strip()
        asked = parse_qs(self.head.query).get("key", [""])[0]
        return headers.get("x-api-key") or headers.get("x-goog-api-key") or bearer or asked

    def _plain(self) -> bytes:
        bits = _WINDOWS.get(self.head.headers.get("content-encoding", ""))
        if bits is None:
            return self.body
        unpacking = zlib.decompressobj(bits)
        plain = unpacking.decompress(self.body, BODY_LIMIT)
        if not unpacking.eof and len(plain) == BODY_LIMIT:
            raise BadRequest(413, f"unpacked, the body has more than {BODY_LIMIT} bytes")
        return plain


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")  # Python accepts NaN, which JSON does not


def _is_deep(value: object) -> bool:
    """Whether it is nested too deeply to be written again."""
    layer = [value]
    for _ in range(_DEEPEST):
        layer = [
            child
            for each in layer
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not layer:
            return False
    return True


def read_head(data: bytes) -> Head:
    """The head that `data` writes, up to the blank line; raises BadRequest."""
    first, *lines = data.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] not in {"HTTP/1.1", "HTTP/1.0"} or not words[0].isalpha():
        raise BadRequest(400, f"not an HTTP/1.1 request line: {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in filter(None, lines):
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadRequest(400, f"not a header: {line[:80]!r}")
        name, value = name.lower(), value.strip()
        if headers.get(name, value) != value and name in {"content-length", "host"}:
            raise BadRequest(400, f"two different {name}")
        headers[name] = value
    target = words[1]
    if found := _ABSOLUTE.fullmatch(target):  # as to a proxy; RFC 9112: it wins over Host
        headers["host"], target = found[1], found[2] or "/"
    if not target.startswith("/") and (words[0], target) != ("OPTIONS", "*"):
        raise BadRequest(400, f"not a path: {target[:80]!r}")
    path, _, query = target.partition("?")
    wishes = {wish.strip() for wish in headers.get("connection", "").lower().split(",")}
    keeps = "close" not in wishes if words[2] == "HTTP/1.1" else "keep-alive" in wishes
    return Head(
        method=words[0].upper(),
        path=unquote(path),
        query=query,
        headers=headers,
        length=_length(headers),
        keeps_alive=keeps,
        is_old=words[2] == "HTTP/1.0",
    )


def _length(headers: dict[str, str]) -> int | None:
    if "transfer-encoding" in headers:
        if headers["transfer-encoding"].lower() != "chunked" or "content-length" in headers:
            raise BadRequest(400, "the body is chunked or has one length, not both")
        return None
    written = headers.get("content-length", "0")
    if not (written.isascii() and written.isdecimal()) or len(written) > 12:
        raise BadRequest(400, f"not a length: {written[:80]!r}")
    return int(written)


def head(status: int, headers: dict[str, str], now: float) -> bytes:
    """The head of an answer. Control characters are taken out of what a script put in."""
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Unknown"
    lines = [f"HTTP/1.1 {status} {phrase}", f"date: {formatdate(now, usegmt=True)}"]
    for name, value in headers.items():
        clean = "".join(letter for letter in value if letter.isprintable())
        lines.append(f"{name}: {clean}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def whole(status: int, headers: dict[str, str], body: bytes, now: float) -> bytes:
    """A whole answer with its length."""
    return head(status, {**headers, "content-length": str(len(body))}, now) + body


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked answer."""
    return b"%x\r\n%b\r\n" % (len(data), data)
