"""Times as servers write them: numbers, durations, dates.

Every reader here is strict: it takes the whole text or nothing. Python's own `int` and `float`
also accept ``1_000``, digits of other scripts, ``+5``, ``1e3``, ``inf`` and ``nan``, none of
which a server that means a time would send.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from math import isfinite
from typing import NamedTuple

from ..core.hint import Confidence, Hint, Precision

__all__ = ("Clocks", "go_duration", "hint_at", "http_date", "iso_instant", "number", "when")

_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")
_GO_PART = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)(ns|us|µs|μs|ms|s|m|h|d)")
_GO = re.compile(r"(?:[0-9]{1,18}(?:\.[0-9]{1,18})?(?:ns|us|µs|μs|ms|s|m|h|d))+")
_UNIT = {
    **dict.fromkeys(("us", "µs", "μs"), 1e-6),  # both of Unicode's mu
    "ns": 1e-9,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(\.[0-9]{1,9})?)?"
    r"\s?([Zz]|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?"
)
_ZONE = re.compile(r"(?:[Zz]|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})\s*$")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})"
# The three forms of RFC 9110 §5.6.7; servers also write +0000, -0000 or UTC where GMT belongs.
_IMF = re.compile(
    rf"[A-Za-z]{{3}}, ([0-9]{{1,2}}) ([A-Za-z]{{3}}) ([0-9]{{4}}) {_TIME} (GMT|UTC|[+-][0-9]{{4}})"
)
_RFC850 = re.compile(
    rf"[A-Za-z]{{6,9}}, ([0-9]{{2}})-([A-Za-z]{{3}})-([0-9]{{2}}) {_TIME} (GMT|UTC|[+-][0-9]{{4}})"
)
_ASCTIME = re.compile(rf"[A-Za-z]{{3}} ([A-Za-z]{{3}}) ([ 0-9][0-9]) {_TIME} ([0-9]{{4}})")

# Below it an integer is a number of seconds (three years at most), above it an epoch.
_EPOCH_FROM = 1e8
# Above it (the year 5138 in seconds) an epoch is in milliseconds.
_MILLIS_FROM = 1e11


class Clocks(NamedTuple):
    """What time it is, in epoch seconds; NaN where nobody said, and then no instant is near."""

    ours: float
    theirs: float


def number(text: str) -> float | None:
    """ASCII digits with one optional decimal part; None for anything else."""
    text = text.strip(" \t")
    if text.isdigit() and text.isascii():  # the usual case, without the pattern
        return float(text) if len(text) <= 18 else None
    return float(text) if _NUMBER.fullmatch(text) else None


def go_duration(text: str) -> float | None:
    """Seconds of ``17ms``, ``6m0s``, ``23h47m36.648s``; None for anything else."""
    text = text.strip(" \t")
    if not _GO.fullmatch(text):
        return None
    return sum(float(amount) * _UNIT[unit] for amount, unit in _GO_PART.findall(text))


def iso_instant(text: str) -> float | None:
    """The epoch of an RFC 3339 instant; without a zone it is read as UTC."""
    found = _ISO.fullmatch(text.strip(" \t"))
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    parts = (int(year), int(month), int(day), int(hour), int(minute), int(second or 0))
    epoch = _epoch(*parts, zone=zone)
    return None if epoch is None else epoch + float(fraction or 0)


def http_date(text: str, *, now: float) -> float | None:
    """The epoch of an HTTP date in any of its three forms; None for anything else.

    Args:
        text: The header's value.
        now: Decides the century of a two-digit year (RFC 9110: never more than 50 years ahead).
    """
    text = text.strip(" \t")
    if found := _IMF.fullmatch(text):
        day, month, year, hour, minute, second, zone = found.groups()
    elif found := _RFC850.fullmatch(text):
        day, month, year, hour, minute, second, zone = found.groups()
        year = str(_century(int(year), now))
    elif found := _ASCTIME.fullmatch(text):
        month, day, hour, minute, second, year = found.groups()
        zone = "GMT"
    else:
        return None
    month_number = _MONTHS.get(month.lower(), 0)
    parts = (int(year), month_number, int(day), int(hour), int(minute), int(second))
    return _epoch(*parts, zone=zone)


def when(text: str, *, clocks: Clocks, source: str) -> Hint | None:
    """The hint in a reset header: seconds, an epoch, a Go duration, RFC 3339 or an HTTP date.

    Args:
        text: The value, ``59``, ``1794776503``, ``1794776503000``, ``6m0s``, ``2026-…Z``.
        clocks: What time it is, here and there.
        source: Where it stood, for the hint.
    """
    plain = number(text)
    if plain is not None:
        if plain < _EPOCH_FROM:
            return Hint.after(plain, source=source)
        epoch = plain / 1000 if plain >= _MILLIS_FROM else plain
        return hint_at(epoch, clocks=clocks, source=source)
    duration = go_duration(text)
    if duration is not None:
        return Hint.after(duration, source=source)
    instant = iso_instant(text)
    if instant is not None:
        confidence = Confidence.HIGH if _ZONE.search(text) else Confidence.LOW
        return hint_at(instant, clocks=clocks, source=source, confidence=confidence)
    instant = http_date(text, now=clocks.ours)
    return None if instant is None else hint_at(instant, clocks=clocks, source=source)


def hint_at(
    instant: float,
    *,
    clocks: Clocks,
    source: str,
    precision: Precision = Precision.SECOND,
    confidence: Confidence = Confidence.HIGH,
) -> Hint | None:
    """The hint for an instant that the server stated, or None where it has passed.

    The wait is measured on the server's clock, its end is given on ours: a clock of ours that
    is an hour off changes nothing (E-A12).
    """
    delay = instant - clocks.theirs
    at = clocks.ours + delay
    return Hint.after(
        delay,
        at=at if isfinite(at) else instant,
        precision=precision,
        source=source,
        confidence=confidence,
    )


def _century(two_digits: int, now: float) -> int:
    this_year = datetime.fromtimestamp(now if isfinite(now) and 0 < now < 2e11 else 0, tz=UTC).year
    year = this_year - this_year % 100 + two_digits
    return year - 100 if year > this_year + 50 else year


def _epoch(  # noqa: PLR0917 -- a calendar has six parts, in the order everybody knows
    year: int, month: int, day: int, hour: int, minute: int, second: int, *, zone: str | None
) -> float | None:
    if second > 60:
        return None
    try:
        # 23:59:60 exists, but not in datetime.
        base = datetime(year, month, day, hour, minute, tzinfo=_zone(zone)).timestamp()
    except (ValueError, OverflowError):
        return None
    return base + second


def _zone(zone: str | None) -> timezone:
    if not zone or zone[0] not in "+-":
        return UTC
    sign = -1 if zone[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:])))
