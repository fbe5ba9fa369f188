"""Hint: when the server said that a call may be made again.

A hint is always a future: zero, the past and what cannot be read give no hint, so
that a server with a slow clock can never turn a wait into a hot loop.
"""

from __future__ import annotations

from enum import StrEnum
from math import isfinite

from ..errors import SettingError
from .record import record

__all__ = ("LONGEST", "Confidence", "Hint", "Precision")

# Ten years: no server means a longer wait, whatever the number is that it sent.
LONGEST = 10 * 366 * 86400.0


class Precision(StrEnum):
    """How exactly the server stated it, hence how much we add to be past it."""

    EXACT = "exact"  # a duration: nothing to add
    SECOND = "second"  # a clock time with seconds
    MINUTE = "minute"  # a clock time without


class Confidence(StrEnum):
    """Whether a reader could take the words to mean another time."""

    HIGH = "high"
    LOW = "low"


_MARGIN = {Precision.EXACT: 0.0, Precision.SECOND: 1.0, Precision.MINUTE: 60.0}


@record(kw_only=True)
class Hint:
    """When the server will listen again, as it was stated.

    Args:
        delay: Seconds from the moment the failure was seen, without margin; more than 0.
        at: The stated instant in epoch seconds, where one was stated.
        precision: How exactly it was stated.
        source: Where it stood: ``retry-after``, ``body retry_after_ms``, ``resets 7pm (UTC)``.
        confidence: LOW where the words could mean another time.
    """

    delay: float
    at: float | None = None
    precision: Precision = Precision.EXACT
    source: str = ""
    confidence: Confidence = Confidence.HIGH

    def __post_init__(self) -> None:
        if not (isfinite(self.delay) and self.delay > 0):
            raise SettingError(
                f"Hint needs a finite delay > 0; got {self.delay!r} (no usable time means no hint)"
            )

    @property
    def floor(self) -> float:
        """The wait that honours it: never sooner, and past it by what its precision leaves open."""
        return self.delay + _MARGIN[self.precision]

    @classmethod
    def after(
        cls,
        delay: float,
        *,
        source: str,
        at: float | None = None,
        precision: Precision = Precision.EXACT,
        confidence: Confidence = Confidence.HIGH,
    ) -> Hint | None:
        """The hint for `delay`, or None where the delay is not a usable future time.

        A length of time (without `at`) above `LONGEST` is none.
        """
        try:
            delay = float(delay)
        except OverflowError:  # a whole number of a thousand digits
            return None
        if not (isfinite(delay) and delay > 0) or (at is None and delay > LONGEST):
            return None
        return cls(delay=delay, at=at, precision=precision, source=source, confidence=confidence)
