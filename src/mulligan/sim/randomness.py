"""Random numbers that depend on what they are drawn for, not on the order of draws.

Whether the second request of job 7 fails must not depend on what other jobs did before: so two
policies with one seed meet the same server, and their results are comparable.
"""

from __future__ import annotations

from math import exp
from statistics import NormalDist

__all__ = ("SeededRandom",)

_MASK = (1 << 64) - 1
_NORMAL = NormalDist()


class SeededRandom:
    """The random numbers of one run; the same seed gives the same ones."""

    __slots__ = ("_seed",)

    def __init__(self, seed: int) -> None:
        self._seed = _mixed(seed & _MASK)

    def roll(self, draw: int, *subjects: int) -> float:
        """A number in [0, 1) for this draw about these subjects."""
        state = self._seed ^ (draw * 0x9E3779B97F4A7C15 & _MASK)
        for each in subjects:
            state = _mixed((state + each * 0xD1B54A32D192ED03 + 1) & _MASK)
        return (_mixed(state) >> 11) / 9007199254740992.0

    def around(self, middle: float, draw: int, *subjects: int) -> float:
        """A number within a tenth of `middle`."""
        return middle * (0.9 + 0.2 * self.roll(draw, *subjects))

    def lognormal(self, median: float, sigma: float, draw: int, *subjects: int) -> float:
        """A log-normal number."""
        roll = self.roll(draw, *subjects)
        return median * exp(sigma * _NORMAL.inv_cdf(min(max(roll, 1e-12), 1 - 1e-12)))


def _mixed(state: int) -> int:
    """SplitMix64 (Steele, Lea, Flood 2014): neighbouring states give unrelated numbers."""
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return state ^ (state >> 31)
