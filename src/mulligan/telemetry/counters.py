"""Counters: events as numbers, without a metrics library."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..core.decisions import RetryAfter
from ..core.events import BreakerChanged, Ended, Failed, GateShut, Recovered, StoreLost

if TYPE_CHECKING:
    from ..core.events import Event

__all__ = ("Counters",)


class Counters:
    """A listener that counts.

    ``totals`` maps (name, target, kind or ending) to a number:

    ===============================  ================================================
    ``retries_total``                attempts that were followed by another, by kind
    ``recovered_total``              calls that succeeded after a failure
    ``retry_exhausted_total``        calls that would have gone on, by kind (R-X1)
    ``ended_total``                  calls that ended without success, by ending
    ``breaker_opened_total``         times that a breaker opened
    ``gate_shut_total``              times that a limit shut a gate
    ``store_lost_total``             times that a store stopped answering
    ===============================  ================================================
    """

    def __init__(self) -> None:
        self.totals: Counter[tuple[str, str, str]] = Counter()

    def __call__(self, event: Event, /) -> None:
        match event:
            case Failed(decision=RetryAfter()):
                self.totals["retries_total", event.target, str(event.failure.kind)] += 1
            case Recovered():
                self.totals["recovered_total", event.target, ""] += 1
            case Ended(is_passed_on=False):
                self.totals["ended_total", event.target, str(event.ending)] += 1
                if event.ending.is_exhaustion:
                    kind = str(event.failure.kind)
                    self.totals["retry_exhausted_total", event.target, kind] += 1
            case BreakerChanged(is_open=True):
                self.totals["breaker_opened_total", event.target, ""] += 1
            case GateShut():
                self.totals["gate_shut_total", event.target, ""] += 1
            case StoreLost():
                self.totals["store_lost_total", event.target, ""] += 1
            case _:
                pass

    def total(self, name: str) -> int:
        """The sum of one counter over all targets."""
        return sum(count for (each, _, _), count in self.totals.items() if each == name)
