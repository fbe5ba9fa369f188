"""Trio on a virtual clock: time jumps when every task is blocked."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import trio.abc

if TYPE_CHECKING:
    from .clock import VirtualClock

__all__ = ("TrioClock",)


class TrioClock(trio.abc.Clock):
    """A VirtualClock as trio uses one."""

    def __init__(self, virtual: VirtualClock) -> None:
        self.virtual = virtual

    def start_clock(self) -> None:
        """Nothing to start."""

    def current_time(self) -> float:
        return self.virtual.now()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        # Trio asks only when no task can run: the moment to jump. Without a deadline, the tasks
        # wait for a thread or a socket, which takes real time.
        if deadline == inf:
            return inf
        self.virtual.move_to(deadline)
        return 0.0
