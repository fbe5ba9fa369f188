"""One dimension of a stated limit: requests or tokens left, and when it resets.

    unknown ──stated──▶ believed ──reset passed──▶ refilled ──stated──▶ believed …
       ▲                    │                       │   ▲
       │                    │                       └───┘ its window passed, and nothing was heard
       └──limit not known, or nothing heard for long┘

Statements correct a belief downwards at once and upwards only at a reset: between two resets the
least that any answer said is the newest. What was stated expires with its window. Where no caller
reads answers, a belief is refilled again after as long as a reset was ever away, which may be too
soon: `is_guessed` then, and the gate sends one call ahead. So it does where a reset is further away
than the gate's horizon: a month that was stated by mistake holds no call for a month. A belief that
nothing renews is dropped, so a wrong statement costs time, never a deadlock.

A reset means two things. On a fixed window it stands still while calls are made, and everything
comes back at it. On a bucket it is the time at which the bucket would be full, every call moves
it, and something comes back all the time: waiting for it would waste most of what the bucket
gives. Whether it moves tells the two apart; the numbers of one answer alone never do.

A bucket is believed upwards, too, but only its newest answer: the one with the latest reset. That
answer has seen every call except those still on their way, so they are taken off.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from ...core.moment import Due, Moment
from ...core.record import record

if TYPE_CHECKING:
    from ...classify.quotas import Quota

__all__ = ("BelievedLimit", "believed", "refilled")

# Units of which a reset brings back as many as the limit says.
_COUNTED = ("requests", "tokens")

# How long a statement without a reset is believed, in seconds; and one that nothing is left.
_STALE, _SOON = 60.0, 1.0


@record()
class BelievedLimit:
    """What is left of one dimension, as far as we know.

    Args:
        dimension: The server's name for it.
        unit: What it counts.
        limit: How much a window holds, if known.
        remaining: What is left and not reserved.
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
        longest: The longest that a reset was ever stated to be away, in seconds: no window is
            shorter than that.
        is_guessed: Whether it was refilled after an unconfirmed window.
        is_far: Whether the reset was stated to be later than it is believed to be.
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
    longest: float = 0.0
    is_guessed: bool = False
    is_far: bool = False

    @property
    def low_water(self) -> float:
        """Below this, calls are counted by the store and not only by their callers."""
        tenth = 0.1 * (self.limit or 0.0)
        return max(20.0, tenth) if self.unit == "requests" else tenth

    def wait(self, need: float, moment: Moment) -> float:
        """Seconds until `need` may be there; a second if that is unknown."""
        if self.rate and self.limit:
            # A hundredth of a large bucket at a time, so that all who wait ask less often.
            return (max(need, self.limit / 100) - self.remaining) / self.rate
        return self.reset.left(moment) if self.reset is not None else 1.0


def believed(
    belief: BelievedLimit | None,
    said: Quota,
    moment: Moment,
    *,
    turn: int,
    out: float,
    horizon: float,
) -> BelievedLimit | None:
    """The belief after an answer to a call of turn `turn` said this, with `out` others out.

    A reset is believed to be `horizon` seconds away at most.
    """
    if said.remaining is None or not 0 <= said.remaining < inf:
        return belief
    reset_in = said.reset_in
    is_far = reset_in is not None and reset_in > horizon
    if reset_in is not None:
        reset_in = min(reset_in, horizon) if reset_in > 0 else None
    if belief is None:
        return BelievedLimit(
            said.dimension,
            str(said.unit),
            said.limit,
            said.remaining,
            None if reset_in is None else moment.stated(reset_in),
            said.window,
            low=said.remaining,
            first=said.remaining,
            first_reset=moment.now + (reset_in or 0.0),
            rate=0.0,
            accrued=moment.now,
            stale=_stale(said.remaining, reset_in, moment),
            turn=turn,
            longest=reset_in or 0.0,
            is_far=is_far,
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
        belief = replace(belief, is_far=is_far)
        if not is_far:
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
        stale=_stale(remaining, reset_in, moment),
        longest=max(belief.longest, reset_in or 0.0),
        is_guessed=False,
    )


def _stale(remaining: float, reset_in: float | None, moment: Moment) -> Due:
    """When a statement is too old; soon, if nothing is left and no reset was stated."""
    if reset_in is None and remaining < 1:
        return moment.stated(_SOON)
    return moment.stated(max(_STALE, reset_in or 0.0))


def _measured(
    belief: BelievedLimit, remaining: float, reset_in: float, moment: Moment
) -> BelievedLimit:
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


def refilled(belief: BelievedLimit, moment: Moment, *, turn: int) -> BelievedLimit | None:
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
    if belief.limit is None or belief.unit not in _COUNTED:
        return None
    # Counted from the reset, not from now: reading must not keep a belief alive.
    reset, period = belief.reset, belief.window or belief.longest
    stale = belief.stale
    if belief.low < inf:  # something was heard since the last reset
        stale = _later(reset, max(_STALE, period))
    if stale.left(moment) <= 0:
        return None
    next_reset = _later(reset, period) if period > 0 else None
    if next_reset is not None and next_reset.left(moment) <= 0 and reset.era == moment.era:
        missed = int((moment.now - reset.at) / period)
        next_reset = _later(reset, (missed + 1) * period, span=period)
    return replace(
        belief,
        remaining=belief.limit,
        reset=next_reset,
        low=inf,
        rate=0.0,
        stale=stale,
        turn=turn,
        is_pacing=False,
        next=None,
        # The first reset was stated; those after it are not, unless the window's length is.
        is_guessed=belief.is_far or (belief.low == inf and belief.window is None),
        is_far=False,
    )


def _later(due: Due, by: float, span: float | None = None) -> Due:
    """`due`, `by` seconds later."""
    wall = None if due.wall is None else due.wall + by
    return Due(due.at + by, by if span is None else span, due.era, wall)
