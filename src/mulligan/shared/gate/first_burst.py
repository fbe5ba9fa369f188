"""Slow start of the first burst: how many calls a target is sent before it is known.

A limit or an outage that is not known yet fails every call of the first burst. So a few calls go
ahead. When all of them have been answered, or after a quarter of a second without a failure, as
many again may be sent, and so on: a slow target must not hold back the calls that wait for it. It
ends with the first answer after which no call waits.

If calls fail and none is answered, the target may be down: then one call at a time probes, and none
before the time that a failure stated. A call with a deadline waits for a small share of it at most,
and all others follow it.
"""

from __future__ import annotations

from math import inf

__all__ = ("FirstBurst",)

# Calls that are sent at once to a target that has not answered yet.
_FIRST = 10

# Seconds after which more are sent, and after which another call probes while all have failed.
_STEP = 0.25

# Failures without an answer after which one call at a time probes.
_CROWD = 5

# The share of the time until its deadline for which a call is held back.
_SHARE = 0.02


class FirstBurst:
    """The first burst to one target from one process. Not safe for threads: its owner locks.

    Attributes:
        is_over: Whether the target is known, so that every call may be sent.
    """

    __slots__ = (
        *("_ends_by", "_failed", "_is_answered", "_most", "_sent", "_since"),
        *("is_over", "until"),
    )

    def __init__(self) -> None:
        self._sent = self._failed = 0
        self._most = _FIRST  # that may be sent
        self._since = inf  # when that was last raised, or a call failed where all do
        self._is_answered = False
        self._ends_by = inf  # a call with a deadline waits no longer
        self.until = -inf  # when failures asked to come back
        self.is_over = False

    def next_at(self, live: int, now: float) -> float:
        """When the next call may be sent while `live` are under way; not after `now` if it may."""
        if not self._sent or now >= self._ends_by:
            return now
        due = self._since + _STEP
        if self._is_failing and (self._failed >= _CROWD or now < self.until):
            due = max(due, self.until)
        elif self._sent < self._most or not live:
            return now
        return min(due, self._ends_by)

    def wait(self, live: int, now: float, deadline_at: float = inf) -> float:
        """Seconds until the next call may be sent while `live` are under way; 0 if it is now."""
        if self.next_at(live, now) > now:
            self.hasten(now, deadline_at)
            return max(self.next_at(live, now) - now, 0.001)  # or a rounding lets all through
        if now >= self._ends_by:
            self.is_over = True
        elif self._is_failing and self._failed >= _CROWD:
            self._since, self._most = now, self._sent + 1
        elif not self._sent:
            self._since = now
        elif self._sent >= self._most or now >= self._since + _STEP:
            self._since, self._most = now, 2 * self._most
        self._sent += 1
        return 0.0

    @property
    def _is_failing(self) -> bool:
        """Whether at least half of all calls have failed, and none was answered."""
        return not self._is_answered and 0 < self._sent <= 2 * self._failed

    def hasten(self, now: float, deadline_at: float) -> None:
        """A call waits that has a deadline."""
        self._ends_by = min(self._ends_by, now + _SHARE * (deadline_at - now))

    def answered(self, now: float, *, is_awaited: bool) -> None:
        """The target has answered a call; `is_awaited` while others wait to be sent."""
        if self._is_failing:
            self._most, self._since = self._sent + _FIRST, now
        self._is_answered = True
        self.is_over = not is_awaited

    def failed(self, now: float, stated: float = 0.0) -> None:
        """A call has failed, and asked to come back in `stated` seconds, if that is more than 0."""
        self._failed += 1
        self.until = max(self.until, now + stated)
        if self._is_failing:
            self._since = now
