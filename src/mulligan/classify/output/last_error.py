"""The last error or banner in lines of text, read from the end.

An error with work below it was survived. So lines are read from the last upwards, and reading stops
once enough prose has passed: a banner with an answer below it is part of the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.failure import Kind
from ..bodies import read_body
from ..pattern_packs import Meaning
from ..times.plain_text import one_line
from ..times.zones import named_zone
from .error_bodies import body_evidence
from .header_lines import headers_reset, is_plan_limit, response_at
from .json_stream import first_object
from .meaning import (
    LIMITS,
    Judgement,
    ReadingContext,
    judge,
    judge_status,
    judge_unknown,
    with_status,
)
from .shown import is_code, is_frame, is_survival, is_test_report, is_trailer, prose_words, shown
from .speaker import SpokenLine, read_line
from .stamps import STAMP, is_stamped
from .talk import explains, is_inside_quotes, is_person
from .wrapping import continues, is_rest, message_at, rejoined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from ..times.server_formats import ResetTime


__all__ = ("LastError", "bare_error", "goes_on", "last_error", "prose_below", "tries_again")

# What terminal programs put in front of an error of their own.
_MARK = re.compile(r"\s{0,8}[✕✗✘✖■❌⛔🛑🖐⚠]")
_ZONE = re.compile(r"\((?P<zone>UTC|[A-Z][A-Za-z]{2,20}/[A-Za-z_+\-0-9/]{2,40})\)")
_TRIES_AGAIN = re.compile(
    r"\b(?:(?<!after )retrying|will retry|reconnecting|trying again)\b", re.IGNORECASE
)
# A program that failed says so near its end; a log of a million complaints is not read whole.
_LOOKS = 400
# How far above or below a banner the line may stand that belongs to it.
_NEAR = 12
_NEAR_BELOW = 24
_RESET_LINE = re.compile(
    r"\W{0,12}(?:(?:your|the|next|limit|quota|usage|estimated|time|until|will) ){0,4}"
    r"(?:resets?\b|retry[_-]?(?:delay|after)\b|refresh(?:es)?\b|renews?\b|available again\b)",
    re.IGNORECASE,
)
_AT_ONCE = 8
# What servers answer for all kinds of reasons.
_UNSPECIFIC = (400, 403)
# ──────⏎> go on⏎──────: the box that a user types into
_RULE = re.compile(r"\s{0,8}[─━]{8,}\s*$")
_INPUT = re.compile(r"\s{0,8}[>❯›](?:\s|$)")
# Tasks  8/10 completed: the indented lines below it are their list
_TASK_COUNT = re.compile(r"\s{0,4}(?:todos?|tasks?)\W{1,4}\d{1,3}/\d{1,3}\b", re.IGNORECASE)
# error: api_error: a code that says no more than that something failed
_MERE_CODE = re.compile(r"\W{0,12}(?:\w{1,20} )?error:\s?(?:api|unknown)_error\W*$", re.IGNORECASE)
_RETRY_DELAY = re.compile(r"\bretry_?delay\b", re.IGNORECASE)
# cooldown until=2026-07-06T12:00:00Z
_UNTIL = re.compile(r"(?<![\w.])(?:until|retry_after|resets?_at)=(?=\d{4}-)")
# RateLimitError: …: the name of the error says it, whatever the message says
_LIMIT_CLASS = re.compile(
    r"(?:RateLimit|TooManyRequests|Throttl|Overloaded|ResourceExhausted|RESOURCE_EXHAUSTED"
    r"|QuotaExceeded)\w{0,20}[:(]"
)
# upstream returned status 429   code=rate_limit_exceeded: errors without a prefix
_BARE_STATUS = re.compile(
    r"\b(?:HTTP|status|status_code|code|error|returned|got|received|responded(?: with)?"
    r"|answered|failed|rejected)"
    r"(?: (?:status|code|error|with|a|an|HTTP)){0,3}(?:: | \(|[\s:=#(\[])(?P<status>429|529)\b"
    r"|^(?P<first>429|529)\b(?:$|[;.,:)\]·—-](?![\d\"])|(?= (?:too|from|rate|limit|quota"
    r"|error|status|client|server|overload|service|you|request|resource|slow|throttl|(?-i:[A-Z{<(\[\"']))))",
    re.IGNORECASE,
)
# Not inside quotes: that is code which knows the word.
_BARE_CODE = re.compile(
    r"(?<![\"'%\w])(?:rate_limit(?:ed|_(?:exceeded|error|reached)\w*)?|RateLimit(?:ed|Error|Exceeded)"
    r"|rateLimit(?:ed|Exceeded)|RESOURCE_EXHAUSTED|ResourceExhausted|Throttl(?:ing|ed)Exception"
    r"|TooManyRequests(?:Error|Exception)?|quota_(?:exceeded|exhausted)|overloaded_error|OverloadedError|ServiceUnavailable(?:Error|Exception)"
    r"|usage_limit_(?:reached|exceeded)|(?:E|ERR_)?(?:RATE_LIMIT(?:ED|_EXCEEDED|_REACHED)"
    r"|TOO_MANY_REQUESTS|QUOTA_EXCEEDED|USAGE_LIMIT_(?:REACHED|EXCEEDED)))"
    r"(?![\"'%\w]|\s?[:=]\s?(?:no|false|0|none|null)\s*(?:$|[,;}\])]|\w{1,40}=))"
)
# A statement, not an essay.
_LONGEST_BARE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class LastError:
    """The last word of a text.

    Args:
        judgement: What it means.
        text: The message that decided.
        is_error: Whether an error introduced it.
        status: The HTTP status beside it.
        line: Where it begins.
        is_last: Whether it is a banner, or marked as a terminal program marks its own errors, and
            nothing but advice stands below it.
    """

    judgement: Judgement
    text: str
    is_error: bool = False
    status: int | None = None
    line: int = 0
    is_last: bool = False

    def resetting(self, reset: ResetTime | None) -> LastError:
        """The same, with this reset."""
        return replace(self, judgement=replace(self.judgement, reset=reset))


def last_error(
    lines: Sequence[str], context: ReadingContext, *, has_failed: bool
) -> LastError | None:
    """What `lines` say last about a failure, progress included; None if they say nothing.

    Args:
        lines: The text, line by line, each cut to what is matched.
        context: Packs, agent, clock, zone.
        has_failed: Whether the program is known to have failed: then later prose does not matter.
    """
    text = _Text(lines, shown(lines))
    after = prose_below(lines, text.echoed)
    # What a test runner prints mentions much; only errors that introduce themselves count there.
    is_tested = any(map(is_test_report, lines[-_LOOKS:]))
    for is_weak in (False,) if is_tested else (False, True):
        asked = replace(context, is_weak=is_weak, is_over=has_failed)
        looks = _LOOKS
        for index in range(len(lines) - 1, -1, -1):
            if looks == 0 or (after[index] > _PROSE_AFTER_ALL and not has_failed):
                break
            line = lines[index]
            if text.is_silent(index) or is_rest(lines, text.echoed, index):
                continue
            looks -= 1
            said, end = text.at(index, asked)
            if said is None and read_line(line).is_error:
                asked = replace(asked, is_over=True)  # whatever was tried again has failed
            if said is None or said.judgement.means in (Meaning.NOT_FAILURE, Meaning.WORK_LEFT):
                continue
            is_marked = said.is_error or _MARK.match(line) is not None
            is_marked = is_marked and not line.startswith("> ")  # a quotation
            allowed = PROSE_AFTER_ERROR if is_marked else _PROSE_AFTER_BANNER
            if after[end] > allowed and not has_failed:
                continue
            is_last = after[end] == 0 and (not said.is_error or _MARK.match(line) is not None)
            said = replace(text.in_more_words(said, context), is_last=is_last)
            return text.with_reset_near(said, index, context)
    return None


class _Text:
    """The lines of a text, and which of them are only shown."""

    def __init__(self, lines: Sequence[str], echoed: Sequence[bool]) -> None:
        self.lines, self.echoed = lines, echoed

    def is_silent(self, index: int) -> bool:
        """Whether the line at `index` says nothing about the run."""
        return self.echoed[index] or not self.lines[index].strip()

    def at(self, index: int, context: ReadingContext) -> tuple[LastError | None, int]:
        """What the message that begins at line `index` says, with the line on which it ends."""
        message, starts = message_at(self.lines, self.echoed, index)
        said, end = self._read(message, starts, index, context)
        if said is None or said.judgement.means not in LIMITS or "\n" not in message:
            return said, end
        if (whole := rejoined(message)) != message:
            again, _ = self._read(whole, starts, index, context)
            if again is not None and _says_more(again.judgement.reset, said.judgement.reset):
                said = said.resetting(again.judgement.reset)
        return said, end

    def _above(self, index: int, context: ReadingContext) -> Iterator[LastError]:
        """What the lines just above `index` say, the nearest first."""
        above = _Text(self.lines[:index], self.echoed[:index])
        asked = replace(context, is_weak=True, is_over=True)
        for near in range(index - 1, max(-1, index - _NEAR), -1):
            if not above.is_silent(near) and (other := above.at(near, asked)[0]) is not None:
                yield other

    def in_more_words(self, said: LastError, context: ReadingContext) -> LastError:
        """What is known by its status or a mere code, as a line just above said it in words."""
        if said.judgement.by_status is None and not _MERE_CODE.match(said.text[:200]):
            return said
        for other in self._above(said.line, context):
            # A limit that a line of its own states explains a status that says nothing.
            is_stated = said.status in _UNSPECIFIC and other.judgement.means in LIMITS
            is_same = other.status in (None, said.status) and (other.is_error or is_stated)
            has_room = with_status(other.judgement, said.status) is other.judgement
            if is_same and has_room and other.judgement.by_status is None:
                return other.resetting(said.judgement.reset or other.judgement.reset)
        return said

    def with_reset_near(self, said: LastError, index: int, context: ReadingContext) -> LastError:
        """A limit that does not say when, with the time that a line just above or below states."""
        judgement = said.judgement
        if judgement.reset is not None or judgement.means not in (*LIMITS, Kind.BILLING):
            return said
        if judgement.means in LIMITS:
            reset = self._reset_above(said, index, context) or self._reset_below(index, context)
            return said.resetting(reset)
        for other in self._above(index, context):  # "Next review in 27 minutes. … spending cap"
            is_one = all(map(str.strip, self.lines[other.line : index]))
            if is_one and other.judgement.means in LIMITS and other.judgement.reset is not None:
                return other
        reset = self._reset_below(index, context)
        # A reset signal for machines means that it recovers, whatever the words (E-G1).
        if reset is None or not reset.source.lower().startswith("retry"):
            return said
        return replace(said, judgement=replace(judgement, means=Kind.RATE_LIMIT, reset=reset))

    def _reset_above(
        self, said: LastError, index: int, context: ReadingContext
    ) -> ResetTime | None:
        for other in self._above(index, context):
            if other.judgement.means not in LIMITS:
                continue
            # "Retry after 2s" does not tell when a plan's window ends, unless both are one message.
            is_plan = said.judgement.means is Kind.QUOTA is not other.judgement.means
            is_one = not other.is_error and all(map(str.strip, self.lines[other.line : index]))
            reset = None if is_plan and not is_one else other.judgement.reset
            # "Retrying in 16 seconds" above the last error was the wait before it, and has passed.
            if reset is not None and not tries_again(reset.source):
                return reset
        return None

    def _reset_below(self, index: int, context: ReadingContext) -> ResetTime | None:
        """The time that a line of its own states below: "Resets on 08/01", "Reset time: in 2h"."""
        is_answer = False
        for below in range(index + 1, min(len(self.lines), index + _NEAR_BELOW)):
            # retry_delay {⏎ seconds: 36: as protocol buffers are printed
            line = "\n".join(self.lines[below : below + 2])
            delay = _RETRY_DELAY.search(line[:2000]) or _UNTIL.search(line[:2000])
            line = line[delay.start() :] if delay else line
            is_answer = is_answer or prose_words(self.lines[below]) > _ANSWER
            if not delay and (is_answer or not _RESET_LINE.match(line)):
                continue
            reset = context.reset_in(line)
            if reset is not None and not tries_again(reset.source):
                return reset
        return None

    def _read(
        self, message: str, starts: Sequence[int], index: int, context: ReadingContext
    ) -> tuple[LastError | None, int]:
        spoken = read_line(message)
        fields = _body(message) if spoken.is_error and "{" in message else None
        text, status, is_error = spoken.text, spoken.status, spoken.is_error
        if fields is not None:
            body = read_body(fields)
            plain = text.replace("\\n", " ")  # the body as it was printed stands in the text too
            text = one_line(f"{plain} {body.words}", body.codes)
            status = status or body.status
        if not _ZONE.search(message) and (zone := self._zone_above(index)) is not None:
            context = replace(context, zone=zone)
        judgement = None if context.is_over else _notice(spoken, context)
        judgement = judgement or judge(text, context, is_error=is_error, fields=fields)
        judgement = judgement or _from_part(message, spoken, context)
        if judgement is None and context.is_weak:
            is_bare, bare_status = bare_error(spoken.whole)
            if is_bare:
                is_error, text, status = True, spoken.whole, status or bare_status
                fields = _body(message) if "{" in message else None
                judgement = judge(text, context, is_error=True, fields=fields)
        code = _BARE_CODE.match(text)  # rate_limit retry_after=…: a reason in one word
        if judgement is None and is_error and (code or status is not None):
            codes = () if fields is None else read_body(fields).codes
            codes = (*codes, code[0].lower()) if code else codes
            judgement = judge_status(status, text, context, codes=codes, fields=fields)
        if judgement is None and is_error:
            judgement = judge_unknown(text, context)
        is_talk = judgement is None or explains(spoken.text, judgement.end)
        if judgement is None or (not is_error and judgement.means in LIMITS and is_talk):
            return None, index
        judgement = with_status(judgement, status if is_error else None)
        if is_error and judgement.reset is None and judgement.means in LIMITS:
            # "The provider asks for a wait of 90 s. Original error: 429": the time comes first.
            judgement = replace(judgement, reset=context.reset_in(spoken.whole))
        around = response_at(self.lines, index, is_error=is_error)
        judgement = _with_headers(judgement, around, status, context)
        said = LastError(
            judgement=judgement, text=message, is_error=is_error, status=status, line=index
        )
        return said, self._end_line(judgement, spoken, starts, index)

    def _zone_above(self, index: int) -> tzinfo | None:
        """The zone that a banner just above names; a program prints one zone."""
        for line in reversed(self.lines[max(0, index - 8) : index]):
            if found := _ZONE.search(line):
                return named_zone(found["zone"])
        return None

    def _end_line(
        self, judgement: Judgement, spoken: SpokenLine, starts: Sequence[int], index: int
    ) -> int:
        # Squashing only shortens, so the position in the squashed text is a lower bound.
        offset = judgement.end + len(spoken.whole) - len(spoken.text)
        end = index + max(0, sum(1 for start in starts if start <= offset) - 1)
        last = index + len(starts) - 1
        while end < last and (
            spoken.is_error
            or continues(self.lines[end], self.lines[end + 1])
            or self.lines[end].rstrip().endswith(":")  # the next line tells more
        ):
            end += 1
        return min(end, len(self.lines) - 1)


def _says_more(whole: ResetTime | None, torn: ResetTime | None) -> bool:
    """Whether a time says more once the words are made whole: "2 d" is torn from "2 days 17 h"."""
    parts = ["" if one is None else "".join(one.source.split()) for one in (whole, torn)]
    return len(parts[0]) > len(parts[1]) and parts[0].startswith(parts[1])


def _body(message: str) -> object:
    """The error body in `message`; if none of its objects is one, the first of them."""
    first, position = None, 0
    for _ in range(3):
        if (found := first_object(message, position)) is None:
            break
        data, begin = found
        if isinstance(data, dict) and body_evidence(data) is not None:
            return data
        first, position = data if first is None else first, begin + 1
    return first


def bare_error(text: str) -> tuple[bool, int | None]:
    """Whether `text` is an error that nothing introduces, with its status, if it has one.

    Such a line has a status beside a word that says where it comes from, or a code that only
    machines write. A line that reads like a person or like code is none.
    """
    if len(text) > _LONGEST_BARE:
        return False, None
    status, code = _BARE_STATUS.search(text), _BARE_CODE.search(text)
    stated = status or code
    if stated is None or is_person(text) or is_inside_quotes(text, stated.start()):
        return False, None
    return True, int(status["status"] or status["first"]) if status else None


def tries_again(text: str) -> bool:
    """Whether `text` tells that the program tries again, so that its last word comes later."""
    return _TRIES_AGAIN.search(text) is not None


def _notice(spoken: SpokenLine, context: ReadingContext) -> Judgement | None:
    """A notice whose error is only a prefix: "Attempt 5 failed. Retrying … Error: …"."""
    if spoken.whole == spoken.text or not tries_again(spoken.whole):
        return None
    found = judge(spoken.whole, replace(context, is_weak=False), is_error=False)
    return found if found is not None and found.means is Meaning.PROGRESS else None


def _from_part(message: str, spoken: SpokenLine, context: ReadingContext) -> Judgement | None:
    """What the prefixes say, or the first line alone: what follows may be no part of it."""
    found = _from_prefix(spoken, context) if spoken.whole != spoken.text else None
    if found is not None or not context.is_weak or "\n" not in message:
        return found
    line = read_line(message.partition("\n")[0])
    return judge(line.text, context, is_error=line.is_error)


def _from_prefix(spoken: SpokenLine, context: ReadingContext) -> Judgement | None:
    """What the prefixes themselves say: "rate limited: …", "Could not resolve host: …"."""
    as_line = judge(spoken.whole, context, is_error=False)
    if as_line is not None or not spoken.is_error:
        return as_line
    # A prefix names many things; a limit must be stated by the message itself, unless all
    # that the message says is when: "task 7 failed (quota): resets in 2h".
    found = judge(spoken.whole, replace(context, is_weak=False), is_error=True)
    if found is None or found.means not in LIMITS:
        return found
    if _LIMIT_CLASS.search(spoken.whole[: len(spoken.whole) - len(spoken.text)]):
        return found
    stated = context.reset_in(spoken.text)
    return found if stated is not None and stated.span[0] <= _AT_ONCE else None


def _with_headers(
    judgement: Judgement, lines: Sequence[str], status: int | None, context: ReadingContext
) -> Judgement:
    headers = headers_reset(lines, context)
    if headers is None:
        return judgement
    # A reset signal means that it recovers, whatever the words (E-G1); a 403 may be a limit (E-G2).
    is_limit = judgement.means is Kind.BILLING or (judgement.means is Kind.AUTH and status == 403)
    if not is_limit and judgement.means not in LIMITS:
        return judgement
    means = Kind.RATE_LIMIT if is_limit else judgement.means
    if means is Kind.RATE_LIMIT and is_plan_limit(lines):
        means = Kind.QUOTA
    return replace(judgement, means=means, reset=headers)


# ⏺ I went on where …   [helper]: I have …: an answer, so whatever stands above it was survived.
_BULLET = re.compile(r"\s{0,4}[⏺●]\s{1,3}[A-Z]|\[[\w-]{2,40}\]: I\b")
# 12:00:01 INFO turn finished: a program that logs goes on
_WENT_ON = re.compile(
    rf"{STAMP}(?:-\s)?(?:[\w.]{{1,40}}[:|]\s?)?\[?(?:INFO|DEBUG)\b(?![^\n]{{0,200}}(?i:shut|stop|exit|clos|end|abort|terminat|clean))"
    r"|(?:\w{1,20}=\S{1,60} ){0,3}level=\"?(?:info|debug)\b"
)
# ### Results: a document begins
_HEADING = re.compile(r"#{1,4} \S")
_ANSWER = 10
# "Estimated usage" is a heading, no answer.
_LABEL = 3
_SENTENCE_END = re.compile(r"[.!?…]\s*$")
# Words of prose below it that make a banner part of an answer; an error is believed for longer,
# because programs explain their errors.
_PROSE_AFTER_BANNER = 8
PROSE_AFTER_ERROR = 25
_PROSE_AFTER_ALL = 400


def goes_on(line: str) -> bool:
    """Whether `line` is what a program prints that goes on: a record of its log, an answer."""
    is_answer = _BULLET.match(line) is not None and prose_words(line) >= _ANSWER
    return is_answer or _WENT_ON.match(line) is not None


def prose_below(lines: Sequence[str], echoed: Sequence[bool]) -> list[int]:
    """For each line, how many words of prose stand below it."""
    after, total, is_logged, is_long = [0] * len(lines), 0, False, False
    is_advice = _advice(lines, echoed)
    stamped = next((index for index, line in enumerate(lines) if is_stamped(line)), len(lines))
    for index in range(len(lines) - 1, -1, -1):
        # A log that goes on tells nothing about what was printed before it began.
        after[index] = total + (PROSE_AFTER_ERROR + 1 if is_logged and index >= stamped else 0)
        line = lines[index]
        is_traced = index > 0 and lines[index - 1].lstrip().startswith('File "')
        is_logged = is_logged or goes_on(line)
        is_long = is_long or prose_words(line) >= _LABEL
        is_text = (is_long and _HEADING.match(line)) or (is_code(line) and not is_traced)
        if is_text or is_survival(line):
            total += PROSE_AFTER_ERROR + 1
        is_begun = _BULLET.match(line) is not None
        is_continued = index > 0 and not is_begun and continues(lines[index - 1], line)
        if not is_continued and not is_advice[index]:
            words = 0 if is_stamped(line) else prose_words(line)
            is_answer = words >= _ANSWER and is_begun
            is_label = words <= _LABEL and not _SENTENCE_END.search(line[-40:])
            total += PROSE_AFTER_ERROR + 1 if is_answer else 0 if is_label else words
    return after


def _advice(lines: Sequence[str], echoed: Sequence[bool]) -> list[bool]:
    """For each line, whether it may follow a banner: advice, also as an item of a list."""
    found: list[bool] = []
    is_headed = is_typed = is_task = False
    above = ""
    for line, is_echoed in zip(lines, echoed, strict=True):
        # What the user types into the box of a terminal program answers nothing.
        is_typed = _RULE.match(line) is None and (
            is_typed or (_RULE.match(above) is not None and _INPUT.match(line) is not None)
        )
        is_task = _TASK_COUNT.match(line) is not None or (is_task and not line[:1].strip())
        is_item = is_headed and line.lstrip().startswith(("- ", "* ", "• ", "✔ "))
        is_advice = is_frame(line) or (is_trailer(line) and (is_item or not is_echoed))
        found.append(is_typed or is_task or is_advice)
        # 8 tasks (7 done, 1 in progress, 0 open): the list of them follows
        is_headed = is_advice and (is_item or line.rstrip().endswith((":", " open)")))
        above = line
    return found
