"""Whether a target is worth calling.

    Closed ──`failures` in a row, by a quorum──▶ Open ──time passed──▶ half open
       ▲                                          ▲                      │ │
       │                                          └────a probe failed────┘ │
       └──────────────────────`successes` probes were answered─────────────┘

Half open is no state of its own: it is an open breaker whose time has passed. So nothing has to
happen for it to be reached, it survives a restart, and asking can never recurse. What it adds is
that probes are leased: a probe that hangs loses its lease, and another one is let through.

Every permit carries the generation it was given in. Opening and closing begin a new one, and a
result from an older generation changes nothing: a call that was under way when the breaker opened
can neither close it nor keep it open.

A hand on the breaker (`Hand`) is stronger than any result or timer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from .failure import Failure, Family, Kind, Reach
from .machine import Machine
from .moment import Due, Lease, Moment
from .sharing import Breaker

__all__ = (
    "BREAKER",
    "Ask",
    "Breaker",
    "Circuit",
    "Hand",
    "Open",
    "Passed",
    "Result",
    "Shut",
    "Tell",
    "verdict_on",
)

# Alive: the target answered, with an error that is the caller's. It counts for no more than that:
# a probe has found somebody there. Neither: cancelled, or nothing is said about the target at all.
Result: TypeAlias = Literal["success", "failure", "alive", "neither"]

_UNHEALTHY = frozenset({Kind.SERVER, Kind.OVERLOADED, Kind.NETWORK, Kind.TIMEOUT})


def verdict_on(failure: Failure) -> Result:
    """What a failure says about its target's health.

    A client error never counts (R-C9), except that a probe need not look further. A limit is the
    gate's business: it paces calls, it does not stop them (E-B12).
    """
    kind = failure.kind
    if kind in _UNHEALTHY:
        return "failure"
    is_answer = kind.family is Family.CLIENT or kind is Kind.BAD_ANSWER
    return "alive" if is_answer and failure.reach is Reach.ANSWERED else "neither"


@dataclass(frozen=True, slots=True)
class Circuit:
    """The state of a breaker.

    Args:
        streak: Failures since the last success.
        voters: The workers that saw them, as many as a quorum could need.
        until: When it lets a probe through; None while it is closed.
        generation: Rises whenever it opens or closes.
        probes: Probes under way.
        passed: Probes that have been answered since it opened.
        hand: ``blocked`` or ``allowed`` by hand, else empty.
        because: Why it is open, in a clause.
        hand_until: When the hand goes away by itself, if whoever laid it on said so.
    """

    streak: int = 0
    voters: tuple[str, ...] = ()
    until: Due | None = None
    generation: int = 0
    probes: tuple[Lease, ...] = ()
    passed: int = 0
    hand: str = ""
    because: str = ""
    hand_until: Due | None = None

    @property
    def is_calm(self) -> bool:
        """Whether a call may be made, and its success recorded nowhere."""
        if self.hand:
            return self.hand == "allowed" and self.hand_until is None
        return not self.streak and self.until is None

    def untouched(self, moment: Moment) -> Circuit:
        """This circuit now; closed if a hand that was laid on for a time is gone."""
        if self.hand_until is None or self.hand_until.left(moment) > 0:
            return self
        return Circuit(generation=self.generation)

    def retry_in(self, moment: Moment) -> float:
        """Seconds until a probe could pass; 0 if one could now, or if it is closed."""
        return 0.0 if self.until is None else self.until.left(moment)


# A streak of failures is news for a day; nobody has called since.
_DAY = 86_400.0


def _keep(state: Circuit, moment: Moment) -> float:
    if state.hand_until is not None:
        return _DAY + state.hand_until.left(moment)
    return float("inf") if state.hand else _DAY + state.retry_in(moment)


BREAKER: Machine[Circuit] = Machine(name="breaker", start=Circuit(), keep=_keep)


class _Step:
    """What every operation on this machine has."""

    __slots__ = ()

    @property
    def machine(self) -> Machine[Circuit]:
        return BREAKER


@dataclass(frozen=True, slots=True)
class Passed:
    """The call may be made."""

    generation: int
    is_probe: bool = False


@dataclass(frozen=True, slots=True)
class Shut:
    """The call must not be made."""

    retry_in: float
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(_Step):
    """May a call be made? `permit` names it; asking again with the same name answers the same."""

    permit: str
    settings: Breaker

    def __call__(self, state: Circuit, moment: Moment) -> tuple[Circuit, Passed | Shut]:
        state = state.untouched(moment)
        if state.hand == "blocked":
            until = state.hand_until
            return state, Shut(float("inf") if until is None else until.left(moment), state.because)
        if state.hand == "allowed" or state.until is None:
            return state, Passed(state.generation)
        wait = state.until.left(moment)
        if wait > 0:
            return state, Shut(wait, state.because)
        live = tuple([probe for probe in state.probes if probe.due.left(moment) > 0])
        if any(probe.id == self.permit for probe in live):
            return state, Passed(state.generation, is_probe=True)
        if len(live) >= self.settings.probes:
            soonest = min(probe.due.left(moment) for probe in live)
            return state, Shut(soonest, f"{state.because}; a probe is under way")
        live += (Lease(self.permit, moment.lease(self.settings.lease)),)
        return replace(state, probes=live), Passed(state.generation, is_probe=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell(_Step):
    """How a call ended that `Ask` let pass.

    Args:
        permit: Its name.
        generation: The one its permit was given in.
        result: How it ended.
        worker: Who saw it.
        settings: The breaker's.
        stated: Seconds for which the server asked to be left alone, if it did: the breaker then
            does not open for less.
    """

    permit: str
    generation: int
    result: Result
    worker: str
    settings: Breaker
    stated: float = 0.0

    def __call__(self, state: Circuit, moment: Moment) -> tuple[Circuit, bool]:
        """The result is whether this opened or closed the breaker."""
        state = state.untouched(moment)
        if self.generation != state.generation or state.hand:
            return state, False
        if state.until is None:
            return self._closed(state, moment)
        mine = [probe for probe in state.probes if probe.id == self.permit]
        is_late = not mine or mine[0].due.left(moment) <= 0
        is_well = self.result in ("success", "alive")
        if is_late and not (self.permit and is_well):
            # Its lease is over: another probe speaks for the target now. An answer counts all the
            # same, or a target whose answers take longer than a lease would stay shut for ever.
            return state, False
        others = tuple([probe for probe in state.probes if probe.id != self.permit])
        state = replace(state, probes=others)
        if self.result == "failure":
            return self._opened(state, moment, "the probe failed"), True
        passed = state.passed + is_well
        if passed >= self.settings.successes:
            return Circuit(generation=state.generation + 1), True
        return replace(state, passed=passed), False

    def _closed(self, state: Circuit, moment: Moment) -> tuple[Circuit, bool]:
        if self.result == "success" and state.streak:
            return Circuit(generation=state.generation), False
        if self.result != "failure":
            return state, False
        settings, voters = self.settings, state.voters
        if self.worker not in voters and len(voters) < settings.quorum:
            voters += (self.worker,)
        state = replace(state, streak=state.streak + 1, voters=voters)
        if state.streak >= settings.failures and len(voters) >= settings.quorum:
            return self._opened(state, moment, f"{state.streak} failures in a row"), True
        return state, False

    def _opened(self, state: Circuit, moment: Moment, because: str) -> Circuit:
        until = moment.lease(self.settings.open_for)
        if self.stated > self.settings.open_for:
            until = moment.stated(self.stated)
        return Circuit(
            streak=state.streak,
            voters=state.voters,
            until=until,
            generation=state.generation + 1,
            because=because,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(_Step):
    """Open until a time that the server stated: believed at once, by everybody (E-B15)."""

    stated: float
    because: str

    def __call__(self, state: Circuit, moment: Moment) -> tuple[Circuit, bool]:
        state = state.untouched(moment)
        if state.hand or state.retry_in(moment) >= self.stated:
            return state, False
        was_shut = state.retry_in(moment) > 0
        until = moment.stated(self.stated)
        if was_shut:
            return replace(state, until=until, because=self.because), False
        opened = Circuit(until=until, generation=state.generation + 1, because=self.because)
        return opened, True


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand(_Step):
    """Block or allow a target by hand, whatever its results; or take the hand away.

    No timer takes it away (E-B9), unless whoever lays it on says for how long.

    Args:
        move: What to do; ``reset`` also forgets what the breaker had counted.
        because: Why, for those who are refused.
        seconds: For how long; None until another hand.
    """

    move: Literal["block", "allow", "reset"]
    because: str = "blocked by hand"
    seconds: float | None = None

    def __call__(self, state: Circuit, moment: Moment) -> tuple[Circuit, bool]:
        generation = state.generation + 1  # results from before the hand change nothing
        until = None if self.seconds is None else moment.stated(self.seconds)
        if self.move == "block":
            after = Circuit(
                generation=generation, hand="blocked", because=self.because, hand_until=until
            )
        elif self.move == "allow":
            after = Circuit(generation=generation, hand="allowed", hand_until=until)
        else:
            after = Circuit(generation=generation)
        return after, after.hand != state.hand
