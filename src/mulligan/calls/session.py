"""The session of one call: its settings, clock, task and state, and everything that does not wait.

What may be a round trip to a store (`ask`, `tell_success`, `tell_failure`, `reserve_retry`) is
apart from what runs code of the user's, so that a coroutine can await the one in a thread and do
the other itself. The loop that waits is in `calls.loop`.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from ..core.call import Call
from ..core.decisions import Ending, GiveUp, Park, RetryAfter, Verify, ending_of
from ..core.duration import duration_text, is_number
from ..core.failure import Effects, Failure, Kind, Reach
from ..errors import (
    CircuitOpen,
    DeadlinePassed,
    FailedAnswer,
    LimitReached,
    NotAdmitted,
    SettingError,
)
from .async_time import being_cancelled
from .clock import REAL
from .context import (
    Context,
    ambient_context,
    ambient_task,
    ambient_world,
    endings,
)
from .emit import announce, report, safely, warn
from .notes import annotate, binds, ended_inside, stands_alone
from .one_shot_arguments import used_up_argument
from .request_traceback import is_made_by_inner_guard, is_made_in_a_loop
from .settings import NO_FALLBACK, CallSettings

if TYPE_CHECKING:
    from contextvars import Token

    from ..core.admission import Hold, Outcome
    from ..core.dead_letter import UnderKey
    from ..core.decisions import Decision
    from ..core.story import Story
    from .admissions import Admissions

__all__ = ("Session",)

# Out of retry tokens, a call ends at most a second later: a loop around it must not be a storm.
_LONGEST_PAUSE = 1.0

# Timers of some clients expire a little before their time, in seconds.
_EARLY = 0.01

_ENDINGS = frozenset(Ending)

_UNSAFE = Effects.UNSAFE  # a lookup in an enum takes 80 ns in Python 3.11

# Endings for which no fallback is used: a bug of the caller's, a cancellation.
_UNANSWERED = (Ending.UNKNOWN, Ending.CANCELLED)


class OutOfTokens(NotAdmitted):
    """A retry got no tokens in time; the call ends with its own last error."""


class Session:
    """One call, from its first failure; from its start where successes have to be known.

    Args:
        settings: The guard's.
        name: The function, for people.
        mark: `endings.count` before the attempt that has already been made; None if none was.
        started_at: When that attempt began, if that was measured.
        context: The context that attempt ran in, if it had one.

    Attributes:
        key: Of the operation that this call is, or is a part of; or empty.
        mark: `endings.count` before the latest attempt: what ended later, ended inside of it.
        answer: What the function returned, once `is_done`.
        is_done: Whether the function itself succeeded, whatever comes now; a fallback does not.
    """

    # Read before it is first written: most calls never touch these.
    failure: Failure | None = None
    _context: Context | None = None
    _admissions: Admissions | None = None
    _held_at: float | None = None  # since when it waits to be admitted, if it does
    _asked_at = 0.0  # when the hold began that is being waited for
    _hold: Hold | None = None  # the one being waited for
    pause = 0.0  # seconds to wait before an end that a loop around the call would repeat at once
    _is_last = False  # whether the attempt may take all that is left of the deadline, and no more
    _is_weighed = False  # whether it is known what the call may take
    _used_up = ""  # an argument that a second attempt would find empty
    answer: Any = None
    is_done = False
    is_bounded = False  # whether `ask` could refuse an attempt
    is_remote = False  # whether what the calls share lives outside of this process
    is_async = False  # whether its steps are awaited
    is_shared = False  # whether attempts need admission, and others are told how they ended
    last_error: BaseException | None = None
    work: tuple[Any, tuple[Any, ...], dict[str, Any]] | None = None  # what is called, with what
    pending: Any = None  # the coroutine of an attempt that has begun
    under: UnderKey | None = None  # the key it is called under, for a dead letter
    delivers = False  # whether it is a stream, which only reads until its first item
    delivered = 0  # items that a stream has handed over
    _progress_at = -inf  # when a stream that is resumed last broke after an item
    _has_ended = False
    _cut: BaseException | None = None
    _before_cut: BaseException | None = None
    _passed: Story | None = None
    _token: Token[Any] | None = None
    _took: float | None = None  # how long the attempt took that is being judged, and
    _read_at = (0.0, 0.0)  # when it was over, on both clocks

    def __init__(  # noqa: C901 -- what surrounds a call, asked for once
        self,
        settings: CallSettings,
        name: str,
        mark: int | None = None,
        started_at: float | None = None,
        context: Context | None = None,
    ) -> None:
        clock, dice, _ = ambient_world.get() or REAL
        self.settings = settings
        self.clock = settings.clock or clock
        self.dice = settings.dice or dice
        self.task = task = ambient_task.get()
        policy = settings.policy
        if settings.recent_failures is not None:
            policy = settings.recent_failures.policy(self.clock.now())
        deadline, deadline_at = policy.deadline, inf
        if deadline is not None or task is not None:
            now = self.clock.now()
            if started_at is None:
                started_at = now
            if deadline is not None:
                deadline_at = started_at + deadline
            if task is not None:
                deadline_at = min(deadline_at, now + task.time_left())
        self.call = Call(
            policy,
            settings.effects,
            name=name,
            target=settings.target,
            can_verify=settings.verify is not None,
            deadline_at=deadline_at,
        )
        self._began_at = started_at
        if context is not None:
            self._context = context
        if mark is None:
            self.call.attempt = 0  # no attempt has been made yet; `begin` counts
            mark = endings.count
        self.mark = mark
        around = ambient_context.get()
        self.key: str = "" if around is None else around.key
        find = settings.shared_target
        if find is not None or settings.admissions:
            from .admissions import Admissions  # loaded late: calls without a target need none

            target = None if find is None else find(deadline_at)
            self._admissions = Admissions(settings.admissions, target)
            self.is_remote = target is not None and target.is_remote
            if self.call.attempt:
                self._admissions.begun(mark)
            self.is_shared = self.is_bounded = True
            # Python shares the names of attributes that the first instances have. Written later,
            # by a call that has to wait, each of these calls would own a table of all names.
            self._held_at = self._hold = None
            self._asked_at = 0.0
        elif deadline_at < inf:
            self.is_bounded = True

    # Before an attempt

    def begin(self) -> None:
        """Count the attempt that begins now, and make it the one that `current()` tells of."""
        self.call.attempt += 1
        self.mark = endings.count
        self._began_at = self.clock.now()
        self._token = ambient_context.set(self)

    def enter_context(self) -> None:
        """Continue the attempt, perhaps in another context than it began in."""
        self._token = ambient_context.set(self)

    def leave_context(self) -> None:
        """Hand the attempt to another context, which calls `enter_context`."""
        self._exit()

    def limit(self) -> tuple[float, bool]:
        """Seconds this attempt may take, and whether that is all that is left of the deadline."""
        timeouts = self.settings.timeouts
        own = inf
        if timeouts is not None:
            own = timeouts.after(self.call.timeouts).total or inf
        left = self._left()
        self._is_last = left < own
        return (left, True) if left < own else (own, False)

    def overtime(self, limit: float, *, is_deadline: bool) -> TimeoutError:
        """The error of an attempt that was cut."""
        bound = "deadline" if is_deadline else "timeout"
        error = TimeoutError(
            f"{self._who()} was cut at its {bound}, {duration_text(limit)} into attempt "
            f"{self.call.attempt}"
        )
        if is_deadline:
            self._cut, self._before_cut = error, self.last_error
        return error

    # Being admitted

    @property
    def may_wait(self) -> bool:
        """Whether `ask` could take a round trip to a store."""
        target = None if self._admissions is None else self._admissions.target
        return target is not None and not target.is_near(self.clock.now())

    def estimate_tokens(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Estimate once what the call may take, where the guard has ``estimate=``."""
        estimate, admissions = self.settings.estimate, self._admissions
        if estimate is None or admissions is None or self._is_weighed:
            return
        self._is_weighed = True
        try:
            tokens = _counted(estimate(*args, **kwargs))
            if admissions.target is not None:
                admissions.target.weigh(tokens)
        except Exception as trouble:  # noqa: BLE001 -- without an estimate, the call is made
            report("estimate", estimate, trouble)

    def ask(self) -> Hold | None:
        """Ask for admission: None if the attempt may be made, else how long to hold.

        Raises:
            NotAdmitted: The attempt must not be made.
        """
        clock, call = self.clock, self.call
        now = clock.now()
        if now >= call.deadline_at:
            if self._hold is not None:
                raise self._not_admitted(self._hold)
            raise DeadlinePassed(self._who(), "the deadline passed before the attempt could begin")
        if self._admissions is None:
            return None
        return self._admissions.enter(call.attempt + 1, now, clock.wall())

    def held(self, hold: Hold | None) -> Hold | None:
        """`hold`, if it is short enough to wait for; announced before the wait.

        Raises:
            LimitReached: It is too long, and the target admits no calls.
            CircuitOpen: It is too long, and the target is down.
        """
        if self._hold is not None:
            self._waited(self._hold)
        self._speak()
        if hold is None:
            self._held_at = None
            return None
        now = self.clock.now()
        if self._held_at is None:
            self._held_at = now
        left = self._left_to_wait(hold, hold.answered_at, now)
        least = hold.delay if hold.least is None else hold.least
        if least >= left:
            raise self._not_admitted(hold)
        delay = min(hold.delay, left)
        if self.settings.listeners:
            waiting = self.call.attempt + 1
            announce(self, "Held", attempt=waiting, delay=delay, because=hold.because)
        self._hold, self._asked_at = hold, now
        return hold if delay == hold.delay else replace(hold, delay=delay)

    def _waited(self, hold: Hold) -> None:
        """Book the wait that has ended. A wait for a limit is not a retry, and costs no budget."""
        self._hold = None
        took = max(0.0, self.clock.now() - self._asked_at)
        self.call.waited += took
        if hold.reason != "limit":
            self.call.spent += took
            if self.task is not None:
                self.task.charge(took)

    def time_left_to_wait(self) -> float:
        """Seconds for which the call may go on with the wait that it is in."""
        hold, admissions = self._hold, self._admissions
        assert hold is not None  # noqa: S101 -- only after `held`
        progress_at = hold.answered_at
        if hold.waiter is not None and admissions is not None and admissions.target is not None:
            progress_at = admissions.target.answered_at  # others may have been answered meanwhile
        return self._left_to_wait(hold, progress_at, self.clock.now())

    def _left_to_wait(self, hold: Hold, progress_at: float, now: float) -> float:
        """Seconds for which the call may go on waiting to be admitted.

        Args:
            hold: What it waits for.
            progress_at: When the target last answered a call.
            now: The time.
        """
        call, policy = self.call, self.call.policy
        held_at = now if self._held_at is None else self._held_at
        began = held_at if call.first_failed_at is None else call.first_failed_at
        # A queue that moves is worth waiting in: what counts is how long nothing has.
        left = max(began, progress_at) + policy.bound - now
        left = min(left, self._left(), began + max(policy.horizon, policy.bound) - now)
        if hold.reason == "limit":
            return min(left, max(held_at, progress_at) + policy.in_place - now)
        if policy.budget is not None:
            left = min(left, policy.budget - call.spent)
        return left if self.task is None else min(left, self.task.budget_left())

    def _not_admitted(self, hold: Hold) -> NotAdmitted:
        least = hold.delay if hold.least is None else hold.least
        if hold.reason == "outage":
            return CircuitOpen(self._who(), max(least, hold.delay), hold.because)
        if hold.reason == "tokens":
            return OutOfTokens(self._who(), hold.because)
        return LimitReached(self._who(), self.clock.wall() + hold.delay, hold.because)

    # After an attempt

    def judge(self, answer: Any) -> None:
        """Raise if the user's judge finds that `answer` is a failure.

        A judge that raises, or returns something else, is reported and ignored: the call has been
        made, and its answer must not be lost to a mistake in looking at it.

        Raises:
            FailedAnswer: It is one.
        """
        ask: Any = self.settings.judge
        try:
            found: object = ask(answer)
        except Exception as trouble:  # noqa: BLE001 -- reported, see above
            report("judge", ask, trouble)
            return
        if isinstance(found, Failure):
            raise FailedAnswer(found.cleaned(), answer)
        if found is not None:
            said = type(found).__name__
            report("judge", ask, TypeError(f"a judge returns a Failure or None, not {said}"))

    def observe(self, answer: Any) -> None:
        """Read what the answer states about limits, where the guard has ``observe=``."""
        read, spent, admissions = self.settings.observe, self.settings.spent, self._admissions
        if read is None or admissions is None:
            return
        try:
            admissions.stated = read(answer, now=self.clock.wall())
        except Exception as trouble:  # noqa: BLE001 -- the answer must not be lost to its reader
            report("observer", read, trouble)
        try:
            if spent is not None and (took := spent(answer)) is not None:
                admissions.took = _counted(took)
        except Exception as trouble:  # noqa: BLE001 -- the answer must not be lost to its reader
            report("observer", spent, trouble)

    @property
    def may_tell(self) -> bool:
        """Whether `leave` could take a round trip to a store, after a success."""
        return self._admissions is not None and self._admissions.may_tell

    def tell_success(self) -> None:
        """Tell those who admitted the attempt that it has succeeded."""
        self._leave("succeeded")

    def tell_failure(self) -> None:
        """Tell those who admitted the attempt how it failed."""
        if self._admissions is not None:
            now, wall = self._read_at
            self._admissions.leave(
                "failed", self.failure, now=now, wall=wall, is_cut=self._was_cut()
            )

    def _leave(self, outcome: Outcome) -> None:
        if self._admissions is not None and self._admissions.holds_anything:
            self._admissions.leave(outcome, now=self.clock.now(), wall=self.clock.wall())

    def _was_cut(self) -> bool:
        """Whether the attempt ended because the caller ran out of time, not because of the target.

        A function that takes its limit as a parameter raises an error of its own at it.
        """
        failure = self.failure
        if not self._is_last or failure is None or failure.status is not None:
            return False
        return failure.kind is Kind.TIMEOUT and self._left() <= _EARLY

    def reserve_retry(self, decision: Decision) -> Decision:
        """`decision`, with its wait reserved from the task's budget and the target's retry tokens.

        The end of the call instead, if there is not enough of either.
        """
        if not isinstance(decision, RetryAfter):
            return decision
        delay = decision.delay
        if self._used_up:
            decision = GiveUp(Ending.FINAL, f"not retried: {self._used_up}")
        elif self.task is not None and not self.task.reserve(delay):
            decision = GiveUp(Ending.BUDGET, "other calls have used up the task's retry budget")
        elif self._admissions is not None and (why := self._unfunded(delay)):
            # A caller that calls in a loop would make the storm that the tokens prevent (E-C9).
            self.pause = min(delay, _LONGEST_PAUSE, max(self._left(), 0.0))
            decision = GiveUp(Ending.TOKENS, why)
        else:
            self.call.waits(delay)
            return decision
        self.call.overruled(decision)
        return decision

    def _unfunded(self, delay: float) -> str:
        """Why there are no retry tokens for a retry in `delay` seconds, or empty."""
        if self._admissions is None or self.failure is None:
            return ""
        return self._admissions.reserve(self.failure, delay, *self._read_at)

    def succeeded(self) -> None:
        """The attempt succeeded, and with it the call."""
        self._has_ended = True
        if self._token is not None:
            self._exit()
        if self._admissions is not None:
            self.tell_success()
            self._speak()
        call, settings = self.call, self.settings
        if call.tries:
            if self.task is not None and call.attempt > 1 and self._began_at is not None:
                self.task.charge(self.clock.now() - self._began_at)
            if settings.listeners:
                announce(
                    self,
                    "Recovered",
                    waited=call.waited,
                    elapsed=self._elapsed(),
                    took=self._since_begun(),
                )
        elif settings.wants_successes:
            announce(self, "Succeeded", took=self._since_begun())
        self.last_error = None

    def cancelled(self) -> None:
        """The call was cancelled before it had ended: neither success nor failure."""
        if self._has_ended:
            return
        self._has_ended = True
        self._exit()
        self._give_back()
        if self.call.tries and self.settings.listeners:
            announce(self, "Cancelled", elapsed=self._elapsed())
        self.last_error = None

    def failed(
        self, error: Exception, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Decision:
        """The attempt, made with these arguments, failed: read, judge, record, announce."""
        decision: Decision | None = self.classify(error, args, kwargs)
        if decision is None:
            if self.is_shared:
                self.tell_failure()
            decision = self.reserve_retry(self.decide(error))
            if self.is_shared or self.settings.listeners:
                self.announced(decision)
        return decision

    def classify(
        self, error: Exception, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> GiveUp | None:
        """Find out what `error` is; the end, if the task that made the call is being cancelled."""
        if self._token is not None:
            self._exit()
        if self.is_async and being_cancelled():
            return self._abandoned(error)
        if self.call.attempt == 1 and (args or kwargs):
            self._used_up = used_up_argument(args, kwargs or {})
        clock, settings = self.clock, self.settings
        now, wall = self._read_at = clock.now(), clock.wall()
        if self._began_at is not None:
            self._took = now - self._began_at
        self.failure = settings.classify(error, now=wall)
        self.last_error = error
        if settings.overhear is not None and self._admissions is not None:
            self._admissions.stated = settings.overhear(error, now=wall)
        return None

    def decide(self, error: Exception) -> Decision:
        """What happens after `error`, which has been read."""
        call, failure, took = self.call, self.failure, self._took
        assert failure is not None  # noqa: S101 -- only after `classify`
        now, wall = self._read_at
        recent = self.settings.recent_failures
        if recent is not None:
            recent.note(failure.kind, now)
        if self.task is not None:
            call.allowance = self.task.budget_left()
            if took is not None and call.attempt > 1:
                self.task.charge(took)
                call.allowance -= took
        passed = None
        if endings.count != self.mark or not stands_alone(error):
            passed = ended_inside(error, self.mark)
            if self.delivered and passed is not None and passed.ending == Ending.COMMITTED:
                passed = None  # the guard inside could not continue the stream; this one can
        if passed is not None and self._is_final(passed, error):
            # A guard inside has already spent what there was to spend on this.
            self._passed = passed
            # A story from another version may know endings that we do not.
            ending = Ending(passed.ending) if passed.ending in _ENDINGS else Ending.EXHAUSTED
            return GiveUp(ending, passed.because, passed.retry_at)
        # One request has proved that it was not applied; the function may have made more of them.
        if (
            call.effects is _UNSAFE
            and failure.reach is not Reach.MAYBE_APPLIED
            and not self.delivers
            and is_made_in_a_loop(error, is_block=self.work is None)
        ):
            call.doubt = "the failed request was made in a loop; earlier ones may have succeeded"
            failure = replace(failure, reach=Reach.MAYBE_APPLIED)
        target = None if self._admissions is None else self._admissions.target
        if target is not None:
            call.is_down, call.has_gate = target.is_down, target.has_gate
            call.believes, call.progress_at = target.believes, target.answered_at
        call.progress_at = max(call.progress_at, self._progress_at)
        return call.failed(failure, now=now, wall=wall, roll=self.dice.roll(), took=took)

    def _is_final(self, passed: Story, error: Exception) -> bool:
        """Whether the ending of a guard inside is this call's ending, too.

        A limit that the inner guard would not wait for proves that the inner call was not made. The
        outer function may have done more than that call before it, unless it is that call.
        """
        if binds(passed):
            return True
        is_unsafe = self.call.effects is Effects.UNSAFE and passed.ending != Ending.UNKNOWN
        return is_unsafe and is_made_by_inner_guard(error)

    def announced(self, decision: Decision) -> Decision:
        """`decision`, after listeners were told of the failure."""
        if self.settings.listeners and self._passed is None:
            announce(
                self,
                "Failed",
                failure=self.failure,
                decision=decision,
                elapsed=self._elapsed(),
                remark=self.call.remark,
                took=self._took,
            )
        if self._admissions is not None:
            self._speak()
        return decision

    def applied(self) -> None:
        """`verify=` found that the last attempt was applied: the call has succeeded."""
        if self.settings.listeners:
            announce(self, "Verified", was_applied=True, decision=None)
        self.succeeded()

    def not_applied(self) -> Decision:
        """`verify=` found that the last attempt was not applied: decide again."""
        assert self.failure is not None  # noqa: S101 -- only after `classify`
        now, wall = self.clock.now(), self.clock.wall()
        self._read_at = now, wall
        return self.call.not_applied(self.failure, now=now, wall=wall, roll=self.dice.roll())

    def verified(self, decision: Decision) -> RetryAfter | Park | GiveUp:
        """`decision`, made after `verify=` answered, after listeners were told."""
        self._speak()
        assert not isinstance(decision, Verify)  # noqa: S101 -- it was never applied
        if self.settings.listeners:
            announce(self, "Verified", was_applied=False, decision=decision)
        return decision

    def unverified(self, why: str) -> GiveUp:
        """The end of a call of which `verify=` could not tell whether it was applied."""
        decision = GiveUp(
            Ending.MAYBE_APPLIED,
            f"not retried: {self.call.name}() may have been applied, and {why}",
        )
        self.call.overruled(decision)
        return decision

    def _abandoned(self, error: Exception) -> GiveUp:
        """End a call whose attempt turned its cancellation into an error of its own."""
        self.failure = self.settings.classify(error, now=self.clock.wall())
        self._give_back()
        decision = GiveUp(Ending.CANCELLED, "the task that made the call is being cancelled")
        self.call.tries.append((self.failure, decision, None))
        return decision

    def stream_failed(self, error: Exception) -> GiveUp:
        """A stream failed after it had delivered something: committed, never replayed."""
        _, wall = self._read_at = self.clock.now(), self.clock.wall()
        self.failure = self.settings.classify(error, now=wall)
        passed = ended_inside(error, self.mark)
        self._passed = passed if passed is not None and binds(passed) else None
        decision = GiveUp(Ending.COMMITTED, f"{self._delivery()}: not replayed")
        self.call.tries.append((self.failure, decision, None))
        return decision

    def progress(self) -> None:
        """A stream has delivered something before it broke: patience is counted from now."""
        self._progress_at = self.clock.now()

    def _delivery(self) -> str:
        items = "1 item" if self.delivered == 1 else f"{self.delivered} items"
        return f"the stream had delivered {items}"

    def refused(self, error: NotAdmitted) -> tuple[BaseException, GiveUp]:
        """The next attempt is not admitted: the last real error ends the call, if there is one."""
        self._give_back()
        ending = Ending.DEADLINE if isinstance(error, DeadlinePassed) else Ending.REFUSED
        if isinstance(error, OutOfTokens):
            ending = Ending.TOKENS
        until = error.until if isinstance(error, LimitReached) else None
        if isinstance(error, CircuitOpen) and error.retry_in < inf:
            until = self.clock.wall() + error.retry_in
        decision = GiveUp(ending, error.because, until)
        if self.last_error is None:
            self.failure = self.settings.classify(error, now=self.clock.wall())
            return error, decision
        self.call.overruled(decision)
        return self.last_error, decision

    def error_to_raise(self, error: BaseException) -> BaseException:
        """The error to raise: the last real one rather than our own cut at the deadline (E-D3)."""
        if error is self._cut and self._before_cut is not None:
            return self._before_cut
        return error

    def end(self, error: BaseException, decision: Park | GiveUp) -> bool:
        """Put the story on `error` and tell listeners of the end; True if there is a fallback."""
        self._has_ended = True
        if self._admissions is not None:
            self._speak()
        settings, call = self.settings, self.call
        ending, retry_at = ending_of(decision)
        because = decision.because
        if self.delivered and ending not in (Ending.COMMITTED, Ending.CANCELLED):
            ending, because = Ending.COMMITTED, f"{self._delivery()}; not resumed: {because}"
        assert self.failure is not None  # noqa: S101 -- only after `failed` or `refused`
        if self._passed is None:
            tale = call.story(ending, because, retry_at=retry_at, delivered=self.delivered)
            # A bug in the caller's own code needs no remark from us.
            annotate(error, tale, note=ending is not Ending.UNKNOWN or call.attempt > 1)
        else:
            tale = self._passed
        is_answered = settings.fallback is not NO_FALLBACK and ending not in _UNANSWERED
        if self.delivered:  # a fallback takes the place of a whole stream, not of its rest
            is_answered = False
        facts: dict[str, Any] = {
            "ending": ending,
            "failure": self.failure,
            "story": tale,
            "elapsed": self._elapsed(),
            "is_passed_on": self._passed is not None,
            "is_answered": is_answered,
        }
        if settings.listeners:
            announce(self, "Ended", **facts)
        elif self._passed is None and (ending.is_exhaustion or is_answered):
            # Logged without listeners, too: an exhaustion, and an error that a fallback hides.
            warn(self, "Ended", **facts)
        if ending.is_exhaustion and settings.on_exhausted is not None:
            safely("on_exhausted", settings.on_exhausted, error)
        # The session must not keep the error, and with it its frames, alive.
        self.last_error = self._cut = self._before_cut = None
        return is_answered

    # Helpers

    def context(self) -> Context:
        """What `current()` says about the attempt under way."""
        call, known = self.call, self._context
        if known is None or known.attempt != call.attempt:
            metadata = self.settings.metadata
            if self.task is not None:
                metadata = {**self.task.metadata, **metadata}
            failures = tuple(failure for failure, _, _ in call.tries)
            first = known.first if known is not None else None
            known = self._context = Context(
                call.name, call.target, metadata, call.attempt, failures, first
            )
        return known

    def _give_back(self) -> None:
        """Give back permits and tokens of an attempt that is not made."""
        self._leave("cancelled")
        self._speak()

    def _speak(self) -> None:
        """Announce what changed while this call asked or was told."""
        if self._admissions is not None and self._admissions.news:
            news, self._admissions.news[:] = self._admissions.news[:], []
            for event, facts in news:
                if self.settings.listeners:
                    announce(self, event, **facts)
                elif event == "StoreLost" or facts.get("is_open"):
                    warn(self, event, **facts)  # never silent

    def _left(self) -> float:
        deadline_at = self.call.deadline_at
        return deadline_at - self.clock.now() if deadline_at < inf else inf

    def _who(self) -> str:
        return self.call.target or self.call.name or "the call"

    def _exit(self) -> None:
        token = self._token
        if token is not None:
            self._token = None
            try:  # noqa: SIM105 -- contextlib.suppress takes as long as all the rest of it
                ambient_context.reset(token)
            except ValueError:  # begun in one context, ended in another: see `restore`
                pass

    def _since_begun(self) -> float | None:
        return None if self._began_at is None else self.clock.now() - self._began_at

    def _elapsed(self) -> float:
        first = self.call.first_failed_at
        return 0.0 if first is None else self.clock.now() - first


def _counted(tokens: float) -> float:
    if not is_number(tokens) or not 0 <= tokens < inf:
        raise SettingError(f"tokens need a number >= 0; got {tokens!r}")
    return tokens
