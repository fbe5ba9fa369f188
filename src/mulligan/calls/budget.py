"""The retry budget and deadline of a task, shared by all calls made inside it.

A budget only decreases: nested tasks spend from their parents too, and nothing is given back, not
even a wait that was cut short. Waiting for a limit is not retrying, and costs no budget.
"""

from __future__ import annotations

from _thread import allocate_lock
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.ports import Clock

__all__ = ("Task",)


class Task:
    """What a task may still spend.

    Args:
        clock: The clock that its deadline is measured with.
        budget: Seconds for waits and for attempts after the first; inf for no bound.
        deadline: Seconds from now to its end; inf for none.
        metadata: What `current().metadata` carries inside.
        parent: The task around it.
    """

    __slots__ = ("_lock", "budget", "clock", "deadline_at", "metadata", "parent", "spent")

    def __init__(
        self,
        clock: Clock,
        *,
        budget: float = inf,
        deadline: float = inf,
        metadata: Mapping[str, object],
        parent: Task | None = None,
    ) -> None:
        self.clock, self.budget, self.parent = clock, budget, parent
        self.deadline_at = clock.now() + deadline
        inherited: Mapping[str, object] = {} if parent is None else parent.metadata
        self.metadata: Mapping[str, object] = {**inherited, **metadata}
        self.spent = 0.0
        self._lock = allocate_lock()

    def time_left(self) -> float:
        """Seconds to the nearest deadline, its own or one of its parents'."""
        own = self.deadline_at - self.clock.now()
        return own if self.parent is None else min(own, self.parent.time_left())

    def budget_left(self) -> float:
        """Seconds that may still be spent on retrying."""
        own = self.budget - self.spent
        return own if self.parent is None else min(own, self.parent.budget_left())

    def reserve(self, wait: float) -> bool:
        """Take `wait` seconds from this budget and its parents', all or nothing.

        Reserved when a wait is scheduled, in one atomic step: a hundred calls that fail together
        cannot each see the same seconds (E-C2, E-C3).
        """
        with self._lock:
            if self.spent + wait > self.budget:
                return False
            if self.parent is not None and not self.parent.reserve(wait):
                return False
            self.spent += wait
            return True

    def charge(self, took: float) -> None:
        """Book what an attempt after the first took; time that has passed cannot be refused."""
        with self._lock:
            self.spent += took
        if self.parent is not None:
            self.parent.charge(took)
