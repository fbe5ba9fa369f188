"""Circuit breaker: the pure state machine.

    Closed ──failures in a row, by a quorum──▶ Open ──time passed──▶ half open
       │ ▲   ──too large a share in a window──▶  ▲                     │ │
       │ │                                       └───a probe failed────┘ │
       │ └─────────────────────`successes` probes were answered──────────┘
       └──answers end a row, and count in the window

It stays open for a seventh of the time for which the target has been down, within bounds: a
recovery is then noticed at most 15 % later than it happened, at the cost of a probe now and then.

Half open is not a state of its own: it is an open breaker whose time has passed. So nothing has to
happen for it to be reached, it survives a restart, and asking can never recurse. What it adds is
that probes are leased: a probe that hangs loses its lease, and another one is let through.

Every permit carries the generation it was given in. Opening and closing begin a new one, and a
result from an older generation changes nothing: a call that was under way when the breaker opened
can neither close it nor keep it open.

A user's `ManualOverride` outranks every result and timer.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt
from typing import Literal, TypeAlias

from ..core.moment import Due, Lease, Moment
from ..core.record import record
from ..core.shared_settings import Breaker
from ..stores.state_machine import Machine

__all__ = (
    "BREAKER",
    "MOST_UNANSWERED",
    "AskBreaker",
    "Breaker",
    "Circuit",
    "ManualOverride",
    "OpenBreaker",
    "Passed",
    "Result",
    "Shut",
    "TellBreaker",
)

# alive: the target answered, with an error caused by the caller; counts only as an answered probe.
# neither: cancelled, or nothing is known about the target.
Result: TypeAlias = Literal["success", "failure", "alive", "neither"]

# Defaults without `failures` and `rate`: so many in a row, so many if they ended within so many
# seconds of each other, or such a share. Fourteen in a row happen once in 16,000 where half of all
# calls fail.
_IN_A_ROW, _TOGETHER, _APART, _SHARE = 10, 14, 2.0, 0.5

# Most calls of `TellBreaker.unanswered` that count.
MOST_UNANSWERED = 500

# Slices per window; the oldest is dropped when a new one begins.
_SLICES = 10

# A success clears a window with fewer failures than this.
_WORTH_KEEPING = 3

# Standard deviations by which the failure rate must exceed the setting, so that few calls need a
# higher rate.
_BEYOND_CHANCE = 3.0

# It stays open for this share of the time that the target has been down.
_SEVENTH = 1 / 7


@record()
class Passed:
    """The call may be made."""

    generation: int
    is_probe: bool = False


@record()
class Shut:
    """The call must not be made; `is_probing` while it depends on a probe that is under way."""

    retry_in: float
    because: str
    is_probing: bool = False


@record()
class Slice:
    """Calls that ended within one slice of the window."""

    number: int
    calls: int
    failures: int
    slow: int


@record()
class Circuit:
    """The state of a breaker.

    Args:
        streak: Failures since the last success.
        voters: The workers that saw them, as many as a quorum could need.
        until: When it lets a probe through; None while it is closed.
        generation: Rises whenever it opens or closes.
        probes: Probes under way.
        passed: Probes that have been answered since it opened.
        hand: ``blocked`` or ``allowed`` by the user, else empty.
        because: Why it is open, in a clause.
        hand_until: When the block or allow ends by itself, if it has an end.
        began: When the first failure of the streak ended: how long the target has been down.
        window: Recent calls; empty if none of them failed.
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
    began: Due | None = None
    window: tuple[Slice, ...] = ()

    def down_for(self, moment: Moment) -> float:
        """Seconds since the first failure of the streak."""
        if self.began is None or self.began.era != moment.era:
            return 0.0
        return max(0.0, moment.now - self.began.at)

    def failing_for(self, moment: Moment, settings: Breaker) -> float:
        """Seconds since the first failure that counts: in a row, or in the window's first slice."""
        began = self.window[0].number * settings.window / _SLICES if self.window else moment.now
        return max(self.down_for(moment), moment.now - began)

    @property
    def is_calm(self) -> bool:
        """Whether calls may be made without asking and their successes need not be recorded."""
        if self.hand:
            return self.hand == "allowed" and self.hand_until is None
        return not self.streak and self.until is None and not self.window

    def admits(self, moment: Moment) -> Passed | Shut | None:
        """Whether a call may be made; None if it may be a probe, which has to be asked for."""
        circuit = self.untouched(moment)
        until = circuit.hand_until
        if circuit.hand == "blocked":
            return Shut(inf if until is None else until.left(moment), circuit.because)
        if circuit.hand == "allowed" or circuit.until is None:
            return Passed(circuit.generation)
        wait = circuit.until.left(moment)
        return Shut(wait, circuit.because) if wait > 0 else None

    def untouched(self, moment: Moment) -> Circuit:
        """This circuit now, without a manual override that has expired."""
        if self.hand_until is None or self.hand_until.left(moment) > 0:
            return self
        return Circuit(generation=self.generation)

    def retry_in(self, moment: Moment) -> float:
        """Seconds until a probe could pass; 0 if one could now, or if it is closed."""
        return 0.0 if self.until is None else self.until.left(moment)


# A streak of failures is kept for a day without calls.
_DAY = 86_400.0


def _keep(state: Circuit, moment: Moment) -> float:
    if state.hand_until is not None:
        return _DAY + state.hand_until.left(moment)
    return inf if state.hand else _DAY + state.retry_in(moment)


def _joined(base: Circuit, ours: Circuit, theirs: Circuit, moment: Moment) -> Circuit:
    """Merge: probes granted on either side count as under way, and no further one is granted.

    The store's result outranks that of a process that was cut off from the store: its own network
    may have been down.
    """
    if theirs.hand or theirs.generation != base.generation:
        return theirs
    if ours.generation != theirs.generation:
        return ours
    before, now = ({probe.id for probe in each.probes} for each in (base, ours))
    kept = [probe for probe in theirs.probes if probe.id in now or probe.id not in before]
    known = before | {probe.id for probe in kept}
    kept += [probe for probe in ours.probes if probe.id not in known and probe.due.left(moment) > 0]
    passed = theirs.passed + max(0, ours.passed - base.passed)
    return replace(theirs, probes=tuple(kept), passed=passed)


BREAKER: Machine[Circuit] = Machine(name="breaker", start=Circuit(), keep=_keep, join=_joined)


class _Step:
    """Base of the operations on this machine."""

    __slots__ = ()
    machine = BREAKER


@record(kw_only=True)
class AskBreaker(_Step):
    """Asks whether a call may be made. Idempotent per `permit`."""

    permit: str
    settings: Breaker

    def __call__(self, state: Circuit, moment: Moment) -> tuple[Circuit, Passed | Shut]:
        state = state.untouched(moment)
        known = state.admits(moment)
        if known is not None:
            return state, known
        live = tuple([probe for probe in state.probes if probe.due.left(moment) > 0])
        if any(probe.id == self.permit for probe in live):
            return state, Passed(state.generation, is_probe=True)
        if len(live) >= self.settings.probes:
            soonest = min(probe.due.left(moment) for probe in live)
            because = f"{state.because}; a probe is under way"
            return state, Shut(soonest, because, is_probing=True)
        live += (Lease(self.permit, moment.lease(self.settings.lease)),)
        return replace(state, probes=live), Passed(state.generation, is_probe=True)


@record(kw_only=True)
class TellBreaker(_Step):
    """Reports how a call ended that `AskBreaker` admitted.

    Args:
        permit: Its name.
        generation: The one its permit was given in.
        result: How it ended.
        worker: The process that made it.
        settings: The breaker's.
        stated: Seconds for which the server asked to be left alone, if it did: the breaker then
            does not open for less.
        is_slow: Whether it took longer than the breaker's `slow`.
        unanswered: Calls that have been under way for about as long as this one was, as far as is
            known. They count as not failing: failures are often quicker than answers.
        roll: A random number, so that breakers of several processes do not probe at once.
    """

    permit: str
    generation: int
    result: Result
    worker: str
    settings: Breaker
    stated: float = 0.0
    is_slow: bool = False
    unanswered: int = 0
    roll: float = 0.5

    def __call__(self, state: Circuit, moment: Moment) -> tuple[Circuit, bool]:
        """Returns whether this opened or closed the breaker."""
        state = state.untouched(moment)
        if self.generation != state.generation or state.hand:
            return state, False
        if state.until is None:
            return self._closed(state, moment)
        mine = [probe for probe in state.probes if probe.id == self.permit]
        is_late = not mine or mine[0].due.left(moment) <= 0
        is_well = self.result in ("success", "alive")
        if is_late and not (self.permit and is_well):
            # Its lease has expired: a failure is ignored, because another probe may be under way.
            # An answer counts, else a target that is slower than a lease would stay shut for ever.
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
        if self.result not in ("success", "failure"):
            return state, False
        state = self._counted(state, moment)
        if self.result == "failure":
            settings, voters = self.settings, state.voters
            if self.worker not in voters and len(voters) < settings.quorum:
                voters += (self.worker,)
            began = state.began if state.streak else _instant(moment)
            state = replace(state, streak=state.streak + 1, voters=voters, began=began)
        elif state.streak:
            state = replace(state, streak=0, voters=(), began=None)
        is_amiss = self.result == "failure" or self.is_slow
        if is_amiss and (why := self._why(state, moment)):
            if state.began is None:  # opened by slow answers alone
                state = replace(state, began=_instant(moment))
            return self._opened(state, moment, why), True
        return state, False

    def _counted(self, state: Circuit, moment: Moment) -> Circuit:
        """The state with this call in the window; one without failures or slow calls is dropped."""
        settings = self.settings
        if settings.quorum > 1:
            return state  # the window is per process; only failures in a row are shared
        if settings.failures is not None and settings.rate is None and settings.slow is None:
            return state
        is_amiss = self.result == "failure" or self.is_slow
        if not state.window and not is_amiss:
            return state
        number = int(moment.now * _SLICES / settings.window)
        old = [each for each in state.window if number - _SLICES < each.number <= number]
        last = old.pop() if old and old[-1].number == number else Slice(number, 0, 0, 0)
        last = Slice(
            number,
            last.calls + 1,
            last.failures + (self.result == "failure"),
            last.slow + self.is_slow,
        )
        window = (*old, last)
        amiss = sum([each.failures + each.slow for each in window])
        # Drop a window with few failures: while one is kept, every call has to be recorded.
        is_kept = amiss >= _WORTH_KEEPING or (amiss and is_amiss)
        return replace(state, window=window if is_kept else ())

    def _why(self, state: Circuit, moment: Moment) -> str:
        """Why it opens now; empty if it does not."""
        settings = self.settings
        if len(state.voters) < settings.quorum and self.result == "failure":
            return ""
        usual = settings.failures is None and settings.rate is None
        most, unanswered = settings.failures, 0
        if usual:
            unanswered = min(self.unanswered, MOST_UNANSWERED)
            most = _IN_A_ROW if state.down_for(moment) >= _APART else _TOGETHER
            most = max(most, unanswered)
        if most is not None and state.streak >= most:
            return f"{state.streak} failures in a row"
        calls = sum([each.calls for each in state.window])
        if calls < settings.calls:
            return ""
        rate = _SHARE if usual else settings.rate
        failed = sum([each.failures for each in state.window])
        if rate is not None and _is_beyond(failed, calls + unanswered, rate):
            return f"{failed} of {calls} calls failed within {settings.window:g}s"
        slow = sum([each.slow for each in state.window])
        if settings.slow is not None and _is_beyond(slow, calls, settings.slow_rate):
            return f"{slow} of {calls} calls took longer than {settings.slow:g}s"
        return ""

    def _opened(self, state: Circuit, moment: Moment, because: str) -> Circuit:
        settings = self.settings
        share = state.down_for(moment) * _SEVENTH
        wait = min(max(share, settings.open_at_least), settings.open_for)
        if settings.open_at_least < settings.open_for:
            wait *= 0.9 + 0.2 * self.roll
        until = moment.lease(wait)
        if self.stated > wait:
            until = moment.stated(self.stated)
        return Circuit(
            streak=state.streak,
            voters=state.voters,
            until=until,
            generation=state.generation + 1,
            because=because,
            began=state.began,
        )


def _instant(moment: Moment) -> Due:
    """`moment`, as a state keeps it: on which clock it was read."""
    return Due(moment.now, 0.0, moment.era)


def _is_beyond(count: int, calls: int, share: float) -> bool:
    """Whether `count` of `calls` is more than `share` by more than chance."""
    chance = _BEYOND_CHANCE * sqrt(calls * share * (1 - share))
    return count >= min(calls * share + chance, calls)


@record(kw_only=True)
class OpenBreaker(_Step):
    """Open until a time that the server stated; applies to all callers at once (E-B15)."""

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


@record(kw_only=True)
class ManualOverride(_Step):
    """Block or allow a target regardless of its results, or undo that.

    It stays until it is undone (E-B9), or for the given time.

    Args:
        move: What to do; ``reset`` also forgets what the breaker had counted.
        because: The reason shown to refused callers.
        seconds: For how long; None until it is undone.
    """

    move: Literal["block", "allow", "reset"]
    because: str = "blocked manually"
    seconds: float | None = None

    def __call__(self, state: Circuit, moment: Moment) -> tuple[Circuit, bool]:
        generation = state.generation + 1  # results from before the override change nothing
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
