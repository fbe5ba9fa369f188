"""When to come back, as the answer's headers say it directly.

``retry-after-ms`` and ``x-ms-retry-after-ms`` are finer than ``retry-after``, so they win
(E-A15). Zero, the past and everything malformed are no hint (E-A5 … E-A10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.hint import Hint
from .instants import Clocks, hint_at, http_date, number

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("read_clocks", "read_retry_after")


def read_retry_after(headers: Mapping[str, str], *, now: float) -> Hint | None:
    """The hint of folded `headers`; `now` is our wall clock in epoch seconds."""
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if name in headers:
            millis = number(headers[name])
            hint = None if millis is None else Hint.after(millis / 1000, source=name)
            if hint is not None:
                return hint
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _seconds(value)
    if seconds is not None:
        return Hint.after(seconds, source="retry-after")
    stated = http_date(value, now=now)
    if stated is None:
        return None
    return hint_at(stated, clocks=read_clocks(headers, now=now), source="retry-after")


def read_clocks(headers: Mapping[str, str], *, now: float) -> Clocks:
    """Our clock beside the server's: its Date header, or ours again where it sent none."""
    date = headers.get("date")
    theirs = None if date is None else http_date(date, now=now)
    return Clocks(now, now if theirs is None else theirs)


def _seconds(value: str) -> float | None:
    plain = number(value)
    if plain is None and "," in value:
        # Two proxies, two headers: the longer one satisfies both.
        all_of_them = [number(part) for part in value.split(",")]
        if None not in all_of_them:
            return max(part for part in all_of_them if part is not None)
    return plain
