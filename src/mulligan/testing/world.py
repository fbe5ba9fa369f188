"""virtual_time: all guards in a context use a VirtualClock, LoadedDice and an empty store."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..calls.clock import World
from ..calls.context import ambient_world, surroundings
from ..core.moment import Moment
from ..errors import SettingError
from ..stores.memory import Memory
from .clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.ports import Dice, Store

__all__ = ("LoadedDice", "virtual_time")


class LoadedDice:
    """Dice that give these rolls in turn, then the last one for ever.

    Args:
        *rolls: Numbers in [0, 1); by default 0.5, the median of every jitter.
    """

    def __init__(self, *rolls: float) -> None:
        for roll in rolls:
            if not 0 <= roll < 1:
                raise SettingError(f"LoadedDice needs rolls in [0, 1); got {roll!r}")
        self._rolls = list(rolls or (0.5,))

    def roll(self) -> float:
        return self._rolls.pop(0) if len(self._rolls) > 1 else self._rolls[0]


@contextmanager
def virtual_time(
    clock: VirtualClock | None = None, dice: Dice | None = None, store: Store | None = None
) -> Iterator[VirtualClock]:
    """Replace the clock, the dice and the shared state of every guard used inside.

    State that guards share starts empty, so that no test meets the breakers of another.

    Args:
        clock: The clock; by default a new one that jumps.
        dice: The dice; by default ``LoadedDice(0.5)``, the median of every jitter.
        store: Where guards without a ``store=`` share their state; by default a new memory. A
            store that a guard names itself keeps its own, real time.
    """
    clock = clock or VirtualClock()
    store = store or Memory(lambda: Moment(clock.now(), clock.wall()))
    token = ambient_world.set(World(clock, dice or LoadedDice(), store))
    surroundings.exist = True
    try:
        yield clock
    finally:
        ambient_world.reset(token)
