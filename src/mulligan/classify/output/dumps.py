"""An error object that a runtime printed below a stack trace, read line by line.

``message: 'Rate limit reached …',`` occurs in such a dump and in source code alike. So it counts
only below a stack trace or the name of an error's cause, with a status or a code beside it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..bodies import opened, read_body
from .evidence import Evidence, Role
from .last_error import PROSE_AFTER_ERROR, prose_below
from .shown import is_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("dumped_error",)

_PAIR = re.compile(
    r"\s{0,40}['\"]?(?:\w{1,20}\.)?(?P<key>message|error|detail|reason|code|type|status|statusCode|status_code"
    r"|statusText|responseBody|body|name)['\"]?: "
    r"(?:(?P<quote>['\"`])(?P<text>(?:(?!(?P=quote))[^\\\n]|\\.){1,4000})(?P=quote)|(?P<number>\d{3}))"
    r"\s{0,4}[,+]?\s*$"
)
# cause: {   error= {   [cause]: Error …   } {
_LEADS = re.compile(
    r"\s{0,40}(?:\[?cause\]?|error|err|data|response)\s?[:=]\s?(?:\w{0,60}\s?)\{\s*$"
    r"|\s{0,40}(?:\w{1,20}\.)?status: ['\"]failed['\"]"
    r"|[^\n]{0,400}(?:Error|Exception)\b[^\n]{0,400}$"
)
_SYSTEM = re.compile(r"E[A-Z_]{4,20}")
_ESCAPE = re.compile(r"\\([n'\"`])")
_MOST_LINES = 200
_NEAR = 24


def dumped_error(lines: Sequence[str], *, has_failed: bool) -> Evidence | None:
    """The error that the last dump in `lines` tells of; None with an answer below it."""
    first = max(0, len(lines) - _MOST_LINES)
    for index in range(len(lines) - 1, first - 1, -1):
        if not _PAIR.match(lines[index][:4200]):
            continue
        begin = index
        while begin > first and index - begin < _NEAR and not _leads(lines[begin - 1]):
            begin -= 1
        if begin == first or not _leads(lines[begin - 1]):
            return None
        below = prose_below(lines[index:], [False] * (len(lines) - index))[0]
        is_over = has_failed or below <= PROSE_AFTER_ERROR
        return _evidence(lines[begin : index + 1]) if is_over else None
    return None


def _leads(line: str) -> bool:
    return is_frame(line) or _LEADS.match(line[:1000]) is not None


def _evidence(lines: Sequence[str]) -> Evidence | None:
    """What the pairs among `lines` say together."""
    said: dict[str, object] = {}
    for line in lines:
        if found := _PAIR.match(line[:4200]):
            text = found["text"]
            plain = None if text is None else _ESCAPE.sub(_unescaped, text)
            said[found["key"]] = int(found["number"]) if plain is None else opened(plain) or plain
    body = read_body(said)
    code = body.code or ""
    # connect ETIMEDOUT: the code of the operating system says it all
    text = body.words or (code if _SYSTEM.fullmatch(code) else "")
    if not text or (body.status is None and not code):
        return None
    return Evidence(
        role=Role.FAILED,
        text=text,
        codes=body.codes,
        source="error that was dumped",
        status=body.status,
        code=code,
        is_event=False,
    )


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]
