"""VirtualClock: a clock that moves only when a call waits or a test advances it.

Code that sleeps on it returns at once, at the time it wanted to wake. Many tasks at a time need a
loop that knows the clock: `VirtualClock.run` for asyncio, ``trio.run(…, clock=clock.trio())`` for
trio. There, time jumps to the next wake-up whenever nothing else is left to do.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from typing import TYPE_CHECKING, Any

from ..calls.async_time import asleep, on_trio
from ..core.duration import Duration, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ("JumpingSelector", "VirtualClock", "VirtualLoop")

# 2026-01-01T00:00:00Z: a date that code which reads calendars takes for the present.
_EPOCH = 1_767_225_600.0


class VirtualClock:
    """Time under control.

    Args:
        wall: The epoch second at which it starts.
        autojump: Whether a sleep moves the clock. Without it, sleepers in other threads wait
            until a test calls `advance`.

    Attributes:
        sleeps: Every delay that was slept, in the order in which the sleeps began.
    """

    def __init__(self, *, wall: float = _EPOCH, autojump: bool = True) -> None:
        self._elapsed = 0.0
        self._started = wall
        self._moved = threading.Condition()
        self.autojump = autojump
        self.sleeps: list[float] = []

    def now(self) -> float:
        return self._elapsed

    def wall(self) -> float:
        return self._started + self._elapsed

    def advance(self, by: Duration) -> None:
        """Let `by` pass, and wake the sleepers whose time has come."""
        self.move_to(self._elapsed + seconds(by, name="by"))

    def move_to(self, when: float) -> None:
        """Let the clock show `when`; it never goes back."""
        with self._moved:
            self._elapsed = max(self._elapsed, when)
            self._moved.notify_all()

    def step_wall(self, by: float) -> None:
        """Set the calendar forward or back, as an operator or NTP would; `now` is not affected."""
        self._started += by

    def sleep(self, delay: float) -> None:
        self.sleeps.append(delay)
        due = self._elapsed + max(delay, 0.0)
        if self.autojump:
            self.move_to(due)
        else:
            with self._moved:
                self._moved.wait_for(lambda: self._elapsed >= due)

    async def asleep(self, delay: float) -> None:
        self.sleeps.append(delay)
        if self._is_the_loops_time():
            await asleep(max(delay, 0.0))
            return
        if not self.autojump:
            raise RuntimeError(
                "VirtualClock(autojump=False) cannot hold a task of a loop that runs in real time; "
                "run it with clock.run(main()) or trio.run(main, clock=clock.trio())"
            )
        due = self._elapsed + max(delay, 0.0)
        await asleep(0)
        self.move_to(due)

    def can_be_called(self, delay: float) -> bool:
        """Whether a task that is about to sleep for `delay` can be called before its time.

        It can on a loop of this clock's time; the sleep is noted, as in `asleep`.
        """
        is_ours = self._is_the_loops_time()
        if is_ours:
            self.sleeps.append(delay)
        return is_ours

    def _is_the_loops_time(self) -> bool:
        if on_trio():
            import trio

            return getattr(trio.lowlevel.current_clock(), "virtual", None) is self
        return getattr(asyncio.get_running_loop(), "virtual", None) is self

    # Loops that live on this clock

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        """Run `main` in an asyncio loop of this clock's time, as `asyncio.run` would."""
        with asyncio.Runner(loop_factory=self.loop_factory()) as runner:
            return runner.run(main)

    def loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """For `asyncio.Runner(loop_factory=…)` and anyio's ``("asyncio", {"loop_factory": …})``."""
        return lambda: VirtualLoop(self)

    def trio(self) -> Any:
        """For `trio.run(…, clock=…)` and anyio's ``("trio", {"clock": …})``."""
        from .trio_clock import TrioClock

        return TrioClock(self)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop that never blocks: where it would wait for a timer, time jumps to it."""

    def __init__(self, clock: VirtualClock, selector: JumpingSelector | None = None) -> None:
        self.virtual = clock
        super().__init__(selector or JumpingSelector(clock))

    def time(self) -> float:
        return self.virtual.now()

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ARG002, ASYNC109 -- asyncio's signature
        # Threads end in real time: a timeout here would jump past them (Python 3.12 has one).
        await super().shutdown_default_executor()


class JumpingSelector(selectors.DefaultSelector):
    """Moves the clock to the next timer where a loop would wait for it."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        super().__init__()

    def select(self, timeout: float | None = None) -> Any:
        # A loop without timers (None) waits for another thread or a socket: that wait is real.
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            self._clock.move_to(self._clock.now() + timeout)
        return ready
