"""The events of a run in order, and which of them decides how it ended.

FAILED ──WORK, DONE──▶ survived         PROGRESS ──exit ≠ 0──▶ what it was retrying failed
   └──ENDED──▶ over, unless DONE follows
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.failure import Kind
from ...core.hint import Confidence, Precision
from ..pattern_packs import Meaning
from ..times.fields import reset_in_fields
from ..times.plain_text import one_line
from .events.shapes import event_evidence
from .evidence import Evidence, Role
from .failed_objects import failure_lines
from .json_stream import Line, cut, pieces
from .last_error import last_error
from .meaning import (
    Judgement,
    ReadingContext,
    judge,
    judge_status,
    judge_unknown,
    limited_model,
    with_status,
)
from .shown import is_code, is_fence
from .speaker import read_line, status_anywhere
from .unwrap import ONE_STRING, unwrapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..times.server_formats import ResetTime


__all__ = ("Stream", "Timeline", "is_record", "judged", "logged", "split_stream")

# Upstream error:   Response body:   Failed to parse stream event:
_HEADING = re.compile(
    r"\W{0,6}(?:[\w-]{1,20} ){0,3}(?:error|errors|failure|response|body|exception)\W{0,6}"
    r"|(?!.{0,400}\b(?:example|e\.g|such as|like|returns?|when|if)\b)"
    r".{0,400}\b(?:error|fail(?:ed|ure))\b[^:]{0,60}:\s*",
    re.IGNORECASE,
)
# What a program says about its end stands near it: what came before these is not kept.
_LINES = 5000
_EVENTS = 2000
_OBJECTS = 4
_SOME_CODE = 2
# Limits that state when they end.
_WINDOWS = (Kind.RATE_LIMIT, Kind.QUOTA)


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of output, taken apart.

    Args:
        evidence: What JSON says.
        lines: What lines say.
        agent: Who gave itself away.
        record: The record of a log that `lines` were taken from, if they were.
        objects: The last objects of an unknown shape.
        lines_below: How many lines stand below the last of them.
    """

    evidence: tuple[Evidence, ...]
    lines: tuple[str, ...]
    agent: str = ""
    record: object = None
    objects: tuple[object, ...] = ()
    lines_below: int = 0


def split_stream(text: str) -> Stream:
    """`text` as evidence and lines."""
    agent = ""
    evidence: deque[Evidence] = deque(maxlen=_EVENTS)
    lines: deque[str] = deque(maxlen=_LINES)
    record: tuple[list[str], object] = ([], None)
    objects: deque[object] = deque(maxlen=_OBJECTS)
    above, in_fence, count, below = "", False, 0, 0
    plain = unwrapped(text)
    # Output that broke off in the middle of a block hides nothing below the opening.
    fences = sum(map(is_fence, plain.split("\n"))) // 2 * 2
    for piece in pieces(plain):
        if isinstance(piece, Line):
            lines.append(piece.text)
            count, below = count + 1, below + 1
            if fences and is_fence(piece.text):
                in_fence, fences = not in_fence, fences - 1
            above = piece.text.strip() or above
            continue
        data = _unquoted(piece.data)
        found = event_evidence(data)
        for one in found:
            agent = agent or one.agent
            is_introduced = _HEADING.fullmatch(above[-400:]) is not None
            is_doubtful = piece.is_printed or one.is_doubtful
            told = replace(one, is_doubtful=is_doubtful, is_introduced=is_introduced, line=count)
            is_event = one.is_event and not in_fence
            evidence.append(replace(told, is_event=is_event, is_fenced=in_fence))
        if not all(one.role is Role.OTHER for one in found):
            if any(one.role in (Role.DONE, Role.WORK) for one in found):
                objects.clear()
            continue
        said = logged(data)
        record = (said, data) if said or is_record(data) else record
        if is_record(data):
            objects.clear()  # a log has an order of its own
        elif not in_fence:
            objects.append(data)
            below = 0
    if not any(map(str.strip, lines)):
        # A log in JSON, and nothing else; in any other text it is shown, not said.
        lines.extend(record[0])
    else:
        record = ([], None)
    placed = _placed(evidence, lines, max(0, count - len(lines)))
    below = min(below, len(lines))
    return Stream(placed, tuple(lines), agent, record[1], tuple(objects), below)


def _placed(
    evidence: Iterable[Evidence], lines: Iterable[str], dropped: int
) -> tuple[Evidence, ...]:
    """`evidence` at its place in `lines`, of which so many were dropped."""
    placed = (replace(one, line=max(0, one.line - dropped)) for one in evidence)
    said = [line for line in lines if line.strip()]
    code = sum(map(is_code, said))
    if code <= _SOME_CODE or 4 * code <= len(said):
        return tuple(placed)
    return tuple(replace(one, is_event=False, is_fenced=True) for one in placed)  # a test's source


def _unquoted(data: object) -> object:
    """`data`, or the body in it that was quoted once more."""
    if not isinstance(data, str):
        return data
    return next((one.data for one in pieces(data) if not isinstance(one, Line)), None)


class Timeline:
    """The events of a run, in order."""

    def __init__(self, events: Iterable[Evidence], context: ReadingContext) -> None:
        self.last: Evidence | None = None
        self.progress: Evidence | None = None
        self.is_done = False
        # The last few: what a run says again a thousand times, it says once more at the end.
        self._failures: deque[Evidence] = deque(maxlen=8)
        self._retried: Evidence | None = None
        self._notices: dict[str, bool] = {}
        self._world = context
        for event in events:
            self._add(event)

    def _add(self, event: Evidence) -> None:
        role = event.role
        if role is Role.FAILED and not event.is_limit and self._is_notice(event):
            role = Role.PROGRESS
        if role is Role.DONE:
            self.is_done, self.last = True, event
            self._failures.clear()
        elif role in (Role.FAILED, Role.ENDED):
            self.is_done, self.last, self.progress = False, event, None
            self._failures.append(event)
        elif self.last is not None and self.last.role is Role.ENDED:
            return
        elif role is Role.PROGRESS:
            self.is_done, self.last, self.progress, self._retried = False, None, event, event
        elif role is Role.WORK:
            self.is_done, self.last, self.progress, self._retried = False, None, None, None
            self._failures.clear()

    def _is_notice(self, event: Evidence) -> bool:
        if event.text not in self._notices:
            found = judge(one_line(event.text), self._world, is_error=False)
            is_notice = found is not None and found.means is Meaning.PROGRESS
            self._notices[event.text] = is_notice
        return self._notices[event.text]

    @property
    def words(self) -> str:
        """What the last failure said; what it left out, an earlier one."""
        return next((one.text for one in reversed(self._failures) if one.text), "")

    @property
    def model(self) -> str:
        """The model that the limit is about, as one of the failures before the last names it."""
        others = [one for one in self._failures if one is not self.last]
        named = (limited_model(one_line(one.text)) for one in reversed(others))
        return next((each for each in named if each), "")

    def judgement(self) -> Judgement | None:
        """What the last failure means; what it leaves out, earlier ones fill in."""
        ordered = reversed(self._failures)
        found = [one for event in ordered if (one := judged(event, self._world)) is not None]
        if not found:
            return None
        first = found[0]
        if first.means not in _WINDOWS:
            return first
        if first.reset is not None:
            return replace(first, reset=self._exact(first.reset, found[1:]))
        for other in found[1:]:
            if other.reset is not None and other.means in _WINDOWS:
                means = Kind.QUOTA if Kind.QUOTA in (first.means, other.means) else first.means
                return replace(first, means=means, reset=other.reset)
        if self._retried is not None:
            fields, context = self._retried.fields, self._world
            stated = reset_in_fields(fields, now=context.now)
            return replace(first, reset=stated)
        return first

    @staticmethod
    def _exact(said: ResetTime, others: list[Judgement]) -> ResetTime:
        """The same instant as another event of the same failure stated it for machines.

        A clock time without its date or its seconds is what people are told.
        """
        for other in others:
            reset = other.reset
            if reset is None or reset.precision is Precision.MINUTE:
                continue
            # People are not told the day where the program thinks that they know.
            apart = abs(reset.at - said.at + 43200) % 86400 - 43200
            is_same = abs(apart) < 120 or said.confidence is Confidence.LOW
            if is_same and said.precision is not Precision.EXACT:
                return reset
        return said


def judged(evidence: Evidence, context: ReadingContext) -> Judgement | None:
    """What one piece of evidence means: by its words, its own statement, its status, its reset."""
    codes = evidence.codes
    if evidence.code:
        codes = tuple(dict.fromkeys((*codes, evidence.code.lower())))
    text = one_line(evidence.text, codes)
    asked = replace(context, is_weak=True, is_over=True)
    found = judge(text, asked, is_error=True, fields=evidence.fields)
    status = evidence.status or read_line(evidence.text[:400]).status
    if status is not None and status >= 500:  # it may tell what another server answered
        status = status_anywhere(evidence.text) or status
    if found is not None and isinstance(found.means, Kind):
        return _as_said_last(with_status(found, status), evidence.text, context)
    reset = reset_in_fields(evidence.fields, now=context.now)
    if evidence.is_limit:
        return Judgement(means=Kind.QUOTA, because="the event says so", reset=reset)
    # The reasons beside an event are the program's own words, not the vendor's.
    vendors = () if evidence.is_event and status is None else codes
    stated = judge_status(status, text, context, codes=vendors, fields=evidence.fields)
    reset = reset or context.reset_in(text)
    if stated is None and reset is not None:
        return Judgement(means=Kind.RATE_LIMIT, because=f"states {reset.source}", reset=reset)
    return stated or judge_unknown(text, context)


def _as_said_last(found: Judgement, text: str, context: ReadingContext) -> Judgement:
    """A limit with the time that the last of several banners in one message states."""
    text = text[:ONE_STRING]
    if found.reset is None or found.means not in _WINDOWS or "\n" not in text:
        return found
    first = context.reset_in(text)
    if first is None or first.at != found.reset.at:
        return found
    rest = text.find("\n", first.span[1])
    if rest < 0 or context.reset_in(text[rest:]) is None:
        return found
    said = last_error(text.split("\n"), context, has_failed=True)
    if said is None or said.judgement.means not in _WINDOWS or said.judgement.reset is None:
        return found
    return replace(found, reset=said.judgement.reset)


_LEVEL_KEYS = ("level", "lvl", "severity", "levelname", "log.level")
_MESSAGE_KEYS = ("msg", "message", "text", "event", "stdout", "stderr")
_MOST_LINES = 40


def is_record(data: object) -> bool:
    """Whether `data` is a record of a log, of whatever level."""
    is_leveled = isinstance(data, Mapping) and any(key in data for key in _LEVEL_KEYS)
    return isinstance(data, Mapping) and is_leveled and any(key in data for key in _MESSAGE_KEYS)


def logged(data: object) -> list[str]:
    """`data` as lines of a log; none unless it records an error."""
    if not is_record(data) or (isinstance(data, Mapping) and "type" in data):
        return []
    first, *rest = failure_lines(data)[:_MOST_LINES] or [""]
    return [cut(f"ERROR {first}"), *map(cut, rest)] if first else []
