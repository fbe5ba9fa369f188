"""HTTP headers printed in text: a response with its headers, a dump of a debugger."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..quotas import limit_hint
from ..times.server_formats import ResetTime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .meaning import ReadingContext

__all__ = ("headers_reset", "is_plan_limit", "response_at")

# Also as a runtime dumps them: 'x-ratelimit-reset': '1642361738',
_HEADER = re.compile(
    r"\s{0,8}['\"]?(?P<name>[A-Za-z][A-Za-z0-9-]{2,60})['\"]?[:=]\s*(?P<value>\S[^\n]{0,200})"
)
_HEADER_NAMES = re.compile(
    r"retry-after(?:-ms)?$|(?:x-|anthropic-)?ratelimit|x-codex-", re.IGNORECASE
)
# headers: { 'retry-after': '18', …   %{"retry-after" => ["4"], …
_INLINE = re.compile(
    r"[{,]\s{0,4}['\"](?P<name>retry-after(?:-ms)?)['\"]\s?(?::|=>)\s?\[?['\"]?(?P<value>[^'\",}\n]{1,40})",
    re.IGNORECASE,
)
# "X-RateLimit-Reset" => array:1 [ …: headers that a debugger dumped.
_DUMPED = re.compile(r"\s{0,16}[\"']X-RateLimit-Reset[\"']", re.IGNORECASE)
_USED_UP = re.compile(
    r"\s{0,8}['\"]?(?:anthropic-ratelimit-unified(?!-overage)(?:-\w{1,12}){0,3}-status['\"]?\s?[:=]\s?['\"]?rejected"
    r"|x-codex-(?:primary|secondary)-used-percent['\"]?\s?[:=]\s?['\"]?100)\b",
    re.IGNORECASE,
)
# 1791072000000 (2026-10-04T00:00:00Z): what follows is a remark
_REMARK = re.compile(r" [ (]")
_NEAR = 40
_EPOCH = re.compile(r"\b[12]\d{9}\b")


def headers_reset(lines: Sequence[str], context: ReadingContext) -> ResetTime | None:
    """The reset that header lines state for the window that is used up."""
    hint = limit_hint(_header_lines(lines), now=context.now)
    return None if hint is None else ResetTime.of(hint, now=context.now)


def response_at(lines: Sequence[str], index: int, *, is_error: bool) -> Sequence[str]:
    """The lines around `index` that may be one response.

    Args:
        lines: The text.
        index: Where a limit was read.
        is_error: Whether an error was read there: it may be a body, behind a blank line.
    """
    begin = end = index
    while begin > 0 and index - begin < _NEAR:
        is_body = is_error and begin > 1 and _heads(lines[begin - 2], lines[index])
        if not lines[begin - 1].strip() and not is_body:
            break
        begin -= 1
    while end + 1 < len(lines) and end - index < _NEAR and lines[end + 1].strip():
        end += 1
    return lines[begin : end + 1]


def _heads(header: str, body: str) -> bool:
    """Whether `header` may stand above `body`; what a tool printed is indented more."""
    indents = [len(line) - len(line.lstrip()) for line in (header, body)]
    return _HEADER.match(header) is not None and indents[0] <= indents[1]


def is_plan_limit(lines: Sequence[str]) -> bool:
    """Whether headers say that a plan's window is used up."""
    return any(_USED_UP.match(line) for line in lines)


def _header_lines(lines: Sequence[str]) -> dict[str, str]:
    """HTTP headers about limits that stand in `lines`, names in lower case."""
    found: dict[str, str] = {}
    for index, line in enumerate(lines):
        match = _HEADER.match(line)
        if match and _HEADER_NAMES.match(match["name"]):
            value = _REMARK.split(match["value"])[0]
            found[match["name"].lower()] = value.strip(" \t\r,'\"")
        elif inline := _INLINE.search(line[:2000]):
            found[inline["name"].lower()] = inline["value"]
        elif _DUMPED.match(line) and (epoch := _EPOCH.search("\n".join(lines[index : index + 3]))):
            found["x-ratelimit-reset"] = epoch[0]
    return found
