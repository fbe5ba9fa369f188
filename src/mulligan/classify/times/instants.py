"""From a day on the calendar, a time of day, a zone: the instant that is meant.

A clock time without a date is the next such instant in its zone. A date without a year is the
next such date, unless it passed less than two days ago: then it was meant, and is over. A stated
year is believed, past or not. All differences are taken in UTC, so a night on which the clocks
change has the length it really has.

A time that names no seconds names a whole minute: programs cut the seconds off. While that minute
runs, what is meant lies in it, and its end is the first instant that is surely past it.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from ...core.record import record

if TYPE_CHECKING:
    from .clocks import TimeOfDay
    from .dates import Day

__all__ = ("Instant", "instant")

_DAY = 86400.0
# A banner without a date that is this fresh may be yesterday's news rather than tomorrow's.
_JUST_PASSED = 3600.0
_RECENT_DAYS = 2
_MINUTE = 60.0


@record(kw_only=True)
class Instant:
    """A resolved time.

    Args:
        at: Epoch seconds.
        is_doubtful: Whether a reader could take the words to mean another time.
        is_end: Whether it is the end of the minute that was named, which has begun.
        is_just_past: Whether the time that was named has just passed, and `at` is the next one.
    """

    at: float
    is_doubtful: bool = False
    is_end: bool = False
    is_just_past: bool = False


def instant(
    *, day: Day | None, clock: TimeOfDay | None, zone: tzinfo, now: float
) -> Instant | None:
    """The instant that `day` with `clock` means in `zone`; None if there is no such day."""
    try:
        here = datetime.fromtimestamp(now, zone)
        if day is None:
            return None if clock is None else _next_time(here.date(), clock, zone, now)
        if (ahead := _days_ahead(day, here.date())) is not None:
            wanted = here.date() + timedelta(days=ahead)
            # "Today" says that it has not passed, and not when it will.
            is_open = ahead == 0 and clock is None
            return None if is_open else _within(_epoch(wanted, clock, zone, now), clock, now)
        if day.weekday is not None:
            return _next_weekday(here.date(), day.weekday, clock, zone, now)
        if day.year is not None:
            at = _epoch(date(day.year, day.month, day.day), clock, zone, now)
            return _within(at, clock, now, is_doubtful=day.is_ambiguous)
        search = _next_date if day.month else _next_day_of_month
        return search(here.date(), day, clock, zone, now)
    except (ValueError, OverflowError, OSError):  # Feb 30, the year 10000, a clock out of range
        return None


def _days_ahead(day: Day, today: date) -> int | None:
    if day.week is None or day.weekday is None:
        return day.ahead
    return 7 * day.week + day.weekday - today.weekday()


def _next_time(today: date, clock: TimeOfDay, zone: tzinfo, now: float) -> Instant:
    at = before = _epoch(today, clock, zone, now)
    if (running := _within(before, clock, now)).is_end:
        return running
    # A skipped or repeated hour can move the next instant by a day, never by two.
    for ahead in (1, 2):
        if at < now:
            at = _epoch(today + timedelta(days=ahead), clock, zone, now)
    is_just_past = at != before and now - before < _JUST_PASSED
    return Instant(at=at, is_doubtful=is_just_past, is_just_past=is_just_past)


def _next_weekday(
    today: date, weekday: int, clock: TimeOfDay | None, zone: tzinfo, now: float
) -> Instant:
    ahead = (weekday - today.weekday()) % 7
    at = _epoch(today + timedelta(days=ahead), clock, zone, now)
    if (running := _within(at, clock, now)).is_end or at >= now:
        return running
    doubtful = now - at < _JUST_PASSED
    again = _epoch(today + timedelta(days=ahead + 7), clock, zone, now)
    return Instant(at=again, is_doubtful=doubtful, is_just_past=doubtful)


def _next_date(
    today: date, day: Day, clock: TimeOfDay | None, zone: tzinfo, now: float
) -> Instant | None:
    # Last year for a banner of December read in January; eight ahead because 2100 has no Feb 29.
    for year in range(today.year - 1, today.year + 9):
        try:
            at = _epoch(date(year, day.month, day.day), clock, zone, now)
        except ValueError:
            continue
        if at >= now - _RECENT_DAYS * _DAY:
            return _within(at, clock, now, is_doubtful=day.is_ambiguous)
    return None


def _next_day_of_month(
    today: date, day: Day, clock: TimeOfDay | None, zone: tzinfo, now: float
) -> Instant | None:
    first = today.year * 12 + today.month - 1
    for months in range(first, first + 3):  # two short months never follow each other
        try:
            wanted = date(months // 12, months % 12 + 1, day.day)
        except ValueError:
            continue
        if (at := _epoch(wanted, clock, zone, now)) > now:
            return Instant(at=at)
    return None


def _within(
    at: float, clock: TimeOfDay | None, now: float, *, is_doubtful: bool = False
) -> Instant:
    """The instant `at`, or the end of the minute that it names if that has begun."""
    is_running = clock is not None and clock.second is None and 0 < now - at < _MINUTE
    return Instant(
        at=at + _MINUTE if is_running else at, is_doubtful=is_doubtful, is_end=is_running
    )


def _epoch(day: date, clock: TimeOfDay | None, zone: tzinfo, now: float) -> float:
    """Epoch seconds of `clock` on `day`.

    In a skipped hour the instant is the one that the clock would have shown without the change;
    of a repeated hour it is the first that is not over.
    """
    hour, minute, second = (clock.hour, clock.minute, clock.second or 0.0) if clock else (0, 0, 0.0)
    if hour == 24:
        day, hour = day + timedelta(days=1), 0
    local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
    first = local.timestamp() + second
    if first >= now:
        return first
    later = local.replace(fold=1).timestamp() + second
    return max(first, later)
