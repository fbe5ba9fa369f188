"""Waits that another call can end: a thread or a task sleeps until it is woken, or for so long.

The queue of a target sets when a waiter is due, and wakes it (`wait_for_turn`, `await_turn`). Where
a sleeper cannot be woken (virtual time in threads, a clock of the user's), it sleeps for as long as
the queue expects, and asks again.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from threading import Event
from typing import TYPE_CHECKING, Any

from .async_time import on_trio
from .clock import REAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.admission import Hold, Waiter
    from ..core.ports import Clock

__all__ = ("TaskWakeup", "ThreadWakeup", "await_turn", "wait_for_turn")

# A waiter looks at its queue now and then, even if it is not woken: those before it may be gone
# with a loop that was thrown away.
_LOOK = 600.0


class ThreadWakeup:
    """A thread waits on this."""

    def __init__(self) -> None:
        self._woken = Event()
        self.wake = self._woken.set

    def wait(self, delay: float) -> None:
        """Return `delay` seconds later, or when woken."""
        self._woken.wait(delay)
        self._woken.clear()


class TaskWakeup:
    """A task waits on this, on asyncio as on trio; any thread may wake it."""

    def __init__(self) -> None:
        self._is_trio = on_trio()
        if self._is_trio:
            import trio

            self._loop: Any = trio.lowlevel.current_trio_token()
            self._event: Callable[[], Any] = trio.Event
            self._call: Callable[..., object] = self._loop.run_sync_soon
        else:
            import asyncio

            self._loop, self._event = asyncio.get_running_loop(), asyncio.Event
            self._call = self._loop.call_soon_threadsafe
        self._woken = self._event()

    def wake(self) -> None:
        """Wake the task, from its own thread or from another."""
        if self._loop is self._running_loop():
            self._woken.set()
            return
        with suppress(RuntimeError):  # its loop has ended, and its tasks with it
            self._call(self._woken.set)

    def _running_loop(self) -> object:
        if not self._is_trio:
            from asyncio import _get_running_loop

            return _get_running_loop()
        from trio import lowlevel

        return lowlevel.current_trio_token() if lowlevel.in_trio_run() else None

    async def wait(self, delay: float) -> None:
        """Return `delay` seconds later, or when woken."""
        if self._is_trio:
            import trio

            with trio.move_on_after(delay):
                await self._woken.wait()
        else:
            timer = self._loop.call_later(delay, self._woken.set)
            try:
                await self._woken.wait()
            finally:
                timer.cancel()
        self._woken = self._event()


def wait_for_turn(clock: Clock, hold: Hold, still: Callable[[], float]) -> None:
    """Return when `hold` has ended, or the call may wait no longer; in a thread.

    `still` says for how many seconds it may go on waiting; asked whenever it wakes.
    """
    waiter = hold.waiter
    if waiter is None or clock is not REAL.clock:
        clock.sleep(hold.delay)
        return
    wakeup = ThreadWakeup()
    waiter.ring = wakeup.wake
    try:
        while (left := _left(clock, waiter, still)) > 0:
            wakeup.wait(left)
    finally:
        waiter.ring = None


async def await_turn(clock: Clock, hold: Hold, still: Callable[[], float]) -> None:
    """As `wait_for_turn`, in a task."""
    waiter = hold.waiter
    can_be_called = getattr(clock, "can_be_called", None)  # of virtual time with a loop
    if waiter is None or not (
        clock is REAL.clock or (can_be_called is not None and can_be_called(hold.delay))
    ):
        await clock.asleep(hold.delay)
        return
    wakeup = TaskWakeup()
    waiter.ring = wakeup.wake
    try:
        while (left := _left(clock, waiter, still)) > 0:
            await wakeup.wait(left)
    finally:
        waiter.ring = None


def _left(clock: Clock, waiter: Waiter, still: Callable[[], float]) -> float:
    """Seconds for which `waiter` may sleep, if it is not woken; 0 or less if it asks now."""
    now = clock.now()
    if waiter.due == inf:
        waiter.look(now)
    return min(waiter.due - now, still(), _LOOK)
