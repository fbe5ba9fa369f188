"""When a target lets us call.

    Idle ──an answer states a limit──▶ Believing ──────rejected──────┐
      │  ◀──beliefs expire───────────────┘  ▲                        ▼
      └──────────────rejected──────────────────────────────────▶  Shut
      ▲                                     │ time passed,           │ time passed,
      │                                     └─something is believed──┤ nothing is
      └──quiet for long, or demand met───── Opening ◀────────────────┘

*Believing* admits what remains and then waits for the reset: a burst and a wait lose nothing on
fixed windows or on buckets, while even pacing loses a third. *Shut* holds for everybody, until
the time that the rejection named. *Opening* is what is left where nobody states anything: one
leased probe, then slow start (`opening`).

Every turn has a number; calls carry it, so that a rejection of a call from before the gate was
shut neither shuts it again nor counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Literal, TypeAlias

from .belief import Belief, Stated, believed
from .duration import duration_text
from .flow import GATE, Flow, Gate, Permit, advanced, bounded
from .opening import Opening

if TYPE_CHECKING:
    from .machine import Machine
    from .moment import Moment

__all__ = (
    "GATE",
    "Enter",
    "Flow",
    "Forget",
    "Gate",
    "Go",
    "Leave",
    "Permit",
    "Reply",
    "Tick",
    "Wait",
    "advanced",
    "spread_of",
)

Reply: TypeAlias = Literal["answered", "rejected", "cancelled"]


class _Step:
    """What every operation on this machine has."""

    __slots__ = ()

    @property
    def machine(self) -> Machine[Flow]:
        return GATE


def spread_of(wait: float) -> float:
    """Seconds over which those who wait so long for the same instant are spread after it.

    They must not arrive at it together: the instant may be a little off, and the store has to
    count them in.
    """
    return max(min(1.0, 0.01 * wait), min(wait, 0.05))


@dataclass(frozen=True, slots=True)
class Go:
    """`count` calls may be made until `seconds` from now; each is answered for in `turn`."""

    turn: int
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet: ask again `delay` seconds later."""

    delay: float
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Enter(_Step):
    """May calls be made?

    Args:
        id: Names the permit; asking again with the same name answers the same.
        holder: The process that asks.
        settings: The gate's.
        tokens: What one call is thought to cost in dimensions that count tokens.
        most: The most calls to hand out at once.
        unasked: Calls that the holder made without asking, while much was left, and that nobody
            has counted yet.
        stated: What it has heard since and told nobody.
        roll: One roll of the dice, for the spread of those who must wait.
    """

    id: str
    holder: str
    settings: Gate
    tokens: float = 0.0
    most: int = 1
    unasked: int = 0
    stated: tuple[Stated, ...] = ()
    roll: float = 0.0

    def __call__(self, state: Flow, moment: Moment) -> tuple[Flow, Go | Wait]:
        after, answer = self._asked(advanced(state, moment), moment)
        # Who must wait changes nothing, so that any number of them can ask without a write.
        return (state if isinstance(answer, Wait) else after), answer

    def _asked(self, state: Flow, moment: Moment) -> tuple[Flow, Go | Wait]:
        for permit in state.permits:
            if permit.id == self.id:
                return state, Go(permit.turn, permit.count, permit.due.left(moment))
        if state.shut is not None:
            return state, Wait(self._spread(state.shut.left(moment)), state.because)
        # The sum of several answers, some of them old: it can tell that less is left, never more.
        state = _noted(state, self.stated, moment, turn=state.turn, out=inf)
        if self.settings.scout and state.is_idle and state.plain is None:
            state = replace(state, opening=Opening(1, None, 1.0, None, 0, 0, 0, moment.stated(60)))
        count, usable = self._block(state, moment)
        # Remembered for as long as its calls may be under way, reset or not.
        lease = self.settings.block
        if state.opening is not None:
            live = sum([permit.count for permit in state.permits])
            ages = [permit.due.span - permit.due.left(moment) for permit in state.permits]
            wait = state.opening.wait(live, max(ages, default=0.0), moment)
            if wait > 0:
                return state, Wait(self._spread(wait), "opening slowly after a limit")
            count = 1
            usable = lease = 1.0 if state.is_scouting else self.settings.lease
            state = replace(state, opening=state.opening.granting(1, moment))
        beliefs: list[Belief] = []
        for belief in state.beliefs:
            wait, because = self._blocked(belief, state.held(belief), moment)
            if wait > 0:
                return state, Wait(self._spread(wait), because)
            beliefs.append(self._taken(belief, count, moment))
        due = moment.lease(lease)
        permit = Permit(self.id, self.holder, count, due, state.turn, self.unasked)
        permits = bounded((*state.permits, permit))
        state = replace(state, beliefs=tuple(beliefs), permits=permits)
        return state, Go(state.turn, count, usable)

    def _block(self, state: Flow, moment: Moment) -> tuple[int, float]:
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

    def _cost(self, belief: Belief) -> float:
        if belief.unit == "requests":
            return 1.0
        if belief.unit == "tokens":
            # More than the limit never fits; then the whole of it has to do.
            return self.tokens if belief.limit is None else min(self.tokens, belief.limit)
        return 0.0

    def _blocked(self, belief: Belief, held: list[Permit], moment: Moment) -> tuple[float, str]:
        """Seconds until this dimension lets a call through, and why not now."""
        need = self._cost(belief)
        least = max(need, self.settings.keep) if belief.unit == "requests" else need
        if belief.remaining < least or belief.remaining <= 0:
            total = "" if belief.limit is None else f" of {belief.limit:g}"
            wait = max(belief.wait(least, moment), 0.001)
            return wait, f"{belief.remaining:g}{total} {belief.dimension} left until the reset"
        if held and belief.unit == "requests":
            kept = sum([permit.out for permit in held])
            if belief.remaining - kept < least:
                soonest = min([permit.due.left(moment) for permit in held])
                return min(max(soonest, 0.05), 0.25), f"{kept} calls from before the reset are out"
        if belief.next is not None:
            return belief.next.left(moment), f"few {belief.dimension} left, calls are spaced out"
        return 0.0, ""

    def _taken(self, belief: Belief, count: int, moment: Moment) -> Belief:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave(_Step):
    """What came of a call, or of a block of them.

    Args:
        id: The permit's; empty for a call that passed unasked.
        turn: The turn it was let through in.
        reply: ``rejected`` for a limit, ``answered`` for every other answer.
        settings: The gate's.
        stated: What the answer stated about limits.
        hint: Seconds that a rejection asked to wait; 0 if it named no time.
        because: What it said, in a clause.
        count: Calls that the permit was for, with those made unasked before it.
        unused: Calls of the block that were never made.
        passed: Calls that the holder made unasked and saw pass, when a rejection ends that.
        spent: Tokens that the call turned out to cost beyond its estimate; may be negative.
        roll: One roll of the dice, for a rejection that named no time.
    """

    id: str
    turn: int
    reply: Reply
    settings: Gate
    stated: tuple[Stated, ...] = ()
    hint: float = 0.0
    because: str = ""
    count: int = 1
    unused: int = 0
    passed: int = 0
    spent: float = 0.0
    roll: float = 0.0

    def __call__(self, state: Flow, moment: Moment) -> tuple[Flow, bool]:
        """The result is whether this shut the gate."""
        state = self._returned(advanced(state, moment))
        if self.reply == "cancelled":
            return state, False
        out = sum([permit.out for permit in state.permits])
        state = _noted(state, self.stated, moment, turn=self.turn, out=out)
        if self.reply == "rejected":
            return self._rejected(state, moment)
        opening = state.opening
        if opening is not None and self.turn == state.turn and self.id:
            if state.is_scouting:  # and it is back
                plain = None if state.beliefs else moment.stated(600.0)
                return replace(state, opening=None, plain=plain), False
            opening = opening.hearing(out, moment)
        elif opening is not None and self.turn == state.turn - 1 and self.id:
            opening = opening.hearing_late()
        return replace(state, strikes=0, opening=opening), False

    def _returned(self, state: Flow) -> Flow:
        """Without the permit; what it did not use is there for others."""
        if not self.id:
            return state
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

    def _rejected(self, state: Flow, moment: Moment) -> tuple[Flow, bool]:
        if self.id and state.opening is not None:
            is_late = self.turn < state.turn
            state = replace(state, opening=state.opening.refused(is_late=is_late))
        if self.turn < state.turn and state.shut is None:
            return state, False  # it was sent before the gate was shut, and that is over
        hint = min(self.hint, self.settings.horizon)
        if self.turn < state.turn or state.shut is not None:
            if state.shut is not None and (self.passed or hint > state.shut.left(moment)):
                left = state.shut.left(moment)
                wait, opening = max(hint, left), state.opening
                if opening is not None:
                    opening = opening.delayed(wait, left, moment, passed=self.passed)
                state = replace(state, shut=moment.stated(wait), opening=opening)
            return state, False
        strikes = 0 if hint > 0 else state.strikes + 1
        if hint <= 0:
            hint = min(60.0, 2.0 ** min(strikes - 1, 6)) * (0.5 + self.roll / 2)
        because = self.because or f"a rejection asked to wait {duration_text(hint)}"
        opening = Opening.after(state.opening, hint, moment, passed=self.passed)
        shut = replace(
            state,
            shut=moment.stated(hint),
            because=because,
            turn=state.turn + 1,
            strikes=strikes,
            opening=opening,
            permits=(),
        )
        return shut, True


@dataclass(frozen=True, slots=True)
class Tick(_Step):
    """Time has passed, and nothing else."""

    def __call__(self, state: Flow, moment: Moment) -> tuple[Flow, None]:
        return advanced(state, moment), None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget(_Step):
    """Believe nothing, and hold nobody: what a person orders who knows better."""

    def __call__(self, state: Flow, moment: Moment) -> tuple[Flow, bool]:  # noqa: ARG002 -- one signature for all operations
        """The result is whether there was anything to forget."""
        # A new turn, so that a rejection of a call from before shuts nothing.
        return Flow(turn=state.turn + 1), not state.is_idle


def _given(belief: Belief, more: float) -> Belief:
    """`belief` with `more` left, which may be less; never more than there can be."""
    most = inf if belief.limit is None else max(belief.limit, belief.remaining)
    return replace(belief, remaining=min(max(0.0, belief.remaining + more), most))


def _noted(
    state: Flow, stated: tuple[Stated, ...], moment: Moment, *, turn: int, out: float
) -> Flow:
    """The state after answers to calls of turn `turn` stated this, while `out` others are out."""
    if not stated:
        return state
    known = {each.dimension: each for each in state.beliefs}
    for said in stated:
        after = believed(known.get(said.dimension), said, moment, turn=turn, out=out)
        if after is not None:
            known[said.dimension] = after
    beliefs = tuple(known.values())
    return state if beliefs == state.beliefs else replace(state, beliefs=beliefs)
