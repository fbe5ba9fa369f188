"""Durations as people write them.

Inside, a duration is float seconds. At the door it may be ``90``, ``"90s"``, ``"1h30m"`` or
a timedelta.
"""

from __future__ import annotations

import re
from datetime import timedelta
from math import inf, isfinite

from ..errors import SettingError

__all__ = ("Duration", "duration_text", "seconds")

Duration = float | int | str | timedelta

_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d))+")


def seconds(value: Duration, *, name: str = "duration", least: float = 0.0) -> float:
    """`value` in seconds, or a SettingError that names the parameter.

    Args:
        value: ``90``, ``1.5``, ``"90s"``, ``"1h30m"``, ``"250ms"`` or a timedelta.
        name: The parameter, for the error.
        least: The smallest value that can be meant.
    """
    if isinstance(value, str):
        text = value.strip().replace(" ", "")
        if not _WHOLE.fullmatch(text):
            raise SettingError(
                f'{name} needs a duration such as 90, "90s", "1h30m" or "250ms"; got {value!r}'
            )
        result = sum(float(number) * _UNIT[unit] for number, unit in _PART.findall(text))
    elif isinstance(value, timedelta):
        result = value.total_seconds()
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise SettingError(f'{name} needs a duration such as 90 or "90s"; got {value!r}')
    else:
        # An int of a thousand digits does not fit a float; it is as endless as infinity.
        result = float(value) if abs(value) < 1e300 else inf
    if not isfinite(result) or result < least:
        bound = "a finite number of seconds" if least == 0 else f"at least {least:g} s"
        raise SettingError(f"{name} needs {bound}, not negative; got {value!r}")
    return result


def duration_text(value: float) -> str:
    """`value` seconds for people: ``250ms``, ``1.5s``, ``2m``, ``1h30m``, ``6d4h``."""
    if value != value or value < 0:  # noqa: PLR0124 -- NaN is the one value that differs from itself
        return str(value)
    if value == inf:
        return "forever"
    if 0 < value < 1:
        return f"{value * 1000:.0f}ms" if value >= 0.001 else f"{value * 1000:.2g}ms"
    if value < 59.95:
        digits = 2 if value < 10 else 1
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") + "s"
    whole = round(value)
    for unit, size, below in (("d", 86400, "h"), ("h", 3600, "m"), ("m", 60, "s")):
        if whole >= size:
            rest = (whole % size) // round(_UNIT[below])
            return f"{whole // size}{unit}" + (f"{rest}{below}" if rest else "")
    return f"{whole}s"
