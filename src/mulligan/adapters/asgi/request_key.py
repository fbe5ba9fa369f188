"""Reads the Idempotency-Key header and makes the fingerprint of a request's payload.

Pure. The header is a structured field (RFC 8941), an Item whose value is a String: ``"a-b"`` in
quotes. Most clients of today send the key bare, so ``"a-b"`` and ``a-b`` are one key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from hashlib import sha256
from typing import Any, NoReturn

from ...errors import SettingError
from ...once.fingerprint import canonical, digest

__all__ = ("BadKey", "Headers", "header_of", "key_of", "payload_fingerprint", "request_place")

Headers = Iterable[tuple[bytes, bytes]]

# Longer than any key that is made on purpose; a UUID has 36.
LONGEST_KEY = 255

# sf-string, without its quotes: printable ASCII, quote and backslash escaped.
_STRING = re.compile(rb'"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
# What bare keys are made of: tokens, base64, URNs. No comma: a proxy may have joined two headers.
_BARE = re.compile(rb"[A-Za-z0-9!#$%&'*+\-.^_`|~:/=@]+")
_BOUNDARY = re.compile(rb'(?i);\s*boundary=(?:"([^"]+)"|([^\s;,"]+))')
_ESCAPED = re.compile(r"\\(.)")


class BadKey(ValueError):
    """The header is there and is not a key; the message says what is wrong with it."""


def header_of(headers: Headers, name: bytes) -> bytes:
    """The first value of a header, or empty."""
    return next((value for each, value in headers if each.lower() == name), b"")


def key_of(headers: Headers, *, is_strict: bool = False) -> str | None:
    """The key of a request; None if it has none. If `is_strict`, it needs quotes, as in the draft.

    Raises:
        BadKey: The header is not a key, or there are several.
    """
    found = [value.strip(b" \t") for name, value in headers if name.lower() == b"idempotency-key"]
    if not found:
        return None
    if len(found) > 1:
        raise BadKey(f"a request has one Idempotency-Key; this one has {len(found)}")
    (value,) = found
    quoted = _STRING.fullmatch(value)
    if quoted is not None:
        key = _ESCAPED.sub(r"\1", quoted[1].decode("ascii"))
    elif is_strict or not _BARE.fullmatch(value):
        raise BadKey('the key needs to be a string in quotes, such as "8e03978e-40d5-43e8-bc93"')
    else:
        key = value.decode("ascii")
    if not 1 <= len(key) <= LONGEST_KEY:
        raise BadKey(f"a key has 1 to {LONGEST_KEY} characters; this one has {len(key)}")
    return key


def request_place(key: str, caller: str, method: str, path: bytes) -> str:
    """The name of a key's claim: a hash of caller, method, path and key (E-F7).

    A key of another caller, or for another resource, is another key. None of them can be read
    from it.
    """
    return f"once/{digest(['http', caller, method, path.hex(), key])}"


def payload_fingerprint(headers: Headers, query: bytes, body: bytes) -> str:
    """What a key stands for: a digest of query, content type and body (E-F9).

    JSON counts by what it means: the order of members, blanks, 1 and 1.0 make no difference.
    Everything else counts by its bytes; a multipart body without its boundary, which differs in
    every request.
    """
    headers = list(headers)
    kind = header_of(headers, b"content-type")
    media = kind.partition(b";")[0].strip().lower()
    coding = header_of(headers, b"content-encoding").strip().lower()
    form: Any = None
    if not coding and (media == b"application/json" or media.endswith(b"+json")):
        form = _json_form(body)
    elif media.startswith(b"multipart/"):
        form = _multipart_form(kind, body)
    if form is None:
        form = ["bytes", sha256(body).hexdigest()]
    names = [query.hex(), media.decode("latin-1"), coding.decode("latin-1")]
    return f"request:{digest([*names, form])}"


def _multipart_form(kind: bytes, body: bytes) -> Any:
    """The parts of a body, whatever stands between them; None if it does not say what does."""
    boundary = _BOUNDARY.search(kind)
    if boundary is None:
        return None
    between = rb"(?:^|\r\n)--" + re.escape(boundary[1] or boundary[2])
    return ["multipart", *(sha256(part).hexdigest() for part in re.split(between, body))]


def _json_form(body: bytes) -> Any:
    """The canonical form of a JSON document; None if it is not one that all readers agree on."""
    try:
        value = json.loads(
            body, object_pairs_hook=_members, parse_float=Decimal, parse_constant=_refuse
        )
        return ["json", canonical(value, name="body")]
    except (ValueError, RecursionError, ArithmeticError, SettingError):
        return None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):  # one reader takes the first of two members, another the last
        raise ValueError
    return members


def _refuse(_constant: str) -> NoReturn:
    raise ValueError  # NaN and Infinity are not JSON
