"""Reset times that stand under known keys: in JSON bodies, in HTTP headers.

Keys are compared without case, dashes or underscores, so ``Retry-After``, ``retry_after`` with
``retryAfter`` are one key. Exact delays win over stated instants, and a window that is used up
wins over one that is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING

from ...core.hint import Precision
from ..quota_headers import exhausted, read_quotas
from ..reset_time import ResetTime
from ..retry_after import read_retry_after
from ..times.durations import duration_at
from ..times.expressions import epoch_of, when_at
from .bodies import opened

if TYPE_CHECKING:
    from datetime import tzinfo

__all__ = ("reset_in_fields", "reset_in_headers")

_MILLISECONDS = {"retryafterms", "retrydelayms", "retryafterinms", "resetinms", "resetafterms"}
_SECONDS = {
    "retryafter", "retryafterseconds", "retryafterinseconds", "retryin", "retryinseconds",
    "retrydelay", "quotaresetdelay", "resetsinseconds", "resetinseconds", "resetsin", "resetin",
    "resetafter", "resetafterseconds", "secondsuntilreset", "retrydelayseconds", "waitseconds",
    "timetoreset", "resetsafterseconds", "cooldown", "cooldownseconds",
}  # fmt: skip
_INSTANTS = {
    "resetsat", "resetat", "resettime", "resetstime", "quotaresettimestamp", "quotaresettime",
    "resetdate", "xratelimitreset", "ratelimitreset", "nextreset", "nextresettime", "availableat",
    "unlockat", "retryat", "retryafterat", "resettimestamp", "resetepoch", "limitresetsat",
    "quotaresetdate", "nextresetat", "opensat", "availableagainat",
}  # fmt: skip
_PLAIN_KEY = re.compile(r"[-_\s]")
_DEPTH = 8
_ITEMS = 4000
_A_YEAR = 366 * 86400.0


def reset_in_fields(data: object, *, now: float, zone: tzinfo) -> ResetTime | None:
    """The reset that stands in `data` under a known key, or None."""
    found: list[tuple[int, ResetTime]] = []
    headers: dict[str, str] = {}
    for key, value in _walk(data):
        plain = _PLAIN_KEY.sub("", key).lower()
        if key.lower() != "date":  # when it was sent is no news about when it resets
            headers[key.lower()] = str(value)
        if (
            plain in _MILLISECONDS
            and (number := _number(value)) is not None
            and number < 1000 * _A_YEAR
        ):
            found.append((0, _delay(number / 1000, key, value, now)))
        elif plain in _SECONDS and (seconds := _seconds(value)) is not None:
            found.append((1, _delay(seconds, key, value, now)))
        elif plain in _INSTANTS | _SECONDS:
            instant = _instant(value, key, now=now, zone=zone)
            if instant is not None:
                found.append((2, instant))
    if (stated := reset_in_headers(headers, now=now)) is not None:
        return stated
    # Of equals the first; of an exact zero with a later statement, the later.
    ahead = [one for one in found if one[1].seconds > 0] or found
    return min(ahead, key=lambda one: one[0])[1] if ahead else None


def reset_in_headers(headers: Mapping[str, str], *, now: float) -> ResetTime | None:
    """The reset that HTTP headers (lower-case names) state for the window that is used up."""
    hint = read_retry_after(headers, now=now)
    if hint is None:
        quota = exhausted(read_quotas(headers, now=now))
        hint = None if quota is None else quota.hint
    if hint is None:
        return None
    return ResetTime(
        seconds=hint.delay,
        at=now + hint.delay,
        span=(0, 0),
        source=hint.source,
        precision=hint.precision,
        confidence=hint.confidence,
    )


def _walk(data: object) -> Iterator[tuple[str, object]]:
    """Every key with its plain value, bodies that were quoted as strings included."""
    stack: list[tuple[object, int]] = [(data, 0)]
    for _ in range(_ITEMS):
        if not stack:
            return
        node, depth = stack.pop()
        if isinstance(node, str):
            node = opened(node)
        if depth > _DEPTH:
            continue
        if isinstance(node, Mapping):
            stack.extend((value, depth + 1) for value in reversed(list(node.values())))
            for key, value in node.items():
                if isinstance(value, str | int | float) and not isinstance(value, bool):
                    yield str(key), value
        elif isinstance(node, list):
            stack.extend((one, depth + 1) for one in reversed(node))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) and number >= 0 else None


def _seconds(value: object) -> float | None:
    """A delay in seconds: 600, "600", "1h47m17.664s"; None for an epoch or a date."""
    number = _number(value)
    if number is not None:
        return number if number < _A_YEAR else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    length = duration_at(text, 0, has_colons=False)
    return length.seconds if length is not None and length.end == len(text) else None


def _delay(seconds: float, key: str, value: object, now: float) -> ResetTime:
    return ResetTime(
        seconds=seconds,
        at=now + seconds,
        span=(0, 0),
        source=f"{key}: {value}"[:80],
        precision=Precision.EXACT,
    )


def _instant(value: object, key: str, *, now: float, zone: tzinfo) -> ResetTime | None:
    number = _number(value)
    at = epoch_of(number) if number is not None else None
    if at is None:
        when = when_at(str(value)[:80], 0, now=now, zone=zone)
        if when is None:
            return None
        at = when.at
    return ResetTime(
        seconds=max(0.0, at - now),
        at=at,
        span=(0, 0),
        source=f"{key}: {value}"[:80],
        precision=Precision.SECOND,
    )
