"""The gate: the pure state machine of a target's rate limit.

    Idle ──an answer states a limit──▶ Believing ──────rejected──────┐
      │  ◀──beliefs expire───────────────┘  ▲                        ▼
      └──────────────rejected──────────────────────────────────▶  Shut
      ▲                                     │ time passed,           │ time passed,
      │                                     └─something is believed──┤ nothing is
      └──quiet for long, or demand met───── Opening ◀────────────────┘

*Believing* admits what remains and then waits for the reset: a burst and a wait lose nothing on
fixed windows or on buckets, while even pacing loses a third. *Shut* holds for all callers, until
the time that the rejection named. *Opening* is used if the server states nothing: one leased probe,
then slow start (`slow_start`).

Every turn has a number; calls carry it, so that a rejection of a call from before the gate was
shut neither shuts it again nor counts twice.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...classify.quotas import Quota
from ...core.duration import duration_text
from ...core.record import record
from .limits import BelievedLimit, believed
from .slow_start import SlowStart
from .state import GATE, Gate, GateState, Permit, advanced, bounded

if TYPE_CHECKING:
    from ...core.moment import Due, Moment

__all__ = (
    "GATE",
    "BeginSlowStart",
    "EnterGate",
    "ForgetGate",
    "Gate",
    "GateState",
    "GateWait",
    "LeaveGate",
    "PassTime",
    "Permit",
    "PermitGranted",
    "Reply",
    "advanced",
    "spread_of",
)

# How long a gate is shut by a rejection without a time: this share of the time it has been shut,
# and the bounds of that in seconds.
_SEVENTH, _SHORTEST, _LONGEST = 1 / 7, 1.0, 60.0

Reply: TypeAlias = Literal["answered", "rejected", "failed", "cancelled"]


class _Step:
    """Base of the operations on this machine."""

    __slots__ = ()
    machine = GATE


def spread_of(wait: float) -> float:
    """Seconds over which calls that waited so long for the same instant are spread after it.

    They must not arrive at it together: the instant may be a little off, and the store has to
    count them in.
    """
    return max(min(1.0, 0.01 * wait), min(wait, 0.05))


@record()
class PermitGranted:
    """`count` calls may be made until `seconds` from now; each is answered for in `turn`."""

    turn: int
    count: int
    seconds: float


@record()
class GateWait:
    """Not yet: ask again `delay` seconds later.

    Args:
        delay: When to ask again.
        because: What for.
        least: Seconds that it takes at the least, as far as is known.
        wakes_early: Whether the answer to a call that is under way may end it.
        polls_for: Seconds in which nothing else ends it: `delay` is when a caller that cannot be
            woken looks for such an answer.
    """

    delay: float
    because: str
    least: float = 0.0
    wakes_early: bool = False
    polls_for: float = 0.0


@record(kw_only=True)
class EnterGate(_Step):
    """Asks whether calls may be made.

    Args:
        id: Names the permit; idempotent per name.
        holder: The process that asks.
        settings: The gate's.
        tokens: What one call is thought to cost in dimensions that count tokens.
        most: The most calls to hand out at once.
        unasked: Calls that the holder made without asking, while much was left, and that are not
            counted yet.
        stated: Limits stated by answers since, not reported yet.
        roll: A random number, to spread waiting calls.
    """

    id: str
    holder: str
    settings: Gate
    tokens: float = 0.0
    most: int = 1
    unasked: int = 0
    stated: tuple[Quota, ...] = ()
    roll: float = 0.0

    def __call__(
        self, state: GateState, moment: Moment
    ) -> tuple[GateState, PermitGranted | GateWait]:
        after, answer = self._asked(advanced(state, moment), moment)
        # A wait does not change the state, so any number of callers can ask without a write.
        return (state if isinstance(answer, GateWait) else after), answer

    def _asked(
        self, state: GateState, moment: Moment
    ) -> tuple[GateState, PermitGranted | GateWait]:
        for permit in state.permits:
            if permit.id == self.id:
                return state, PermitGranted(permit.turn, permit.count, permit.due.left(moment))
        if state.shut is not None:
            left = state.shut.left(moment)
            # Where the rejection named no time, the end of another call may show that it has ended.
            early = state.frees_places
            return state, GateWait(self._spread(left), state.because, left, wakes_early=early)
        # The sum of several answers, some of them old: it can tell that less is left, never more.
        state = _noted(
            state, self.stated, moment, turn=state.turn, out=inf, horizon=self.settings.horizon
        )
        if self.settings.scout and state.is_idle and state.plain is None:
            state = replace(state, opening=SlowStart.scouting(moment))
        count, usable = self._block(state, moment)
        # Remembered for as long as its calls may be under way, reset or not.
        lease = self.settings.block
        if state.opening is not None:
            live = sum([permit.count for permit in state.permits])
            ages = [permit.due.span - permit.due.left(moment) for permit in state.permits]
            wait = state.opening.wait(live, max(ages, default=0.0), moment)
            if wait.delay > 0:
                why, delay = state.opening.because, self._spread(wait.delay)
                return state, GateWait(
                    delay, why, wakes_early=wait.wakes_early, polls_for=wait.polls_for
                )
            count = 1
            usable = lease = 1.0 if state.is_scouting else self.settings.lease
            state = replace(state, opening=state.opening.granting(1, moment))
        beliefs: list[BelievedLimit] = []
        for belief in state.beliefs:
            blocked = self._blocked(belief, state.held(belief), moment)
            if blocked is not None:
                return state, replace(blocked, delay=self._spread(blocked.delay))
            beliefs.append(self._taken(belief, count, moment))
        due = moment.lease(lease)
        permit = Permit(self.id, self.holder, count, due, state.turn, self.unasked)
        permits = bounded((*state.permits, permit))
        state = replace(state, beliefs=tuple(beliefs), permits=permits)
        return state, PermitGranted(state.turn, count, usable)

    def _block(self, state: GateState, moment: Moment) -> tuple[int, float]:
        """How many calls to hand out at once, and for how long they may be made."""
        holders = len({permit.holder for permit in state.permits} | {self.holder})
        count, usable = max(1, self.most), self.settings.block
        for belief in state.beliefs:
            if belief.is_pacing or (belief.unit == "tokens" and self.tokens):
                count = 1
            elif belief.unit == "requests":
                held = sum([permit.out for permit in state.held(belief)])
                free = belief.remaining - held - self.settings.keep
                count = min(count, max(1, int(free / (4 * holders))))
            if belief.reset is not None:
                usable = min(usable, max(belief.reset.left(moment), 0.001))
        return count, usable

    def _cost(self, belief: BelievedLimit) -> float:
        if belief.unit == "requests":
            return 1.0
        if belief.unit == "tokens":
            # More than the limit never fits; then the whole of it has to do.
            return self.tokens if belief.limit is None else min(self.tokens, belief.limit)
        return 0.0

    def _blocked(
        self, belief: BelievedLimit, held: list[Permit], moment: Moment
    ) -> GateWait | None:
        """How long this dimension lets no call through, and why; None if it does now."""
        need = self._cost(belief)
        least = max(need, self.settings.keep) if belief.unit == "requests" else need
        if belief.remaining < least or belief.remaining <= 0:
            total = "" if belief.limit is None else f" of {belief.limit:g}"
            wait = max(belief.wait(least, moment), 0.001)
            because = f"{belief.remaining:g}{total} {belief.dimension} left until the reset"
            return GateWait(wait, because, 0.0 if belief.rate else wait)
        if held and belief.unit == "requests":
            kept = sum([permit.out for permit in held])
            if belief.remaining - kept < least:
                soonest = min([permit.due.left(moment) for permit in held])
                because = f"{kept} calls from before the reset are out"
                delay = min(max(soonest, 0.05), 0.25)
                return GateWait(delay, because, wakes_early=True, polls_for=soonest)
        if belief.next is not None and (wait := belief.next.left(moment)) > 0:
            return GateWait(wait, f"few {belief.dimension} left, calls are spaced out")
        return None

    def _taken(self, belief: BelievedLimit, count: int, moment: Moment) -> BelievedLimit:
        left = max(0.0, belief.remaining - self._cost(belief) * (count + self.unasked))
        settings = self.settings
        if belief.unit != "requests" or not settings.low or not belief.limit:
            return replace(belief, remaining=left)
        is_pacing = left < settings.low or (belief.is_pacing and left <= settings.high)
        spacing = 1.1 * (belief.window or 60.0) / belief.limit
        return replace(
            belief,
            remaining=left,
            is_pacing=is_pacing,
            next=moment.lease(spacing) if is_pacing else None,
        )

    def _spread(self, wait: float) -> float:
        return wait + self.roll * spread_of(wait)


@record(kw_only=True)
class LeaveGate(_Step):
    """Reports the end of a call, or of a block of calls.

    Args:
        id: The permit's; empty for a call that passed unasked.
        turn: The turn it was let through in.
        reply: ``rejected`` for a limit, ``failed`` where the target is not well, ``answered`` for
            every other answer.
        settings: The gate's.
        stated: What the answer stated about limits.
        hint: Seconds that a rejection asked to wait; 0 if it named no time.
        because: What it said, in a clause.
        count: Calls that the permit was for, with those made unasked before it.
        unused: Calls of the block that were never made.
        passed: Calls that the holder made unasked and saw pass, when a rejection ends that.
        spent: Tokens that the call turned out to cost beyond its estimate; may be negative.
        roll: One roll of the dice, for a rejection that named no time.
        lasted: Seconds from when it was let through to its end; 0 where not measured.
    """

    id: str
    turn: int
    reply: Reply
    settings: Gate
    stated: tuple[Quota, ...] = ()
    hint: float = 0.0
    because: str = ""
    count: int = 1
    unused: int = 0
    passed: int = 0
    spent: float = 0.0
    roll: float = 0.0
    lasted: float = 0.0

    def __call__(self, state: GateState, moment: Moment) -> tuple[GateState, bool]:
        """Returns whether this shut the gate."""
        state = self._returned(advanced(state, moment), moment)
        if self.reply == "cancelled":
            return self._handed_over(state, moment), False
        out = sum([permit.out for permit in state.permits])
        state = _noted(
            state, self.stated, moment, turn=self.turn, out=out, horizon=self.settings.horizon
        )
        if self.reply == "rejected":
            return self._rejected(state, moment)
        state = self._handed_over(state, moment)
        opening = state.opening
        if opening is not None and opening.hands_over:
            return state, False
        if self.reply == "failed":
            if opening is not None and opening.is_ramp and self.turn == state.turn:
                state = replace(state, opening=opening.shrunk(self.lasted, moment))
            return state, False
        if opening is not None and self.turn == state.turn and self.id:
            if state.is_scouting:  # and it is back
                plain = None if state.beliefs else moment.stated(600.0)
                return replace(state, opening=None, plain=plain), False
            if opening.is_ramp:
                opening = opening.ramped(out, self.lasted, moment)
            else:
                opening = opening.hearing(out, moment)
        elif opening is not None and self.turn == state.turn - 1 and self.id:
            opening = opening.hearing_late()
        closed = state.closed if self.turn < state.turn else None
        return replace(state, closed=closed, opening=opening), False

    def _handed_over(self, state: GateState, moment: Moment) -> GateState:
        """The state after this call has left a place, where calls may be limited by places."""
        opening = state.opening
        if opening is None or opening.places is None:
            return state
        live = sum([permit.count for permit in state.permits])
        if opening.hands_over:
            had_place = bool(self.id) and self.turn == state.turn
            closed = None if had_place else state.closed
            opening = opening.vacated(live, moment, had_place=had_place)
            return replace(state, opening=opening, closed=closed)
        is_old = not self.id or self.turn < state.turn
        if not is_old or self.reply == "cancelled" or not opening.may_be_vacated(moment):
            return state
        opening = opening.vacated(live, moment, had_place=False)
        # A probe that is under way keeps its turn.
        turn = state.turn if state.shut is None else state.turn + 1
        return replace(state, shut=None, turn=turn, opening=opening)

    def _returned(self, state: GateState, moment: Moment) -> GateState:
        """Without the permit; what it did not use is there for others."""
        if not self.id:
            return state
        if self.reply == "answered":
            state = replace(state, answered=moment.lease(0.0))
        # One that was merged with others is known by its count alone.
        mine = [permit for permit in state.permits if permit.id in {self.id, ""}][-1:]
        if not mine:
            return state
        others = tuple([permit for permit in state.permits if permit is not mine[0]])
        if not mine[0].id and mine[0].count > self.count:
            others = (replace(mine[0], count=mine[0].count - self.count), *others)
        if mine[0].turn < state.turn:  # what it had taken came back with the reset
            return replace(state, permits=others)
        back = {"requests": min(self.unused, mine[0].count), "tokens": -self.spent}
        beliefs = tuple(
            [
                _given(each, more) if (more := back.get(each.unit)) else each
                for each in state.beliefs
            ]
        )
        return replace(state, permits=others, beliefs=beliefs)

    def _rejected(self, state: GateState, moment: Moment) -> tuple[GateState, bool]:
        state = self._refused(state)
        if state.opening is not None and state.opening.hands_over:
            return state, False
        if self.turn < state.turn and state.shut is None:
            return state, False  # sent before a closing that has ended
        hint = min(self.hint, self.settings.horizon)
        if self.turn < state.turn or state.shut is not None:
            if state.shut is not None and (self.passed or hint > state.shut.left(moment)):
                left = state.shut.left(moment)
                wait, opening = max(hint, left), state.opening
                if opening is not None:
                    opening = opening.delayed(wait, left, moment, passed=self.passed)
                state = replace(state, shut=moment.stated(wait), opening=opening)
            return state, False
        closed, is_bare = state.closed or moment.lease(0.0), hint <= 0
        if is_bare:
            hint = self._unhinted(closed, moment)
        because = self.because or f"a rejection asked to wait {duration_text(hint)}"
        opening = SlowStart.after(state.opening, hint, moment, passed=self.passed)
        if is_bare and state.closed is None:
            opening = opening.awaiting(moment)
        shut = replace(
            state,
            shut=moment.stated(hint),
            because=because,
            turn=state.turn + 1,
            closed=closed,
            opening=opening,
            permits=(),
        )
        return shut, True

    def _refused(self, state: GateState) -> GateState:
        """The state with slow start adjusted to this rejection."""
        before = state.opening
        if before is not None and before.places is not None:
            # A stated time holds: no answer to another call shortens it.
            places = before.places if self.hint <= 0 else None
            is_late = not self.id or self.turn < state.turn
            if places is not None and places.is_open:
                places = places if is_late else places.refused()
            before = replace(before, places=places)
            if before.hands_over:
                return replace(state, opening=replace(before, guess=before.guess + self.passed))
        if self.id and before is not None:
            before = before.refused(is_late=self.turn < state.turn)
        return replace(state, opening=before)

    def _unhinted(self, closed: Due, moment: Moment) -> float:
        """Seconds to wait where the rejection named no time.

        A seventh of the time that it has been shut, so that a retry comes at most that much too
        late.
        """
        shut_for = moment.now - closed.at if closed.era == moment.era else 0.0
        wait = min(max(_SEVENTH * shut_for, _SHORTEST), _LONGEST)
        return wait * (0.75 + 0.25 * self.roll)


@record()
class BeginSlowStart(_Step):
    """The target was down and answers again: let calls through slowly, more as they succeed."""

    def __call__(self, state: GateState, moment: Moment) -> tuple[GateState, bool]:
        """Returns whether this changed the state."""
        state = advanced(state, moment)
        if state.shut is not None or (state.opening is not None and not state.opening.is_scout):
            return state, False
        return replace(state, opening=SlowStart.ramp(moment)), True


@record()
class PassTime(_Step):
    """Applies the passing of time only."""

    def __call__(self, state: GateState, moment: Moment) -> tuple[GateState, None]:
        return advanced(state, moment), None


@record(kw_only=True)
class ForgetGate(_Step):
    """Forget all limits and hold no call: `mulligan reset`."""

    def __call__(self, state: GateState, moment: Moment) -> tuple[GateState, bool]:  # noqa: ARG002 -- one signature for all operations
        """Returns whether there was anything to forget."""
        # A new turn, so that a rejection of a call from before shuts nothing.
        return GateState(turn=state.turn + 1), not state.is_idle


def _given(belief: BelievedLimit, more: float) -> BelievedLimit:
    """`belief` with `more` left, which may be less; never more than there can be."""
    most = inf if belief.limit is None else max(belief.limit, belief.remaining)
    return replace(belief, remaining=min(max(0.0, belief.remaining + more), most))


def _noted(
    state: GateState,
    stated: tuple[Quota, ...],
    moment: Moment,
    *,
    turn: int,
    out: float,
    horizon: float,
) -> GateState:
    """The state after answers to calls of turn `turn` stated this, while `out` others are out."""
    if not stated:
        return state
    known = {each.dimension: each for each in state.beliefs}
    for said in stated:
        known_before = known.get(said.dimension)
        after = believed(known_before, said, moment, turn=turn, out=out, horizon=horizon)
        if after is not None:
            known[said.dimension] = after
    beliefs = tuple(known.values())
    return state if beliefs == state.beliefs else replace(state, beliefs=beliefs)
