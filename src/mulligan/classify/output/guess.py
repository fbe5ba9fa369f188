"""A guess at why a run failed: its last lines by the stems of their words, or a notice's title.

It is asked only where no rule knows why, and does not ask whose voice a line is, so what it says
has `Confidence.LOW`. Whether the run failed is said by its exit code; where that is not known, by
the text alone, which then must end as machines write errors. A failed test, a linter or a compiler
explains the exit code by itself: then nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.failure import Kind
from ..pattern_packs import Meaning
from ..times.plain_text import one_line
from .last_error import goes_on, tries_again
from .meaning import LIMITS, Judgement, judge, judge_status, judge_stems
from .shown import (
    is_code,
    is_frame,
    is_survival,
    is_test_report,
    is_trailer,
    prose_words,
    shown,
    without_history,
)
from .speaker import status_anywhere
from .talk import is_person

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..times.server_formats import ResetTime
    from .meaning import ReadingContext

__all__ = ("error_lines", "guess", "last_words", "says_failed", "titled_limit")

# A program says near its end why it failed.
_LINES = 40
_LONGEST = 600
_A_BURST = 3600.0
# How far below a limit its time may stand.
_NEAR = 4
# rate_limit: 60   --timeout 30   quota="daily",: what a program is told, not what it met
_SETTING = re.compile(
    r"\s{0,8}(?:--?[a-z][\w-]{1,30}[ =]|[\w.\"'-]{1,40}\s?[:=]\s?[\"']?[\w./-]{1,30}[\"']?,\s*$"
    r"|usage: |options?:)",
    re.IGNORECASE,
)
# File "agent.py", line 7, in run   self._throttle(call): a place in code says nothing
_CODE = re.compile(r"\s{0,40}(?:File \"|(?:await |return )?[\w.]{1,80}\([^()\n]{0,80}\)\s*$)")
# detected "rate limit" in output   msgid "Rate limit exceeded": words that are quoted
_MENTION = re.compile(
    r"\s{0,8}msg(?:id|str)\b"
    r"|[^\n]{0,80}\b(?:detect\w{0,3}|match\w{0,3}|contain\w{0,3}|found|saw) [\"'`]"
)
# tests/429_quota.json:4   7710af2... feat: wait for the quota: names of files, titles of commits
_NAME = re.compile(
    r"(?<!\S)(?=\S{0,200}[._-])[\w.~@-]{0,80}/[\w./@-]{1,200}"
    r"|(?<!\S)(?=[0-9a-f]{0,11}[a-f])(?=[a-f]{0,11}\d)[0-9a-f]{7,12}[.:]{0,3} [^\n]*"
)
# acme.RateLimitError: …   "error": {   error_code=refresh_used   status=401   HTTP 503
_MACHINE = re.compile(
    r"\b[A-Z]\w{0,60}(?:Error|Exception)\b|\b[a-z]{3,20}_error\b"
    r"|\b(?:error|error_\w{1,12})\\?[\"']?\s?[:=]\s?\\?[\"'{]"
    r"|\b(?:\w{1,20}_)?(?:status|statusCode|status_code|error_code)\\?[\"']?\s?[:=]\s?\\?[\"']?[45]\d\d\b"
    r"|\b(?:HTTP|status|status code):? [45]\d\d\b|\b(?:\w{1,20}_)?(?:reason|cause|kind)=\w"
)
_BODY = re.compile(r"[\[{]{1,2}\s?\\?[\"']")
# More prose than this beside such an error, and the error is a part of an answer.
_PROSE = 60
# > ## Review limit reached   **Usage Limit Reached**: what a bot writes as a comment
_MARKUP = re.compile(r"^[>\s]*(?:#{1,6}\s|\*\*)\W{0,8}|\*\*|^> ?")
_TITLE = re.compile(
    r"(?:[\w-]{1,20} ){0,3}(?:limit|quota) (?:reached|exceeded|hit|exhausted)\W{0,4}", re.IGNORECASE
)
_NOTICE_LINES = 16
# claude exited with code 1   Process completed with exit code 1.   (exit 2)
_EXIT = re.compile(
    r"(?:\bexited|\bexit[ _]?(?:code|status)|\(exit)(?: (?:with|status|code)){0,2}\W{1,4}"
    r"(?P<code>\d{1,3})\b\W{0,4}$",
    re.IGNORECASE | re.MULTILINE,
)
_END = 1200
# ### Workflow Failure   # Run 12 failed
_FAILED = re.compile(r"\s{0,3}#{1,4} [^\n]{0,80}\b(?:failure|failed|crashed)\s*$", re.IGNORECASE)


def says_failed(lines: Sequence[str]) -> bool:
    """Whether a text says that a run failed: by the last exit code in it, or by its title."""
    spoken = [line[:_LONGEST] for line in lines if line.strip()]
    codes = [found["code"] for found in _EXIT.finditer("\n".join(spoken[-_LINES:])[-_END:])]
    is_titled = bool(spoken) and _FAILED.match(spoken[0]) is not None
    return int(codes[-1]) != 0 if codes else is_titled


def last_words(lines: Sequence[str]) -> list[str]:
    """Those of `lines` that may say why a run failed; none if a test runner says it."""
    last = [line for line in lines if line.strip()][-_LINES:]
    return [] if any(map(is_test_report, last)) else without_history(lines)


def error_lines(lines: Sequence[str]) -> list[str]:
    """The last of `lines` that are not shown, if machines wrote an error there; else none."""
    # Line ends in a string that was printed with its escapes are line ends.
    parts = [part[:_LONGEST] for line in lines for part in line.split("\\n") if part.strip()]
    is_over = not parts or goes_on(parts[-1])
    if is_over or any(is_survival(part) or is_code(part) for part in parts[-_LINES:]):
        return []
    heard = [part for part, is_shown in zip(parts, shown(parts), strict=True) if not is_shown]
    last = [] if any(map(is_test_report, parts[-_LINES:])) else heard[-_LINES:]
    marks = [_MACHINE.search(line) for line in last]
    if 2 * len(heard) < len(parts) or not any(marks):
        return []
    told = [_BODY.split(line)[0] for line, mark in zip(last, marks, strict=True) if mark]
    if any(is_person(one) or "`" in one for one in told):
        return []
    others = (line for line, mark in zip(last, marks, strict=True) if mark is None)
    prose = sum(prose_words(line) for line in others if not is_trailer(line))
    return last if prose <= _PROSE else []


def titled_limit(lines: Sequence[str], context: ReadingContext) -> tuple[Judgement, str] | None:
    """A limit that is the title of a notice which says when it ends: "## Review limit reached"."""
    plain = [_MARKUP.sub("", line) for line in lines]
    for index, line in enumerate(plain):
        if line == lines[index] or not _TITLE.fullmatch(line[:200]):
            continue
        found = judge(one_line(line), replace(context, is_weak=True), is_error=True)
        reset = context.reset_in("\n".join(plain[index + 1 : index + _NOTICE_LINES]))
        if found is not None and found.means in LIMITS and reset is not None:
            return replace(found, reset=reset), lines[index]
    return None


def guess(lines: Sequence[str], context: ReadingContext) -> tuple[Judgement, str] | None:
    """What the last of `lines` with a known stem means, with that line; None if none has one."""
    last = [line[:_LONGEST] for line in lines if line.strip()][-_LINES:]
    for index in range(len(last) - 1, -1, -1):
        line = last[index]
        if is_survival(line):
            return None
        is_source = index > 0 and last[index - 1].lstrip().startswith('File "')
        if (
            is_source
            or is_frame(line)
            or _CODE.match(line)
            or _SETTING.match(line)
            or _MENTION.match(line)
        ):
            continue
        near = [
            "\n".join(last[index : index + _NEAR]),
            *(one for one in reversed(last[:index]) if not tries_again(one)),
        ]
        found = _guess(one_line(_NAME.sub(" ", line)), near, context)
        if found is not None:
            return found, line
    return None


def _guess(text: str, near: Sequence[str], context: ReadingContext) -> Judgement | None:
    found = judge_stems(text, context, near)
    if found is not None:
        said = text[found.begin : found.end].strip()
        because = f'{found.because}: the run failed, and it said "{said}"'
        is_veto = found.means is Meaning.NOT_FAILURE
        means = _limit(found.reset) if found.means is Kind.RATE_LIMIT else found.means
        return None if is_veto else replace(found, means=means, because=because)
    stated = context.reset_in(text)
    if stated is None:
        return judge_status(status_anywhere(text), text, context)
    because = f'the run failed, and it said "{stated.source}"'
    return Judgement(means=_limit(stated), because=because, reset=stated)


def _limit(reset: ResetTime | None) -> Kind:
    """A limit that lasts longer than a burst is a plan's window."""
    return Kind.QUOTA if reset is not None and reset.seconds > _A_BURST else Kind.RATE_LIMIT
