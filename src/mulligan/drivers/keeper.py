"""One thread that keeps what others hold.

A key is leased, and its holder may take longer than the lease. So somebody renews it meanwhile:
neither the thread that runs the function, which is busy, nor the event loop, which a careless
function may block. All holders of a process share one thread; it ends when nobody needs it.
"""

from __future__ import annotations

import os
from threading import Condition, Thread
from time import monotonic
from typing import Protocol

__all__ = ("KEEPER", "Job", "Keeper")


class Job(Protocol):
    """Something to do now and then."""

    def act(self) -> float | None:
        """Do it; seconds until it is to be done again, or None if it is over. Must not raise."""
        ...


class Keeper:
    """Does jobs when they are due, one after another, in a thread of its own."""

    def __init__(self) -> None:
        self._begin_anew()
        os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        # A forked child holds nothing: its parent does, and renews it.
        self._changed = Condition()
        self._due: dict[Job, float] = {}
        self._thread: Thread | None = None
        self._looks_at = 0.0

    def add(self, job: Job, delay: float) -> None:
        """Do `job` `delay` seconds from now."""
        due = monotonic() + delay
        with self._changed:
            self._due[job] = due
            if self._thread is None:
                self._thread = Thread(target=self._work, name="mulligan-keeper", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is about to end: the lease has to do
                    self._thread = None
            elif due < self._looks_at:
                self._changed.notify()

    def remove(self, job: Job) -> None:
        """Forget `job`; one that is being done is done to its end."""
        with self._changed:
            self._due.pop(job, None)

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._due:
                    self._thread = None
                    return
                job = min(self._due, key=self._due.__getitem__)
                self._looks_at = self._due[job]
                delay = self._looks_at - monotonic()
                if delay > 0:
                    self._changed.wait(delay)
                    continue
                # Out of reach of `min` while it is being done, but still there to be removed.
                self._due[job] = float("inf")
            again = job.act()
            with self._changed:
                if job in self._due:
                    if again is None:
                        del self._due[job]
                    else:
                        self._due[job] = monotonic() + again


KEEPER = Keeper()
