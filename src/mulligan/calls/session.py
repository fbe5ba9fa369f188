"""The session of one call: its settings, clock, task and state, and everything that does not wait.

What may be a round trip to a store (`reserve_retry`, and what `Admissions` asks and tells) is apart
from what runs code of the user's, so that a coroutine can await the one in a thread and do the
other itself. The loop that waits is in `calls.loop`.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from ..core.decide import Call
from ..core.decisions import Ending, GiveUp, Park, RetryAfter, Verify, ending_of
from ..core.duration import duration_text
from ..core.failure import Effects, Failure, Kind, Reach
from ..errors import CircuitOpen, DeadlinePassed, FailedAnswer, LimitReached, NotAdmitted
from .async_time import being_cancelled
from .clock import REAL
from .context import Context, ambient_context, ambient_task, ambient_world, endings
from .emit import announce, report, safely, warn
from .notes import annotate, binds, ended_inside, stands_alone
from .one_shot_arguments import used_up_argument
from .request_traceback import is_made_by_inner_guard, is_made_in_a_loop
from .settings import NO_FALLBACK, CallSettings

if TYPE_CHECKING:
    from contextvars import Token

    from ..core.admission import Hold
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


class Session:
    """One call, from its first failure; from its start where successes have to be known.

    Args:
        settings: The guard's.
        name: The function, for people.
        mark: `endings.count` before the attempt that has already been made; None if none was.
        started_at: When that attempt began, if that was measured.
        context: The context that attempt ran in, if it had one.

    Attributes:
        admissions: Asked before each attempt, told how it ended; None if there are none.
        key: Of the operation that this call is, or is a part of; or empty.
        mark: `endings.count` before the latest attempt: what ended later, ended inside of it.
        answer: What the function returned, once `is_done`.
        is_done: Whether the function itself succeeded, whatever comes now; a fallback does not.
    """

    # Read before it is first written: most calls never touch these.
    failure: Failure | None = None
    _context: Context | None = None
    admissions: Admissions | None = None
    refusal: NotAdmitted | None = None  # why no further attempt is made, whatever admissions say
    pause = 0.0  # seconds to wait before an end that a loop around the call would repeat at once
    _is_last = False  # whether the attempt may take all that is left of the deadline, and no more
    _used_up = ""  # an argument that a second attempt would find empty
    answer: Any = None
    is_done = False
    is_bounded = False  # whether an attempt could be refused
    is_async = False  # whether its steps are awaited
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
    failed_at = (0.0, 0.0)  # when it failed, on both clocks

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
            self.admissions = Admissions(settings, self.call, self.clock, task, target)
            self.is_bounded = True
            if self.call.attempt:
                self.admissions.begun(mark)
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
            f"{self.call.label} was cut at its {bound}, {duration_text(limit)} into attempt "
            f"{self.call.attempt}"
        )
        if is_deadline:
            self._cut, self._before_cut = error, self.last_error
        return error

    def check_deadline(self) -> None:
        """Refuse the next attempt if the deadline has passed.

        Raises:
            DeadlinePassed: It has.
        """
        if self.clock.now() >= self.call.deadline_at:
            because = "the deadline passed before the attempt could begin"
            raise DeadlinePassed(self.call.label, because)

    def announce_hold(self, hold: Hold) -> None:
        """Tell listeners that the next attempt waits to be admitted, before it does."""
        if self.settings.listeners:
            waiting = self.call.attempt + 1
            announce(self, "Held", attempt=waiting, delay=hold.delay, because=hold.because)

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
        elif self.admissions is not None and (
            why := self.admissions.reserve(self.failure, delay, *self.failed_at)  # type: ignore[arg-type]
        ):
            # A caller that calls in a loop would make the storm that the tokens prevent (E-C9).
            self.pause = min(delay, _LONGEST_PAUSE, max(self._left(), 0.0))
            decision = GiveUp(Ending.TOKENS, why)
        else:
            self.call.waited += delay
            self.call.spent += delay
            return decision
        self.call.overruled(decision)
        return decision

    def succeeded(self) -> None:
        """The attempt succeeded, and with it the call."""
        self._has_ended = True
        if self._token is not None:
            self.leave_context()
        if self.admissions is not None:
            self.admissions.leave("succeeded")
            if self.admissions.changes:
                self.announce_changes()
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
        self.leave_context()
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
            if self.admissions is not None:
                self.admissions.leave("failed", self.failure, self.failed_at)
            decision = self.announced(self.reserve_retry(self.decide(error)))
        return decision

    def classify(
        self, error: Exception, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> GiveUp | None:
        """Find out what `error` is; the end, if the task that made the call is being cancelled."""
        if self._token is not None:
            self.leave_context()
        if self.is_async and being_cancelled():
            return self._abandoned(error)
        if self.call.attempt == 1 and (args or kwargs):
            self._used_up = used_up_argument(args, kwargs or {})
        clock, settings = self.clock, self.settings
        now, wall = self.failed_at = clock.now(), clock.wall()
        if self._began_at is not None:
            self._took = now - self._began_at
        self.failure = settings.classify(error, now=wall)
        self.last_error = error
        if self.admissions is not None:
            if self._is_last:
                self.admissions.was_cut = self._was_cut(self.failure)
            if settings.observe_error is not None:
                self.admissions.stated = settings.observe_error(error, now=wall)
        return None

    def _was_cut(self, failure: Failure) -> bool:
        """Whether the attempt failed because the caller ran out of time, not because of the target.

        A function that takes its limit as a parameter raises an error of its own at it.
        """
        is_timeout = failure.kind is Kind.TIMEOUT and failure.status is None
        return is_timeout and self.call.deadline_at - self.failed_at[0] <= _EARLY

    def decide(self, error: Exception) -> Decision:
        """What happens after `error`, which has been read."""
        call, failure, took = self.call, self.failure, self._took
        assert failure is not None  # noqa: S101 -- only after `classify`
        now, wall = self.failed_at
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
        target = None if self.admissions is None else self.admissions.target
        if target is not None:
            call.has_gate, call.believes = target.has_gate, target.believes
            call.progress_at, call.is_down = target.answered_at, target.is_down
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
        if self.admissions is not None and self.admissions.changes:
            self.announce_changes()
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
        self.failed_at = now, wall
        return self.call.not_applied(self.failure, now=now, wall=wall, roll=self.dice.roll())

    def verified(self, decision: Decision) -> RetryAfter | Park | GiveUp:
        """`decision`, made after `verify=` answered, after listeners were told."""
        if self.admissions is not None:
            self.announce_changes()
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
        _, wall = self.failed_at = self.clock.now(), self.clock.wall()
        self.failure = self.settings.classify(error, now=wall)
        if self.admissions is not None and self._is_last:
            self.admissions.was_cut = self._was_cut(self.failure)
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
        from ..core.admission import OutOfTokens  # loaded late: most calls are never refused

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
        if self.admissions is not None:
            self.announce_changes()
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
        if self.admissions is not None:
            self.admissions.leave("cancelled")
            self.announce_changes()

    def announce_changes(self) -> None:
        """Announce what changed while this call asked or was told."""
        assert self.admissions is not None  # noqa: S101 -- only they note changes
        changes, self.admissions.changes = self.admissions.changes, []
        for event, facts in changes:
            if self.settings.listeners:
                announce(self, event, **facts)
            elif event == "StoreLost" or facts.get("is_open"):
                warn(self, event, **facts)  # never silent

    def _left(self) -> float:
        deadline_at = self.call.deadline_at
        return deadline_at - self.clock.now() if deadline_at < inf else inf

    def leave_context(self) -> None:
        """The attempt has ended, or goes on in another context, which calls `enter_context`."""
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
