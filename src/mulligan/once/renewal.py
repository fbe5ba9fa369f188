"""The thread that renews leases of keys, one per store.

A key is leased, and its holder may take longer than the lease. So it is renewed meanwhile:
neither the thread that runs the function, which is busy, nor the event loop, which a careless
function may block. All holders in one store share one thread; it ends when no holder needs it.
A store that hangs must not cost the holders in another one their leases, so no two stores share
one.
"""

from __future__ import annotations

import os
from threading import Condition, Thread
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from ..calls.emit import report

if TYPE_CHECKING:
    from ..core.ports import Keys

__all__ = ("RENEWALS", "RenewalJob", "RenewalThreads")


# How long a thread sleeps before it looks whether a holder still needs it: a lease may be a day.
_NAP = 1.0


class RenewalJob(Protocol):
    """Something to do now and then."""

    @property
    def keys(self) -> Keys:
        """Whom it asks: jobs that ask the same one are done one after another."""
        ...

    def act(self) -> float | None:
        """Do it; seconds until it is to be done again, or None if it has ended. Must not raise."""
        ...


class RenewalThreads:
    """Does jobs when they are due, in threads of its own."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        # A forked child holds nothing: its parent does, and renews it.
        self._changed = Condition()
        self._due: dict[RenewalJob, float] = {}
        # By the identity of the keys, which a job keeps alive: until when each thread sleeps.
        self._threads: dict[int, float] = {}

    def add(self, job: RenewalJob, delay: float) -> None:
        """Do `job` `delay` seconds from now."""
        due, lane = monotonic() + delay, id(job.keys)
        with self._changed:
            self._due[job] = due
            if lane not in self._threads:
                thread = Thread(
                    target=self._work, args=[lane], name="mulligan-renewal", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:  # the interpreter is about to end: the lease has to do
                    return
                self._threads[lane] = 0.0
            elif due < self._threads[lane]:
                self._changed.notify_all()

    def remove(self, job: RenewalJob) -> None:
        """Forget `job`; one that is being done is done to its end."""
        with self._changed:
            self._due.pop(job, None)

    def _work(self, lane: int) -> None:
        while True:
            with self._changed:
                mine = [job for job in self._due if id(job.keys) == lane]
                if not mine:
                    self._threads.pop(lane, None)
                    return
                job = min(mine, key=self._due.__getitem__)
                due = self._threads[lane] = self._due[job]
                delay = due - monotonic()
                if delay > 0:
                    self._changed.wait(min(delay, _NAP))
                    continue
                # Out of reach of `min` while it is being done, but still there to be removed.
                self._due[job] = float("inf")
            try:
                again = job.act()
            except Exception as error:  # noqa: BLE001 -- the others need this thread
                report("job", job, error)
                again = None
            with self._changed:
                if job in self._due:
                    if again is None:
                        del self._due[job]
                    else:
                        self._due[job] = monotonic() + again
            del job, mine  # not referenced while the thread waits


RENEWALS = RenewalThreads()
