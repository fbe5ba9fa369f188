"""What a gate knows, as long as it is fresh.

Settings, state, and the one transition that nobody asks for: time passes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .belief import Belief, refilled
from .machine import Machine
from .moment import Due, Moment
from .opening import Opening
from .sharing import Gate

__all__ = ("GATE", "Flow", "Gate", "Permit", "advanced", "bounded")

# Permits that the state tells apart.
_MOST_PERMITS = 48


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Flow:
    """The state of a gate.

    Args:
        beliefs: One a dimension that an answer has stated.
        shut: Until when it is shut for everybody, if it is.
        because: Why, in a clause.
        turn: Rises whenever it is shut, opened or refilled.
        strikes: Rejections in a row that named no time.
        opening: How far it has opened, where nothing is believed.
        permits: Blocks of calls that have been let through and have not been answered.
        plain: Until when we believe that answers state nothing.
    """

    beliefs: tuple[Belief, ...] = ()
    shut: Due | None = None
    because: str = ""
    turn: int = 0
    strikes: int = 0
    opening: Opening | None = None
    permits: tuple[Permit, ...] = ()
    plain: Due | None = None

    def held(self, belief: Belief) -> list[Permit]:
        """Permits from before the last reset whose calls have not been answered.

        The server may have counted them before the reset, or may yet: until they are answered, or
        their lease is over, as much is kept back for them.
        """
        return [permit for permit in self.permits if permit.turn < belief.turn]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is believed, and nothing is wrong."""
        return not self.beliefs and self.shut is None and self.opening is None

    @property
    def is_scouting(self) -> bool:
        """Whether it opens slowly to learn what answers state, and not after a rejection."""
        return self.opening is not None and self.opening.cap is None and not self.because

    @property
    def is_counting(self) -> bool:
        """Whether calls must be let through one by one; else they may pass unasked."""
        return (
            self.shut is not None
            or self.opening is not None
            or any(each.remaining < each.low_water or not each.remaining for each in self.beliefs)
        )


def _keep(state: Flow, moment: Moment) -> float:
    dues = [state.shut, state.plain, None if state.opening is None else state.opening.quiet]
    dues += [due for each in state.beliefs for due in (each.reset, each.stale)]
    return 60.0 + max([due.left(moment) for due in dues if due is not None], default=0.0)


GATE: Machine[Flow] = Machine(name="gate", start=Flow(), keep=_keep)


def advanced(state: Flow, moment: Moment) -> Flow:
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
        is_over = counts or opening.quiet.left(moment) <= 0
        opening = None if is_over else opening.turned(moment)
    if plain is not None and plain.left(moment) <= 0:
        plain = None
    because = state.because if opening is not None else ""
    return Flow(beliefs, None, because, turn, state.strikes, opening, permits, plain)


def bounded(permits: tuple[Permit, ...]) -> tuple[Permit, ...]:
    """The same permits, the older half merged into one if there are many.

    The state is read and written whole; it must not grow with the number of calls under way.
    """
    if len(permits) <= _MOST_PERMITS:
        return permits
    old, new = permits[: len(permits) // 2], permits[len(permits) // 2 :]
    count = sum([permit.out for permit in old])
    return (replace(old[-1], id="", holder="", count=count, unasked=0), *new)
