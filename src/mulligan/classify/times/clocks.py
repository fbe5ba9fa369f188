"""Times of day as people write them: 9pm, 9:30 p.m., 21:30, 2130 UTC, 15h30, 15 Uhr, midnight."""

from __future__ import annotations

import re

from ...core.lazy_pattern import lazy
from ...core.record import record

__all__ = ("TimeOfDay", "clock_at")


@record(kw_only=True)
class TimeOfDay:
    """A time on the clock; hour 24 is the midnight that ends the day.

    Args:
        hour: 0 to 24.
        minute: 0 to 59.
        second: 0 to 60, a leap second included; None where none was stated.
        end: Where it ends in the text.
    """

    hour: int
    minute: int = 0
    second: float | None = None
    end: int


_TWELVE = lazy(
    r"(?P<h>\d{1,2})(?:[:.](?P<m>\d{2})(?:[:.](?P<s>\d{2}))?)?\s{0,4}(?P<half>[ap])\.?\s?m(?![A-Za-z])\.?",
    re.IGNORECASE,
)
_TWENTYFOUR = lazy(
    r"(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2}(?:[.,]\d{1,9})?))?(?![:\d])(?:\s?(?:Uhr|uur|h|hs|hrs)\b)?"
)
# Four digits are a time only where a zone says so.
_MILITARY = lazy(r"(?P<h>[0-2]\d)(?P<m>[0-5]\d)(?P<s>)(?=\s?(?:UTC|GMT|Z|hrs)\b)")
_HOURS = lazy(
    r"(?P<h>\d{1,2})\s?h(?:\s?(?P<m>\d{2}))?(?![A-Za-z0-9])|(?P<h2>\d{1,2})(?:\.(?P<m2>\d{2}))?\s?Uhr\b",
    re.IGNORECASE,
)
_EAST = lazy(
    r"(?P<half>上午|下午|晚上|凌晨|早上|午前|午後|오전|오후)?\s?(?P<h>\d{1,2})"
    r"(?:[:：](?P<m>\d{2})(?::(?P<s>\d{2}))?|[时時点點시]\s?(?:(?P<m2>\d{1,2})[分분])?)"
)
_NAMED = lazy(
    r"(?P<noon>noon|midday|midi|mediod[ií]a|meio-dia|mittags?|mezzogiorno)\b"
    r"|(?P<midnight>midnight|minuit|medianoche|meia-noite|mitternacht|mezzanotte)\b",
    re.IGNORECASE,
)
_NIGHT = {"上午", "凌晨", "早上", "午前", "오전", "晚上"}
_AFTERNOON = {"下午", "晚上", "午後", "오후"}


def clock_at(text: str, start: int) -> TimeOfDay | None:
    """The time of day that begins at `start`, or None."""
    if found := _TWELVE.match(text, start):
        hour = int(found["h"])
        if found["half"] in "pP":
            hour = hour + 12 if hour < 12 else hour
        elif hour == 12:
            hour = 0
        return _valid(hour, found["m"], found["s"], found.end())
    if found := _TWENTYFOUR.match(text, start) or _MILITARY.match(text, start):
        return _valid(int(found["h"]), found["m"], found["s"], found.end())
    if found := _HOURS.match(text, start):
        hour = int(found["h"] or found["h2"])
        return _valid(hour, found["m"] or found["m2"], None, found.end())
    if found := _EAST.match(text, start):
        hour = int(found["h"])
        if found["half"] in _AFTERNOON and hour < 12:
            hour += 12
        elif found["half"] in _NIGHT and hour == 12:
            hour = 24 if found["half"] == "晚上" else 0
        return _valid(hour, found["m"] or found["m2"], found["s"], found.end())
    if found := _NAMED.match(text, start):
        return TimeOfDay(hour=12 if found["noon"] else 0, end=found.end())
    return None


def _valid(hour: int, minute: str | None, second: str | None, end: int) -> TimeOfDay | None:
    minutes = int(minute or 0)
    seconds = float(second.replace(",", ".")) if second else None
    if hour > 24 or minutes > 59 or (seconds or 0) >= 61 or (hour == 24 and (minutes or seconds)):
        return None
    return TimeOfDay(hour=hour, minute=minutes, second=seconds, end=end)
