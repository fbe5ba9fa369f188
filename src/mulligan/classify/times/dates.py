"""Days as people write them: Jul 31, 28th of September 2026, 10/2/2026, 2.10.2026, Mon, tomorrow.

Month before day where a slash leaves it open: the programs that print such dates are American.
"""

from __future__ import annotations

import re

from ...core.lazy_pattern import lazy
from ...core.record import record

__all__ = ("Day", "day_at")


@record(kw_only=True)
class Day:
    """A stated day: a date with or without its year, a weekday, or days from today.

    Args:
        end: Where it ends in the text.
        year: The year, if one was stated.
        month: 1 to 12; 0 if none was stated.
        day: 1 to 31; 0 if no date was stated.
        weekday: 0 is Monday.
        week: Calendar weeks from this one; None for the next such weekday.
        ahead: Days from today.
        is_ambiguous: Whether month and day could be the other way round.
    """

    end: int
    year: int | None = None
    month: int = 0
    day: int = 0
    weekday: int | None = None
    week: int | None = None
    ahead: int | None = None
    is_ambiguous: bool = False


_MONTHS = (
    "january|janvier|januar[iy]?|enero|janeiro|gennaio|janv|jan|ene|gen|jän|янв(?:аря)?",
    "february|février|fevrier|februar[iy]?|febrero|fevereiro|febbraio|févr|feb|fev|fév|фев(?:р|раля)?",
    "march|mars|märz|maart|marzo|março|mar|mrz|mär|мар(?:та)?",
    "april|avril|abril|aprile|apr|abr|avr|апр(?:еля)?",
    "may|mai|mayo|maio|maggio|mei|mag|ма[йя]",
    "june|juin|juni|junio|junho|giugno|jun|giu|июн[ья]?",
    "july|juillet|juli|julio|julho|luglio|juil|jul|lug|июл[ья]?",
    "august|août|aout|agosto|augustus|aug|ago|авг(?:уста)?",
    "september|septembre|septiembre|setembro|settembre|sept|sep|set|сент?(?:ября)?",
    "october|octobre|oktober|octubre|outubro|ottobre|oct|okt|out|ott|окт(?:ября)?",
    "november|novembre|noviembre|novembro|nov|ноя(?:б|бря)?",
    "december|décembre|decembre|dezember|diciembre|dezembro|dicembre|dec|dez|dic|déc|дек(?:абря)?",
)
_WEEKDAYS = (
    "monday|mon|montag|lundi|lunes|segunda-feira|lunedì",
    "tuesday|tues|tue|dienstag|mardi|martes|terça-feira|martedì",
    "wednesday|weds|wed|mittwoch|mercredi|miércoles|quarta-feira|mercoledì",
    "thursday|thurs|thur|thu|donnerstag|jeudi|jueves|quinta-feira|giovedì",
    "friday|fri|freitag|vendredi|viernes|sexta-feira|venerdì",
    "saturday|sat|samstag|samedi|sábado|sabato",
    "sunday|sun|sonntag|dimanche|domingo|domenica",
)
_SOON = (
    "today|tonight|heute|aujourd'hui|hoy|hoje|oggi",
    "tomorrow|morgen|demain|mañana|amanhã|domani",
    "the day after tomorrow|übermorgen|après-demain|pasado mañana|depois de amanhã",
)


def _names(table: tuple[str, ...], prefix: str) -> str:
    return "|".join(f"(?P<{prefix}{index}>{names})" for index, names in enumerate(table))


_YEAR = r"(?:19|20|21)\d{2}"
_ISO = lazy(rf"(?P<y>{_YEAR})(?P<sep>[-/.])(?P<m>\d{{1,2}})(?P=sep)(?P<d>\d{{1,2}})(?!\d)")
_EAST = lazy(
    rf"(?:(?P<y>{_YEAR})\s?[年년]\s?)?(?P<m>\d{{1,2}})\s?[月월]\s?(?P<d>\d{{1,2}})\s?[日号號일]"
    r"(?:\s?\((?:[周週]|星期)?[一二三四五六天月火水木金土日월화수목금토일](?:曜日?|요일)?\))?"
)
# 07-27 09:25:00: a month and a day, where a time of day follows
_DASHES = lazy(r"(?P<m>\d{2})-(?P<d>\d{2})(?=[T ,]{1,2}\d{1,2}:\d{2})(?P<y>)")
_SLASHES = lazy(rf"(?P<a>\d{{1,2}})/(?P<b>\d{{1,2}})(?:/(?P<y>{_YEAR}|\d{{2}}))?(?![\d/])")
_DOTS = lazy(rf"(?P<d>\d{{1,2}})\.\s?(?P<m>\d{{1,2}})\.(?:\s?(?P<y>{_YEAR}))?(?!\d)")
_MONTH_DAY = lazy(
    rf"(?:{_names(_MONTHS, 'm')})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])"
    rf"(?:,?\s+(?P<y>{_YEAR})(?![\d:]))?",
    re.IGNORECASE,
)
_DAY_MONTH = lazy(
    rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th|er|º|\.)?[\s-](?:(?:of|de)\s+)?(?:{_names(_MONTHS, 'm')})"
    rf"(?![a-zà-ÿа-я])\.?(?:,?[\s-](?:(?:de|del)\s+)?(?P<y>{_YEAR})(?![\d:])(?:\s?г\.?)?)?",
    re.IGNORECASE,
)
# The 1st of next month, the first day of the month.
_OF_MONTH = lazy(
    r"(?:(?P<d>\d{1,2})(?:st|nd|rd|th)|first(?= (?:day|of)\b))(?![\w-])(?:\s+day)?"
    r"(?:\s+(?:of\s+)?(?:the|next|each|every|this)(?:\s+next)?\s+(?:calendar\s+)?month)?",
    re.IGNORECASE,
)
_WEEKDAY = lazy(rf"(?:next\s+)?(?:{_names(_WEEKDAYS, 'w')})\b\.?", re.IGNORECASE)
_AHEAD = lazy(rf"(?:{_names(_SOON, 's')})\b", re.IGNORECASE)
# In Chinese the week begins on Monday; 下周一 is the Monday of the next one.
_EAST_WEEKDAY = lazy(
    r"(?:(?P<next>下[个個]?|来|來|다음\s?)|(?P<this>[本这這今][个個]?|이번\s?))?"
    r"(?:(?:[周週]|星期|[礼禮]拜)(?P<zh>[一二三四五六日天])(?!\s?[次回])"
    r"|(?:[周週]の?)?(?P<ja>[月火水木金土日])曜日?|(?:주\s?)?(?P<ko>[월화수목금토일])요일)"
)
_WEEKDAY_SIGNS = {"zh": "一二三四五六日", "ja": "月火水木金土日", "ko": "월화수목금토일"}
_EAST_AHEAD = lazy(
    r"(?P<s0>[今本][天日]|今(?=[晚晩夜早朝])|오늘)|(?P<s1>明[天日]|明(?=[晚晩早朝])|내일)"
    r"|(?P<s2>[后後]天|明後日|모레)"
)


def day_at(text: str, start: int) -> Day | None:
    """The day that begins at `start`, or None."""
    for pattern in (_ISO, _EAST, _DOTS, _DASHES):
        if found := pattern.match(text, start):
            return _dated(found["y"] or None, int(found["m"]), int(found["d"]), found.end())
    if found := _SLASHES.match(text, start):
        first, second = int(found["a"]), int(found["b"])
        month, day = (second, first) if first > 12 else (first, second)
        is_open = first != second and max(first, second) <= 12
        return _dated(found["y"], month, day, found.end(), is_ambiguous=is_open)
    for pattern in (_MONTH_DAY, _DAY_MONTH):
        if found := pattern.match(text, start):
            return _dated(found["y"], _which(found, "m", 12) + 1, int(found["d"]), found.end())
    return _day_from_today(text, start)


def _day_from_today(text: str, start: int) -> Day | None:
    """A day that is known once it is known which day today is."""
    if found := _OF_MONTH.match(text, start):
        day = int(found["d"] or 1)
        return Day(end=found.end(), day=day) if 1 <= day <= 31 else None
    if found := _WEEKDAY.match(text, start):
        return Day(end=found.end(), weekday=_which(found, "w", 7))
    if found := _EAST_WEEKDAY.match(text, start):
        week = 1 if found["next"] else 0 if found["this"] else None
        return Day(end=found.end(), weekday=_east_weekday(found), week=week)
    if found := _AHEAD.match(text, start) or _EAST_AHEAD.match(text, start):
        return Day(end=found.end(), ahead=_which(found, "s", len(_SOON)))
    return None


def _which(found: re.Match[str], prefix: str, count: int) -> int:
    return next(index for index in range(count) if found[f"{prefix}{index}"] is not None)


def _east_weekday(found: re.Match[str]) -> int:
    language = next(name for name in _WEEKDAY_SIGNS if found[name])
    return _WEEKDAY_SIGNS[language].index(found[language].replace("天", "日"))


def _dated(
    year: str | None, month: int, day: int, end: int, *, is_ambiguous: bool = False
) -> Day | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    full = None if year is None else int(year) + (2000 if len(year) == 2 else 0)
    return Day(end=end, year=full, month=month, day=day, is_ambiguous=is_ambiguous)
