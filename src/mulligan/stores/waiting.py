"""The line of calls that wait at a gate, in one process.

Who came first is let in first. Only the head of the line asks the gate; the others come back just
after it, one by one in the order of their coming. So a gate that opens a little is not asked by a
crowd, and one that opens wide lets all of them through in a moment, yet not in the same one: the
first must be able to find out that it was too early.

A waiter that was given up says so. One that does not come back all the same is forgotten a while
after its time, for nobody may hold up those behind it for ever.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from ..core.gate import spread_of

if TYPE_CHECKING:
    from ..core.admission import Answer
    from .gate_admission import GateAdmission

__all__ = ("GateWaiter", "Line")

# Two that come back are a fiftieth of the spread apart, until the spread is used up; then, and at
# least, so many seconds.
_SHARE, _STEP = 0.02, 0.001

# A waiter that has not come back so many seconds after its time is not going to.
_LATE = 1.0


class _Place(NamedTuple):
    """One waiter's place: its number, when it comes back, how those behind are spread, and why."""

    number: int
    due: float
    spread: float
    because: str


class Line:
    """Who waits, first come first; the caller holds a lock around all of it."""

    def __init__(self) -> None:
        self._waiters: dict[object, _Place] = {}
        self._numbers = count()
        self._crowded_until = 0.0

    def __len__(self) -> int:
        return len(self._waiters)

    def head_comes_at(self, now: float) -> float | None:
        """When the head of the line comes back; None if nobody waits."""
        waiters = self._waiters
        while waiters:
            first = next(iter(waiters))
            due = waiters[first].due
            if due >= now - _LATE:
                return due
            del waiters[first]
        return None

    def behind(self, waiter: object, now: float) -> tuple[float, str] | None:
        """Seconds until it is `waiter`'s turn to ask, and why it waits; None if it is now."""
        due = self.head_comes_at(now)
        if due is None:
            return None
        first = next(iter(self._waiters))
        if first is waiter:
            return None
        head = self._waiters[first]
        number = self._number(waiter)
        steps = number - head.number
        delay = max(due - now, 0.0)
        delay += min(_SHARE * steps, 1.0) * head.spread + min(_STEP * steps, _LATE)
        self._put(waiter, _Place(number, now + delay, head.spread, head.because))
        return delay, head.because

    def wait(self, waiter: object, now: float, delay: float, because: str) -> None:
        """Let `waiter`, whose turn it was, come back in `delay` seconds."""
        number = self._number(waiter)
        self._put(waiter, _Place(number, now + delay, spread_of(delay), because))

    def _number(self, waiter: object) -> int:
        known = self._waiters.get(waiter)
        return next(self._numbers) if known is None else known.number

    def _put(self, waiter: object, place: _Place) -> None:
        self._waiters[waiter] = place
        self._crowded_until = max(self._crowded_until, place.due + _LATE)

    def leave(self, waiter: object) -> None:
        """`waiter` was let in, or waits no more."""
        self._waiters.pop(waiter, None)

    def is_crowded(self, now: float) -> bool:
        """Whether calls have been waiting lately, so that it is known how many there are."""
        return now < self._crowded_until


class GateWaiter:
    """A gate as one call uses it: while it waits it keeps its place.

    Args:
        gate: The target's.
        tokens: What the call may take of what is counted in tokens.
    """

    __slots__ = (
        *("calm_ticket", "gate", "has_news", "is_near", "leave", "observe", "settle", "tokens"),
    )

    def __init__(self, gate: GateAdmission, tokens: float = 0.0) -> None:
        self.gate, self.tokens, self.settle = gate, tokens, gate.settle
        self.leave, self.observe = gate.leave, gate.observe
        self.calm_ticket, self.is_near = gate.calm_ticket, gate.is_near
        self.has_news = gate.has_news

    def enter(self, attempt: int, *, now: float, wall: float) -> Answer:  # noqa: ARG002 -- the signature of the seam
        return self.gate.asked(self, now, wall)

    def give_up(self) -> None:
        """The call waits no more."""
        self.gate.given_up(self)
