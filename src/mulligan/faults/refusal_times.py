"""Formats in which a refusal can state its time: headers, dates, bodies.

A value goes out as the script wrote it, garbage included. Only dates are computed: ``date+5s`` is
the HTTP date five seconds from now, ``rfc850+5s`` and ``asctime+5s`` the same in the two older
formats of RFC 9110, and ``date-5s`` lies in the past.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import ceil, isfinite

from ..core.duration import seconds

__all__ = ("retry_after", "stated_wait")

_DATE = re.compile(r"(date|rfc850|asctime)(?:([+-])([0-9][0-9.a-z]*))?")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMATS = {
    "date": "%a, %d %b %Y %H:%M:%S GMT",
    "rfc850": "%A, %d-%b-%y %H:%M:%S GMT",
    "asctime": "%a %b %e %H:%M:%S %Y",
}


def retry_after(written: str, now: float) -> str:
    """The header's value for what the script wrote."""
    found = _DATE.fullmatch(written)
    if found is None:
        return written
    # Not fromtimestamp: it refuses what the platform's time_t cannot hold with several errors.
    at = _EPOCH + timedelta(seconds=_instant(found, now))
    return at.strftime(_FORMATS[found[1]])


def stated_wait(headers: dict[str, str], written: str | None, now: float) -> float | None:
    """Seconds that the client is told to stay away; None if it is told nothing usable.

    `headers` are those that are sent, `written` is what the script wrote for ``retry-after``.
    """
    if _NUMBER.fullmatch(headers.get("retry-after-ms", "")):
        wait = float(headers["retry-after-ms"]) / 1000
    elif written is not None and (found := _DATE.fullmatch(written)):
        wait = _instant(found, now) - now
    elif _NUMBER.fullmatch(headers.get("retry-after", "")):
        wait = float(headers["retry-after"])
    else:
        return None
    return wait if isfinite(wait) and wait > 0 else None


def _instant(found: re.Match[str], now: float) -> float:
    distance = found[3] or "0"
    shift = seconds(distance if distance[-1].isalpha() else distance + "s", name="the date")
    # Dates have whole seconds; the next one is never sooner than what was asked for.
    return float(ceil(now + (-shift if found[2] == "-" else shift)))
