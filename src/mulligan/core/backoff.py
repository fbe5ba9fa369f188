"""Backoff strategies: how long to wait before the next attempt.

Backoff is a function of two numbers and nothing else: which attempt failed, and one roll of
the dice in [0, 1). Nothing here reads a clock or owns a random generator, so every schedule
can be replayed and every bound can be proved.

Each shape draws a curve; the jitter moves a wait around it. Two laws hold for every pair:
the jitter never passes the cap, and the cap never removes the jitter. Where they meet, the
curve gives way: it saturates below the cap by what the jitter may add.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..errors import SettingError
from .duration import is_number, seconds
from .record import record
from .schema import Seconds, tagged

__all__ = ("Backoff", "Exponential", "Fixed", "Jitter", "Linear", "Schedule")

Jitter = Literal["none", "full", "equal", "additive", "proportional"]
JITTERS: tuple[Jitter, ...] = ("none", "full", "equal", "additive", "proportional")


@record(kw_only=True)
class _Jittered:
    """What all shapes share: a cap, and how the dice move a wait.

    ========================  =====================================
    jitter                    the wait, with *c* the curve
    ========================  =====================================
    ``none``                  c
    ``full``                  uniform in [0, c)
    ``equal``                 uniform in [c/2, c)
    ``additive``              c + uniform in [0, spread)
    ``proportional``          c · uniform in [1-spread, 1+spread)
    ========================  =====================================
    """

    cap: Seconds = 30.0
    jitter: Jitter = "full"
    spread: Seconds = 0.0

    def __post_init__(self) -> None:
        name = type(self).__name__
        for each in ("cap", "spread"):
            object.__setattr__(self, each, seconds(getattr(self, each), name=f"{name}.{each}"))
        if self.jitter not in JITTERS:
            raise SettingError(
                f"{name}.jitter needs one of {', '.join(JITTERS)}; got {self.jitter!r}"
            )
        if self.cap <= 0:
            raise SettingError(f"{name} needs cap > 0; got cap={self.cap:g}")
        if self.jitter == "additive" and not 0 < self.spread <= self.cap:
            raise SettingError(
                f"additive jitter needs 0 < spread <= cap seconds; "
                f"got spread={self.spread:g}, cap={self.cap:g}"
            )
        if self.jitter == "proportional" and not 0 < self.spread <= 1:
            raise SettingError(
                f"proportional jitter needs a spread in (0, 1]; got spread={self.spread:g}"
            )
        if self.jitter in {"none", "full", "equal"} and self.spread:
            raise SettingError(
                f"{self.jitter} jitter takes no spread; got spread={self.spread:g} "
                f"(additive and proportional do)"
            )

    def curve(self, attempt: int) -> float:
        """The wait without dice and cap. Shapes say how it grows."""
        raise AssertionError(attempt)  # every shape draws its own

    def delay(self, attempt: int, roll: float) -> float:
        """The wait after failed attempt `attempt`, counted from 1.

        Finite, not negative and at most `cap`, whatever the attempt and the roll.
        """
        if not 0.0 <= roll <= 1.0:
            # A broken die, NaN included, does not fail: it lands on a bound.
            roll = 0.0 if roll < 0 else 1.0
        curve, cap, spread = self.curve(max(1, attempt)), self.cap, self.spread
        match self.jitter:
            case "full":
                return roll * (min(cap, curve))
            case "none":
                return min(curve, cap)
            case "equal":
                half = min(curve, cap) / 2
                return half + roll * half
            case "additive":
                return min(min(curve, cap - spread) + roll * spread, cap)
            case "proportional":
                centre = min(curve, cap / (1 + spread))
                return min(centre * (1 - spread + 2 * spread * roll), cap)

    def bounds(self, attempt: int) -> tuple[float, float, float]:
        """The least, the median and the greatest wait after `attempt`."""
        return self.delay(attempt, 0.0), self.delay(attempt, 0.5), self.delay(attempt, 1.0)


@record(kw_only=True)
class Exponential(_Jittered):
    """A wait that grows by `factor` with every attempt.

    The curve is ``first * factor**(attempt - 1)``.

    Args:
        first: The curve at the first failure, in seconds.
        factor: By how much it grows; 1 or more.
        cap: Upper bound of every wait, in seconds.
        jitter: How the dice move it; see `_Jittered`.
        spread: Seconds for ``additive``, a share for ``proportional``.
    """

    first: Seconds = 0.5
    factor: float = 2.0
    shape: Literal["exponential"] = field(default="exponential", repr=False)

    def __post_init__(self) -> None:
        super(Exponential, self).__post_init__()  # noqa: UP008 -- slots are a second class
        object.__setattr__(self, "first", seconds(self.first, name="Exponential.first"))
        if not 0 < self.first <= self.cap:
            raise SettingError(
                f"Exponential needs 0 < first <= cap; got first={self.first:g}, cap={self.cap:g}"
            )
        # A float, always: 2 ** 10**9 in whole numbers takes seconds and a hundred megabytes.
        factor = float(self.factor) if is_number(self.factor) else 0.0
        if not 1 <= factor <= 1e6:
            raise SettingError(f"Exponential needs a factor in [1, 1e6]; got {self.factor!r}")
        object.__setattr__(self, "factor", factor)

    def curve(self, attempt: int) -> float:
        try:
            return self.first * self.factor ** (attempt - 1)
        except OverflowError:  # 2.0 ** 1024 does not fit a float; long past any cap
            return self.cap


@record(kw_only=True)
class Linear(_Jittered):
    """A wait that grows by `step` seconds with every attempt.

    Args:
        first: The curve at the first failure, in seconds.
        step: What every further failure adds, in seconds.
        cap: Upper bound of every wait, in seconds.
        jitter: How the dice move it; see `_Jittered`.
        spread: Seconds for ``additive``, a share for ``proportional``.
    """

    first: Seconds = 1.0
    step: Seconds = 1.0
    jitter: Jitter = "none"
    shape: Literal["linear"] = field(default="linear", repr=False)

    def __post_init__(self) -> None:
        super(Linear, self).__post_init__()  # noqa: UP008 -- slots are a second class
        for each in ("first", "step"):
            object.__setattr__(self, each, seconds(getattr(self, each), name=f"Linear.{each}"))
        if not 0 < self.first <= self.cap:
            raise SettingError(
                f"Linear needs 0 < first <= cap; got first={self.first:g}, cap={self.cap:g}"
            )

    def curve(self, attempt: int) -> float:
        return self.first + self.step * min(attempt - 1, 10**9)


@record(kw_only=True)
class Fixed(_Jittered):
    """The same wait every time.

    Args:
        wait: The curve, in seconds.
        cap: Upper bound of every wait; by default the wait with all its jitter.
        jitter: How the dice move it; see `_Jittered`.
        spread: Seconds for ``additive``, a share for ``proportional``.
    """

    wait: Seconds = 1.0
    cap: Seconds = 0.0
    jitter: Jitter = "none"
    shape: Literal["fixed"] = field(default="fixed", repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "wait", seconds(self.wait, name="Fixed.wait"))
        if self.wait <= 0:
            raise SettingError(f"Fixed needs wait > 0; got wait={self.wait:g}")
        if not self.cap:
            object.__setattr__(self, "cap", _room(self.wait, self.jitter, self.spread))
        super(Fixed, self).__post_init__()  # noqa: UP008 -- slots are a second class

    def curve(self, attempt: int) -> float:  # noqa: ARG002 -- the point of this shape
        return self.wait


@record(kw_only=True)
class Schedule(_Jittered):
    """A list of waits, the last of which repeats.

    Args:
        waits: The curve, in seconds, one entry per attempt.
        cap: Upper bound of every wait; by default the longest entry with all its jitter.
        jitter: How the dice move it; see `_Jittered`.
        spread: Seconds for ``additive``, a share for ``proportional``.
    """

    waits: tuple[Seconds, ...] = (1.0,)
    cap: Seconds = 0.0
    jitter: Jitter = "none"
    shape: Literal["schedule"] = field(default="schedule", repr=False)

    def __post_init__(self) -> None:
        waits = tuple(seconds(wait, name="Schedule.waits") for wait in self.waits)
        if not waits or not all(waits):
            raise SettingError(f"Schedule needs one wait > 0 or more; got waits={self.waits!r}")
        object.__setattr__(self, "waits", waits)
        if not self.cap:
            object.__setattr__(self, "cap", _room(max(waits), self.jitter, self.spread))
        super(Schedule, self).__post_init__()  # noqa: UP008 -- slots are a second class

    def curve(self, attempt: int) -> float:
        return self.waits[min(attempt, len(self.waits)) - 1]


def _room(longest: float, jitter: Jitter, spread: float) -> float:
    """The cap that leaves the curve as it is and the jitter its room."""
    share = seconds(spread, name="spread")
    return longest + {"additive": share, "proportional": longest * share}.get(jitter, 0.0)


SHAPES = (Exponential, Linear, Fixed, Schedule)

if TYPE_CHECKING:
    Backoff: TypeAlias = Exponential | Linear | Fixed | Schedule
else:
    Backoff = tagged("shape", *SHAPES)
