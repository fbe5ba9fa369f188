"""Durations: parsing and printing of ``90s``, ``1h30m``.

Inside, a duration is float seconds. At the door it may be ``90``, ``"90s"``, ``"1h30m"`` or
a timedelta.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf, isfinite

from ..errors import SettingError
from .lazy_pattern import lazy

__all__ = ("Duration", "duration_text", "is_number", "moment_text", "seconds")

Duration = float | int | str | timedelta

_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = lazy(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_WHOLE = lazy(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d) ?)+")


def seconds(value: Duration, *, name: str = "duration", least: float = 0.0) -> float:
    """`value` in seconds, or a SettingError that names the parameter.

    Args:
        value: ``90``, ``1.5``, ``"90s"``, ``"1h30m"``, ``"250ms"`` or a timedelta.
        name: The parameter, for the error.
        least: The smallest value that is valid.
    """
    if isinstance(value, str):
        text = value.strip()
        if not _WHOLE.fullmatch(text):
            raise SettingError(
                f'{name} needs a duration such as 90, "90s", "1h30m" or "250ms"; got {value!r}'
            )
        result = sum(float(number) * _UNIT[unit] for number, unit in _PART.findall(text))
    elif isinstance(value, timedelta):
        result = value.total_seconds()
    elif not is_number(value):
        raise SettingError(f'{name} needs a duration such as 90 or "90s"; got {value!r}')
    else:
        # An int of a thousand digits does not fit a float; it is as endless as infinity.
        result = float(value) if abs(value) < 1e300 else inf
    if not isfinite(result) or result < least:
        bound = "a finite number of seconds" if least == 0 else f"at least {least:g} s"
        raise SettingError(f"{name} needs {bound}, not negative; got {value!r}")
    return result


def is_number(value: object) -> bool:
    """Whether `value` is a number as people mean it: True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def duration_text(value: float) -> str:
    """`value` seconds for people: ``250ms``, ``1.5s``, ``2m``, ``1h30m``, ``6d4h``."""
    if value == inf:
        return "forever"
    if not value >= 0:  # negative, or NaN
        return str(value)
    if value < 59.95:
        return _short(value)
    whole = round(value)
    unit, size, below = next(row for row in _LONG if whole >= row[1])
    rest = (whole % size) // round(_UNIT[below])
    return f"{whole // size}{unit}" + (f"{rest}{below}" if rest else "")


_LONG = (("d", 86400, "h"), ("h", 3600, "m"), ("m", 60, "s"))


def _short(value: float) -> str:
    if 0 < value < 0.9995:
        return f"{value * 1000:.0f}ms" if value >= 0.001 else f"{value * 1000:.2g}ms"
    digits = 2 if value < 9.995 else 1
    return f"{abs(value):.{digits}f}".rstrip("0").rstrip(".") + "s"


def moment_text(at: float) -> str:
    """The instant `at`, in epoch seconds, for people: ``2026-01-01 03:00:00 UTC``."""
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return "a time beyond the calendar"
