"""Messages that a terminal wrapped: which lines belong together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .shown import is_frame, is_survival
from .stamps import TIME, is_stamped

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("continues", "is_rest", "message_at", "rejoined")

_WRAPPED = re.compile(r"[\w,;/–—=+&-]\s*$")
_WORDS = re.compile(r"\w")
_BRACKETS = re.compile(r"\s{0,40}[\[\](){},;]{1,8}\s*")
# Lower case, and yet no rest of anything: error=…   acme.RateLimitError: …   last words: You …
_BEGINS = re.compile(
    r"\s{0,16}(?:error|fatal|failed|panic|[\w.]{1,80}(?:Error|Exception))\s?[:=(](?!\s?[\"'])"
    rf"|\s{{0,16}}\d{{1,9}}\||{TIME}\s|\s{{0,16}}\w{{1,30}}=[\"']"
    r"|\s{0,16}[a-z][\w()-]{0,24}(?: [\w()-]{1,24}){0,4}: (?-i:[A-Z])",
    re.IGNORECASE,
)
# It will reset at / 2026-07-06 12:00:00   It will reset at 2026-07-06 / 12:00:00
_ANNOUNCES = re.compile(
    r"\b(?:at|on|by|until|after|resets?)(?: \d{4}-\d\d-\d\d)?\s*$", re.IGNORECASE
)
_CUT = re.compile(r"(?<=\S)\n(?=\S)")
_ITEM = re.compile(r"\s{0,16}(?:[*+-]|\d{1,2}\.)\s")
# A line does not end here unless it was wrapped: … the API returned 503 / Service Unavailable
_HANGS = re.compile(
    r"\b(?:from|the|an?|of|to|with|by|as|and|or|in|on|for|returned|raises?|raised|answered|(?<![/\w])[45]\d\d)\s*$"
)
# Longer than any banner in the narrowest terminal.
_MESSAGE_LINES = 14
_MESSAGE_LENGTH = 2400
# Terminals are wider than this: a line was wrapped where the next word had no room.
_WRAP_WIDTH = 40
_SHORTEST_WRAPPED = 28


def message_at(lines: Sequence[str], echoed: Sequence[bool], index: int) -> tuple[str, list[int]]:
    """The line at `index` with what continues it; where each line begins in it."""
    parts, starts, length = [lines[index]], [0], len(lines[index])
    for following in range(index + 1, min(len(lines), index + _MESSAGE_LINES)):
        line = lines[following]
        is_over = not (_WORDS.search(line) or _BRACKETS.fullmatch(line))
        if is_over or echoed[following] or length > _MESSAGE_LENGTH:
            break
        if is_frame(line) or is_survival(line) or _is_record(parts[-1], line):
            break
        if line.startswith("> ") and not lines[index].startswith("> "):
            break  # a quotation
        starts.append(length + 1)
        parts.append(line)
        length += len(line) + 1
    return "\n".join(parts)[: 2 * _MESSAGE_LENGTH], starts


def continues(line: str, following: str) -> bool:
    """Whether `following` is the rest of `line`, wrapped by a terminal."""
    length, words = len(line.rstrip()), following[:200].split(maxsplit=1)
    return (
        bool(words)
        and length >= _SHORTEST_WRAPPED
        and length + 1 + len(words[0]) > _WRAP_WIDTH
        and _WRAPPED.search(line[-40:]) is not None
        and not _is_record(line, following)
    )


def _is_record(line: str, following: str) -> bool:
    """Whether `following` is a line of a log, and no date that `line` announces."""
    return is_stamped(following) and _ANNOUNCES.search(line[-40:]) is None


def is_rest(lines: Sequence[str], echoed: Sequence[bool], index: int) -> bool:
    """Whether a line that looks like a beginning is the rest of the one above it."""
    if index == 0:
        return False
    line, above = lines[index], lines[index - 1]
    # Code in a trace does not go on in the error below it; an item of a list does.
    if echoed[index - 1] and not _ITEM.match(above):
        return False
    if not continues(above, line):
        return False
    if _HANGS.search(above[-40:]):
        return True
    begin = line.lstrip()[:1]
    is_begin = _BEGINS.match(line[:200]) is not None
    return not is_begin and (begin.islower() or begin.isdigit() or begin in "(,;")


def rejoined(message: str) -> str:
    """`message` with the words made whole that a terminal cut in two at its right edge."""

    def joint(cut: re.Match[str]) -> str:
        at = cut.start()
        are_letters = message[at - 1].isalpha() and message[at + 1].isalpha()
        is_edge = at - message.rfind("\n", 0, at) > _WRAP_WIDTH
        return "" if are_letters or is_edge else "\n"

    return _CUT.sub(joint, message)
