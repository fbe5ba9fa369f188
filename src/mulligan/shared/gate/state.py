"""State and settings of a gate.

It also has the one transition that needs no request: time passes.
"""

from __future__ import annotations

from dataclasses import replace

from ...core.moment import Due, Moment
from ...core.record import record
from ...core.shared_settings import Gate
from ...stores.state_machine import Machine
from .limits import BelievedLimit, refilled
from .slow_start import SlowStart

__all__ = ("GATE", "Gate", "GateState", "Permit", "advanced", "bounded")

# Permits that the state tells apart.
_MOST_PERMITS = 48


@record()
class Permit:
    """Calls that `holder` may make until `due`; unused ones can be given back.

    `unasked` are those it had made before, without asking, and that were under way when it asked.
    """

    id: str
    holder: str
    count: int
    due: Due
    turn: int
    unasked: int = 0

    @property
    def out(self) -> int:
        """Calls that may be under way."""
        return self.count + self.unasked


@record()
class GateState:
    """The state of a gate.

    Args:
        beliefs: One a dimension that an answer has stated.
        shut: Until when it is shut for all callers, if it is.
        because: Why, in a clause.
        turn: Rises whenever it is shut, opened or refilled.
        closed: When the first of the rejections came since which nothing has passed, if any did:
            those are one closing, however often it was tried in between.
        opening: How far it has opened, where nothing is believed.
        permits: Blocks of calls that have been let through and have not been answered.
        plain: Until when we believe that answers state nothing.
        answered: When a call that was let through last was answered, in any process: for how long
            callers wait depends on it.
    """

    beliefs: tuple[BelievedLimit, ...] = ()
    shut: Due | None = None
    because: str = ""
    turn: int = 0
    closed: Due | None = None
    opening: SlowStart | None = None
    permits: tuple[Permit, ...] = ()
    plain: Due | None = None
    answered: Due | None = None

    def held(self, belief: BelievedLimit) -> list[Permit]:
        """Permits from before the last reset whose calls have not been answered.

        The server may have counted them before the reset, or may yet: until they are answered, or
        their lease has expired, as much is kept back for them.
        """
        return [permit for permit in self.permits if permit.turn < belief.turn]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is believed, and nothing is wrong."""
        return not self.beliefs and self.shut is None and self.opening is None

    @property
    def is_scouting(self) -> bool:
        """Whether it opens slowly to learn what answers state, and not after a rejection."""
        return self.opening is not None and self.opening.is_scout

    @property
    def frees_places(self) -> bool:
        """Whether the end of any call matters, as it may leave a place to another."""
        return self.opening is not None and self.opening.places is not None

    @property
    def is_counting(self) -> bool:
        """Whether calls must be let through one by one; else they may pass unasked."""
        return (
            self.shut is not None
            or self.opening is not None
            or any(each.remaining < each.low_water or not each.remaining for each in self.beliefs)
        )


def _keep(state: GateState, moment: Moment) -> float:
    dues = [state.shut, state.plain, None if state.opening is None else state.opening.quiet]
    dues += [due for each in state.beliefs for due in (each.reset, each.stale)]
    return 60.0 + max([due.left(moment) for due in dues if due is not None], default=0.0)


def _joined(_base: GateState, ours: GateState, theirs: GateState, moment: Moment) -> GateState:
    """What all others know, shut for as long as either side was told to come later."""
    until, others = (
        0.0 if each.shut is None else each.shut.left(moment) for each in (ours, theirs)
    )
    return replace(theirs, shut=ours.shut, because=ours.because) if until > others else theirs


GATE: Machine[GateState] = Machine(name="gate", start=GateState(), keep=_keep, join=_joined)


def advanced(state: GateState, moment: Moment) -> GateState:
    """The state now that time has passed."""
    turn, opening = state.turn, state.opening
    if state.shut is not None:
        if state.shut.left(moment) > 0:
            return state
        turn += 1
        if opening is not None:
            opening = opening.begun(state.shut, moment)
    permits = tuple([permit for permit in state.permits if permit.due.left(moment) > 0])
    after = [refilled(each, moment, turn=turn + 1) for each in state.beliefs]
    beliefs = tuple([each for each in after if each is not None])
    if any(each.turn > turn for each in beliefs):
        turn += 1
    plain = state.plain
    if opening is not None:
        counts = any(each.unit == "requests" for each in beliefs)
        is_kept = opening.is_scout or opening.is_ramp
        is_over = (counts and not is_kept) or opening.quiet.left(moment) <= 0
        opening = None if is_over else opening.turned(moment)
    if opening is None and _is_unsure(state.beliefs, after):
        opening = SlowStart.scouting(moment)
    if plain is not None and plain.left(moment) <= 0:
        plain = None
    because = state.because if opening is not None and not opening.is_scout else ""
    return GateState(
        beliefs, None, because, turn, state.closed, opening, permits, plain, state.answered
    )


def _is_unsure(before: tuple[BelievedLimit, ...], after: list[BelievedLimit | None]) -> bool:
    """Whether calls would now be let through on a guess alone: then one goes ahead."""
    for old, new in zip(before, after, strict=True):
        if new is None:
            if old.remaining < 1 and old.unit == "requests":
                return True  # nothing was left, and no answer has said that there is again
        elif new.is_guessed and new.turn > old.turn and 2 * old.remaining < new.remaining:
            return True  # where most was left, a reset lets through little more than was stated
    return False


def bounded(permits: tuple[Permit, ...]) -> tuple[Permit, ...]:
    """The same permits, the older half merged into one if there are many.

    The state is read and written whole; it must not grow with the number of calls under way.
    """
    if len(permits) <= _MOST_PERMITS:
        return permits
    old, new = permits[: len(permits) // 2], permits[len(permits) // 2 :]
    count = sum([permit.out for permit in old])
    return (replace(old[-1], id="", holder="", count=count, unasked=0), *new)
