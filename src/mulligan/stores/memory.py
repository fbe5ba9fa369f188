"""The memory store: shared state of one process.

The default store, and the fallback of others. States are immutable, so they are kept as they are;
only a lock is needed to apply one transition at a time.
"""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.moment import Moment
from ..errors import Fenced
from .base import StatesByKey
from .forks import reset_after_fork
from .state_machine import scoped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .entries import JournalLine
    from .state_machine import Key, Machine, Operation

__all__ = ("Memory",)

S = TypeVar("S")
R = TypeVar("R")

# Writes between two sweeps for expired states; at least as many as there are states.
_SWEEP = 1024


def _process_time() -> Moment:
    return Moment(time.monotonic(), time.time())


class Memory:
    """Shared state of one process.

    Args:
        moments: The clock; the process's clocks by default.
    """

    url = "memory:"

    def __init__(self, moments: Callable[[], Moment] = _process_time) -> None:
        self.state = self.keys = MemoryState(moments)
        self.journal = MemoryJournal()
        self._salt = os.urandom(16).hex()

    def scoped(self, scope: str) -> str:
        return scoped(scope, self._salt)

    def close(self) -> None:
        """Nothing to close."""

    def __repr__(self) -> str:
        return "Memory()"


class MemoryState(StatesByKey):
    """States by key, behind one lock."""

    def __init__(self, moments: Callable[[], Moment]) -> None:
        self._moments = moments
        self._states: dict[Key, tuple[Machine[Any], Any, float]] = {}
        self._until_sweep = _SWEEP
        self._lock = Lock()
        reset_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def transact_all(self, steps: Sequence[tuple[Key, Operation[Any, Any]]]) -> list[Any]:
        results = []
        with self._lock:
            moment = self._moments()
            for key, operation in steps:
                machine = operation.machine
                before = self._states[key][1] if key in self._states else machine.start
                after, result = operation(before, moment)
                results.append(result)
                if after is not before:
                    self._put(key, machine, after, moment)
        return results

    def _put(self, key: Key, machine: Machine[S], state: S, moment: Moment) -> None:
        if state == machine.start:
            self._states.pop(key, None)
            return
        self._states[key] = machine, state, moment.now + machine.keep(state, moment)
        self._until_sweep -= 1
        if self._until_sweep <= 0:
            for old, (_, _, forget_at) in list(self._states.items()):
                if forget_at < moment.now:
                    del self._states[old]
            self._until_sweep = max(_SWEEP, len(self._states))

    def peek_all(self, wanted: Sequence[tuple[Key, Machine[Any]]]) -> tuple[list[Any], Moment]:
        found = [self._states.get(key) for key, _ in wanted]
        states = [
            machine.start if each is None else each[1]
            for each, (_, machine) in zip(found, wanted, strict=True)
        ]
        return states, self._moments()

    def known(self, machine: Machine[S]) -> tuple[Key, ...]:
        with self._lock:
            return tuple(sorted(k for k, found in self._states.items() if found[0] is machine))

    async def atransact(self, key: Key, operation: Operation[S, R]) -> R:
        return self.transact(key, operation)


class MemoryJournal:
    """Entries by stream."""

    def __init__(self) -> None:
        self._streams: dict[str, dict[str, JournalLine]] = {}
        self._lock = Lock()
        reset_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def append(self, stream: str, entry: JournalLine) -> int:
        with self._lock:
            entries = self._streams.setdefault(stream, {})
            if entry.id in entries:
                return list(entries).index(entry.id) + 1
            newest = max([each.epoch for each in entries.values()], default=0)
            if entry.epoch < newest:
                raise Fenced("memory:", f"{stream} is written by epoch {newest} now")
            entries[entry.id] = entry
            return len(entries)

    def read(self, stream: str, after: int = 0) -> tuple[JournalLine, ...]:
        with self._lock:
            return tuple(self._streams.get(stream, {}).values())[after:]

    def streams(self, prefix: str) -> tuple[str, ...]:
        with self._lock:
            return tuple(sorted(name for name in self._streams if name.startswith(prefix)))

    def forget(self, stream: str) -> None:
        with self._lock:
            self._streams.pop(stream, None)
