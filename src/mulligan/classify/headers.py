"""Headers of any client, folded into one plain dictionary; Retry-After and Date read from it.

Every HTTP library has its own header type; names differ in case, some are bytes, some repeat.
Whatever cannot be read is left out: a strange header never hides the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.hint import Hint
from .times.server_formats import ClockPair, hint_at, http_date, number, read_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ("fold", "read_clocks", "read_retry_after", "text_of")

# A server that sends more than this is not telling us about limits.
_MOST = 512


def fold(headers: object) -> dict[str, str]:
    """`headers` with lower-case names; values of a repeated name are joined by a comma.

    Args:
        headers: A mapping (httpx, requests, aiohttp, a plain dict) or pairs; names and values
            str or bytes. Anything else has no headers.
    """
    if headers is None:
        return {}
    folded: dict[str, str] = {}
    try:
        for count, (name, value) in enumerate(_pairs(headers)):
            if count == _MOST:
                break
            key = name.lower() if type(name) is str else text_of(name).lower()
            said = value if type(value) is str else text_of(value)
            if key in folded:
                folded[key] += ", " + said
            elif key:
                folded[key] = said
    except Exception:  # noqa: BLE001 -- an object that only looks like headers: keep what was read
        return folded
    return folded


def _pairs(headers: object) -> Iterable[tuple[Any, Any]]:
    items: Callable[[], Iterable[tuple[Any, Any]]] | None = getattr(headers, "items", None)
    return items() if callable(items) else headers  # type: ignore[return-value]


def text_of(value: object) -> str:
    """A header's name or value as text; empty where it is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return value.decode("latin-1")  # every byte is a character there: it cannot fail
    if isinstance(value, list | tuple):
        return ", ".join(text_of(one) for one in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ""


def read_retry_after(headers: Mapping[str, str], *, now: float) -> Hint | None:
    """When to come back, as folded `headers` say it directly.

    ``retry-after-ms`` and ``x-ms-retry-after-ms`` are finer than ``retry-after``, so they win
    (E-A15). Zero, the past and everything malformed are no hint (E-A5 … E-A10).

    Args:
        headers: Folded headers.
        now: Our wall clock in epoch seconds.
    """
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
    stated = None if seconds is None else read_number(seconds, now=now)
    if stated is not None and stated.at is None:
        return Hint.after(stated.delay, source="retry-after")
    instant = http_date(value, now=now) if stated is None else stated.at
    if instant is None:
        return None
    return hint_at(instant, clocks=read_clocks(headers, now=now), source="retry-after")


def read_clocks(headers: Mapping[str, str], *, now: float) -> ClockPair:
    """Our clock beside the server's: its Date header, or ours again where it sent none."""
    date = headers.get("date")
    theirs = None if date is None else http_date(date, now=now)
    return ClockPair(now, now if theirs is None else theirs)


def _seconds(value: str) -> float | None:
    plain = number(value)
    if plain is None and "," in value:
        # Two proxies, two headers: the longer one satisfies both.
        all_of_them = [number(part) for part in value.split(",")]
        if None not in all_of_them:
            return max(part for part in all_of_them if part is not None)
    return plain
