"""Wakes callers of this process that wait for a key.

The holder of a key rings when it ends; callers that wait for the key look at once. A ring that is
missed costs a moment: waiters look at the store now and then in any case, because the holder may
be in another process.
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
    from ..stores.machine import Key

__all__ = ("TaskWakeup", "ThreadWakeup", "listening", "ring")

_waiting: dict[Key, list[Callable[[], object]]] = {}


def ring(place: Key) -> None:
    """Wake the callers that wait for `place` in this process."""
    for bell in tuple(_waiting.get(place, ())):
        bell()


@contextmanager
def listening(place: Key, bell: ThreadWakeup | TaskWakeup) -> Iterator[None]:
    """Hear what is rung for `place`."""
    rings = _waiting.setdefault(place, [])
    rings.append(bell.ring)
    try:
        yield
    finally:
        rings.remove(bell.ring)
        if not rings:
            _waiting.pop(place, None)


class ThreadWakeup:
    """What a thread waits at."""

    def __init__(self) -> None:
        self._rung = Event()
        self.ring = self._rung.set

    def wait(self, clock: Clock, delay: float) -> None:
        """Return `delay` seconds later, or when it rings."""
        if clock is not REAL.clock:  # nothing rings in virtual time: it passes when we sleep
            clock.sleep(delay)
        else:
            self._rung.wait(delay)
        self._rung.clear()


class TaskWakeup:
    """What a task waits at, on asyncio as on trio; any thread may ring it."""

    def __init__(self) -> None:
        self._rung: Any = None
        if on_trio():
            import trio

            self._event: Callable[[], Any] = trio.Event
            self._call: Callable[..., object] = trio.lowlevel.current_trio_token().run_sync_soon
        else:
            import asyncio

            self._event = asyncio.Event
            self._call = asyncio.get_running_loop().call_soon_threadsafe
        self._rung = self._event()

    def ring(self) -> None:
        with suppress(RuntimeError):  # its loop has ended; no caller waits any more
            self._call(self._rung.set)

    async def wait(self, clock: Clock, delay: float) -> None:
        """Return `delay` seconds later, or when it rings."""
        if clock is not REAL.clock:
            await clock.asleep(delay)
        elif on_trio():
            import trio

            with trio.move_on_after(delay):
                await self._rung.wait()
        else:
            import asyncio

            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._rung.wait()
        self._rung = self._event()
