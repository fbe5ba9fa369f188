"""Shared state that never stops a call.

While the store is down, or cannot even be opened, a process goes on with a copy of its own, which
begins with what it last saw. The store is asked again after a pause, so that a call is held up
once, not every call.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.moment import Moment
from ..errors import StoreError
from .forks import made_anew
from .memory import MemoryState
from .threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.machine import Key, Machine, Operation
    from ..core.ports import State

__all__ = ("FailOpen",)

S = TypeVar("S")
R = TypeVar("R")


class FailOpen:
    """A `State` that raises no `StoreError`.

    Args:
        state: The store's.
        on_change: Told when the store goes down, with the error, and when it is back, with None.
        pause: Seconds to go without it before it is asked again.
    """

    def __init__(
        self,
        state: State,
        on_change: Callable[[StoreError | None], None] = lambda _: None,
        pause: float = 1.0,
    ) -> None:
        self._state, self._on_change, self._pause = state, on_change, pause
        self._seen: dict[Key, tuple[Machine[Any], Any]] = {}
        self._clock = (Moment(monotonic(), time()), monotonic())
        self._copy: MemoryState | None = None
        self._ask_again_at = 0.0
        self._lock = Lock()
        made_anew(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def transact(self, key: Key, operation: Operation[S, R]) -> R:
        copy = self._resting()
        if copy is None:
            try:
                result = self._state.transact(key, operation)
            except StoreError as trouble:
                copy = self._went_down(trouble)
            else:
                self._came_back()
                return result
        return copy.transact(key, operation)

    def peek(self, key: Key, machine: Machine[S]) -> tuple[S, Moment]:
        copy = self._resting()
        if copy is None:
            try:
                state, moment = self._state.peek(key, machine)
            except StoreError as trouble:
                copy = self._went_down(trouble)
            else:
                self._came_back()
                self._seen[key] = machine, state
                self._clock = moment, monotonic()
                return state, moment
        return copy.peek(key, machine)

    def known(self, machine: Machine[S]) -> tuple[Key, ...]:
        return self._state.known(machine)

    async def atransact(self, key: Key, operation: Operation[S, R]) -> R:
        return await in_thread(self.transact, key, operation)

    async def apeek(self, key: Key, machine: Machine[S]) -> tuple[S, Moment]:
        return await in_thread(self.peek, key, machine)

    def _resting(self) -> MemoryState | None:
        """The copy, while it is too early to ask the store again."""
        copy = self._copy
        return copy if copy is not None and monotonic() < self._ask_again_at else None

    def _went_down(self, trouble: StoreError) -> MemoryState:
        with self._lock:
            self._ask_again_at = monotonic() + self._pause
            copy = self._copy
            if copy is not None:
                return copy
            copy = MemoryState(self._moment)
            for key, (machine, state) in list(self._seen.items()):
                copy.seed(key, machine, state)
            self._copy = copy
        self._on_change(trouble)
        return copy

    def _came_back(self) -> None:
        if self._copy is None:
            return
        with self._lock:
            was_down, self._copy = self._copy is not None, None
        if was_down:
            self._on_change(None)

    def _moment(self) -> Moment:
        """The store's time, as far as it can be known without the store."""
        moment, then = self._clock
        passed = monotonic() - then
        return Moment(moment.now + passed, moment.wall + passed, moment.era)
