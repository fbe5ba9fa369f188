"""Wakes the runs that are due.

A parked run is a few lines in a journal. A worker looks through them, takes in hand what is due,
or what a dead supervisor left behind, and drives it until it ends or has to wait again. Any number
of workers may look through one journal: the claim lets exactly one of them wake a run.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from ..errors import MulliganError
from .desk import InOtherHands

if TYPE_CHECKING:
    from collections.abc import Callable

    from .desk import Claimed, Desk
    from .state import RunState
    from .stop import Stop
    from .work import World

__all__ = ("Worker", "is_due")


def is_due(state: RunState, now: float) -> bool:
    """Whether a run should go on by itself now: its time has come, or its supervisor died.

    What somebody interrupted by hand goes on by hand.
    """
    if state.made.parent:
        return False  # its plan wakes it
    if state.made.host != os.uname().nodename or state.made.user != os.geteuid():
        return False  # its sessions and files are elsewhere
    if state.status == "waiting":
        return state.until is None or state.until <= now
    return state.status in {"new", "running"}


class Worker:
    """Wakes runs, a few at a time.

    Args:
        desk: Where runs are kept.
        drive: Drives a run in our hand until it ends or has to wait: (claimed, state).
        stop: Set to end it; what is under way is interrupted, and stays due.
        world: Time, luck and processes.
        jobs: How many runs at once.
        failed: Told of runs that cannot be driven: (id, error).
    """

    def __init__(
        self,
        desk: Desk,
        *,
        drive: Callable[[Claimed, RunState], object],
        stop: Stop,
        world: World,
        jobs: int,
        failed: Callable[[str, Exception], None],
    ) -> None:
        self._desk, self._run, self._stop = desk, drive, stop
        self._world, self._jobs, self._failed = world, jobs, failed
        self._under_way: dict[str, Thread] = {}
        self._hopeless: dict[str, int] = {}

    def work(self, *, is_once: bool, glance: float) -> int:
        """Wake what is due, until stopped; how many runs were woken.

        Args:
            is_once: Whether to return once nothing is due.
            glance: Seconds between two looks.
        """
        woken = 0
        while not self._stop.is_set:
            self._under_way = {id_: run for id_, run in self._under_way.items() if run.is_alive()}
            found = self._wake()
            woken += found
            if is_once and not found and not self._under_way:
                break
            self._world.wait(self._stop, min(glance, 0.05) if is_once else glance)
        for thread in self._under_way.values():
            thread.join()
        return woken

    def _wake(self) -> int:
        """Take in hand what is due, as far as there is room."""
        woken, now = 0, self._world.clock.wall()
        for id_ in self._desk.ids():
            if len(self._under_way) >= self._jobs:
                break
            state = None if id_ in self._under_way else self._desk.look(id_)
            if state is None or not is_due(state, now) or self._hopeless.get(id_) == state.steps:
                continue
            try:
                claimed = self._desk.claim(id_, now)
            except InOtherHands:
                continue
            except (MulliganError, OSError) as error:
                self._give_up(id_, state.steps, error)
                continue
            # Another worker may have woken it between the look and the claim.
            state = self._desk.look(id_)
            if state is None or not is_due(state, now):
                self._desk.release(claimed)
                continue
            thread = Thread(target=self._drive, args=(claimed, state), name=f"run {id_}")
            self._under_way[id_] = thread
            thread.start()
            woken += 1
        return woken

    def _drive(self, claimed: Claimed, state: RunState) -> None:
        try:
            self._run(claimed, state)
        except Exception as error:  # noqa: BLE001 -- one run's trouble must not end the others
            self._give_up(claimed.id, state.steps, error)
            with suppress(OSError):
                self._desk.release(claimed)

    def _give_up(self, id_: str, steps: int, error: Exception) -> None:
        """Tell of a run that cannot go on.

        It is not looked at again until it changes: what failed to start now fails to start later.
        """
        self._hopeless[id_] = steps
        self._failed(id_, error)
