"""Times of day as people write them: 9pm, 9:30 p.m., 21:30, 2130 UTC, 15h30, 15 Uhr, midnight."""

from __future__ import annotations

import re

from ...core.lazy_pattern import lazy
from ...core.record import record
from .numbers import HAN, number_of

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
    r"(?P<part>(?P<morning>上午|凌晨|早[上晨]|(?<=[今明])早|清晨|午前|朝|오전|새벽|아침)|(?P<noon>中午|正午)"
    r"|(?P<afternoon>下午|午[後后]|傍晚|夕方|오후|저녁)|(?P<night>[晚夜][上間间里]?|晩|밤))?\s?"
    # Alone, 一点 is "a bit" and 一時 "for now".
    rf"(?P<h>\d{{1,2}}|(?(part){HAN}|(?!))(?=[时時点點]))(?::(?P<m>\d{{2}})(?::(?P<s>\d{{2}}))?"
    rf"|[時时點点시][钟鐘]?(?![间間간])\s?(?:(?P<m2>\d{{1,2}}|{HAN})[分분]|(?P<half>半|반))?)"
)
_NAMED = lazy(
    r"(?P<noon>noon|midday|midi|mediod[ií]a|meio-dia|mittags?|mezzogiorno)\b"
    r"|(?P<midnight>midnight|minuit|medianoche|meia-noite|mitternacht|mezzanotte)\b",
    re.IGNORECASE,
)


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
        return _eastern(found)
    if found := _NAMED.match(text, start):
        return TimeOfDay(hour=12 if found["noon"] else 0, end=found.end())
    return None


def _eastern(found: re.Match[str]) -> TimeOfDay | None:
    hour = int(number_of(found["h"]))
    if found["night"]:
        if hour < 5:  # 晚一点 is "a bit later", and 今晚1点 lies in another day
            return None
        hour += 12 if hour <= 12 else 0
    elif (found["afternoon"] and hour < 12) or (found["noon"] and hour < 6):
        hour += 12
    elif found["morning"] and hour == 12:
        hour = 0
    minute = found["m"] or (found["m2"] and str(int(number_of(found["m2"]))))
    return _valid(hour, "30" if found["half"] else minute, found["s"], found.end())


def _valid(hour: int, minute: str | None, second: str | None, end: int) -> TimeOfDay | None:
    minutes = int(minute or 0)
    seconds = float(second.replace(",", ".")) if second else None
    if hour > 24 or minutes > 59 or (seconds or 0) >= 61 or (hour == 24 and (minutes or seconds)):
        return None
    return TimeOfDay(hour=hour, minute=minutes, second=seconds, end=end)
