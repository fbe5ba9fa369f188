"""When to come back, as a body says it: in a field, or in a sentence.

Fields are taken by name wherever they stand. Sentences are taken only where they state a
duration or an instant with a zone; everything vaguer belongs to the reader of agents' output.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..core.hint import Hint, Precision
from .instants import hint_at, iso_instant, number, when

if TYPE_CHECKING:
    from .instants import Clocks

__all__ = ("field_hint", "text_hint")

# In this order: what was said directly before what was said as an instant (R-L11). Compared
# without case, dashes and underscores: retryDelay, retry_delay, X-RateLimit-Reset.
_DURATIONS = (
    *("retryafterms", "retryafter", "retryafterseconds", "retrydelay"),
    *("resetsinseconds", "resetafterseconds", "resetinseconds", "quotaresetdelay"),
)
_INSTANTS = ("resetat", "resetsat", "quotaresettimestamp", "xratelimitreset")
_WANTED = re.compile(r"(?i)retry|reset")

_MOST_NODES = 200
_MOST_TEXT = 4_096


def field_hint(data: Any, *, clocks: Clocks) -> Hint | None:
    """The hint in the fields of a parsed body, wherever they stand."""
    found = _wanted(data)
    for name in (*_DURATIONS, *_INSTANTS):
        if name in found:
            key, value = found[name]
            hint = _field(name, value, clocks, f"body {key}")
            if hint is not None:
                return hint
    return None


def _wanted(data: Any) -> dict[str, tuple[str, object]]:
    """Fields whose names speak of retrying or resetting, by one spelling; the first of each."""
    found: dict[str, tuple[str, object]] = {}
    nodes: list[Any] = [data]
    for _ in range(_MOST_NODES):
        if not nodes:
            break
        node = nodes.pop()
        if isinstance(node, list):
            nodes.extend(reversed(node[:32]))
            continue
        for key, value in list(node.items())[:64] if isinstance(node, dict) else ():
            if isinstance(value, dict | list):
                nodes.append(value)
            elif isinstance(key, str) and len(key) < 40 and _WANTED.search(key):
                name = key.replace("-", "").replace("_", "").lower()
                found.setdefault(name, (key, value))
    return found


def _field(name: str, value: object, clocks: Clocks, source: str) -> Hint | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        if not 0 < value < 1e18:
            return None
        text = f"{value:.6f}"
    elif isinstance(value, str):
        text = value
    else:
        return None
    if name in _INSTANTS:
        # 1e8 and more is an epoch, as in headers; a small number is a wait.
        return when(text, clocks=clocks, source=source)
    plain = number(text)
    if plain is None:
        return when(text, clocks=clocks, source=source)
    return Hint.after(plain / 1000 if name == "retryafterms" else plain, source=source)


_UNIT = (
    r"(?:milliseconds?|millis|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|hr|h|days?|d)"
)
_AMOUNT = rf"[0-9]{{1,9}}(?:\.[0-9]{{1,12}})?\s?{_UNIT}(?![a-z])"
_GLUED = rf"(?:[0-9]{{1,9}}(?:\.[0-9]{{1,12}})?{_UNIT})+(?![a-z])"
_AFTER = re.compile(
    r"(?i)\b(?:try(?:ing)? again|retry(?:ing)?|wait|resets?|refresh(?:es)?)"
    r"(?: again)?(?: in| after| for)?(?: about| approximately| at least)? ~?"
    rf"((?:{_GLUED}|{_AMOUNT})(?:(?:,? and |, | )(?:{_GLUED}|{_AMOUNT})){{0,4}})"
)
_PART = re.compile(rf"(?i)([0-9]{{1,9}}(?:\.[0-9]{{1,12}})?)\s?({_UNIT})")
_AT = re.compile(
    r"(?i)\b(?:again|access|resets?|until|after)(?: on| at| is| time:?)* "
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:T| at |,? )"
    r"([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?) ?(Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?"
)
_SIZE = {"m": 60.0, "s": 1.0, "h": 3600.0, "d": 86400.0}


def text_hint(text: str, *, clocks: Clocks, zone: str | None = None) -> Hint | None:
    """The hint in a sentence: ``try again in 7m12s``, ``access on 2026-10-01 at 00:00 UTC``.

    Args:
        text: The vendor's sentence.
        clocks: What time it is, here and there.
        zone: The vendor's zone, ``+0800``, where it is known to leave it out; without one, an
            instant that names none is no hint.
    """
    text = " ".join(text[:_MOST_TEXT].split())
    found = _AFTER.search(text)
    if found is not None:
        delay = sum(float(n) * _size(unit.lower()) for n, unit in _PART.findall(found[1]))
        hint = Hint.after(delay, source=f'"{found[0]}"')
        if hint is not None:
            return hint
    found = _AT.search(text)
    if found is None:
        return None
    day, clock, named = found.groups()
    zone = named or zone
    instant = iso_instant(f"{day}T{clock}{zone.upper()}") if zone else None
    if instant is None:
        return None
    precision = Precision.SECOND if clock.count(":") == 2 else Precision.MINUTE
    return hint_at(instant, clocks=clocks, source=f'"{found[0]}"', precision=precision)


def _size(unit: str) -> float:
    if unit.startswith(("ms", "milli")):
        return 0.001
    return _SIZE[unit[0]]
