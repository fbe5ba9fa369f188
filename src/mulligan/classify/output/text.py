"""Plain text, read from its end: the last thing that a program said about itself.

Whatever stands before later work was survived. So lines are taken from the last upwards, and
reading stops once enough prose has passed: a banner with an answer below it is part of the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.failure import Kind
from ..pack import Meaning
from ..times.zones import named_zone
from .bodies import error_text, status_of
from .echo import is_frame, is_trailer, prose_words, shown
from .fields import reset_in_headers
from .kinds import Judgement, World, by_status, goes_on, judge, squash
from .streams import first_object
from .voice import Spoken, speak

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from ..reset_time import ResetTime

__all__ = ("Said", "header_lines", "headers_reset", "read_text")

# Every entry's lines contain one of these; other lines are passed over at the cost of a look.
_TRIGGER = re.compile(
    r"limit|quota|rate|[45]\d\d|overload|error|fail|credit|billing|capacity|demand|again|retry|reset"
    r"|exhaust|exceed|usage|token|context|api|auth|login|logged|connect|stream|time|terminat|policy"
    r"|balance|command|conversation|socket|network|abort|cancel|budget|spend|unable|refused|throttl"
    r"|reach|hit |out of|exception|unavailable|premature|key|plan|upgrade|entity|empty|reconnect"
    r"|many|organi[sz]ation|account|model|request|message|no more|l[ií]mite|[^\x00-\u02ff]",
    re.IGNORECASE,
)
_HEADER = re.compile(r"\s{0,4}(?P<name>[A-Za-z][A-Za-z0-9-]{2,60}):\s*(?P<value>\S[^\n]{0,200})")
_HEADER_NAMES = re.compile(
    r"retry-after(?:-ms)?$|(?:x-|anthropic-)?ratelimit|x-codex-", re.IGNORECASE
)
# "X-RateLimit-Reset" => array:1 [ …: headers that a debugger dumped.
_DUMPED = re.compile(r"\s{0,16}[\"']X-RateLimit-Reset[\"']", re.IGNORECASE)
_EPOCH = re.compile(r"\b[12]\d{9}\b")
_OK_STATUS = re.compile(
    r"\s{0,4}(?:HTTP/\d(?:\.\d)?\s+)?2\d\d(?:\s+(?:OK|Created|Accepted)\b|\s*$)",
    re.IGNORECASE,
)
_ZONE = re.compile(r"\((?P<zone>UTC|[A-Z][A-Za-z]{2,20}/[A-Za-z_+\-0-9/]{2,40})\)")
_WRAPPED = re.compile(r"[\w,;/–—=+&-]\s*$")
_WORDS = re.compile(r"\w")
# A program that failed says so near its end; a log of a million complaints is not read whole.
_LOOKS = 300
# How far above a banner the line may stand that belongs to it.
_NEAR = 8
_MESSAGE_LINES = 14
_MESSAGE_LENGTH = 2400
_WRAP_WIDTH = 40
_PROSE_AFTER_BANNER = 8
_PROSE_AFTER_ERROR = 25
_PROSE_AFTER_ALL = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The last word of a text.

    Args:
        judgement: What it means.
        text: The message that decided.
        is_error: Whether an error introduced it.
        status: The HTTP status beside it.
    """

    judgement: Judgement
    text: str
    is_error: bool = False
    status: int | None = None


def header_lines(lines: Sequence[str]) -> dict[str, str]:
    """HTTP headers about limits that stand in `lines`, names in lower case."""
    found: dict[str, str] = {}
    for index, line in enumerate(lines):
        match = _HEADER.match(line)
        if match and _HEADER_NAMES.match(match["name"]):
            found[match["name"].lower()] = match["value"].strip()
        elif _DUMPED.match(line) and (epoch := _EPOCH.search("\n".join(lines[index : index + 3]))):
            found["x-ratelimit-reset"] = epoch[0]
    return found


def headers_reset(lines: Sequence[str], world: World) -> ResetTime | None:
    """The reset that header lines state."""
    return reset_in_headers(header_lines(lines), now=world.now)


def read_text(lines: Sequence[str], world: World, *, has_failed: bool) -> Said | None:
    """What `lines` say last about a failure, progress included; None if they say nothing.

    Args:
        lines: The text, line by line, each cut to what is matched.
        world: Packs, agent, clock, zone.
        has_failed: Whether the program is known to have failed: then later prose does not matter.
    """
    if any(_OK_STATUS.match(line) for line in lines[:12]) and not has_failed:
        return None
    echoed = list(shown(lines))
    after = _prose_after(lines, echoed)
    is_any = world.packs.has_own
    for is_weak in (False, True):
        looks = _LOOKS
        for index in range(len(lines) - 1, -1, -1):
            if looks == 0 or (after[index] > _PROSE_AFTER_ALL and not has_failed):
                break
            line = lines[index]
            if echoed[index] or not (_TRIGGER.search(line) or (is_any and line.strip())):
                continue
            if _is_rest(lines, index):
                continue
            looks -= 1
            said, end = _at(lines, echoed, index, world, is_weak=is_weak, is_over=has_failed)
            if said is None or said.judgement.means is Meaning.NOT_FAILURE:
                continue
            allowed = _PROSE_AFTER_ERROR if said.is_error else _PROSE_AFTER_BANNER
            if after[end] > allowed and not has_failed:
                continue
            return _with_reset_above(said, lines, echoed, index, world)
    return None


def _with_reset_above(
    said: Said, lines: Sequence[str], echoed: Sequence[bool], index: int, world: World
) -> Said:
    """A limit that does not say when, with the time that a line just above it states."""
    if said.judgement.reset is not None or said.judgement.means not in (
        Kind.QUOTA,
        Kind.RATE_LIMIT,
    ):
        return said
    for above in range(index - 1, max(-1, index - _NEAR), -1):
        if echoed[above] or not _TRIGGER.search(lines[above]):
            continue
        other, _ = _at(lines, echoed, above, world, is_weak=True, is_over=True)
        if other is not None and other.judgement.reset is not None:
            return replace(said, judgement=replace(said.judgement, reset=other.judgement.reset))
    return said


def _prose_after(lines: Sequence[str], echoed: Sequence[bool]) -> list[int]:
    """For each line, how many words of prose stand below it."""
    after, total = [0] * len(lines), 0
    for index in range(len(lines) - 1, -1, -1):
        after[index] = total
        line = lines[index]
        is_continued = index > 0 and _continues(lines[index - 1], line)
        if not is_continued and not (is_trailer(line) and not echoed[index]):
            total += prose_words(line)
    return after


def _continues(line: str, following: str) -> bool:
    """Whether `following` is the rest of `line`, wrapped by a terminal."""
    return (
        len(line.rstrip()) >= _WRAP_WIDTH
        and bool(following.strip())
        and _WRAPPED.search(line[-40:]) is not None
    )


def _is_rest(lines: Sequence[str], index: int) -> bool:
    """Whether a line that looks like a beginning is the rest of the one above it."""
    begin = lines[index].lstrip()[:1]
    return (
        index > 0
        and (begin.islower() or begin.isdigit() or begin in "(,;")
        and _continues(lines[index - 1], lines[index])
    )


def _at(
    lines: Sequence[str],
    echoed: Sequence[bool],
    index: int,
    world: World,
    *,
    is_weak: bool,
    is_over: bool,
) -> tuple[Said | None, int]:
    """What the message that begins at line `index` says, with the line on which it ends."""
    message, starts = _message(lines, echoed, index)
    spoken = speak(message)
    body = first_object(message) if spoken.is_error and "{" in message else None
    fields = body[0] if body else None
    text, status = spoken.text, spoken.status
    if fields is not None:
        inner, code = error_text(fields)
        text = squash(f"{text} {inner} {code}")
        status = status or status_of(fields)
    zone = _zone_above(lines, index) if not _ZONE.search(message) else None
    judgement = judge(
        text,
        world,
        is_error=spoken.is_error,
        is_weak=is_weak,
        is_over=is_over,
        fields=fields,
        zone=zone,
    )
    if judgement is None and spoken.whole != spoken.text:
        judgement = judge(
            spoken.whole, world, is_error=False, is_weak=is_weak, is_over=is_over, zone=zone
        )
    if judgement is None and spoken.is_error and (kind := by_status(status)) is not None:
        judgement = Judgement(means=kind, because=f"status {status}", end=0)
    if judgement is None or (not spoken.is_error and _is_talk(spoken, judgement)):
        return None, index
    judgement = _with_headers(judgement, lines, world)
    end = _end_line(judgement, spoken, starts, index, lines)
    return Said(judgement=judgement, text=message, is_error=spoken.is_error, status=status), end


def _message(lines: Sequence[str], echoed: Sequence[bool], index: int) -> tuple[str, list[int]]:
    """The line at `index` with what continues it; where each line begins in it."""
    parts, starts, length = [lines[index]], [0], len(lines[index])
    for following in range(index + 1, min(len(lines), index + _MESSAGE_LINES)):
        line = lines[following]
        if not _WORDS.search(line) or echoed[following] or length > _MESSAGE_LENGTH:
            break
        if is_frame(line):
            break
        starts.append(length + 1)
        parts.append(line)
        length += len(line) + 1
    return "\n".join(parts)[: 2 * _MESSAGE_LENGTH], starts


def _zone_above(lines: Sequence[str], index: int) -> tzinfo | None:
    """The zone that a banner just above names; a program prints one zone."""
    for line in reversed(lines[max(0, index - 8) : index]):
        if found := _ZONE.search(line):
            return named_zone(found["zone"])
    return None


def _is_talk(spoken: Spoken, judgement: Judgement) -> bool:
    """Whether the sentence goes on about the limit instead of stating it."""
    is_limit = judgement.means in (Kind.QUOTA, Kind.RATE_LIMIT, Kind.OVERLOADED)
    return is_limit and goes_on(spoken.text, judgement.end)


def _with_headers(judgement: Judgement, lines: Sequence[str], world: World) -> Judgement:
    headers = headers_reset(lines, world)
    if headers is None:
        return judgement
    means = judgement.means
    return Judgement(
        means=Kind.RATE_LIMIT if means is Kind.BILLING else means,
        because=judgement.because,
        pack=judgement.pack,
        end=judgement.end,
        reset=headers,
    )


def _end_line(
    judgement: Judgement, spoken: Spoken, starts: Sequence[int], index: int, lines: Sequence[str]
) -> int:
    # Squashing only shortens, so the position in the squashed text is a lower bound.
    offset = judgement.end + len(spoken.whole) - len(spoken.text)
    line = sum(1 for start in starts if start <= offset) - 1
    end = index + max(0, line)
    last = index + len(starts) - 1
    while end < last and (_continues(lines[end], lines[end + 1]) or spoken.is_error):
        end += 1
    return min(end, len(lines) - 1)
