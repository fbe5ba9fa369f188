"""Counters: events as numbers, without a metrics library."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING

from .metrics import METRICS, changes

if TYPE_CHECKING:
    from ..core.events import Event

__all__ = ("Counters",)


class Counters:
    """A listener that counts.

    ``totals`` maps (name, target, kind or ending) to a number. The names are those of the counters
    in `mulligan.telemetry.metrics.METRICS`.

    Args:
        successes: Whether to count calls that succeed at once, too; they leave the calm path.
    """

    is_quick = True

    def __init__(self, *, successes: bool = False) -> None:
        self.totals: Counter[tuple[str, str, str]] = Counter()
        self.successes = successes
        self._lock = Lock()

    def __call__(self, event: Event, /) -> None:
        for change in changes(event):
            if METRICS[change.name].kind == "counter":
                with self._lock:  # two threads that add at once would lose a count
                    self.totals[change.name, event.target, change.label] += 1

    def total(self, name: str) -> int:
        """The sum of one counter over all targets."""
        return sum(count for (each, _, _), count in list(self.totals.items()) if each == name)
