"""Admissions of one call: asked before each attempt, told how it ended.

They are the breaker, gate and retry tokens of its target, and the guard's own admissions. `ask`,
`leave` and `reserve` may be a round trip to a store, and no code of the user's runs in them but the
admissions that the guard was given: a coroutine may send them to a thread. The session does the
rest, and announces what changed meanwhile (`changes`).
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from threading import local
from typing import TYPE_CHECKING, Any, assert_never

from ..core.admission import Admitted, Hold, OutOfTokens, Refused
from ..core.duration import is_number
from ..errors import CircuitOpen, DeadlinePassed, LimitReached, NotAdmitted, SettingError
from .emit import report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.admission import Admission, Answer, Outcome
    from ..core.decide import Call
    from ..core.events import EventName
    from ..core.failure import Failure
    from ..core.ports import Clock
    from ..shared.admission import TargetCall
    from .budget import Task
    from .settings import CallSettings

__all__ = ("Admissions", "note_change")

# Events about what callers share, to be announced by the call during which they happened.
_Changes = list[tuple["EventName", dict[str, Any]]]


class _CurrentCall(local):
    """Where `note_change` writes, in the thread that asks or is told.

    Not a context variable: setting one would leave a context of its own to every task that waits.
    """

    changes: _Changes | None = None


_current = _CurrentCall()


def note_change(event: EventName, **facts: Any) -> None:
    """Have the call that is asking or being told in this thread announce an event."""
    if _current.changes is not None:
        _current.changes.append((event, facts))


class Admissions:
    """The permits that one call holds for the attempt under way, and its waits for them.

    Whatever an admission raises is reported: if it cannot answer, the attempt is made.

    The guard's own admissions are asked first, outermost first; the target's breaker, gate and
    tokens last. Waits are charged to the budget of the task.

    Attributes:
        changes: Events about what callers share, for the session to announce.
        hold: What the call waits for, from `held` until it has asked again.
        stated: What the answer to the attempt under way stated about limits; before `leave`.
        took: What that attempt took of what is counted in tokens; before `leave`.
        was_cut: Whether it failed because the caller ran out of time; before `leave`.
    """

    # The guard's admissions that admitted the attempt, with their tickets, outermost first.
    _admitted: tuple[tuple[Admission, object], ...] = ()
    _is_in = False  # whether an attempt is under way
    _is_promised = False  # whether the target holds a queue's place or tokens for one
    _is_weighed = False  # whether it is known what the call may take
    _held_at: float | None = None  # since when it waits to be admitted, if it does
    _hold_began_at = 0.0
    hold: Hold | None = None
    stated: Iterable[Any] = ()
    took: float | None = None
    was_cut = False

    def __init__(
        self,
        settings: CallSettings,
        call: Call,
        clock: Clock,
        task: Task | None,
        target: TargetCall | None,
    ) -> None:
        self._settings, self._call, self._clock, self._task = settings, call, clock, task
        self.target = target
        self.is_remote = target is not None and target.is_remote
        self.changes: _Changes = []

    # Before an attempt

    def begun(self, mark: int) -> None:
        """The first attempt was made unasked, while all was calm; `mark` is when it began."""
        self._is_in = True
        if self.target is not None:
            self.target.begun_unasked(mark)

    @property
    def may_ask_store(self) -> bool:
        """Whether `ask` could take a round trip to a store."""
        return self.target is not None and not self.target.is_near(self._clock.now())

    def estimate_tokens(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Estimate once what the call may take, where the guard has ``estimate=``."""
        estimate = self._settings.estimate
        if estimate is None or self._is_weighed:
            return
        self._is_weighed = True
        try:
            tokens = _counted(estimate(*args, **kwargs))
            if self.target is not None:
                self.target.estimate = tokens
        except Exception as trouble:  # noqa: BLE001 -- without an estimate, the call is made
            report("estimate", estimate, trouble)

    def ask(self) -> Hold | None:
        """Ask for admission: None once the attempt is admitted by all; else how long to hold.

        Raises:
            NotAdmitted: It was refused; what had been granted is given back.
        """
        before, _current.changes = _current.changes, self.changes
        try:
            return self._ask()
        finally:
            _current.changes = before

    def _ask(self) -> Hold | None:  # noqa: C901 -- each answer to the question, in order
        target, call = self.target, self._call
        now, wall = self._clock.now(), self._clock.wall()
        if now >= call.deadline_at:
            if self.hold is not None:
                raise self._not_admitted(self.hold)
            raise DeadlinePassed(call.label, "the deadline passed before the attempt could begin")
        if target is not None and target.owes_tokens:
            hold = self._fund(target, now, wall)
            if hold is not None:
                return hold
        given = self._settings.admissions
        asked: tuple[Any, ...] = given if target is None else (*given, target)
        for admission in asked:
            try:
                answer: Answer = admission.enter(call.attempt + 1, now=now, wall=wall)
            except Exception as trouble:  # noqa: BLE001 -- an admission that raises admits
                report("admission", admission, trouble)
                continue
            match answer:
                case Admitted():
                    if admission is not target:
                        self._admitted = (*self._admitted, (admission, answer.ticket))
                case Hold():
                    self._is_promised = True
                    self._give_back(now, wall)
                    return answer
                case Refused():
                    self._give_back(now, wall)
                    raise answer.error
                case _:
                    assert_never(answer)
        self._is_in = True
        return None

    @staticmethod
    def _fund(target: TargetCall, now: float, wall: float) -> Hold | None:
        try:
            return target.fund(now=now, wall=wall)
        except Exception as trouble:  # noqa: BLE001 -- if tokens cannot be counted, it is retried
            report("tokens", target, trouble)
            return None

    # Waiting to be admitted

    def held(self, hold: Hold | None) -> Hold | None:
        """What `ask` returned, if it is short enough to wait for; books the wait that has ended.

        Raises:
            LimitReached: It is too long, and the target admits no calls.
            CircuitOpen: It is too long, and the target is down.
        """
        now = self._clock.now()
        if self.hold is not None:
            self._waited(self.hold, now)
        if hold is None:
            self._held_at = None
            return None
        if self._held_at is None:
            self._held_at = now
        left = self._left_to_wait(hold, hold.answered_at, now)
        least = hold.delay if hold.least is None else hold.least
        if least >= left:
            raise self._not_admitted(hold)
        self.hold, self._hold_began_at = hold, now
        return hold if hold.delay <= left else replace(hold, delay=left)

    def _waited(self, hold: Hold, now: float) -> None:
        """Book the wait that has ended. A wait for a limit is not a retry, and costs no budget."""
        self.hold = None
        took = max(0.0, now - self._hold_began_at)
        self._call.waited += took
        if hold.reason != "limit":
            self._call.spent += took
            if self._task is not None:
                self._task.charge(took)

    def time_left_to_wait(self) -> float:
        """Seconds for which the call may go on with the wait that it is in."""
        hold, target = self.hold, self.target
        assert hold is not None  # noqa: S101 -- only after `held`
        progress_at = hold.answered_at
        if hold.waiter is not None and target is not None:
            progress_at = target.answered_at  # others may have been answered meanwhile
        return self._left_to_wait(hold, progress_at, self._clock.now())

    def _left_to_wait(self, hold: Hold, progress_at: float, now: float) -> float:
        """Seconds for which the call may go on waiting, where the target last answered then."""
        call, policy = self._call, self._call.policy
        held_at = now if self._held_at is None else self._held_at
        began = held_at if call.first_failed_at is None else call.first_failed_at
        # A queue that moves is worth waiting in: what counts is how long nothing has.
        left = max(began, progress_at) + policy.bound - now
        left = min(left, call.deadline_at - now, began + max(policy.horizon, policy.bound) - now)
        if hold.reason == "limit":
            return min(left, max(held_at, progress_at) + policy.in_place - now)
        if policy.budget is not None:
            left = min(left, policy.budget - call.spent)
        return left if self._task is None else min(left, self._task.budget_left())

    def _not_admitted(self, hold: Hold) -> NotAdmitted:
        label = self._call.label
        least = hold.delay if hold.least is None else hold.least
        if hold.reason == "outage":
            return CircuitOpen(label, max(least, hold.delay), hold.because)
        if hold.reason == "tokens":
            return OutOfTokens(label, hold.because)
        return LimitReached(label, self._clock.wall() + hold.delay, hold.because)

    # After an attempt

    def observe(self, answer: Any) -> None:
        """Read what the answer states about limits, where the guard has ``observe=``."""
        read, spent = self._settings.observe, self._settings.spent
        if read is None:
            return
        try:
            self.stated = read(answer, now=self._clock.wall())
        except Exception as trouble:  # noqa: BLE001 -- the answer must not be lost to its reader
            report("observer", read, trouble)
        try:
            if spent is not None and (took := spent(answer)) is not None:
                self.took = _counted(took)
        except Exception as trouble:  # noqa: BLE001 -- the answer must not be lost to its reader
            report("observer", spent, trouble)

    @property
    def may_tell_store(self) -> bool:
        """Whether to tell of a success could take a round trip to a store."""
        target = self.target
        return target is not None and self.is_remote and target.must_write(self.stated)

    def leave(
        self,
        outcome: Outcome,
        failure: Failure | None = None,
        at: tuple[float, float] | None = None,
    ) -> None:
        """Tell all who admitted the attempt how it ended; nothing if none is under way.

        A retry that was scheduled and is not made any more is ``cancelled``, too. So is, for the
        admissions, an attempt that `was_cut`: it says nothing about the target. The tokens of such
        a retry are gone all the same, for it was made. `at` is when, on both clocks; default: now.
        """
        if not (self._is_in or self._is_promised):
            return
        now, wall = (self._clock.now(), self._clock.wall()) if at is None else at
        target = self.target
        stated, self.stated, took, self.took = self.stated, (), self.took, None
        was_cut, self.was_cut = self.was_cut, False
        before, _current.changes = _current.changes, self.changes
        try:
            if target is not None:
                target.ended(outcome, failure, stated, took, now=now, wall=wall, was_cut=was_cut)
        except Exception as trouble:  # noqa: BLE001 -- the attempt's outcome is what counts
            report("admission", target, trouble)
        finally:
            if self._admitted:
                self._tell("cancelled" if was_cut else outcome, failure, now, wall)
            self._is_in = self._is_promised = False
            _current.changes = before

    def _give_back(self, now: float, wall: float) -> None:
        """The attempt is not made now: cancel what has been granted for it."""
        self.stated, self.took = (), None
        self._tell("cancelled", None, now, wall)

    def _tell(self, outcome: Outcome, failure: Failure | None, now: float, wall: float) -> None:
        """Tell the guard's own admissions, innermost first."""
        while self._admitted:
            *others, (admission, ticket) = self._admitted
            self._admitted = tuple(others)
            try:
                admission.leave(ticket, outcome, failure, now=now, wall=wall)
            except Exception as trouble:  # noqa: BLE001 -- the attempt's outcome is what counts
                report("admission", admission, trouble)

    def reserve(self, failure: Failure, delay: float, now: float, wall: float) -> str:
        """Take tokens for a retry in `delay` seconds; why there are none, or empty."""
        target = self.target
        if target is None:
            return ""
        before, _current.changes = _current.changes, self.changes
        try:
            why = target.reserve(failure, delay, now=now, wall=wall)
        except Exception as trouble:  # noqa: BLE001 -- if tokens cannot be counted, it is retried
            report("tokens", target, trouble)
            return ""
        finally:
            _current.changes = before
        self._is_promised = not why
        return why


def _counted(tokens: float) -> float:
    if not is_number(tokens) or not 0 <= tokens < inf:
        raise SettingError(f"tokens need a number >= 0; got {tokens!r}")
    return tokens
