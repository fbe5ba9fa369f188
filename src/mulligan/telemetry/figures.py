"""Figures of a target over time: pure counts by minute and by hour, and what they amount to.

A store keeps one state for each target and minute, and one for each target and hour. Processes add
to them, so the figures are those of the whole fleet.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.record import record
from ..stores.state_machine import Machine
from .metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.moment import Moment
    from .metrics import Change

__all__ = (
    "DAY",
    "DELAYS",
    "FIGURES",
    "HOUR",
    "MINUTE",
    "STORIES",
    "AddCounts",
    "AddStories",
    "Bucket",
    "Count",
    "Figures",
    "KeptStories",
    "Tally",
    "summary",
)

MINUTE, HOUR, DAY = 60, 3_600, 86_400

# How long figures by the minute, by the hour, and stories are kept, in seconds.
_KEPT = {MINUTE: 3.0 * HOUR, HOUR: 31.0 * DAY}
_STORIES_KEPT = 7.0 * DAY

# Stories that a target keeps, the newest ones.
_STORIES = 20

# Upper bounds of the classes that waits are counted in, in seconds; beyond the last is one more.
DELAYS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0)

# Attempts of a call are counted one by one up to this number.
_MOST_ATTEMPTS = 20


@record()
class Count:
    """One count."""

    name: str  # of the metric
    label: str  # of the metric; for a histogram the upper bound of the class
    number: float  # how often it was counted
    total: float  # the sum of the values


@record()
class Figures:
    """The counts of one target in one minute or hour."""

    length: int = 0  # in seconds; 0 before anything was counted
    counts: tuple[Count, ...] = ()


FIGURES: Machine[Figures] = Machine(
    name="figures",
    start=Figures(),
    keep=lambda state, _moment: _KEPT.get(state.length, 3.0 * HOUR),
)


class Tally:
    """Counts that are being added up."""

    def __init__(self, counts: Iterable[Count] = ()) -> None:
        self._sums: dict[tuple[str, str], list[float]] = {}
        self.add(counts)

    def count(self, change: Change) -> None:
        """Add one change of a metric."""
        label = change.label
        if METRICS[change.name].kind == "histogram":
            label = _class_of(change)
        self._add(change.name, label, 1.0, change.value)

    def add(self, counts: Iterable[Count]) -> None:
        for each in counts:
            self._add(each.name, each.label, each.number, each.total)

    def _add(self, name: str, label: str, number: float, total: float) -> None:
        known = self._sums.setdefault((name, label), [0.0, 0.0])
        known[0] += number
        known[1] += total

    @property
    def counts(self) -> tuple[Count, ...]:
        return tuple(Count(*key, *sums) for key, sums in sorted(self._sums.items()))

    def number(self, name: str) -> float:
        """How often, over all labels."""
        return sum(sums[0] for (each, _), sums in self._sums.items() if each == name)

    def total(self, name: str) -> float:
        """The sum of the values, over all labels."""
        return sum(sums[1] for (each, _), sums in self._sums.items() if each == name)

    def by_label(self, name: str) -> dict[str, int]:
        """How often, by label, the most frequent first."""
        found = {label: int(sums[0]) for (each, label), sums in self._sums.items() if each == name}
        return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def _class_of(change: Change) -> str:
    if change.name == "retry_call_attempts":
        return str(int(min(change.value, _MOST_ATTEMPTS)))
    at = bisect_left(DELAYS, change.value)
    return f"{DELAYS[at]:g}" if at < len(DELAYS) else "inf"


@record()
class AddCounts:
    """Add counts to the figures of a minute or an hour."""

    length: int
    counts: tuple[Count, ...]

    @property
    def machine(self) -> Machine[Figures]:
        return FIGURES

    def __call__(self, state: Figures, moment: Moment) -> tuple[Figures, None]:  # noqa: ARG002 -- one signature for all operations
        tally = Tally(state.counts)
        tally.add(self.counts)
        return Figures(self.length, tally.counts), None


@record()
class KeptStories:
    """The newest stories of a target, each as JSON, the oldest first."""

    kept: tuple[str, ...] = ()


STORIES: Machine[KeptStories] = Machine(
    name="stories", start=KeptStories(), keep=lambda _state, _moment: _STORIES_KEPT
)


@record()
class AddStories:
    """Add stories to those of a target; the oldest make room."""

    stories: tuple[str, ...]

    @property
    def machine(self) -> Machine[KeptStories]:
        return STORIES

    def __call__(self, state: KeptStories, moment: Moment) -> tuple[KeptStories, None]:  # noqa: ARG002 -- one signature for all operations
        return KeptStories((*state.kept, *self.stories)[-_STORIES:]), None


class Bucket(NamedTuple):
    """The figures of one target in one span of time."""

    target: str
    at: int  # when it begins, in epoch seconds
    length: int  # in seconds
    counts: tuple[Count, ...]


def summary(buckets: Iterable[Bucket]) -> dict[str, Any]:
    """What a dashboard of retries shows (R-X4), as plain data; None for what was not counted."""
    tally = Tally()
    for bucket in buckets:
        tally.add(bucket.counts)
    recovered, ended = tally.number("retry_recovered_total"), tally.number("retry_ended_total")
    failed_calls, attempts = recovered + ended, tally.number("retry_call_attempts")
    waits = tally.number("retry_delay_seconds")
    at_once = tally.number("retry_succeeded_total")
    by_attempts = tally.by_label("retry_call_attempts")
    return {
        "failures": int(tally.number("retry_failures_total")),
        "retries": int(tally.number("retries_total")),
        "calls_that_failed": int(failed_calls),
        "recovered": int(recovered),
        "ended": int(ended),
        "exhausted": int(tally.number("retry_exhausted_total")),
        "success_after_retry": _share(recovered, failed_calls),
        "succeeded_at_once": int(at_once) or None,
        "retry_rate": _share(failed_calls, failed_calls + at_once) if at_once else None,
        "attempts_per_call": _share(tally.total("retry_call_attempts"), attempts),
        "attempts": dict(sorted(by_attempts.items(), key=lambda each: int(each[0]))),
        "waits": int(waits),
        "waited": round(tally.total("retry_delay_seconds"), 3),
        "delay_mean": _share(tally.total("retry_delay_seconds"), waits),
        "delay_p95_below": _below(tally.by_label("retry_delay_seconds"), 0.95),
        "held": int(tally.number("retry_held_total")),
        "breaker_opened": int(tally.number("retry_breaker_opened_total")),
        "breaker_closed": int(tally.number("retry_breaker_closed_total")),
        "gate_shut": int(tally.number("retry_gate_shut_total")),
        "store_lost": int(tally.number("retry_store_lost_total")),
        "silent_limits": int(tally.number("retry_silent_limits_total")),
        "kinds": tally.by_label("retry_failures_total"),
        "endings": tally.by_label("retry_ended_total"),
    }


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def _below(classes: Mapping[str, int], share: float) -> float | None:
    """The bound of the class below which so many of the waits lie; None if there were none.

    Waits past the last bound have no upper one: the last bound is told then.
    """
    ordered, seen = Counter(classes), 0.0
    for bound in (*(f"{each:g}" for each in DELAYS), "inf"):
        seen += ordered[bound]
        if ordered and seen >= share * ordered.total():
            return DELAYS[-1] if bound == "inf" else float(bound)
    return None
