"""What we believe about one dimension of a target's limit.

    unknown ──stated──▶ believed ──reset passed──▶ refilled ──stated──▶ believed …
       ▲                    └──limit not known, or nothing heard──┐
       └──────────────────────────────────────────────────────────┘

Statements correct a belief downwards at once and upwards only at a reset: between two resets the
least that any answer said is the newest. A belief that nothing renews is dropped, so a server
that lies costs time, never a deadlock.

A reset means two things. On a fixed window it stands still while calls are made, and everything
comes back at it. On a bucket it is the time at which the bucket would be full, every call moves
it, and something comes back all the time: waiting for it would waste most of what the bucket
gives. Whether it moves tells the two apart; the numbers of one answer alone never do.

A bucket is believed upwards, too, but only its newest answer: the one with the latest reset. That
answer has seen every call except those still on their way, so they are taken off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from .moment import Due, Moment

__all__ = ("Belief", "Stated", "believed", "refilled")

# No plan has a longer window than a month; a reset beyond it is a mistake.
_LONGEST = 31 * 86_400.0

# Units of which a reset brings back as many as the limit says.
_COUNTED = ("requests", "tokens")

# How long a statement without a reset is believed, in seconds.
_STALE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One dimension, as an answer stated it.

    Args:
        dimension: The server's name for it.
        unit: ``requests``, ``tokens``, or anything else, which is then not counted.
        limit: How much a window holds; None where it was not stated.
        remaining: How much is left; None where it was not stated.
        reset_in: Seconds until it is refilled; None where it was not stated or has passed.
        window: The window's length in seconds; None where it was not stated.
    """

    dimension: str
    unit: str = "requests"
    limit: float | None = None
    remaining: float | None = None
    reset_in: float | None = None
    window: float | None = None


@dataclass(frozen=True, slots=True)
class Belief:
    """What is left of one dimension, as far as we know.

    Args:
        dimension: The server's name for it.
        unit: What it counts.
        limit: How much a window holds, if known.
        remaining: What is left and has been given to nobody.
        reset: When it is refilled, if known.
        window: The window's length in seconds, if known.
        low: The least that was stated since the last reset.
        first: What the first statement since then said was left, and
        first_reset: when it said the reset would be, on the steady clock.
        rate: How much comes back a second, once the reset has been seen to move; else 0.
        accrued: Up to when that has been added, on the steady clock.
        stale: When it is too old to be believed.
        turn: The gate's turn in which it was last refilled.
        is_pacing: Whether calls are spaced out, because little was left.
        next: When the next call may be made, while they are.
    """

    dimension: str
    unit: str
    limit: float | None
    remaining: float
    reset: Due | None
    window: float | None
    low: float
    first: float
    first_reset: float
    rate: float
    accrued: float
    stale: Due
    turn: int
    is_pacing: bool = False
    next: Due | None = None

    @property
    def low_water(self) -> float:
        """Below this, calls are counted by the store and not only by whoever makes them."""
        tenth = 0.1 * (self.limit or 0.0)
        return max(20.0, tenth) if self.unit == "requests" else tenth

    def wait(self, need: float, moment: Moment) -> float:
        """Seconds until `need` may be there; a second where nobody knows when."""
        if self.rate and self.limit:
            # A hundredth of a large bucket at a time, so that all who wait ask less often.
            return (max(need, self.limit / 100) - self.remaining) / self.rate
        return self.reset.left(moment) if self.reset is not None else 1.0


def believed(
    belief: Belief | None, said: Stated, moment: Moment, *, turn: int, out: float
) -> Belief | None:
    """The belief after an answer to a call of turn `turn` said this, with `out` others out."""
    if said.remaining is None or not 0 <= said.remaining < inf:
        return belief
    reset_in = said.reset_in
    if reset_in is not None:
        reset_in = min(reset_in, _LONGEST) if reset_in > 0 else None
    if belief is None:
        return Belief(
            said.dimension,
            said.unit,
            said.limit,
            said.remaining,
            None if reset_in is None else moment.stated(reset_in),
            said.window,
            low=said.remaining,
            first=said.remaining,
            first_reset=moment.now + (reset_in or 0.0),
            rate=0.0,
            accrued=moment.now,
            stale=moment.stated(max(_STALE, reset_in or 0.0)),
            turn=turn,
        )
    span = said.window or (belief.reset.span if belief.reset is not None else 0.0)
    if turn < belief.turn and (reset_in is None or reset_in <= 0.1 * span):
        return belief  # an answer from before the reset, about what was left then
    reset = belief.reset
    # Every call moves a bucket's reset, so the latest of them stands in the newest answer.
    reset_at = 0.0 if reset_in is None else moment.now + reset_in
    is_newest = reset is None or reset.era != moment.era or reset_at >= reset.at
    is_least = reset is None or said.remaining <= belief.low
    if reset_in is not None and (is_newest if belief.rate else is_least):
        reset = moment.stated(reset_in)
        belief = _measured(belief, said.remaining, reset_in, moment)
    remaining = min(belief.remaining, said.remaining)
    if belief.rate:
        # A bucket states whole calls; the part of one that has come back is not lost. It also
        # fills all the time, so more than we thought is believed, less those it has not seen.
        remaining = min(belief.remaining, said.remaining + 1.0)
        remaining = max(remaining, said.remaining - out if is_newest else 0.0)
    return replace(
        belief,
        limit=belief.limit if said.limit is None else said.limit,
        remaining=remaining,
        reset=reset,
        window=said.window or belief.window,
        low=min(belief.low, said.remaining),
        stale=moment.stated(max(_STALE, reset_in or 0.0)),
    )


def _measured(belief: Belief, remaining: float, reset_in: float, moment: Moment) -> Belief:
    """The belief with what the movement of its reset shows."""
    reset_at = moment.now + reset_in
    if belief.rate and belief.limit is not None:
        # Every answer bounds the rate from above. From below it does not: a reset that is read
        # a little late looks nearer than it is. What is missed comes to light as more left.
        used = belief.limit - remaining
        if used < max(3.0, belief.limit / 4):
            return belief
        rate = min(belief.rate, used / reset_in)
        return replace(belief, rate=rate if rate > belief.rate / 2 else 0.0)
    if belief.low == inf:
        return replace(belief, first=remaining, first_reset=reset_at)
    used = belief.first - remaining
    if belief.limit is None or used < max(3.0, belief.limit / 4):
        return belief
    moved = reset_at - belief.first_reset
    # Two measures that only a bucket makes equal: what the wait fills, what the calls moved.
    rate = (belief.limit - remaining) / reset_in
    if moved > 0 and 0.75 < used / moved / rate < 1.33:
        # Slightly less than measured, because what is stated is rounded.
        slower = 0.99 * min(rate, used / moved)
        return replace(belief, rate=slower, accrued=max(belief.accrued, moment.now))
    return replace(belief, rate=0.0)


def refilled(belief: Belief, moment: Moment, *, turn: int) -> Belief | None:
    """The belief now that time has passed; None where nothing is left to believe.

    `turn` is the turn that begins if it is refilled.
    """
    if belief.rate and belief.limit is not None and belief.stale.left(moment) > 0:
        # A clock that was set back, or another boot's, adds nothing.
        more = belief.rate * max(0.0, moment.now - belief.accrued)
        level = min(belief.limit, belief.remaining + more)
        return replace(belief, remaining=level, accrued=moment.now, low=inf)
    if belief.reset is None:
        return belief if belief.stale.left(moment) > 0 else None
    if belief.reset.left(moment) > 0:
        return belief
    # Counted from the reset, not from now: whoever only looks must not keep a belief alive.
    reset = belief.reset
    wall = None if reset.wall is None else reset.wall + _STALE
    stale = Due(reset.at + _STALE, _STALE, reset.era, wall)
    if belief.limit is None or belief.unit not in _COUNTED or stale.left(moment) <= 0:
        return None
    return replace(
        belief,
        remaining=belief.limit,
        reset=None,
        low=inf,
        rate=0.0,
        stale=stale,
        turn=turn,
        is_pacing=False,
        next=None,
    )
