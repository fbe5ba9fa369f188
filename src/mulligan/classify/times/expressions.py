"""One time expression of any form: an epoch, a duration, a day with a clock time."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from ...core.hint import LONGEST, Precision
from ...core.lazy_pattern import lazy
from ...core.record import record
from .clocks import TimeOfDay, clock_at
from .dates import Day, day_at
from .durations import Length, duration_at
from .instants import instant
from .numbers import GROUPED, number_of
from .server_formats import epoch_of, is_instant
from .zones import Zone, zone_at, zone_in_front

if TYPE_CHECKING:
    from datetime import tzinfo

__all__ = ("Lead", "When", "when_at")


@record(kw_only=True)
class When:
    """An instant that was read from words.

    Args:
        at: Epoch seconds.
        end: Where the words end.
        precision: How exactly they state it.
        is_doubtful: Whether they could mean another time.
        length: The length of time that they state, in seconds; None where they state an instant.
        is_just_past: Whether the time that they name has just passed, and `at` is the next one.
    """

    at: float
    end: int
    precision: Precision
    length: float | None = None
    is_doubtful: bool = False
    is_just_past: bool = False


class Lead(Enum):
    """What the words in front of a time ask for: "in 3h" is a duration, "à 3h" is a time of day."""

    NONE = "none"
    DURATION = "duration"
    CLOCK = "clock"


_EPOCH = lazy(rf"(?P<n>{GROUPED}|\d{{19}}|\d{{16}}|\d{{13}}|\d{{10}})(?:\.\d{{1,9}})?(?![\d:/-])")
_BETWEEN = lazy(
    r"(?:[\s,·@，、の的]+|T(?=\d)|-\s|(?:at|on|um|am|den|le|à|às|a\s+las|las|alle|il|op|om|the|de|del|of|в)(?![A-Za-zÀ-ÿа-я]))*",
    re.IGNORECASE,
)


def when_at(
    text: str, start: int, *, now: float, zone: tzinfo | None, lead: Lead = Lead.NONE
) -> When | None:
    """The time expression that begins at `start`, or None.

    Args:
        text: Plain text (`level`), on one line.
        start: Where it must begin.
        now: Epoch seconds.
        zone: What a time without a zone means; None where that is not known.
        lead: What the words in front ask for.
    """
    if (found := _EPOCH.match(text, start)) and (at := epoch_of(number_of(found["n"]))) is not None:
        return When(at=at, end=found.end(), precision=Precision.SECOND)
    length = duration_at(text, start, has_colons=lead is Lead.DURATION)
    if length is not None and lead is not Lead.CLOCK:
        return _after(length, now)
    calendar = _calendar(text, start, now=now, zone=zone)
    if calendar is not None:
        return calendar
    return None if length is None else _after(length, now)


def _after(length: Length, now: float) -> When | None:
    if length.seconds > LONGEST:
        return None
    # "5 days 22 hours 11 minutes" was rounded to the minute before it was printed.
    precision = Precision.MINUTE if length.smallest >= 60 else Precision.EXACT
    is_doubtful = length.is_rough and length.smallest > 60
    return When(
        at=now + length.seconds,
        end=length.end,
        precision=precision,
        length=length.seconds,
        is_doubtful=is_doubtful,
    )


def _calendar(text: str, start: int, *, now: float, zone: tzinfo | None) -> When | None:
    day: Day | None = None
    clock: TimeOfDay | None = None
    stated = zone_in_front(text, start)
    end = position = start if stated is None else stated.end
    while True:
        found: Day | TimeOfDay | Zone | None = None
        if clock is None and (found := clock_at(text, position)) is not None:
            clock = found
        elif _wants(day) and (found := _day_at(text, position)) is not None:
            day = found
        elif clock is not None and stated is None:
            stated = found = zone_at(text, position, local=zone, now=now)
        if found is None:
            break
        end = found.end
        between = _BETWEEN.match(text, end)
        position = between.end() if between else end
    if day is None and clock is None:
        return None
    tz = stated.tz if stated else zone
    moment = None if tz is None else instant(day=day, clock=clock, zone=tz, now=now)
    if moment is None or not is_instant(moment.at):
        return None
    has_seconds = moment.is_end or (clock is not None and clock.second is not None)
    return When(
        at=moment.at,
        end=end,
        precision=Precision.SECOND if has_seconds else Precision.MINUTE,
        is_doubtful=moment.is_doubtful or (stated is not None and stated.is_ambiguous),
        is_just_past=moment.is_just_past,
    )


def _day_at(text: str, start: int) -> Day | None:
    """The day that begins at `start`, in parentheses or not: "6pm (Mon)"."""
    if not text.startswith("(", start):
        return day_at(text, start)
    found = day_at(text, start + 1)
    if found is None or not text.startswith(")", found.end):
        return None
    return replace(found, end=found.end + 1)


def _wants(day: Day | None) -> bool:
    """A weekday may still be followed by its date: "Thu, 31 Dec"."""
    return day is None or (day.weekday is not None and day.month == 0)
