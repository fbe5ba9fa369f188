"""Times in header values and fields: numbers, durations, dates; the types of stated times.

Every reader here is strict: it takes the whole text or nothing. Python's own `int` and `float`
also accept ``1_000``, digits of other scripts, ``+5``, ``1e3``, ``inf`` and ``nan``, none of
which a server that means a time would send.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from math import isfinite
from typing import NamedTuple

from ...core.hint import LONGEST, Confidence, Hint, Precision
from ...core.lazy_pattern import lazy
from ...core.record import record

__all__ = (
    "ClockPair",
    "ResetTime",
    "StatedTime",
    "epoch_of",
    "go_duration",
    "hint_at",
    "http_date",
    "is_instant",
    "iso_instant",
    "may_state_time",
    "number",
    "read_number",
    "read_value",
    "when",
)

_DIGIT = lazy("[0-9]")
# Nineteen digits: nanoseconds since 1970.
_NUMBER = lazy(r"[0-9]{1,19}(?:\.[0-9]{1,18})?")
_GO_PART = lazy(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)(ns|us|µs|μs|ms|s|m|h|d)")
_GO = lazy(r"(?:[0-9]{1,18}(?:\.[0-9]{1,18})?(?:ns|us|µs|μs|ms|s|m|h|d))+")
_UNIT = {
    **dict.fromkeys(("us", "µs", "μs"), 1e-6),  # both of Unicode's mu
    "ns": 1e-9,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_ISO = lazy(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(\.[0-9]{1,9})?)?"
    r"\s?([Zz]|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?"
)
_ZONE = lazy(r"(?:[Zz]|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})\s*$")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})"
# The three forms of RFC 9110 §5.6.7; servers also write +0000, -0000 or UTC where GMT belongs.
_IMF = lazy(
    rf"[A-Za-z]{{3}}, ([0-9]{{1,2}}) ([A-Za-z]{{3}}) ([0-9]{{4}}) {_TIME} (GMT|UTC|[+-][0-9]{{4}})"
)
_RFC850 = lazy(
    rf"[A-Za-z]{{6,9}}, ([0-9]{{2}})-([A-Za-z]{{3}})-([0-9]{{2}}) {_TIME} (GMT|UTC|[+-][0-9]{{4}})"
)
_ASCTIME = lazy(rf"[A-Za-z]{{3}} ([A-Za-z]{{3}}) ([ 0-9][0-9]) {_TIME} ([0-9]{{4}})")

# From 2001 to 2106, in each of four units: no number is an epoch in two of them.
_EARLIEST, _LATEST = 1e9, 4.3e9
_EPOCH_SCALES = (1, 1e3, 1e6, 1e9)


class ClockPair(NamedTuple):
    """Our clock and the server's, in epoch seconds; NaN where unknown: then no instant counts."""

    ours: float
    theirs: float


@record(kw_only=True)
class ResetTime:
    """A stated reset.

    Args:
        seconds: From now to the reset; 0 where the stated time is over.
        at: The instant in epoch seconds.
        span: Where the clause stands in the text; (0, 0) for a field or a header.
        source: The clause itself.
        precision: How exactly it was stated.
        confidence: LOW where a reader could take the words to mean another time.
        is_length: Whether a length of time was stated, which no clock that is off can change.
        is_just_past: Whether the time that was named has just passed, and `at` is the next one.
    """

    seconds: float
    at: float
    span: tuple[int, int] = (0, 0)
    source: str
    precision: Precision
    confidence: Confidence = Confidence.HIGH
    is_length: bool = False
    is_just_past: bool = False

    @classmethod
    def of(cls, hint: Hint, *, now: float) -> ResetTime:
        """The reset that headers state, as `now` tells the time."""
        return cls(
            seconds=hint.delay,
            at=now + hint.delay,
            source=hint.source,
            precision=hint.precision,
            confidence=hint.confidence,
        )

    @property
    def hint(self) -> Hint | None:
        """What the core waits for; None where the stated time is over."""
        return Hint.after(
            self.seconds,
            source=self.source,
            at=self.at,
            precision=self.precision,
            confidence=self.confidence,
        )

    def hint_by(self, clocks: ClockPair, source: str) -> Hint | None:
        """The hint in an answer, with its instant on our clock (see `hint_at`)."""
        at = None if self.is_length else clocks.ours + self.seconds
        return Hint.after(
            self.seconds,
            source=source,
            at=self.at if at is not None and not isfinite(at) else at,
            precision=self.precision,
            confidence=self.confidence,
        )


class StatedTime(NamedTuple):
    """A time that a header or a field states.

    Args:
        delay: Seconds from now; 0 and less where it has passed.
        at: The instant in epoch seconds; None where a length of time was stated.
        confidence: LOW where it could mean another time.
    """

    delay: float
    at: float | None = None
    confidence: Confidence = Confidence.HIGH


def number(text: str) -> float | None:
    """ASCII digits with one optional decimal part; None for anything else."""
    text = text.strip(" \t")
    if text.isdigit() and text.isascii():  # the usual case, without the pattern
        return float(text) if len(text) <= 19 else None
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


def read_value(text: str, *, now: float) -> StatedTime | None:
    """Seconds, an epoch, a Go duration, RFC 3339 or an HTTP date; None for anything else.

    Args:
        text: The value, ``59``, ``1794776503``, ``1794776503000``, ``6m0s``, ``2026-…Z``.
        now: The writer's clock in epoch seconds; NaN where it is not known.
    """
    plain = number(text)
    if plain is not None:
        return read_number(plain, now=now)
    duration = go_duration(text)
    if duration is not None:
        return StatedTime(duration) if duration <= LONGEST else None
    instant = iso_instant(text)
    if instant is not None:
        confidence = Confidence.HIGH if _ZONE.search(text) else Confidence.LOW
        return StatedTime(instant - now, instant, confidence)
    instant = http_date(text, now=now)
    return None if instant is None else StatedTime(instant - now, instant)


def read_number(plain: float, *, now: float) -> StatedTime | None:
    """What a number without a unit states: an epoch, or seconds; None where no server means it."""
    epoch = epoch_of(plain)
    if epoch is not None:
        return StatedTime(epoch - now, epoch)
    return StatedTime(plain) if 0 <= plain <= LONGEST else None


def epoch_of(plain: float) -> float | None:
    """The epoch seconds that `plain` is, in seconds, milli-, micro- or nanoseconds; or None."""
    return next((at for scale in _EPOCH_SCALES if is_instant(at := plain / scale)), None)


def is_instant(at: float) -> bool:
    """Whether the epoch `at` lies where a server's instants lie, past ones included."""
    return _EARLIEST <= at <= _LATEST


def when(text: str, *, clocks: ClockPair, source: str) -> Hint | None:
    """The hint in a header's value; see `read_value`.

    Args:
        text: The value.
        clocks: What time it is, here and there.
        source: Where it stood, for the hint.
    """
    stated = read_value(text, now=clocks.theirs)
    if stated is None:
        return None
    if stated.at is None:
        return Hint.after(stated.delay, source=source)
    return hint_at(stated.at, clocks=clocks, source=source, confidence=stated.confidence)


def hint_at(
    instant: float,
    *,
    clocks: ClockPair,
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
    at = at if isfinite(at) else instant
    if at > _LATEST:
        return None
    return Hint.after(
        delay,
        at=at,
        precision=precision,
        source=source,
        confidence=confidence,
    )


# What a time is made of that is written without a digit: "in an hour", "tomorrow", "Monday noon".
_WITHOUT_DIGITS = (
    *("second", "minut", "hour", "day", "week", "month", "noon", "night", "tomorrow", "first"),
    *("mon", "tue", "wed", "thu", "fri", "sat", "sun", "tag", "jour", "dia", "giorn", "lun", "mar"),
    *("sekund", "segund", "stund", "heure", "hora", "ora", "woche", "semai", "seman", "settim"),
    *("mois", "mes", "midi", "mediod", "mitt", "mezzo", "minuit", "medianoche", "heute", "hoy"),
    *("hoje", "oggi", "morgen", "demain", "domani", "ieri", "jeudi", "jueves", "giov", "vend"),
    *("vier", "ven", "sexta", "quarta", "quinta", "segunda", "dom", "dim", "mer", "mierc"),
)


def may_state_time(lowered: str) -> bool:
    """Whether words in lower case may state a time at all; reading them costs a hundred times more.

    Most messages have no digit, and hardly a word that stands for a time.
    """
    if not lowered.isascii() or _DIGIT.search(lowered):
        return True
    return any(word in lowered for word in _WITHOUT_DIGITS)


def _century(two_digits: int, now: float) -> int:
    this_year = datetime.fromtimestamp(now if isfinite(now) and 0 < now < 2e11 else 0, tz=UTC).year
    year = this_year - this_year % 100 + two_digits
    return year - 100 if year > this_year + 50 else year


def _epoch(  # noqa: PLR0917 -- the six parts of a date in their usual order
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
