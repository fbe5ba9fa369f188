"""A weak reading of a run that failed: its last lines, by the stems of their words.

It is asked only where the exit code says that the program failed and no rule knows why. It does not
ask whose voice a line is, so what it says is a guess (`Confidence.LOW`). A failed test, a linter or
a compiler explains the exit code by itself: then nothing is guessed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...core.failure import Kind
from ..pattern_packs import Meaning, Voice
from ..status_kinds import asks_too_much
from ..times.reset_time import find_reset
from .meaning import LIMITS, Judgement, one_line
from .shown import is_frame, is_survival, is_test_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .meaning import ReadingContext

__all__ = ("weak_reading",)

# A program says near its end why it failed.
_LINES = 40
_LONGEST = 600
# A limit that lasts longer is a plan's window.
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


def weak_reading(lines: Sequence[str], context: ReadingContext) -> tuple[Judgement, str] | None:
    """What the last of `lines` with a known stem means, with that line; None if none has one."""
    last = [line[:_LONGEST] for line in lines if line.strip()][-_LINES:]
    if any(map(is_test_report, last)):
        return None
    for index in range(len(last) - 1, -1, -1):
        line = last[index]
        if is_survival(line):
            return None
        is_source = index > 0 and last[index - 1].lstrip().startswith('File "')
        if is_source or is_frame(line) or _CODE.match(line) or _SETTING.match(line):
            continue
        near = "\n".join(last[index : index + _NEAR])
        found = _guess(one_line(line), near, context)
        if found is not None:
            return found, line
    return None


def _guess(text: str, near: str, context: ReadingContext) -> Judgement | None:
    for pack, entry in context.packs.entries(context.agent):
        found = entry.match.search(text) if entry.voice is Voice.GUESS else None
        if found is None:
            continue
        means: Kind | Meaning = entry.means
        if means is Meaning.NOT_FAILURE:
            return None
        reset = None
        if means in LIMITS or entry.with_reset is not None:
            reset = find_reset(near, now=context.now, zone=context.zone)
        if reset is not None and entry.with_reset is not None:
            means = entry.with_reset
        if means in LIMITS and asks_too_much(text):
            means, reset = Kind.CONTEXT_LENGTH, None
        because = f'{pack.name}: {entry.id}: the run failed, and it said "{found[0].strip()}"'
        return Judgement(means=means, because=because, reset=reset)
    stated = find_reset(text, now=context.now, zone=context.zone)
    if stated is None:
        return None
    because = f'the run failed, and it said "{stated.source}"'
    means = Kind.QUOTA if stated.seconds > _A_BURST else Kind.RATE_LIMIT
    return Judgement(means=means, because=because, reset=stated)
