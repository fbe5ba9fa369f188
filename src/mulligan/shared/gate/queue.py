"""The queue of calls that wait for one target, in one process.

First come, first served. Only the head of the queue asks whether it may go. A call that leaves the
queue wakes the next one, and a change of what the head waits for (an answer, the end of a probe, a
returned token) wakes the head. So waiters sleep instead of polling: a call asks when it comes, when
its turn comes, and when its wait ends.

After a long wait the first calls are woken a little apart, so that the first can find out that it
was too early.

On a clock without callbacks (virtual time without its loop), a waiter comes back by
itself at about the time of its turn; `behind` says when that is.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from math import inf
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("CallQueue", "QueuedCall", "TargetQueues")

# After a long wait, this many calls are woken spread over this fraction of the wait, within at most
# so many seconds.
_SPREAD_OVER, _SPREAD_SHARE, _LONGEST_SPREAD = 50, 0.01, 1.0

# After shorter waits calls are not spread: those are pacing.
_LONG = 1.0

# Seconds between two calls that come back by themselves.
_STEP = 0.001

# A head that has not asked this many seconds after its time is dropped.
_LATE = 2.0


class QueuedCall:
    """One call's place in a queue.

    Attributes:
        due: When it asks again, on the caller's clock; inf while others are before it.
        number: Its place among all that ever waited.
        queue: The queue that it is in, if any.
        ring: Wakes it, once a waiter exists; may be called from any thread.
    """

    due = inf
    number = 0
    queue: CallQueue | None = None
    ring: Callable[[], object] | None = None


class CallQueue:
    """Waiting calls, first come, first served. Not thread-safe: hold `lock`."""

    __slots__ = (
        *("_crowded_until", "_delay", "_left", "_next_after", "_numbers", "_until", "_waiters"),
        *("because", "size", "wakes_early"),
    )

    def __init__(self) -> None:
        # Calls that left are dropped once they are the head.
        self._waiters: deque[QueuedCall] = deque()
        self._numbers = count()
        self._crowded_until = -inf
        self._delay = 0.0  # how long the last head was told to wait
        self._left = 0  # how many have left since
        self.because = ""  # what the head waits for, and
        self.wakes_early = False  # whether the end of another call may end that
        self._next_after = 0.0  # after how many seconds the next one asks, unless it is roused
        self._until = -inf  # no call is admitted before
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def head(self, now: float) -> QueuedCall | None:
        """The next waiter; None if there is none. One that is long overdue is dropped."""
        waiters = self._waiters
        while waiters:
            first = waiters[0]
            if first.queue is not self:
                waiters.popleft()
            elif first.due < now - _LATE:
                self.leave(first, now)
            else:
                return first
        return None

    def is_behind(self, waiter: QueuedCall, now: float) -> bool:
        """Whether others are before `waiter`; it is then in the queue."""
        head = self.head(now)
        if head is None or head is waiter:
            return False
        if waiter.queue is not self:
            self._join(waiter)
        waiter.due = inf
        self._crowded_until = max(self._crowded_until, min(head.due, now + 1.0) + _LATE)
        return True

    def behind(self, waiter: QueuedCall, now: float) -> float:
        """Seconds until about the turn of `waiter`, which has others before it."""
        head = self.head(now)
        if head is None:
            return 0.0
        steps = waiter.number - head.number
        spread = min(steps / _SPREAD_OVER, 1.0) * self._spread + min(_STEP * steps, 1.0)
        return max(min(head.due, now + 1.0) - now, 0.0) + spread

    def least(self, now: float) -> float:
        """Seconds in which no call is admitted."""
        return max(0.0, self._until - now)

    @property
    def _spread(self) -> float:
        if self._delay < _LONG:
            return 0.0
        return min(_SPREAD_SHARE * self._delay, _LONGEST_SPREAD)

    def wait(
        self,
        waiter: QueuedCall,
        now: float,
        delay: float,
        because: str,
        *,
        least: float = 0.0,
        wakes_early: bool = False,
        next_after: float = 0.0,
    ) -> None:
        """Let `waiter`, whose turn it was, ask again in `delay` seconds.

        `least` if it takes so long at the least; `wakes_early` if the end of another call may end
        it; `next_after` if those behind it need not ask at once when their turn comes.
        """
        if waiter.queue is not self:
            self._join(waiter)
        waiter.due = now + delay
        if self.head(now) is waiter:
            self._delay, self._left = delay, 0
            self.because, self.wakes_early = because, wakes_early
            self._until, self._next_after = now + least, next_after
        self._crowded_until = max(self._crowded_until, min(waiter.due, now + 60.0) + _LATE)

    def _join(self, waiter: QueuedCall) -> None:
        waiter.queue, waiter.number, waiter.due = self, next(self._numbers), inf
        self._waiters.append(waiter)
        self.size += 1

    def leave(self, waiter: QueuedCall, now: float) -> None:
        """`waiter` was admitted or stopped waiting: wake the next one if it was the head."""
        if waiter.queue is not self:
            return
        waiters = self._waiters
        was_head = waiters[0] is waiter
        waiter.queue, waiter.due = None, inf
        self.size -= 1
        if not was_head:
            return
        waiters.popleft()
        while waiters and waiters[0].queue is not self:
            waiters.popleft()
        if waiters:
            after = self._spread / _SPREAD_OVER if self._left < _SPREAD_OVER else 0.0
            self._left += 1
            waiters[0].due = now + max(after, self._next_after)
            _call(waiters[0])

    def wake_head(self, now: float, delay: float = 0.0) -> None:
        """A call has ended: the head asks in `delay` seconds, if that may be what it waits for."""
        head = self._waiters[0] if self._waiters and self.wakes_early else None
        if head is not None and head.queue is self and head.due > now + delay:
            head.due = now + delay
            _call(head)

    def is_crowded(self, now: float) -> bool:
        """Whether calls have been waiting lately, so that it is known how many there are."""
        return now < self._crowded_until


class TargetQueues:
    """The queues of a target in one process: for the target itself, and for retry tokens.

    Attributes:
        answered_at: When the target last answered a call, on this process's clock and as far as it
            knows.
    """

    __slots__ = ("answered_at", "lock", "queue", "unfunded")

    def __init__(self) -> None:
        self.lock, self.queue, self.unfunded = Lock(), CallQueue(), CallQueue()
        self.answered_at = -inf


def _call(waiter: QueuedCall) -> None:
    ring = waiter.ring
    if ring is not None:
        ring()
