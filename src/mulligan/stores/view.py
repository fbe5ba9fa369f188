"""What one process sees of a state that many share.

A healthy call must not write, and must not wait for a read either if the last one was a moment
ago. So each process keeps what it last saw, and looks again when that is older than 50 ms.
Without a shared store the view is the state itself.
"""

from __future__ import annotations

import os
import secrets
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from ..core.moment import Moment
from .forks import made_anew

if TYPE_CHECKING:
    from ..core.machine import Key, Machine, Operation
    from ..core.ports import State

__all__ = ("View",)

S = TypeVar("S")
R = TypeVar("R")

# How old what a process sees may be, in seconds.
_FRESH = 0.05


class View(Generic[S]):
    """One process's view of one state.

    Args:
        machine: What is kept.
        key: Whose state it is.
        shared: Where it is shared; None keeps it in this process. It must not raise: a store that
            can go down belongs behind `FailOpen`.
    """

    def __init__(self, machine: Machine[S], key: Key, shared: State | None = None) -> None:
        self.machine, self.key, self.shared = machine, key, shared
        self.state: S = machine.start
        self._base: S = machine.start  # what the store last said, before what we noted ourselves
        self._moment = Moment(0.0, 0.0)
        self._seen_at = 0.0
        self._is_stale = True
        self._lock = Lock()
        self._numbers = count(1)
        self.worker = ""
        self.after_fork()
        made_anew(self)

    def after_fork(self) -> None:
        self._lock = Lock()
        # Another process, another voter and another holder.
        self.worker = f"{os.getpid()}-{secrets.token_hex(4)}"

    @property
    def has_notes(self) -> bool:
        """Whether this process knows something that it has told nobody."""
        return self.shared is not None and self.state is not self._base

    def name(self) -> str:
        """A name that nobody else gives to anything."""
        return f"{self.worker}/{next(self._numbers)}"

    def look(self, now: float, wall: float) -> tuple[S, Moment]:
        """The state and the store's time, at most 50 ms old. Writes nothing."""
        shared = self.shared
        if shared is None:
            return self.state, Moment(now, wall)
        if not self.is_fresh(now):
            self._is_stale = False
            state, moment = shared.peek(self.key, self.machine)
            with self._lock:
                if state != self._base:
                    self.state = self._base = state
                self._moment, self._seen_at = moment, now
        return self.state, self._at(now)

    def is_fresh(self, now: float) -> bool:
        """Whether `look` needs no round trip."""
        if self.shared is None:
            return True
        return not self._is_stale and 0 <= now - self._seen_at <= _FRESH

    def seen(self, now: float) -> tuple[S, Moment]:
        """The state as it was last seen, and what the store's time is by now."""
        return self.state, self._at(now)

    def _at(self, now: float) -> Moment:
        passed = max(0.0, now - self._seen_at)
        seen = self._moment
        return Moment(seen.now + passed, seen.wall + passed, seen.era)

    def do(self, operation: Operation[S, R], now: float, wall: float) -> R:
        """Apply `operation` where everybody sees it; the next look is a fresh one."""
        shared = self.shared
        if shared is None:
            with self._lock:
                self.state, result = operation(self.state, Moment(now, wall))
            return result
        result = shared.transact(self.key, operation)
        self._is_stale = True
        return result

    def note(self, operation: Operation[S, R], now: float, wall: float) -> R:
        """Apply `operation` where only this process sees it."""
        moment = Moment(now, wall) if self.shared is None else self._at(now)
        with self._lock:
            self.state, result = operation(self.state, moment)
        return result
