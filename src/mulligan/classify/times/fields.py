"""Reset times that stand under known keys: in error bodies, in events, in headers kept as JSON.

Keys are compared without case, dashes or underscores, so ``Retry-After``, ``retry_after`` and
``retryAfter`` are one key. Exact delays win over stated instants, and a window that is used up
wins over one that is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.hint import LONGEST, Precision
from ..bodies import opened
from ..quotas import limit_hint
from .numbers import ungrouped
from .plain_text import level
from .server_formats import ResetTime, is_instant, number, read_value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

__all__ = ("reset_in_fields",)

# In this order: what was said directly before what was said as an instant (R-L11).
_MILLISECONDS, _DELAY, _INSTANT = range(3)
_KEYS = {
    **dict.fromkeys(
        ("retryafterms", "retrydelayms", "retryafterinms", "resetinms", "resetafterms"),
        _MILLISECONDS,
    ),
    **dict.fromkeys(
        (
            *("retryafter", "retryafterseconds", "retryafterinseconds", "retryin"),
            *("retryinseconds", "retrydelay", "retrydelayseconds", "quotaresetdelay"),
            *("resetsin", "resetsinseconds", "resetin", "resetinseconds", "resetafter"),
            *("resetafterseconds", "resetsafterseconds", "secondsuntilreset", "timetoreset"),
            *("waitseconds", "cooldown", "cooldownseconds"),
        ),
        _DELAY,
    ),
    **dict.fromkeys(
        (
            *("resetsat", "resetat", "resettime", "resetstime", "resetdate", "resettimestamp"),
            *("resetepoch", "quotaresettimestamp", "quotaresettime", "quotaresetdate"),
            *("xratelimitreset", "ratelimitreset", "limitresetsat", "nextreset", "nextresettime"),
            *("nextresetat", "availableat", "availableagainat", "unlockat", "opensat"),
            *("retryat", "retryafterat"),
        ),
        _INSTANT,
    ),
}
_LONGEST_KEY = 40
_DEPTH = 8
_MOST_NODES = 4000
_LONGEST_VALUE = 80


def reset_in_fields(data: object, *, now: float, zone: tzinfo | None = None) -> ResetTime | None:
    """The reset that stands in parsed JSON under a known key, or None.

    Args:
        data: A parsed body or event; JSON that was quoted as a string inside it is opened.
        now: The writer's clock in epoch seconds; with NaN only lengths are read.
        zone: The writer's zone, where it is known to leave it out; without one, an instant that
            names none is read as UTC where it is written for machines, else not at all.
    """
    found: list[tuple[int, ResetTime]] = []
    headers: dict[str, str] = {}
    for key, value in _fields(data):
        plain = key.replace("-", "").replace("_", "").replace(" ", "").lower()
        rank = _KEYS.get(plain)
        if rank is not None:
            reset = _reset(rank, key, value, now=now, zone=zone)
            if reset is not None:
                found.append((rank, reset))
        if "ratelimit" in plain or plain.startswith(("retryafter", "xcodex")):
            headers[key.lower()] = str(value)
    if headers and (stated := _in_headers(headers, now)) is not None:
        return stated
    # Of equals the first; of an exact zero with a later statement, the later.
    ahead = [one for one in found if one[1].seconds > 0] or found
    return min(ahead, key=lambda one: one[0])[1] if ahead else None


def _in_headers(headers: dict[str, str], now: float) -> ResetTime | None:
    hint = limit_hint(headers, now=now)
    return None if hint is None else ResetTime.of(hint, now=now)


def _fields(data: object) -> Iterator[tuple[str, Any]]:
    """Every key with its number or text, bodies that were quoted as strings included."""
    stack: list[tuple[object, int]] = [(data, 0)]
    for _ in range(_MOST_NODES):
        if not stack:
            return
        node, depth = stack.pop()
        if isinstance(node, str):
            node = opened(node)
        if depth > _DEPTH:
            continue
        if isinstance(node, dict):
            for key, value in node.items():
                is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
                if is_plain and len(name := str(key)) <= _LONGEST_KEY:
                    yield name, value
            stack.extend(
                (value, depth + 1)
                for value in reversed(node.values())
                if isinstance(value, dict | list) or (type(value) is str and "{" in value)
            )
        elif isinstance(node, list):
            stack.extend((one, depth + 1) for one in reversed(node))


def _reset(
    rank: int, key: str, value: str | float, *, now: float, zone: tzinfo | None
) -> ResetTime | None:
    if isinstance(value, str):
        text = ungrouped(level(value.strip()[:_LONGEST_VALUE]))
    elif 0 <= value < 1e19:
        text = f"{value:.6f}"
    else:
        return None
    source = f"{key}: {value}"[:_LONGEST_VALUE]
    if rank == _MILLISECONDS:
        millis = number(text)
        return None if millis is None else _length(millis / 1000, source, now)
    stated = read_value(text, now=now)
    if stated is None or (zone is not None and stated.confidence == "low"):
        return _in_words(text, source, now=now, zone=zone)
    if stated.at is None:
        return _length(stated.delay, source, now)
    if not is_instant(stated.at):
        return None
    return ResetTime(
        seconds=max(0.0, stated.delay),
        at=stated.at,
        source=source,
        precision=Precision.SECOND,
        confidence=stated.confidence,
    )


def _length(seconds: float, source: str, now: float) -> ResetTime | None:
    if seconds > LONGEST:
        return None
    return ResetTime(
        seconds=seconds,
        at=now + seconds,
        source=source,
        precision=Precision.EXACT,
        is_length=True,
    )


def _in_words(text: str, source: str, *, now: float, zone: tzinfo | None) -> ResetTime | None:
    """A time that was written for people under a key that was named for machines."""
    from .expressions import when_at

    when = when_at(text, 0, now=now, zone=zone)
    if when is None:
        return None
    if when.length is not None:
        return _length(when.length, source, now) if when.end == len(text) else None
    return ResetTime(
        seconds=max(0.0, when.at - now), at=when.at, source=source, precision=Precision.SECOND
    )
