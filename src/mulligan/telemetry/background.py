"""Delivery of events on a thread of its own, so that a slow listener does not hold up calls.

`QueuedListener` is the base of listeners with a bounded queue and a thread; what does not fit is
dropped and counted. `BackgroundListener` makes one of any listener. `watched` wraps the listeners
that users give to a guard: it calls them directly, as long as they are quick.
"""

from __future__ import annotations

import atexit
import os
from abc import ABC, abstractmethod
from collections import deque
from threading import Condition, Thread
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ..core.redaction import presentable
from ..errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.events import Event

__all__ = ("BackgroundListener", "QueuedListener", "watched")

# Seconds after which a thread that has nothing to deliver ends; the next event starts another.
_IDLE = 10.0

# Seconds that the end of the process waits for what was not delivered.
_AT_EXIT = 2.0

# Seconds after which dropped events are logged again.
_AGAIN = 60.0

# A call of a listener that takes longer counts as slow, in seconds; after so many slow seconds
# altogether the listener gets a thread.
_SLOW, _ENOUGH = 0.05, 1.0

_listeners: WeakSet[QueuedListener] = WeakSet()


class QueuedListener(ABC):
    """A listener whose events a thread of its own delivers in batches.

    Args:
        name: For the log.
        capacity: How many events may wait.
        linger: Seconds that the first event waits for others to make a batch.

    Attributes:
        dropped: Events that were not delivered: the queue was full, or `deliver` failed.
    """

    is_quick = True

    def __init__(self, name: str, *, capacity: int = 10_000, linger: float = 0.0) -> None:
        if capacity < 1:
            raise SettingError(f"{name} needs a capacity of 1 or more; got {capacity!r}")
        self._name, self._capacity, self._linger = name, capacity, linger
        self.dropped = 0
        self._complained_at = -_AGAIN
        self._reset()
        _listeners.add(self)

    def _reset(self) -> None:
        """Empty the queue: after a fork the parent delivers what was waiting."""
        self._changed = Condition()
        self._queue: deque[Event] = deque()
        self._is_running = self._is_busy = False
        self._hurry = 0

    @abstractmethod
    def deliver(self, events: list[Event]) -> None:
        """Take the events that were queued, in order.

        What it raises is logged, and the events count as dropped.
        """

    def __call__(self, event: Event, /) -> None:
        """Deliver `event` later; returns at once."""
        with self._changed:
            if len(self._queue) >= self._capacity:
                self._lost(1, f"more than {self._capacity} events waited")
                return
            self._queue.append(event)
            if not self._is_running:
                try:
                    Thread(target=self._run, name=f"mulligan {self._name}", daemon=True).start()
                except RuntimeError:  # no thread is left to the machine, or it is shutting down
                    self._queue.pop()
                    self._lost(1, "no thread could be started")
                    return
                self._is_running = True
            elif len(self._queue) == 1:
                self._changed.notify_all()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until every event was delivered; False if that takes longer than `timeout`."""
        ends_at = monotonic() + timeout
        with self._changed:
            self._hurry += 1
            self._changed.notify_all()
            try:
                while self._queue or self._is_busy:
                    left = ends_at - monotonic()
                    if left <= 0 or not self._changed.wait(left):
                        return False
                return True
            finally:
                self._hurry -= 1

    def _run(self) -> None:
        while (batch := self._batch()) is not None:
            try:
                self.deliver(batch)
            except Exception as error:  # noqa: BLE001 -- logged; a listener must not end its thread
                self._lost(len(batch), f"{type(error).__name__}: {error}")
            del batch
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()

    def _batch(self) -> list[Event] | None:
        with self._changed:
            if not self._queue:
                self._changed.wait(_IDLE)
            if not self._queue:
                self._is_running = False
                return None
            ends_at = monotonic() + self._linger
            while not self._hurry and (left := ends_at - monotonic()) > 0:
                self._changed.wait(left)
            batch = list(self._queue)
            self._queue.clear()
            self._is_busy = True
            return batch

    def _lost(self, count: int, why: str) -> None:
        """Count events as dropped, and log it once a minute."""
        with self._changed:
            self.dropped += count
            now = monotonic()
            is_news = now - self._complained_at >= _AGAIN
            if is_news:
                self._complained_at = now
        if is_news:
            import logging  # a guard whose listeners are quick never needs it

            logging.getLogger("mulligan").error(
                "the listener %s has dropped %d events so far: %s",
                self._name,
                self.dropped,
                presentable(why),
            )


def _after_fork() -> None:
    for each in list(_listeners):
        each._reset()  # noqa: SLF001 -- of this module


def _at_exit() -> None:
    ends_at = monotonic() + _AT_EXIT
    for each in list(_listeners):
        each.flush(max(0.0, ends_at - monotonic()))


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)


class BackgroundListener(QueuedListener):
    """Calls another listener on a thread of its own.

    Events that come faster than the listener takes them wait in a queue; those beyond `capacity`
    are dropped and counted in ``dropped``. What is left at the end of the process is delivered
    within two seconds, or lost.

    Args:
        listener: Any listener.
        capacity: How many events may wait.
    """

    def __init__(self, listener: Callable[[Event], object], *, capacity: int = 10_000) -> None:
        if not callable(listener):
            raise SettingError(f"BackgroundListener needs a callable; got {listener!r}")
        self.listener = listener
        self.successes: bool = getattr(listener, "successes", False)
        super().__init__(_name(listener), capacity=capacity)

    def deliver(self, events: list[Event]) -> None:
        """Call the listener with each event; an event at which it raises counts as dropped."""
        for event in events:
            try:
                self.listener(event)
            except Exception as error:  # noqa: BLE001 -- the others are still delivered
                self._lost(1, f"{type(error).__name__}: {error}")


def watched(listener: Any) -> Any:
    """`listener`, called directly until it has held up calls for a second altogether."""
    return listener if getattr(listener, "is_quick", False) else _Watched(listener)


class _Watched:
    """A user's listener: called directly while it is quick, then on a thread of its own."""

    def __init__(self, listener: Callable[[Event], object]) -> None:
        self.listener = listener
        self.successes: bool = getattr(listener, "successes", False)
        self.__name__ = _name(listener)
        self._slow = 0.0
        self._background: BackgroundListener | None = None

    def __call__(self, event: Event, /) -> None:
        if self._background is not None:
            self._background(event)
            return
        began = perf_counter()
        try:
            self.listener(event)
        finally:
            took = perf_counter() - began
            if took > _SLOW:
                self._was_slow(took)

    def _was_slow(self, took: float) -> None:
        self._slow += took
        if self._slow >= _ENOUGH and self._background is None:
            import logging

            self._background = BackgroundListener(self.listener)
            logging.getLogger("mulligan").warning(
                "the listener %s has held up calls for %.1fs; from here on it is called on a "
                "thread of its own",
                self.__name__,
                self._slow,
            )


def _name(listener: object) -> str:
    return str(getattr(listener, "__name__", None) or type(listener).__name__)
