"""Slow start of the first burst: how many calls a target is sent before it has answered.

A limit or an outage that is not known yet fails every call of the first burst. So a few calls go
ahead, and each answered call leaves its place to another. Twice as many may be under way after
each round of answers, as in TCP, and also after each quarter of a second without a failure: a
target whose answers take long must not hold back those who wait for it. The doubling waits for the
end of a round, since rejections of the calls sent last come last. It is over with the first answer
after which no call waits.
"""

from __future__ import annotations

from math import inf

__all__ = ("FirstBurst",)

# Calls that are sent at once to a target that has not answered yet.
_FIRST = 20

# Seconds after which twice as many may be under way.
_STEP = 0.25

# More than any process has under way.
_MOST_DOUBLINGS = 20


class FirstBurst:
    """The first burst to one target from one process. Not safe for threads: its owner locks.

    Attributes:
        is_over: Whether the target is known, so that every call may be sent.
    """

    __slots__ = ("_answered", "_failed", "_rounds", "_since", "is_over")

    def __init__(self) -> None:
        self._answered = self._failed = 0
        self._rounds = 0  # in which as many calls were answered as could be under way
        self._since = inf  # when the first call was sent, or failed last before any answer
        self.is_over = False

    def wait(self, live: int, now: float) -> float:
        """Seconds until the next call may be sent while `live` are under way; 0 for now."""
        self._since = min(self._since, now)
        steps = int((now - self._since) / _STEP)
        allowed = _FIRST << min(max(steps, self._rounds), _MOST_DOUBLINGS)
        if not self._is_answered:
            allowed = max(1, allowed - self._failed)  # the place of a failed call stays empty
        if live < allowed:
            return 0.0
        return max(self._since + (steps + 1) * _STEP - now, 0.001)  # or a rounding lets all through

    def answered(self, *, is_awaited: bool) -> None:
        """The target has answered a call; `is_awaited` while others wait to be sent."""
        self._answered += 1
        if self._answered >= _FIRST << self._rounds:
            self._answered, self._rounds = 0, self._rounds + 1
        self.is_over = not is_awaited

    def failed(self, now: float) -> None:
        """A call has failed."""
        self._failed += 1
        if not self._is_answered:
            self._since = now

    @property
    def _is_answered(self) -> bool:
        return bool(self._answered or self._rounds)
