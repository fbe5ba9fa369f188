"""Servers that limit what they let through.

The four models of the recovery language: a bucket, a bucket where rejections cost quota, a short
fixed window, a long one. Each knows the time in which the best client there can be is done.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import exp, log
from typing import Protocol

__all__ = ("MODELS", "Answer", "Bucket", "Limiter", "Window", "drawn")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a limiter says to one request, at the moment it arrives.

    Args:
        passes: Whether it is let through.
        limit: Requests that a full limit has.
        remaining: Requests left.
        reset_in: Seconds until everything is back.
        retry_in: Seconds until one more passes.
    """

    passes: bool
    limit: int
    remaining: int
    reset_in: float
    retry_in: float


class Limiter(Protocol):
    """One limit of a server."""

    @property
    def limit(self) -> int: ...

    def ask(self, now: float) -> Answer: ...

    def ideal(self, jobs: int) -> float:
        """Seconds in which `jobs` that begin at 0 can be let through by whoever knows it all."""
        ...


@dataclass
class Bucket:
    """A token bucket, full at 0; `fee` is what a rejected request costs."""

    rate: float
    size: int
    fee: float = 0.0
    level: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.level = float(self.size)

    @property
    def limit(self) -> int:
        return self.size

    def ask(self, now: float) -> Answer:
        self.level = min(self.size, self.level + (now - self.at) * self.rate)
        self.at = now
        # Sums of floats miss by a little; nobody is turned away for a billionth of a call.
        passes = self.level >= 1 - 1e-9
        self.level -= 1 if passes else self.fee
        retry_in = max((1 - self.level) / self.rate, 0.001)
        remaining = max(0, int(self.level + 1e-9))
        return Answer(passes, self.size, remaining, (self.size - self.level) / self.rate, retry_in)

    def ideal(self, jobs: int) -> float:
        return max(0.0, (jobs - self.size) / self.rate)


@dataclass
class Window:
    """A fixed window that first turns at `first`."""

    quota: int
    length: float
    first: float
    used: int = 0
    turn: int = 0

    @property
    def limit(self) -> int:
        return self.quota

    def ask(self, now: float) -> Answer:
        turn = 0 if now < self.first else 1 + int((now - self.first) / self.length)
        if turn != self.turn:
            self.turn, self.used = turn, 0
        reset_in = self.first + self.turn * self.length - now
        passes = self.used < self.quota
        self.used += passes
        return Answer(passes, self.quota, self.quota - self.used, reset_in, reset_in)

    def ideal(self, jobs: int) -> float:
        turns = -(-jobs // self.quota) - 1
        return 0.0 if turns <= 0 else self.first + (turns - 1) * self.length


def _between(dice: random.Random, low: float, high: float) -> float:
    """A number between `low` and `high`, every doubling as likely as every other."""
    return exp(dice.uniform(log(low), log(high)))


def drawn(model: str, seed: int) -> Limiter:
    """A limiter of this model, with rates and windows drawn anew for every seed."""
    dice = random.Random(f"{model}/{seed}")
    match model:
        case "bucket" | "bucket, rejections cost":
            rate, size = _between(dice, 10, 300) / 60, dice.randint(10, 120)
            return Bucket(rate, size, 0.2 if "cost" in model else 0.0)
        case "short window":
            length = _between(dice, 20, 120)
            return Window(dice.randint(40, 150), length, dice.uniform(0.2, 1.0) * length)
        case _:
            length = _between(dice, 120, 900)
            return Window(dice.randint(20, 80), length, dice.uniform(0.2, 1.0) * length)


MODELS = ("bucket", "bucket, rejections cost", "short window", "long window")
