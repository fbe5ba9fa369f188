"""Wakes callers of this process that wait for a key.

The holder of a key wakes them when it ends, and they look at the store at once. A wakeup that is
missed costs a moment: waiters look now and then in any case, because the holder may be in another
process.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from threading import Event
from typing import TYPE_CHECKING, Any

from ..calls.async_time import on_trio
from ..calls.clock import REAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..core.ports import Clock
    from ..stores.state_machine import Key

__all__ = ("TaskWakeup", "ThreadWakeup", "listening", "wake")

_waiting: dict[Key, list[Callable[[], object]]] = {}


def wake(place: Key) -> None:
    """Wake the callers that wait for `place` in this process."""
    for wakeup in tuple(_waiting.get(place, ())):
        wakeup()


@contextmanager
def listening(place: Key, wakeup: ThreadWakeup | TaskWakeup) -> Iterator[None]:
    """Have `wakeup` woken with the waiters for `place`."""
    waiters = _waiting.setdefault(place, [])
    waiters.append(wakeup.wake)
    try:
        yield
    finally:
        waiters.remove(wakeup.wake)
        if not waiters:
            _waiting.pop(place, None)


class ThreadWakeup:
    """A thread waits on this."""

    def __init__(self) -> None:
        self._woken = Event()
        self.wake = self._woken.set

    def wait(self, clock: Clock, delay: float) -> None:
        """Return `delay` seconds later, or when woken."""
        if clock is not REAL.clock:  # no waiter is woken in virtual time: it passes when we sleep
            clock.sleep(delay)
        else:
            self._woken.wait(delay)
        self._woken.clear()


class TaskWakeup:
    """A task waits on this, on asyncio as on trio; any thread may wake it."""

    def __init__(self) -> None:
        self._woken: Any = None
        if on_trio():
            import trio

            self._event: Callable[[], Any] = trio.Event
            self._call: Callable[..., object] = trio.lowlevel.current_trio_token().run_sync_soon
        else:
            import asyncio

            self._event = asyncio.Event
            self._call = asyncio.get_running_loop().call_soon_threadsafe
        self._woken = self._event()

    def wake(self) -> None:
        with suppress(RuntimeError):  # its loop has ended; no caller waits any more
            self._call(self._woken.set)

    async def wait(self, clock: Clock, delay: float) -> None:
        """Return `delay` seconds later, or when woken."""
        if clock is not REAL.clock:
            await clock.asleep(delay)
        elif on_trio():
            import trio

            with trio.move_on_after(delay):
                await self._woken.wait()
        else:
            import asyncio

            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._woken.wait()
        self._woken = self._event()
