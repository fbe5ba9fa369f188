"""One call on its way through a driver: everything that does not wait.

The two drivers differ in how they call and how they sleep, and in nothing else. What they share
stands here, so that they can be read side by side.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from ..core.call import Call
from ..core.decision import Ending, GiveUp, Park, RetryAfter, Verify, ending_of
from ..core.duration import duration_text
from ..core.events import (
    Cancelled,
    Ended,
    Failed,
    Recovered,
    Succeeded,
    Verified,
)
from ..errors import CircuitOpen, DeadlinePassed, LimitReached
from .ambient import (
    Context,
    ambient_context,
    ambient_task,
    ambient_world,
    endings,
    key_around,
    restore,
)
from .announce import announce, safely, warn
from .arguments import used_up
from .entrance import Entrance
from .notes import annotate, settled
from .passage import Passage
from .settings import NO_FALLBACK, Settings
from .world import REAL

if TYPE_CHECKING:
    from contextvars import Token

    from ..core.decision import Decision
    from ..core.letters import UnderKey
    from ..core.story import Story
    from ..errors import NotAdmitted

__all__ = ("Session",)

_ENDINGS = frozenset(Ending)

# Endings that no fallback answers for: a bug of the caller's, a cancellation.
_UNANSWERED = (Ending.UNKNOWN, Ending.CANCELLED)


class Session(Passage):
    """One call, from its first failure or, where somebody watches, from its start.

    Args:
        settings: The guard's.
        name: The function, for people.
        mark: `endings.count` before the attempt that has already been made; None if none was.
        started_at: When that attempt began, if anybody looked.
        context: The context that attempt ran in, if it had one.

    Attributes:
        key: Of the operation that this call is, or is a part of; or empty.
        mark: `endings.count` before the latest attempt: what ended later, ended inside of it.
    """

    # Read before it is first written: most calls never touch these.
    last_error: BaseException | None = None
    work: tuple[Any, tuple[Any, ...], dict[str, Any]] | None = None  # what is called, with what
    under: UnderKey | None = None  # the key it is called under, for a dead letter
    delivered = 0  # items that a stream has handed over
    _cut: BaseException | None = None
    _before_cut: BaseException | None = None
    _passed: Story | None = None
    _token: Token[Any] | None = None
    _took: float | None = None  # how long the attempt took that is being judged, and
    _read_at = (0.0, 0.0)  # when it was over, on both clocks

    def __init__(
        self,
        settings: Settings,
        name: str,
        mark: int | None = None,
        started_at: float | None = None,
        context: Context | None = None,
    ) -> None:
        here = ambient_world.get() or REAL
        self.settings = settings
        self.clock = settings.clock or here.clock
        self.dice = settings.dice or here.dice
        self.task = task = ambient_task.get()
        policy = settings.policy
        if settings.habits is not None:
            policy = settings.habits.policy(self.clock.now())
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
        self.key = key_around()
        if settings.commons is not None or settings.admissions:
            commons = None if settings.commons is None else settings.commons()
            self._entrance = Entrance(settings.admissions, commons, self.clock)
            if self.call.attempt:
                self._entrance.begun(mark)
        self.is_bounded = deadline_at < inf or self._entrance is not None

    # Before an attempt

    def begin(self) -> None:
        """An attempt begins now."""
        self.call.attempt += 1
        self.mark = endings.count
        self._began_at = self.clock.now()
        self._token = ambient_context.set(self)

    def rejoin(self) -> None:
        """The attempt goes on, perhaps in another context than it began in."""
        self._token = ambient_context.set(self)

    def part(self) -> None:
        """The attempt is handed to another context: `rejoin` there."""
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

    # After an attempt

    def returned(self, answer: Any) -> None:
        """The function returned `answer`, and nobody objects: whatever comes now, it is done."""

    def succeeded(self) -> None:
        """The attempt succeeded, and with it the call."""
        self._exit()
        if self._entrance is not None:
            self.leave()
            self._speak()
        call, settings = self.call, self.settings
        if call.tries:
            if self.task is not None and call.attempt > 1 and self._began_at is not None:
                self.task.charge(self.clock.now() - self._began_at)
            if settings.listeners:
                announce(self, Recovered, waited=call.waited, elapsed=self._elapsed())
        elif settings.wants_successes:
            announce(self, Succeeded)
        self.last_error = None

    def cancelled(self) -> None:
        """The call ended with something that is no Exception: neither success nor failure."""
        self._exit()
        self._give_back()
        if self.call.tries and self.settings.listeners:
            announce(self, Cancelled, elapsed=self._elapsed())
        self.last_error = None

    def failed(
        self, error: Exception, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Decision:
        """The attempt, made with these arguments, failed: read, judge, record, announce."""
        self.read(error, args, kwargs)
        if self._entrance is not None:
            self.tell()
        return self.announced(self.book(self.judged(error)))

    def read(
        self, error: Exception, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> None:
        """Find out what `error` is."""
        if self._token is not None:
            self._exit()
        if self.call.attempt == 1 and (args or kwargs):
            self._used_up = used_up(args, kwargs or {})
        now, wall = self._read_at = self.clock.now(), self.clock.wall()
        self._took = None if self._began_at is None else now - self._began_at
        self.failure = self.settings.classify(error, now=wall)
        self.last_error = error
        overhear = self.settings.overhear
        if overhear is not None and self._entrance is not None:
            self._entrance.states(overhear(error, now=wall))

    def judged(self, error: Exception) -> Decision:
        """What happens after `error`, which has been read."""
        call, failure, took = self.call, self.failure, self._took
        assert failure is not None  # noqa: S101 -- only after `read`
        now, wall = self._read_at
        if self.settings.habits is not None:
            self.settings.habits.note(failure.kind, now)
        if self.task is not None:
            call.allowance = self.task.budget_left()
            if took is not None and call.attempt > 1:
                self.task.charge(took)
                call.allowance -= took
        passed = settled(error, self.mark)
        if passed is not None:
            # A guard inside has already spent what there was to spend on this.
            self._passed = passed
            # A story from another version may know endings that we do not.
            ending = Ending(passed.ending) if passed.ending in _ENDINGS else Ending.EXHAUSTED
            return GiveUp(ending, passed.because, passed.retry_at)
        return call.failed(failure, now=now, wall=wall, roll=self.dice.roll(), took=took)

    def announced(self, decision: Decision) -> Decision:
        """`decision`, once everybody has been told."""
        if self.settings.listeners and self._passed is None:
            announce(
                self,
                Failed,
                failure=self.failure,
                decision=decision,
                elapsed=self._elapsed(),
                remark=self.call.remark,
            )
        if self._entrance is not None:
            self._speak()
        return decision

    def applied(self) -> None:
        """The last attempt, which may have been applied, was: the call has succeeded."""
        if self.settings.listeners:
            announce(self, Verified, was_applied=True, decision=None)
        self.succeeded()

    def not_applied(self) -> Decision:
        """The last attempt, which may have been applied, was not: judge it again."""
        assert self.failure is not None  # noqa: S101 -- only after `read`
        now, wall = self.clock.now(), self.clock.wall()
        return self.call.not_applied(self.failure, now=now, wall=wall, roll=self.dice.roll())

    def verified(self, decision: Decision) -> RetryAfter | Park | GiveUp:
        """`decision`, made after it was found out, once everybody has been told."""
        self._speak()
        assert not isinstance(decision, Verify)  # noqa: S101 -- it was never applied
        if self.settings.listeners:
            announce(self, Verified, was_applied=False, decision=decision)
        return decision

    def unverified(self, why: str) -> GiveUp:
        """Nobody could find out whether the attempt was applied."""
        decision = GiveUp(
            Ending.MAYBE_APPLIED,
            f"not repeated: {self.call.name}() may have been applied, and {why}",
        )
        self.call.overruled(decision)
        return decision

    def abandoned(self, error: Exception) -> GiveUp:
        """An error came instead of a cancellation that is still wanted: the call is over."""
        self._exit()
        self.failure = self.settings.classify(error, now=self.clock.wall())
        self._give_back()
        decision = GiveUp(Ending.CANCELLED, "the task that made the call is being cancelled")
        self.call.tries.append((self.failure, decision, None))
        return decision

    def broken(self, error: Exception) -> GiveUp:
        """A stream failed after it had delivered something: committed, never replayed."""
        wall = self.clock.wall()
        self.failure = self.settings.classify(error, now=wall)
        self._passed = settled(error, self.mark)
        items = "1 item" if self.delivered == 1 else f"{self.delivered} items"
        decision = GiveUp(Ending.COMMITTED, f"the stream had delivered {items}: not replayed")
        self.call.tries.append((self.failure, decision, None))
        return decision

    def refused(self, error: NotAdmitted) -> tuple[BaseException, GiveUp]:
        """The next attempt is not admitted: the last real error ends the call, if there is one."""
        self._give_back()
        ending = Ending.DEADLINE if isinstance(error, DeadlinePassed) else Ending.REFUSED
        until = error.until if isinstance(error, LimitReached) else None
        if isinstance(error, CircuitOpen) and error.retry_in < inf:
            until = self.clock.wall() + error.retry_in
        decision = GiveUp(ending, error.because, until)
        if self.last_error is None:
            self.failure = self.settings.classify(error, now=self.clock.wall())
            return error, decision
        self.call.overruled(decision)
        return self.last_error, decision

    def real(self, error: BaseException) -> BaseException:
        """The error to raise: the last real one rather than our own cut at the deadline (E-D3)."""
        if error is self._cut and self._before_cut is not None:
            return self._before_cut
        return error

    def end(self, error: BaseException, decision: Park | GiveUp) -> bool:
        """Tell everybody that the call has ended; True if a fallback answers for it."""
        if self._entrance is not None:
            self._speak()
        settings, call = self.settings, self.call
        ending, retry_at = ending_of(decision)
        assert self.failure is not None  # noqa: S101 -- only after `failed` or `refused`
        if self._passed is None:
            tale = call.story(ending, decision.because, retry_at=retry_at, delivered=self.delivered)
            # A bug in the caller's own code needs no remark from us.
            annotate(error, tale, note=ending is not Ending.UNKNOWN or call.attempt > 1)
        else:
            tale = self._passed
        is_answered = settings.fallback is not NO_FALLBACK and ending not in _UNANSWERED
        facts: dict[str, Any] = {
            "ending": ending,
            "failure": self.failure,
            "story": tale,
            "elapsed": self._elapsed(),
            "is_passed_on": self._passed is not None,
            "is_answered": is_answered,
        }
        if settings.listeners:
            announce(self, Ended, **facts)
        elif self._passed is None and (ending.is_exhaustion or is_answered):
            # Never silent: neither an exhaustion, nor an error that a fallback hides.
            warn(self, Ended, **facts)
        if ending.is_exhaustion and settings.on_exhausted is not None:
            safely("on_exhausted", settings.on_exhausted, error)
        # Nothing of ours keeps the error, hence its frames, alive.
        self.last_error = self._cut = self._before_cut = None
        return is_answered

    # Small things

    def _exit(self) -> None:
        token, self._token = self._token, None
        if token is not None:
            restore(ambient_context, token)

    def _elapsed(self) -> float:
        first = self.call.first_failed_at
        return 0.0 if first is None else self.clock.now() - first
