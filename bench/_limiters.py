"""Limiters of the simulator with numbers drawn at random.

The four models of the recovery language: a bucket, a bucket where rejections cost quota, a short
fixed window, a long one.
"""

from __future__ import annotations

import random
from math import exp, log
from typing import TypeAlias

from mulligan.sim.limiters import BucketLimiter, Window

__all__ = ("MODELS", "Drawn", "drawn")

Drawn: TypeAlias = BucketLimiter | Window


def _between(dice: random.Random, low: float, high: float) -> float:
    """A number between `low` and `high`, every doubling as likely as every other."""
    return exp(dice.uniform(log(low), log(high)))


def drawn(model: str, seed: int) -> Drawn:
    """A limiter of this model, with rates and windows drawn anew for every seed."""
    dice = random.Random(f"{model}/{seed}")
    match model:
        case "bucket" | "bucket, rejections cost":
            rate, size = _between(dice, 10, 300) / 60, dice.randint(10, 120)
            return BucketLimiter(rate, size, 0.2 if "cost" in model else 0.0)
        case "short window":
            length = _between(dice, 20, 120)
            return Window(dice.randint(40, 150), length, dice.uniform(0.2, 1.0) * length)
        case _:
            length = _between(dice, 120, 900)
            return Window(dice.randint(20, 80), length, dice.uniform(0.2, 1.0) * length)


MODELS = ("bucket", "bucket, rejections cost", "short window", "long window")
