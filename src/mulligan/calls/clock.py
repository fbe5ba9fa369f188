"""The real clock and random generator, and `World`, by which tests replace both in a context."""

from __future__ import annotations

import os
import time
from _random import Random  # `random` itself loads hashlib and a dozen modules more
from typing import TYPE_CHECKING, NamedTuple

from .context import ambient_world

if TYPE_CHECKING:
    from ..core.ports import Clock, Dice, Store

__all__ = ("REAL", "SystemClock", "SystemDice", "World", "world")

# time.sleep and asyncio refuse or overflow on absurd waits (E-A7); a policy's horizon is hours,
# so a year is as good as for ever.
_LONGEST = 31_536_000.0


class SystemClock:
    """The machine's clocks, and its ways to sleep: plain, asyncio's, trio's."""

    __slots__ = ()

    # The functions themselves: a method around them would double what a look at the clock costs.
    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    def sleep(self, delay: float) -> None:
        time.sleep(bounded(delay))

    async def asleep(self, delay: float) -> None:
        from .async_time import asleep

        await asleep(bounded(delay))


_generator = Random()
os.register_at_fork(after_in_child=_generator.seed)  # forked children must roll differently


class SystemDice:
    """The process's random numbers, seeded by the operating system."""

    __slots__ = ()

    roll = staticmethod(_generator.random)


class World(NamedTuple):
    """A clock, dice, and the store of guards that were given none."""

    clock: Clock
    dice: Dice
    store: Store | None = None


REAL = World(SystemClock(), SystemDice())


def world() -> World:
    """The world of this context: the real one, unless a test has replaced it."""
    return ambient_world.get() or REAL


def bounded(delay: float) -> float:
    """`delay` as every sleeper takes it. NaN, which hangs asyncio for ever, becomes 0 (E-A6)."""
    return min(max(delay, 0.0), _LONGEST) if delay == delay else 0.0  # noqa: PLR0124 -- NaN
