"""Lengths of time in words.

``1h47m17.664s``, ``5 days 22 hours 11 minutes``, ``PT2H``, ``0:00:59.47``, ``less than a minute``,
``~1 day``, ``2 Stunden``, ``3,600 seconds``. A number without a unit is not a duration here.
"""

from __future__ import annotations

import re

from ...core.lazy_pattern import lazy
from ...core.record import record
from .numbers import FIGURES, HAN, number_of

__all__ = ("Length", "duration_at")

_UNIT_WORDS = {
    0.001: "milliseconds?|millisekunden?|millis|msecs?|ms|毫秒",
    1.0: "seconds?|segundos?|sekunden?|secondes?|second[oi]|seconden|secs?|sek|seg|s"
    "|секунд[ыу]?|сек|秒[钟鐘間]?|초",
    60.0: "minutes?|minutos?|minuten?|minut[oi]|mins?|m|минут[ыу]?|мин|分[钟鐘間]?(?!之)|분",
    3600.0: "hours?|horas?|stunden?|heures?|or[ae]|uren|uur|hrs?|std|h|час(?:а|ов)?"
    "|小[时時]|[钟鐘][头頭]|時間|시간",
    86400.0: "days?|d[ií]as?|tage?n?|jours?|giorn[oi]|dagen|d|дн(?:я|ей)|день|天|日間?|일",
    604800.0: "weeks?|semanas?|wochen?|semaines?|settiman[ae]|wks?|w|недел[яиюь]"
    "|星期|[礼禮]拜|[周週]間?|주",
    2592000.0: "months?|mes(?:es)?|monate?n?|mois|mes[ei]|[个個かヶカケヵ]月|개월",
}
_NUMBER_WORDS = {
    "half an": 0.5, "half a": 0.5, "an": 1, "a": 1, "one": 1, "two": 2, "three": 3, "four": 4,
    "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
    "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "eine": 1, "einer": 1, "einem": 1, "einen": 1, "un": 1, "una": 1, "une": 1, "um": 1, "uma": 1,
    "dos": 2, "dois": 2, "duas": 2, "deux": 2, "zwei": 2,
}  # fmt: skip
# An hour and a half, two and a half hours, 2½ hours, 两个半小时.
_HALF = (
    r"(?:(?:and\s+a|und\s+ein\w{0,2}|y|et|e)\s+(?:half|halbe?s?|medi[ao]|demie?|mei[ao]|mezz[ao])"
    r"(?![A-Za-z])|½|1/2|半|반)"
)
_SIZES = tuple(_UNIT_WORDS)
_PART = lazy(
    rf"(?:(?P<number>{FIGURES})(?:\s+|-)?|(?P<han>{HAN})\s?|(?P<word>"
    + "|".join(word.replace(" ", r"\s+") for word in _NUMBER_WORDS)
    # "a m" and "one s" are no durations: a word takes a word.
    + rf")\s+(?=\w{{3}}))[个個]?(?:(?P<half>{_HALF})\s*)?(?:"
    + "|".join(f"(?P<u{index}>{words})" for index, words in enumerate(_UNIT_WORDS.values()))
    # "until the 5-hour limit resets": the name of a window.
    + rf")(?:(?P<more>\s?{_HALF})|(?<=std|min|sek|seg|sec|hrs)\.(?=\s?\d))?"
    r"(?![A-Za-z])(?!\s(?:usage |session )?(?:limits?|windows?|quotas?|blocks?|sessions?)\b)",
    re.IGNORECASE,
)
_BETWEEN = lazy(r"\s*,?\s*(?:(?:and|und|et|y|e)\s+|[と、零又])?", re.IGNORECASE)
_ABOUT = lazy(
    r"(?:~|≈|(?:less than|under|about|approximately|approx\.?|around|roughly|almost|nearly|up to"
    r"|at least|at most|another|circa|ca\.|etwa|ungefähr|environ|aproximadamente|cerca de|unos"
    r"|约|大约|約|至少|最少)"
    r"(?![A-Za-z]))\s*",
    re.IGNORECASE,
)
# "Every 5 hours" is how often, "the 2nd day" is which one: neither is how long from now.
_EVERY = lazy(r"(?:[每毎第매月]|월\s|\b(?:every|each|alle|cada|toutes les)\s)\s?$", re.IGNORECASE)
_EACH = lazy(r"\s?(?:ごと|毎|おき|마다|[1一]\s?[次回])")
_ISO = lazy(
    r"P(?:(?P<d>\d{1,4})D)?T(?:(?P<h>\d{1,5})H)?(?:(?P<m>\d{1,6})M)?(?:(?P<s>\d{1,9}(?:\.\d{1,9})?)S)?(?![A-Za-z0-9])"
)
_COLONS = lazy(
    r"(?:(?P<d>\d{1,4})\s*days?,?\s*)?(?P<h>\d{1,4}):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d(?:\.\d{1,9})?))?(?![:\d])"
    r"(?!\s*[ap]\.?m\b)",
    re.IGNORECASE,
)
# "in 2h05": the minutes without their unit.
_HOURS_MINUTES = lazy(r"(?P<d>)(?P<h>\d{1,4})\s?h\s?(?P<m>[0-5]\d)(?P<s>)(?![\w:.])")


@record(kw_only=True)
class Length:
    """A stated duration.

    Args:
        seconds: How long.
        end: Where it ends in the text.
        smallest: The smallest unit it was stated in, in seconds: how much was rounded away.
        is_rough: Whether it says so itself: "about", "~", "less than".
    """

    seconds: float
    end: int
    smallest: float
    is_rough: bool = False


def duration_at(text: str, start: int, *, has_colons: bool) -> Length | None:
    """The duration that begins at `start`, or None.

    Args:
        text: Plain text.
        start: Where it must begin.
        has_colons: Whether ``2:15`` can be meant: it is a duration after "in", a time after "at".
    """
    about = _ABOUT.match(text, start)
    begin = about.end() if about else start
    found = (_places(text, begin) if has_colons else None) or _units(text, begin)
    if found is None:
        return None
    seconds, end, smallest = found
    if _EVERY.search(text, max(0, start - 16), start) or _EACH.match(text, end):
        return None
    return Length(seconds=seconds, end=end, smallest=smallest, is_rough=about is not None)


def _units(text: str, start: int) -> tuple[float, int, float] | None:
    total, end, smallest, position = 0.0, start, 0.0, start
    while (part := _PART.match(text, position)) is not None:
        size = next(_SIZES[i] for i in range(len(_SIZES)) if part[f"u{i}"] is not None)
        if smallest and size >= smallest:
            break
        total += (_number(part) + (0.5 if part["half"] or part["more"] else 0)) * size
        smallest, end = size, part.end()
        between = _BETWEEN.match(text, end)
        position = between.end() if between else end
    # "19h1" was cut in two: the rest stands on the next line.
    is_torn = text[end : end + 1].isdigit()
    return (total, end, smallest) if smallest and not is_torn else None


def _number(part: re.Match[str]) -> float:
    if part["word"]:
        return float(_NUMBER_WORDS[" ".join(part["word"].lower().split())])
    return number_of(part["number"] or part["han"])


def _places(text: str, start: int) -> tuple[float, int, float] | None:
    """ISO 8601 and clock-like durations, whose units are places."""
    forms = (_ISO, _COLONS, _HOURS_MINUTES)
    found = next((one for form in forms if (one := form.match(text, start))), None)
    if found is None or not any(found[name] for name in "dhms"):
        return None
    places = zip("dhms", (86400.0, 3600.0, 60.0, 1.0), strict=True)
    total = sum(float(found[name]) * size for name, size in places if found[name])
    return total, found.end(), 1.0 if found["s"] else 60.0
