"""Output split into JSON values that stand alone and the lines between them.

Programs print one event per line, one pretty-printed value after human lines, an array of events,
or an event in the middle of another line. A broken line stays text. The work is bounded: failed
attempts to read JSON share a budget proportional to the size of the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .error_bodies import body_evidence
from .failed_objects import failure_lines
from .printed_objects import LARGEST_OBJECT, is_python, may_be_printed, printed_object
from .stamps import LEVEL, TIME

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Line", "Value", "completed", "cut", "first_object", "pieces")

# No line of prose is longer; what is longer is data, and only its head is matched.
LINE_LIMIT = 8192
# A pretty-printed value that is larger than this is not an error report.
_LARGEST = 262_144
# "{\"error\": …}" is a body that was quoted once more; any other quoted line is text.
_OPENINGS = ("{", "[", '"{', '"[')
# [2026-07-06T12:00:00Z] [INFO]   12:00:00 INFO   worker-1 |   **Summary:** — put in front
_LOGGED = re.compile(
    r"\W{0,4}(?:summary|result|output|stdout|stderr|details?|response|error|body|last \w{1,10})"
    r"\W{1,6}"
    rf"|\s*(?:\[[^\[\]\n]{{1,40}}\]\s*|{TIME}\s*|{LEVEL}[:\s]\s*|[\w.-]{{1,30}}\s*\|\s*){{1,5}}"
    # [agent] SDK event type: rate_limit_event
    r"(?:(?:[\w.-]{1,20} ){0,3}(?:event|message|line|chunk|data)(?: type)?: (?:[\w.]{1,40} )?)?",
    re.IGNORECASE,
)
# data: …: a server-sent event, shown as it came
_BEGIN = re.compile(r"[ \t\r\ufeff]*+(?:data: *+)?")
_LINE_ENDS = re.compile(r"[ \t\r,;]{0,20}(?:\n|$)")
# An object that a runtime printed stands alone; with a comma behind it, it is source code.
_STANDS_ALONE = re.compile(r"[ \t\r]{0,20}(?:\n|$)")
# What an object is made of; an escaped character is none of it.
_MARKS = re.compile(r'[{}\[\],"]|\\.', re.DOTALL)
_ENDS = {"{": "}", "[": "]"}
_LARGEST_CUT = 65_536
_SHORTEST_CUT = 200
# , "key": "val: all that stands behind the last whole pair
_CUT_PAIR = re.compile(r'[,\s]*+(?:["{\[][^\n]*+)?\s*+')
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value that stood alone; or an object as a runtime prints it."""

    data: Any
    is_printed: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text."""

    text: str


def cut(text: str) -> str:
    """`text` cut at what is matched of a line."""
    return text[:LINE_LIMIT]


def pieces(text: str) -> Iterator[Value | Line]:
    """Values and lines of `text` in order."""
    budget = 16 * len(text)
    position, length, end, line = 0, len(text), -1, (0, "")
    while position < length:
        if position > end:
            newline = text.find("\n", position)
            end = length if newline < 0 else newline
            line = (position, text[position:end])
        found = _BEGIN.match(text, position, end)
        start = found.end() if found else position
        value, stop, cost = (None, start, 0)
        if start < end and text.startswith(_OPENINGS, start) and budget > 0:
            value, stop, cost = _value(text, start, line)
            budget -= cost
        if value is None:
            if budget > 0 and text.find('{"type"', position + 1, end) > 0:
                yield from _split(text[position:end])
            else:
                yield Line(cut(text[position:end]))
            position = end + 1
            continue
        yield value
        # What follows on the same line: another event, or the rest of an interrupted one.
        position = stop
        while position < length and text[position] in " \t\r,":
            position += 1
        if position < length and text[position] == "\n":
            position += 1


def _value(text: str, start: int, line: tuple[int, str]) -> tuple[Value | None, int, int]:
    """A value at `start`, as JSON or as a runtime prints it; where it stops; what trying cost.

    Args:
        text: All of it.
        start: Where the value begins.
        line: Where the physical line begins, with the line: it may hold thousands of values.
    """
    value, stop, cost = _json(text, start, line)
    if value is not None or not text.startswith("{", start):
        return value, stop, cost
    found = printed_object(text, start)
    # Followed by words, it is part of a message that a terminal wrapped.
    if found is not None and is_python(text, start) and _LINE_ENDS.match(text, found[1]):
        return Value(found[0]), found[1], cost
    if found is not None and _STANDS_ALONE.match(text, found[1]) and _is_report(found[0]):
        return Value(found[0], is_printed=True), found[1], cost
    return None, start, cost + (LARGEST_OBJECT if may_be_printed(text, start) else 0)


def _is_report(data: Any) -> bool:
    """Whether `data` is a program's report at its end."""
    is_result = data.get("type") == "result" and data.get("is_error") is True
    return is_result or body_evidence(data) is not None or bool(failure_lines(data))


def _json(text: str, start: int, line: tuple[int, str]) -> tuple[Value | None, int, int]:
    """A JSON object, array or quoted body at `start`; where it stops; what trying cost."""
    begin, words = line
    end = begin + len(words)
    first, inside = text[start], text[start + 1 : min(end, start + 64)].lstrip()
    if first == "[" and inside and not inside.startswith(("{", "[", '"', "]")):
        return None, start, 0  # [error] something
    try:
        data, stop = _DECODER.raw_decode(words, start - begin)
    except json.JSONDecodeError as error:
        is_open = error.pos >= len(words.rstrip()) - 1 or error.msg.startswith("Unterminated")
        if first == '"' or not is_open:
            return None, start, max(0, error.pos - (start - begin))
    except (RecursionError, ValueError):
        return None, start, end - start
    else:
        is_body = not isinstance(data, str) or begin + stop >= end - 1
        return (Value(data) if is_body else None), begin + stop, 0
    # The line ended before its value did: pretty-printed, or wrapped by a terminal.
    chunk = text[start : start + _LARGEST]
    try:
        data, stop = _DECODER.raw_decode(chunk)
    except (RecursionError, ValueError):
        data = completed(chunk) if start + len(chunk) == len(text) else None
        if data is None:
            return None, start, len(chunk)
        stop = len(chunk)
    return Value(data), start + stop, 0


def completed(text: str) -> Any:
    """The object that `text` is the beginning of, as far as it goes; None if it is none.

    Logs are cut, and so is what people copy. What was cut must be the last line: whatever stands
    below it is not part of the object.
    """
    if not text.startswith(("{", "[{")) or len(text) > _LARGEST_CUT:
        return None
    return next((data for one in _endings(text) if (data := _loaded(one)) is not None), None)


def _endings(text: str) -> list[str]:
    """`text` with an end, cut where it must be; the one that keeps more first."""
    open_: list[str] = []
    quote, comma, ends = -1, 0, ""
    for found in _MARKS.finditer(text):
        mark = found[0]
        if mark == '"':
            quote = found.start() if quote < 0 else -1
        elif quote >= 0 or mark[0] == "\\":
            continue
        elif mark in _ENDS:
            open_.append(_ENDS[mark])
        elif mark == ",":
            comma, ends = found.start(), "".join(reversed(open_))
        elif not open_ or open_.pop() != mark:
            return []
    if not open_:
        return []
    bare = text.rstrip("\\ \t\r\n.…")
    tries = [text[:comma] + ends] if _CUT_PAIR.fullmatch(text, comma) else []
    if quote < 0 or "\n" not in bare[quote:]:
        tries.insert(0, bare + ('"' if quote >= 0 else "") + "".join(reversed(open_)))
    return tries


def _loaded(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (RecursionError, ValueError):
        return None


def _split(line: str) -> list[Value | Line]:
    """A line with an event in it: behind a logger's prefix, or injected into another event."""
    at = line.find('{"type"', 1, LINE_LIMIT)
    is_event = at > 0 and (line.lstrip().startswith("{") or _LOGGED.fullmatch(line, 0, at))
    # "… stopped. {"type":"result", …}": how the run ended, behind somebody's words about it
    is_end = at > 0 and line.startswith('{"type":"result"', at) and line[at - 1] == " "
    if not is_event and not is_end:
        return [Line(cut(line))]
    try:
        data, stop = _DECODER.raw_decode(line, at)
    except (RecursionError, ValueError):
        # A log cuts its long lines.
        data, stop = completed(line[at:]) if len(line) > _SHORTEST_CUT else None, len(line)
        if data is None:
            return [Line(cut(line))]
    return [Line(cut(line[:at] + line[stop:])), Value(data)]


def first_object(text: str, start: int = 0) -> tuple[Any, int] | None:
    """The first JSON object or array of objects in `text` from `start`, with where it begins.

    Three openings are tried: a message has one body, and noise has thousands of braces.
    """
    position = start
    for _ in range(3):
        position = text.find("{", position)
        if position < 0:
            return None
        try:
            return _DECODER.raw_decode(text, position)[0], position
        except (RecursionError, ValueError):
            found = printed_object(text, position)
            if found and (is_python(text, position) or _STANDS_ALONE.match(text, found[1])):
                return found[0], position
            position += 1
    return None
