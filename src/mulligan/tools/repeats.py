"""Repeated tool calls of one agent run: loops of identical failures, and calls left in doubt.

A model that reads an error often sends the same call again. After `limit` identical failures it is
told to change something, after twice as many the call is not made. Whatever changes the world in
between, a success of a tool that writes, makes a repeat worth trying and starts the count again.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

__all__ = ("Repeats", "RepeatsOfRuns")

# Seconds after which a failure no longer counts: services recover, and a toolbox may live for days.
_FORGOTTEN = 300.0

# Calls remembered for each run, and runs remembered for each toolbox; the oldest is dropped.
_MOST = 1000


class _Failing:
    """One call that keeps failing."""

    __slots__ = ("count", "failed_at", "key")

    def __init__(self) -> None:
        self.count, self.failed_at, self.key = 0, 0.0, ""


class _Doubt:
    """One call that may have been applied.

    Args:
        key: The key that it was made under.
        reads: The tools that show whether it was applied; empty if any read may.
        since: When it ended.
    """

    __slots__ = ("is_resolved", "key", "reads", "since")

    def __init__(self, key: str, reads: frozenset[str], since: float) -> None:
        self.key, self.reads, self.since, self.is_resolved = key, reads, since, False


class Repeats:
    """The failed calls of one agent run, by tool and arguments.

    Args:
        limit: Identical failures after which the model is told to change something.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, Lock()
        self._failing: OrderedDict[str, _Failing] = OrderedDict()
        self._doubts: OrderedDict[str, _Doubt] = OrderedDict()

    def failures(self, call: str, now: float) -> int:
        """How often `call` has failed in a row, with nothing changed in between."""
        with self._lock:
            return self._count(call, now)

    def _count(self, call: str, now: float) -> int:
        found = self._failing.get(call)
        if found is None or now - found.failed_at > _FORGOTTEN:
            return 0
        return found.count

    def is_stuck(self, call: str, now: float) -> bool:
        """Whether `call` is not worth making again."""
        return self.failures(call, now) >= 2 * self._limit

    def failed(self, call: str, now: float) -> int:
        """`call` has failed; how often in a row."""
        with self._lock:
            before = self._count(call, now)
            found = self._failing.setdefault(call, _Failing())
            found.count, found.failed_at = before + 1, now
            self._failing.move_to_end(call)
            if len(self._failing) > _MOST:
                self._failing.popitem(last=False)
            return found.count

    def is_repeated(self, count: int) -> bool:
        """Whether so many failures are too many to repeat the call unchanged."""
        return count >= self._limit

    def succeeded(self, call: str, *, read: str, began: float) -> None:
        """`call` has succeeded: a read resolves doubts, a write changes what others see.

        Args:
            call: The call.
            read: The tool, if it reads; else empty.
            began: When the call began. What was read before a doubt arose says nothing about it.
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
            self._doubts[call] = _Doubt(key, reads, now)
            self._doubts.move_to_end(call)
            if len(self._doubts) > _MOST:
                self._doubts.popitem(last=False)

    def key_in_doubt(self, call: str) -> str:
        """The key of an earlier, equal call that may have been applied, or empty."""
        with self._lock:
            found = self._doubts.get(call)
            return "" if found is None else found.key

    def is_in_doubt(self, call: str) -> bool:
        """Whether an equal call may have been applied, and nothing was read since."""
        with self._lock:
            found = self._doubts.get(call)
            return found is not None and not found.is_resolved


class RepeatsOfRuns:
    """The repeats of each run that a toolbox serves.

    Args:
        limit: See `Repeats`.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, Lock()
        self._runs: OrderedDict[str, Repeats] = OrderedDict()

    def of(self, run: str) -> Repeats:
        with self._lock:
            found = self._runs.setdefault(run, Repeats(self._limit))
            self._runs.move_to_end(run)
            if len(self._runs) > _MOST:
                self._runs.popitem(last=False)
            return found
