"""Repeated tool calls of one agent run: loops of identical failures, and calls left in doubt.

A model that reads an error often sends the same call again. After `limit` identical failures it is
told to change something, after twice as many the call is not made. A success of a tool that writes
changes what the others see: a repeat is worth trying again, and the count starts again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

__all__ = ("Repeats", "RepeatsOfRuns")

T = TypeVar("T")

# Seconds after which a failure no longer counts: services recover, and a toolbox may live for days.
_FORGOTTEN = 300.0

# Calls remembered for each run, and runs remembered for each toolbox; the oldest is dropped.
_MOST = 1000


def _remember(table: OrderedDict[str, T], key: str, value: T) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > _MOST:
        table.popitem(last=False)


@dataclass(slots=True)
class _Doubt:
    """One call that may have been applied."""

    key: str  # that it was made under
    reads: frozenset[str]  # the tools that show whether it was applied; empty if any read may
    since: float  # when it ended
    is_resolved: bool = False  # whether it was read since


class Repeats:
    """The failed calls of one agent run, by tool and arguments."""

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, Lock()
        # How often a call has failed in a row, and when it did last.
        self._failing: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._doubts: OrderedDict[str, _Doubt] = OrderedDict()

    def failures(self, call: str, now: float) -> int:
        """How often `call` has failed in a row, with nothing changed in between."""
        count, failed_at = self._failing.get(call, (0, now))
        return 0 if now - failed_at > _FORGOTTEN else count

    def is_stuck(self, call: str, now: float) -> bool:
        """Whether `call` is not worth making again."""
        return self.failures(call, now) >= 2 * self._limit

    def failed(self, call: str, now: float) -> int:
        """`call` has failed; how often in a row."""
        with self._lock:
            count = self.failures(call, now) + 1
            _remember(self._failing, call, (count, now))
            return count

    def is_repeated(self, count: int) -> bool:
        """Whether so many failures are too many to repeat the call unchanged."""
        return count >= self._limit

    def succeeded(self, call: str, *, read: str, began: float) -> None:
        """`call` has succeeded: a read resolves doubts, a write changes what others see.

        `read` is the tool, if it reads. What was read before a doubt arose says nothing about it.
        """
        with self._lock:
            self._failing.pop(call, None)
            self._doubts.pop(call, None)
            if not read:
                self._failing.clear()
                return
            for each, doubt in self._doubts.items():
                if doubt.since <= began and (not doubt.reads or read in doubt.reads):
                    doubt.is_resolved = True
                    self._failing.pop(each, None)  # it was refused; now it can be made

    def doubt(self, call: str, key: str, *, reads: frozenset[str], now: float) -> None:
        """`call`, made under `key`, may have been applied; `reads` are the tools that show it."""
        with self._lock:
            _remember(self._doubts, call, _Doubt(key, reads, now))

    def key_in_doubt(self, call: str) -> str:
        """The key of an earlier, equal call that may have been applied, or empty."""
        found = self._doubts.get(call)
        return "" if found is None else found.key

    def is_in_doubt(self, call: str) -> bool:
        """Whether an equal call may have been applied, and nothing was read since."""
        found = self._doubts.get(call)
        return found is not None and not found.is_resolved


class RepeatsOfRuns:
    """The repeats of each run that a toolbox serves; `limit` as of `Repeats`."""

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, Lock()
        self._runs: OrderedDict[str, Repeats] = OrderedDict()

    def of(self, run: str) -> Repeats:
        with self._lock:
            found = self._runs.get(run) or Repeats(self._limit)
            _remember(self._runs, run, found)
            return found
