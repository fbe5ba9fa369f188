"""Rate limiters of simulated servers: token bucket, fixed window, sliding log, concurrency.

Each takes the time as an argument and keeps its own state. `look` says what a request would be told
without taking anything, `take` books an admitted one, `refuse` a rejected one, so that a server
with several limits can ask all of them before one is charged.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ("BucketLimiter", "Concurrency", "Limiter", "LimiterAnswer", "SlidingLog", "Window")

# Tolerance for rounding errors of sums.
_ROUNDING = 1e-9


class LimiterAnswer(NamedTuple):
    """What a limiter tells a request that arrives now."""

    passes: bool
    limit: int  # units of an unused limit
    remaining: int  # whole units left once this request has been booked
    reset_in: float  # seconds until everything is back
    retry_in: float  # seconds until one more request of this cost passes


class Limiter(ABC):
    """One limit of a server."""

    @abstractmethod
    def look(self, now: float, cost: float = 1.0) -> LimiterAnswer:
        """What a request of this cost would be told now."""

    @abstractmethod
    def take(self, now: float, cost: float = 1.0, *, until: float | None = None) -> None:
        """Book an admitted request; `until` is when it is served, which `Concurrency` counts."""

    def refuse(self, now: float) -> None:  # noqa: B027 -- most limiters book nothing
        """Book a rejected request; it costs nothing unless a limiter says otherwise."""

    def ask(self, now: float, cost: float = 1.0) -> LimiterAnswer:
        """Look, then take or refuse: for servers that have one limit."""
        answer = self.look(now, cost)
        if answer.passes:
            self.take(now, cost)
            return answer
        self.refuse(now)
        return self.look(now, cost)._replace(passes=False)


@dataclass
class BucketLimiter(Limiter):
    """A token bucket, full at 0."""

    rate: float  # units that flow back in a second
    size: int  # units in a full bucket
    fee: float = 0.0  # units that a rejected request costs
    level: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.level = float(self.size)

    def _settle(self, now: float) -> None:
        if now > self.at:
            self.level = min(self.size, self.level + (now - self.at) * self.rate)
            self.at = now

    def look(self, now: float, cost: float = 1.0) -> LimiterAnswer:
        self._settle(now)
        passes = self.level >= cost - _ROUNDING
        left = self.level - cost if passes else self.level
        retry_in = max((cost - left) / self.rate, 0.001)
        remaining = max(0, int(left + _ROUNDING))
        return LimiterAnswer(passes, self.size, remaining, (self.size - left) / self.rate, retry_in)

    def take(self, now: float, cost: float = 1.0, *, until: float | None = None) -> None:  # noqa: ARG002 -- only `Concurrency` uses it
        self._settle(now)
        self.level -= cost

    def refuse(self, now: float) -> None:
        self._settle(now)
        self.level -= self.fee

    def ideal(self, jobs: int) -> float:
        """Seconds in which `jobs` that begin at 0 can be admitted."""
        return max(0.0, (jobs - self.size) / self.rate)


@dataclass
class Window(Limiter):
    """A fixed window."""

    quota: int  # units in each window
    length: float  # seconds
    first: float  # when the first window ends
    used: float = 0
    turn: int = 0

    def _settle(self, now: float) -> None:
        # A request that arrives with the reset, give or take rounding, is in the new window.
        since = now - self.first + _ROUNDING
        turn = 0 if since < 0 else 1 + int(since / self.length)
        if turn > self.turn:
            self.turn, self.used = turn, 0

    def look(self, now: float, cost: float = 1.0) -> LimiterAnswer:
        self._settle(now)
        reset_in = self.first + self.turn * self.length - now
        passes = self.used + cost <= self.quota + _ROUNDING
        left = self.quota - self.used - (cost if passes else 0)
        return LimiterAnswer(passes, self.quota, max(0, int(left)), reset_in, reset_in)

    def take(self, now: float, cost: float = 1.0, *, until: float | None = None) -> None:  # noqa: ARG002 -- only `Concurrency` uses it
        self._settle(now)
        self.used += cost

    def ideal(self, jobs: int) -> float:
        """Seconds in which `jobs` that begin at 0 can be admitted."""
        turns = -(-jobs // self.quota) - 1
        return 0.0 if turns <= 0 else self.first + (turns - 1) * self.length


@dataclass
class SlidingLog(Limiter):
    """A sliding window: every unit comes back one window after it was taken."""

    quota: int  # units in any window
    length: float  # seconds
    used: float = 0.0
    log: deque[tuple[float, float]] = field(default_factory=deque)

    def _settle(self, now: float) -> None:
        log = self.log
        while log and log[0][0] + self.length <= now + _ROUNDING:
            self.used -= log.popleft()[1]

    def look(self, now: float, cost: float = 1.0) -> LimiterAnswer:
        self._settle(now)
        passes = self.used + cost <= self.quota + _ROUNDING
        left = self.quota - self.used - (cost if passes else 0)
        newest = now if passes and cost else self.log[-1][0] if self.log else now - self.length
        reset_in = newest + self.length - now
        return LimiterAnswer(
            passes, self.quota, max(0, int(left + _ROUNDING)), reset_in, self._room_in(now, cost)
        )

    def _room_in(self, now: float, cost: float) -> float:
        missing = self.used + cost - self.quota
        if missing <= _ROUNDING:
            return 0.0
        for at, taken in self.log:
            missing -= taken
            if missing <= _ROUNDING:
                return max(at + self.length - now, 0.0)
        return self.length

    def take(self, now: float, cost: float = 1.0, *, until: float | None = None) -> None:  # noqa: ARG002 -- only `Concurrency` uses it
        self._settle(now)
        self.log.append((now, cost))
        self.used += cost


@dataclass
class Concurrency(Limiter):
    """A limit of requests that are served at the same time; each has one place."""

    places: int
    ends: list[float] = field(default_factory=list)

    def look(self, now: float, cost: float = 1.0) -> LimiterAnswer:  # noqa: ARG002 -- one place each
        ends = self.ends
        while ends and ends[0] <= now + _ROUNDING:
            heapq.heappop(ends)
        passes = len(ends) < self.places
        left = self.places - len(ends) - passes
        retry_in = ends[0] - now if ends else 0.0
        return LimiterAnswer(
            passes, self.places, left, (max(ends) if ends else now) - now, retry_in
        )

    def take(self, now: float, cost: float = 1.0, *, until: float | None = None) -> None:  # noqa: ARG002 -- one place each
        heapq.heappush(self.ends, now if until is None else until)
