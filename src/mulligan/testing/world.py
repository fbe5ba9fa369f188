"""Virtual time for a context: whoever runs inside sleeps on a VirtualClock."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..drivers.ambient import ambient_world, replaced
from ..drivers.world import World
from .clock import VirtualClock
from .dice import LoadedDice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.ports import Dice

__all__ = ("virtual_time",)


@contextmanager
def virtual_time(
    clock: VirtualClock | None = None, dice: Dice | None = None
) -> Iterator[VirtualClock]:
    """Replace the clock and the dice of every guard used inside.

    Args:
        clock: The clock; by default a new one that jumps.
        dice: The dice; by default ``LoadedDice(0.5)``, the median of every jitter.
    """
    clock = clock or VirtualClock()
    token = ambient_world.set(World(clock, dice or LoadedDice()))
    replaced.worlds += 1
    try:
        yield clock
    finally:
        replaced.worlds -= 1
        ambient_world.reset(token)
