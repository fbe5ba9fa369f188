"""Waits in a queue: a call sleeps until its turn, or until it may wait no longer.

The queue sets when a waiter is due, and wakes it. Where a sleeper cannot be woken (virtual time in
threads, a clock of the user's), it sleeps for as long as the queue expects, and asks again.
"""

from __future__ import annotations

import sys
from math import inf
from threading import Event
from typing import TYPE_CHECKING, Any

from .clock import REAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.admission import Hold, Waiter
    from ..core.ports import Clock

__all__ = ("await_turn", "wait_for_turn")

# A waiter looks at its queue now and then, even if it is not woken: those before it may be gone
# with a loop that was thrown away.
_LOOK = 600.0


def wait_for_turn(clock: Clock, hold: Hold, still: Callable[[], float]) -> None:
    """Return when `hold` has ended, or the call may wait no longer; in a thread.

    `still` says for how many seconds it may go on waiting; asked whenever it wakes.
    """
    waiter = hold.waiter
    if waiter is None or clock is not REAL.clock:
        clock.sleep(hold.delay)
        return
    called = Event()
    waiter.ring = called.set
    try:
        while (left := _left(clock, waiter, still)) > 0:
            called.wait(left)
            called.clear()
    finally:
        waiter.ring = None


def _left(clock: Clock, waiter: Waiter, still: Callable[[], float]) -> float:
    """Seconds for which `waiter` may sleep, if it is not woken; 0 or less if it asks now."""
    now = clock.now()
    if waiter.due == inf:
        waiter.look(now)
    return min(waiter.due - now, still(), _LOOK)


async def await_turn(clock: Clock, hold: Hold, still: Callable[[], float]) -> None:
    """As `wait_for_turn`, in a task."""
    waiter = hold.waiter
    if waiter is None or not (
        clock is REAL.clock or getattr(clock, "can_be_called", _never)(hold.delay)
    ):
        await clock.asleep(hold.delay)
        return
    trio = sys.modules.get("trio")
    lowlevel = getattr(trio, "lowlevel", None)
    if lowlevel is not None and lowlevel.in_trio_task():
        await _in_trio(clock, waiter, still)
        return
    from asyncio import get_running_loop

    loop = get_running_loop()
    try:
        while True:
            called = loop.create_future()
            waiter.ring = _Ring(loop, called)  # before it looks: whatever changes later rings
            left = _left(clock, waiter, still)
            if left <= 0:
                return
            timer = loop.call_later(left, _set, called)
            try:
                await called
            finally:
                timer.cancel()
    finally:
        waiter.ring = None


class _Ring:
    """Wakes a task of `loop`, from its own thread or from another."""

    __slots__ = ("_called", "_loop")

    def __init__(self, loop: Any, called: Any) -> None:
        self._loop, self._called = loop, called

    def __call__(self) -> None:
        from asyncio import _get_running_loop

        if _get_running_loop() is self._loop:
            _set(self._called)
            return
        try:
            self._loop.call_soon_threadsafe(_set, self._called)
        except RuntimeError:  # the loop is closed, and its tasks with it
            return


def _set(called: Any) -> None:
    if not called.done():
        called.set_result(None)


async def _in_trio(clock: Clock, waiter: Waiter, still: Callable[[], float]) -> None:
    import trio

    token = trio.lowlevel.current_trio_token()
    try:
        while True:
            called = trio.Event()
            waiter.ring = _TrioRing(token, called)
            left = _left(clock, waiter, still)
            if left <= 0:
                return
            with trio.move_on_after(left):
                await called.wait()
    finally:
        waiter.ring = None


class _TrioRing:
    """Wakes a task of trio, from its own thread or from another."""

    __slots__ = ("_called", "_token")

    def __init__(self, token: Any, called: Any) -> None:
        self._token, self._called = token, called

    def __call__(self) -> None:
        import trio

        if trio.lowlevel.in_trio_run() and trio.lowlevel.current_trio_token() is self._token:
            self._called.set()
            return
        try:
            self._token.run_sync_soon(self._called.set)
        except trio.RunFinishedError:
            return


def _never(_delay: float) -> bool:
    return False
