"""How one call is admitted, attempt by attempt.

The half of a session that other calls have a say in: who lets it through, who pays for its
retries, who is told how it went. What may be a round trip to a store (`ask`, `leave`, `tell`,
`book`) is apart from what runs code of the user's, so that a coroutine can wait for the one in a
thread and do the other itself.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from ..core.decision import Ending, GiveUp, RetryAfter
from ..core.duration import is_number
from ..core.events import Held, StoreLost
from ..core.failure import Kind
from ..errors import DeadlinePassed, LimitReached, SettingError
from .ambient import Context
from .announce import announce, report, warn

if TYPE_CHECKING:
    from ..core.admission import Hold
    from ..core.call import Call
    from ..core.decision import Decision
    from ..core.failure import Failure
    from ..core.ports import Clock
    from .entrance import Entrance
    from .settings import Settings
    from .task import Task

__all__ = ("Passage",)

# Out of tokens, a call ends a second later at most: long enough for a loop around it.
_BREATH = 1.0

# Timers of some clients are over a little before their time, in seconds.
_EARLY = 0.01


class Passage:
    """One call, as others see it come and go."""

    clock: Clock
    call: Call
    settings: Settings
    task: Task | None

    # Read before it is first written: most calls never touch these.
    failure: Failure | None = None
    _context: Context | None = None
    _entrance: Entrance | None = None
    _held = 0.0  # seconds spent waiting to be admitted
    breath = 0.0  # seconds to wait before an end that a loop around the call would repeat at once
    _is_last = False  # whether the attempt may take all that is left of the deadline, and no more
    _is_weighed = False  # whether it is known what the call may take
    _used_up = ""  # an argument that a second attempt would find empty

    # Before an attempt

    @property
    def may_wait(self) -> bool:
        """Whether `ask` could take a round trip to a store."""
        return self._entrance is not None and self._entrance.may_wait

    @property
    def is_remote(self) -> bool:
        """Whether what the calls share lives outside of this process."""
        return self._entrance is not None and self._entrance.is_remote

    def weigh(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Estimate once what the call may take, where somebody knows how."""
        estimate, entrance = self.settings.estimate, self._entrance
        if estimate is None or entrance is None or self._is_weighed:
            return
        self._is_weighed = True
        try:
            entrance.weigh(_counted(estimate(*args, **kwargs)))
        except Exception as trouble:  # noqa: BLE001 -- who cannot count does not stand in the way
            report("estimate", estimate, trouble)

    def ask(self) -> Hold | None:
        """Ask for admission: None if the attempt may be made, else how long to hold.

        Raises:
            NotAdmitted: The attempt must not be made.
        """
        if self._left() <= 0:
            raise DeadlinePassed(self._who(), "the deadline passed before the attempt could begin")
        return None if self._entrance is None else self._entrance.enter(self.call.attempt + 1)

    def held(self, hold: Hold | None) -> Hold | None:
        """`hold`, if it is short enough to wait for; announced before the wait.

        Raises:
            LimitReached: It is not.
        """
        self._speak()
        if hold is None:
            return None
        call = self.call
        # A gate that opens a little later every time is a closed gate: all its holds count.
        self._held += hold.delay
        if self._held > self.settings.policy.in_place or hold.delay >= self._left_to_start():
            raise LimitReached(self._who(), self.clock.wall() + hold.delay, hold.because)
        call.waited += hold.delay
        if self.settings.listeners:
            waiting = call.attempt + 1
            announce(self, Held, attempt=waiting, delay=hold.delay, because=hold.because)
        return hold

    # After an attempt

    def observe(self, answer: Any) -> None:
        """Read what the answer states about limits, where somebody knows how."""
        read, spent, entrance = self.settings.observe, self.settings.spent, self._entrance
        if read is None or entrance is None:
            return
        try:
            entrance.states(read(answer, now=self.clock.wall()))
        except Exception as trouble:  # noqa: BLE001 -- the answer must not be lost to its reader
            report("observer", read, trouble)
        try:
            if spent is not None and (took := spent(answer)) is not None:
                entrance.took(_counted(took))
        except Exception as trouble:  # noqa: BLE001 -- the answer must not be lost to its reader
            report("observer", spent, trouble)

    @property
    def may_tell(self) -> bool:
        """Whether `leave` could take a round trip to a store, after a success."""
        return self._entrance is not None and self._entrance.may_tell

    def leave(self) -> None:
        """Tell who admitted the attempt that it has succeeded."""
        if self._entrance is not None:
            self._entrance.leave("succeeded")

    def tell(self) -> None:
        """Tell who admitted the attempt how it failed."""
        if self._entrance is not None:
            self._entrance.leave("failed", self.failure, is_cut=self._was_cut())

    def _was_cut(self) -> bool:
        """Whether the attempt ended because the caller had no more time, not because of the target.

        A function that takes its limit as a parameter raises an error of its own at it.
        """
        failure = self.failure
        if not self._is_last or failure is None or failure.status is not None:
            return False
        return failure.kind is Kind.TIMEOUT and self._left() <= _EARLY

    def book(self, decision: Decision) -> Decision:
        """`decision`, with the wait booked; or the end, where there is nothing to book it on."""
        if not isinstance(decision, RetryAfter):
            return decision
        delay = decision.delay
        if self._used_up:
            decision = GiveUp(Ending.FINAL, f"not repeated: {self._used_up}")
        elif self.task is not None and not self.task.reserve(delay):
            decision = GiveUp(Ending.BUDGET, "other calls have used up the task's retry budget")
        elif self._entrance is not None and (why := self._unfunded(delay)):
            # Whoever calls in a loop would make it the storm that the tokens prevent (E-C9).
            self.breath = min(delay, _BREATH, max(self._left(), 0.0))
            decision = GiveUp(Ending.TOKENS, why)
        else:
            self.call.waits(delay)
            return decision
        self.call.overruled(decision)
        return decision

    def _unfunded(self, delay: float) -> str:
        if self._entrance is None or self.failure is None:
            return ""
        return self._entrance.reserve(self.failure, delay)

    # Small things

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
        """No attempt is made with what was admitted or scheduled."""
        if self._entrance is not None:
            self._entrance.leave("cancelled")
        self._speak()

    def _speak(self) -> None:
        """Announce what changed while this call asked or was told."""
        if self._entrance is not None and self._entrance.news:
            news, self._entrance.news[:] = self._entrance.news[:], []
            for event, facts in news:
                if self.settings.listeners:
                    announce(self, event, **facts)
                elif event is StoreLost:
                    warn(self, event, **facts)  # never silent

    def _left_to_start(self) -> float:
        """Seconds in which an attempt may still start."""
        left, first = self._left(), self.call.first_failed_at
        if first is None:
            return left
        return min(left, first + self.call.policy.bound - self.clock.now())

    def _left(self) -> float:
        deadline_at = self.call.deadline_at
        return deadline_at - self.clock.now() if deadline_at < inf else inf

    def _who(self) -> str:
        return self.call.target or self.call.name or "the call"


def _counted(tokens: float) -> float:
    if not is_number(tokens) or not 0 <= tokens < inf:
        raise SettingError(f"tokens need a number >= 0; got {tokens!r}")
    return tokens
