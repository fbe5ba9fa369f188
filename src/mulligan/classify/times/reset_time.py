"""Reset times in words: `find_reset("resets 9pm (Europe/Berlin)", now=…, zone=…)`.

The clock and the host's zone are arguments. The first clause that states a time wins; what a
program says about its own next attempt counts only where the server stated nothing.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING

from ...core.hint import LONGEST, Confidence, Precision
from ...core.lazy_pattern import lazy
from .announcements import (
    AFTER,
    ANNOUNCED,
    ASKS_CLOCK,
    ASKS_LENGTH,
    BARE_SECONDS,
    GAP,
    JOINERS,
    WORD_LAST,
)
from .expressions import Lead, When, when_at
from .numbers import GROUPED, HAN_DIGITS, number_of
from .plain_text import level
from .server_formats import ResetTime, may_state_time

if TYPE_CHECKING:
    from datetime import tzinfo

__all__ = ("find_reset",)


# What follows must not read on: "1 234", "2 1/2 hours", "5 long seconds", "3 requests".
_SECONDS = lazy(
    rf"(?P<n>(?!\d{{1,3}}\s){GROUPED}|\d{{1,8}}(?:\.\d{{1,9}})?)(?![\d:./\-A-Za-z%½]|['_,]\d)"
    r"(?!\s(?:\d{3}\b|\d{1,2}/\d))"
    r"(?!\s+(?:%|(?:[smhd]|requests?|times|attempts?)\b"
    r"|(?:[a-z]{1,12}\s)?(?:m?secs?|mins?|hrs?|\w{0,5}seconds?|minutes?|hours?|days?|weeks?|months?)\b))"
)
_NEGATIVE = lazy(r"(?:^|[\s:=(\"'])-$")
# Reset time (UTC): 2026-07-27 09:25
_UTC = lazy(r"\b(?:UTC|GMT)\)?\s*:\s*$", re.IGNORECASE)
# "After 00:01:30" is a length of time; just after midnight a clock time has no seconds.
_SPAN = lazy(r"00:\d{2}:\d{2}(?![:\d])")
# "total retry wait time: 13.84 seconds" has been waited already.
_SPENT = lazy(
    r"\b(?:total|overall|cumulative|elapsed|spent|waited)\s(?:(?:retry|wait|waiting)\s){0,2}$",
    re.IGNORECASE,
)
# What a clause may span; nothing that people write is longer.
_WINDOW = 160
_LOOK_BACK = 48
_NEAR_VERB = 12
_FAR = lazy(rf"[\d。.!?！？]|[{HAN_DIGITS}][点點时時](?!间|間)")
# A time does not begin in the middle of a word or of a number, nor behind a minus.
_IS_INSIDE = lazy(rf"(?:[A-Za-z0-9{HAN_DIGITS}]|(?:^|[\s:=(\"'])-)$")


def find_reset(text: str, *, now: float, zone: tzinfo | None) -> ResetTime | None:
    """The reset that `text` states, or None.

    Args:
        text: A message; wrapped lines, box borders and escape codes are read through.
        now: Epoch seconds.
        zone: The host's zone: what a time without a zone means. None where that is not known:
            then such a time is not read.
    """
    plain = level(text).replace("\n", " ")
    own: ResetTime | None = None
    if not may_state_time(plain.lower()):
        return None
    for announced in ANNOUNCED.finditer(plain):
        if _SPENT.search(plain, max(0, announced.start() - _LOOK_BACK), announced.start()):
            continue
        when = _behind(plain, announced.end(), now=now, zone=zone)
        if when is None:
            continue
        found = _result(text, announced.start(), when, now)
        if not announced["own"]:
            return found
        own = own or found
    return own or _in_front(text, plain, now=now, zone=zone)


def _behind(plain: str, start: int, *, now: float, zone: tzinfo | None) -> When | None:
    joined = JOINERS.match(plain, start, start + _WINDOW)
    begin = joined.end() if joined else start
    if (when := _time(plain, start, begin, now=now, zone=zone)) is not None:
        return when
    if gap := GAP.match(plain, start, start + _WINDOW):
        return _time(plain, start, gap.end(), now=now, zone=zone)
    return None


def _time(plain: str, start: int, begin: int, *, now: float, zone: tzinfo | None) -> When | None:
    lead = plain[max(0, start - 24) : begin]
    asks = (
        Lead.DURATION
        if ASKS_LENGTH.search(lead) or (AFTER.search(lead) and _SPAN.match(plain, begin))
        else Lead.CLOCK
        if ASKS_CLOCK.search(lead)
        else Lead.NONE
    )
    if _NEGATIVE.search(plain, max(0, begin - 2), begin):
        return None
    zone = UTC if _UTC.search(lead) else zone
    when = when_at(plain, begin, now=now, zone=zone, lead=asks)
    named = BARE_SECONDS.search(lead) if when is None else None
    if named is not None and (bare := _SECONDS.match(plain, begin)):
        seconds = number_of(bare["n"]) / (1000 if named["ms"] else 1)
        if seconds > LONGEST:
            return None
        return When(at=now + seconds, end=bare.end(), precision=Precision.EXACT, length=seconds)
    return when


def _in_front(text: str, plain: str, *, now: float, zone: tzinfo | None) -> ResetTime | None:
    """Languages that put the verb last: the time stands before the word that announces it."""
    low = 0  # what does not lead to one verb leads to no later one
    for verb in WORD_LAST.finditer(plain):
        found: ResetTime | None = None
        begin = max(low, verb.start() - _LOOK_BACK)
        low = verb.start()
        while begin < verb.start():
            when = None
            if not _IS_INSIDE.search(plain, max(0, begin - 2), begin):
                when = when_at(plain, begin, now=now, zone=zone)
            if when is not None and _leads_to(plain, when.end, verb.start()):
                found = _result(text, begin, when, now)  # the last one is what the verb is about
                begin = when.end
            else:
                begin += 1
        if found is not None:
            return found
    return None


def _leads_to(plain: str, end: int, verb: int) -> bool:
    """Whether nothing but a few letters of grammar stands between a time and its word."""
    return end <= verb + 1 and _FAR.search(plain, end, verb) is None and verb - end <= _NEAR_VERB


def _result(text: str, start: int, when: When, now: float) -> ResetTime:
    return ResetTime(
        seconds=max(0.0, when.at - now) if when.length is None else when.length,
        at=when.at,
        span=(start, when.end),
        source=" ".join(text[start : when.end].split()),
        precision=when.precision,
        confidence=Confidence.LOW if when.is_doubtful else Confidence.HIGH,
        is_length=when.length is not None,
        is_just_past=when.is_just_past,
    )
