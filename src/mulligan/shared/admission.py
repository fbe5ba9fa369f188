"""A target as one call uses it: its breaker and gate, its queue, its retry tokens.

The call asks the breaker first, then the gate. If either makes it wait, it joins the target's
queue; `Hold` says what it waits for. A call that does not want to wait for a target that is down
(`when_open="fail"`) is refused instead.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.admission import Admitted, Hold, Refused
from ..core.failure import Family, Kind, Reach
from ..errors import CircuitOpen
from ..stores.cache import do_all, refresh
from .breaker import Shut
from .gate.gate import GateWait
from .gate.queue import QueuedCall

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..classify.quotas import Quota
    from ..core.admission import Answer, Outcome
    from ..core.failure import Failure
    from ..core.moment import Moment
    from ..stores.cache import CachedState
    from .breaker import Result
    from .breaker_client import BreakerAdmission, BreakerTicket
    from .gate.client import GateAdmission, Ticket
    from .gate.queue import TargetQueues
    from .retry_tokens_client import RetryTokens
    from .targets import TargetSettings, TargetState

__all__ = ("CallAdmission", "TargetCall")

# Seconds after which the head of a queue checks again what another process may have changed: a
# probe that is under way, retry tokens. What one process sees of a gate is no newer than `_FRESH`.
_AGAIN, _FRESH = 1.0, 0.05

# Tokens that are not shared: the call that returns some wakes the first waiter, but an expired
# reservation wakes no waiter.
_UNCALLED = 60.0

# Kinds of failures that say that the target is not well.
_UNHEALTHY = frozenset({Kind.SERVER, Kind.OVERLOADED, Kind.NETWORK, Kind.TIMEOUT})

_Steps = list[tuple["CachedState[Any]", Any]]


class _Tickets(NamedTuple):
    breaker: BreakerTicket | None
    gate: Ticket | None


class CallAdmission(QueuedCall):
    """Asks a target's breaker and gate on behalf of one call.

    Args:
        waiting: The target's queue.
        breaker: The target's breaker, if the call uses it.
        gate: The target's gate, if the call uses it.
        waits: Whether the call waits while the breaker is open, and for retry tokens.
        is_remote: Whether other processes share them.
    """

    deadline_at = inf
    estimate = 0.0  # tokens of the rate limit that it may use
    wakes_early = False  # whether an answer to another call may end its wait, and
    polls_for = 0.0  # for how many seconds nothing else does

    def __init__(
        self,
        waiting: TargetQueues,
        breaker: BreakerAdmission | None,
        gate: GateAdmission | None,
        *,
        waits: bool = True,
        is_remote: bool = False,
    ) -> None:
        self.waiting, self.breaker, self.gate = waiting, breaker, gate
        self.waits, self.is_remote = waits, is_remote

    def enter(self, attempt: int, *, now: float, wall: float) -> Answer:  # noqa: ARG002 -- the signature of the seam
        waiting, queue = self.waiting, self.waiting.queue
        if queue.size:
            with waiting.lock:
                if queue.is_behind(self, now):
                    if self.deadline_at < inf and self.gate is not None:
                        self.gate.hasten(now, self.deadline_at)
                    return self._hold(queue.behind(self, now), queue.because, queue.least(now))
        answer = self._asked(now, wall)
        if isinstance(answer, Hold):
            delay = self._sleep(answer.delay, self.polls_for)
            with waiting.lock:
                queue.wait(
                    self,
                    now,
                    delay,
                    answer.because,
                    least=answer.least or 0.0,
                    wakes_early=self.wakes_early or answer.reason == "outage",
                )
        elif self.queue is not None:
            with waiting.lock:
                queue.leave(self, now)
                self._schedule_next(now, wall)
        return answer

    def _schedule_next(self, now: float, wall: float) -> None:
        """Let the next call in the queue sleep until its time, if that is known; under the lock."""
        queue, following = self.waiting.queue, self.waiting.queue.head(now)
        wait = self._next_wait(following, now, wall)
        if following is not None and wait is not None:
            delay = self._sleep(wait.delay, wait.polls_for)
            queue.wait(
                following, now, delay, wait.because, least=wait.least, wakes_early=wait.wakes_early
            )

    def _next_in(self, now: float, wall: float) -> float:
        """Seconds after which the head of the queue asks, now that a call has ended."""
        wait = self._next_wait(self.waiting.queue.head(now), now, wall)
        return 0.0 if wait is None else self._sleep(wait.delay, wait.polls_for)

    def _next_wait(self, head: QueuedCall | None, now: float, wall: float) -> GateWait | None:
        """The wait of the head of the queue, if it is known that it has to wait."""
        gate = self.gate
        if gate is None or not isinstance(head, CallAdmission) or head.gate is not gate:
            return None
        return gate.next_wait(head.estimate, now, wall)

    def _sleep(self, delay: float, polls_for: float) -> float:
        """Seconds until a call asks again that was told to come back after `delay`."""
        if not polls_for or self.gate is None:
            return delay
        # The queue wakes it when the answer comes, unless another process gets the answer.
        return max(delay, min(polls_for, _FRESH if self.gate.is_shared else _AGAIN))

    def _unfunded(self, now: float) -> Hold:
        """The wait of a retry without tokens, behind those that came before it.

        A call that returns tokens wakes the first waiter of its own process only.
        """
        waiting, again = self.waiting, _AGAIN if self.is_remote else _UNCALLED
        with waiting.lock:
            if not waiting.unfunded.is_behind(self, now):
                waiting.unfunded.wait(self, now, again, "", wakes_early=True, next_after=again)
            delay = max(waiting.unfunded.behind(self, now), _AGAIN)
        because = "it waits for retry tokens: too many calls to the target fail"
        return Hold(
            delay, because, least=0.0, reason="tokens", waiter=self, answered_at=waiting.answered_at
        )

    def _is_first_unfunded(self, now: float) -> bool:
        """Whether no other call waits for retry tokens, or all others came later."""
        waiting = self.waiting
        if not waiting.unfunded.size:
            return True
        with waiting.lock:
            return waiting.unfunded.head(now) in (None, self)

    def _asked(self, now: float, wall: float) -> Answer:
        self.wakes_early, self.polls_for = False, 0.0
        breaker, gate = self.breaker, self.gate
        moment = self._read(now, wall)
        passed: BreakerTicket | None = None
        if breaker is not None:
            answer = breaker.ask(now, wall, moment)
            if isinstance(answer, Shut):
                return self._is_shut(answer)
            passed = answer
        if gate is None:
            return Admitted(_Tickets(passed, None))
        admitted = gate.ask(self.estimate, now, wall, moment, self.deadline_at)
        if isinstance(admitted, GateWait):
            if breaker is not None and passed is not None:
                do_all(breaker.telling(passed, "neither", None, now), now, wall)
            self.wakes_early, self.polls_for = admitted.wakes_early, admitted.polls_for
            return self._hold(admitted.delay, admitted.because, admitted.least)
        return Admitted(_Tickets(passed, admitted))

    def _read(self, now: float, wall: float) -> Moment:
        """Read breaker and gate from their store, in one round trip; the time of the store."""
        views: list[CachedState[Any]] = []
        if self.breaker is not None and self.breaker.shared is not None:
            views.append(self.breaker.shared)
        if self.gate is not None and self.gate.view.shared is not None:
            if not self.gate.first_burst.is_over:
                # Another process may just have been rejected, which ends the first burst.
                self.gate.view.expire()
            views.append(self.gate.view)
        return refresh(views, now, wall)

    def _is_shut(self, shut: Shut) -> Hold | Refused:
        if not self.waits:
            target = "" if self.breaker is None else self.breaker.target
            return Refused(CircuitOpen(target, shut.retry_in, shut.because))
        delay = min(shut.retry_in, _AGAIN) if shut.is_probing else shut.retry_in
        least = 0.0 if shut.is_probing else shut.retry_in
        return self._hold(delay, shut.because, least, is_down=True)

    def _hold(self, delay: float, because: str, least: float, *, is_down: bool = False) -> Hold:
        return Hold(
            delay,
            because,
            least=least,
            reason="outage" if is_down or self.is_open else "limit",
            waiter=self,
            answered_at=self.waiting.answered_at,
        )

    @property
    def is_open(self) -> bool:
        """Whether the breaker, as last seen, is open."""
        return self.breaker is not None and self.breaker.is_open

    def leave(
        self,
        ticket: Any,
        outcome: Outcome,
        failure: Failure | None,
        *,
        now: float,
        wall: float,
        stated: Iterable[Quota] = (),
    ) -> None:
        """The attempt admitted with `ticket` has ended, with an answer that stated this."""
        told = self._tell(ticket, outcome, failure, stated, None, now, wall)
        self._told(told, do_all(told, now, wall), now, wall)

    def _tell(  # noqa: PLR0917 -- all that is known of one end
        self,
        ticket: _Tickets,
        outcome: Outcome,
        failure: Failure | None,
        stated: Iterable[Quota],
        took: float | None,
        now: float,
        wall: float,
    ) -> _Steps:
        """Tell the gate how an attempt ended; what to tell the breaker is returned for `_told`."""
        breaker, gate, passed = self.breaker, self.gate, ticket.gate
        result = result_of(outcome, failure)
        if result == "success":
            self.waiting.answered_at = now
        if gate is not None and passed is not None:
            gate.leave(passed, outcome, failure, result, stated, took, now=now, wall=wall)
        if breaker is None or ticket.breaker is None:
            return []
        if gate is None and failure is not None and outcome == "failed":
            # Left to the gate, if there is one: it delays calls instead of refusing them.
            breaker.believe(failure, now, wall)
        unanswered = 0
        if result == "failure" and gate is not None and passed is not None and breaker.has_failures:
            unanswered = gate.count_as_old(passed, breaker.failing_for(now, wall), now)
        cause = failure if outcome == "failed" else None
        return breaker.telling(ticket.breaker, result, cause, now, unanswered)

    def _told(self, told: _Steps, results: list[Any], now: float, wall: float) -> None:
        """Report a breaker that has opened or closed, and wake the head of the queue."""
        if self.breaker is not None and any(results):
            self.breaker.told(told, results, now, wall)
        waiting = self.waiting
        if waiting.queue.size:
            with waiting.lock:
                if waiting.queue.wakes_early:
                    waiting.queue.wake_head(now, self._next_in(now, wall))

    def calm_ticket(self, *, has_breaker: bool = True) -> _Tickets:
        """The ticket for `leave` of an attempt made without asking, while the target was calm."""
        return _Tickets(
            self.breaker.calm_ticket() if self.breaker is not None and has_breaker else None,
            None if self.gate is None else self.gate.calm_ticket(),
        )

    def look(self, now: float) -> None:
        queue, waiting = self.queue, self.waiting
        if queue is not None:
            with waiting.lock:
                queue.head(now)

    def give_up(self, now: float) -> None:
        """The call stops waiting: leave the queue."""
        queue, waiting = self.queue, self.waiting
        if queue is not None:
            with waiting.lock:
                queue.leave(self, now)


class TargetCall(CallAdmission):
    """The breaker, gate and retry tokens of one target, for one call.

    Args:
        state: The target's.
        settings: The guard's.
        waits: Whether it waits for a target that is down, and for retry tokens.
        deadline_at: When the call ends at the latest.

    Attributes:
        has_gate: Whether a gate paces calls to the target.
        believes: The longest wait for a limit that its gate believes, in seconds.
        owes_tokens: Whether a retry was promised for which there were no tokens yet: `fund` it.
    """

    tokens: RetryTokens | None = None
    owes_tokens = False
    _failure: Failure | None = None  # what the attempt failed with whose retry owes tokens
    _reservation = ""  # of the tokens for the retry that is scheduled or under way
    _ticket: _Tickets | None = None  # of the attempt under way
    _is_found = False

    def __init__(
        self, state: TargetState, settings: TargetSettings, *, waits: bool, deadline_at: float
    ) -> None:
        is_remote = state.home.state is not None
        super().__init__(state.waiting, None, None, waits=waits, is_remote=is_remote)
        self.deadline_at = deadline_at
        self._state, self._settings = state, settings
        self.has_gate = settings.gate is not None
        self.believes = inf if settings.gate is None else settings.gate.horizon

    def _find(self, *names: str) -> None:
        """Use the target's breaker, gate and tokens; while the store is down, local ones."""
        if not self._is_found:
            state, settings = self._state, self._settings
            made: dict[str, Any] = state.made if state.is_named else {}
            for name in names or settings._fields:
                if getattr(settings, name) is not None:
                    setattr(self, name, made.get(name) or state.part(name))
            self._is_found = state.is_named and not names

    @property
    def is_down(self) -> bool:
        """Whether the target's breaker is open, and the call waits for it."""
        self._find()
        return self.waits and self.is_open

    @property
    def answered_at(self) -> float:
        """When the target last answered any caller, as far as is known; -inf if it never did."""
        return self.waiting.answered_at

    def enter(self, attempt: int, *, now: float, wall: float) -> Answer:
        """Ask whether the next attempt may be made now."""
        self._find()
        answer = super().enter(attempt, now=now, wall=wall)
        if isinstance(answer, Admitted):
            self._ticket = answer.ticket  # type: ignore[assignment]  # one of ours
            if self._reservation and self.tokens is not None:
                self.tokens.sent(self._reservation, now=now)
        return answer

    def begun_unasked(self, mark: int) -> None:
        """An attempt was made without asking, when `mark` calls had ended."""
        self._find()
        # An attempt from before the breaker changed says nothing about the target now (E-B4).
        self._ticket = self.calm_ticket(has_breaker=not self._state.has_changed_since(mark))

    def is_near(self, now: float) -> bool:
        """Whether the next `enter` is answered from cached state, without a round trip."""
        if not self.is_remote:
            return True
        if not self._state.is_known:
            return False
        self._find()
        waiting, breaker, gate = self.waiting, self.breaker, self.gate
        if waiting.queue.size:
            with waiting.lock:
                head = waiting.queue.head(now)
            if head is not None and head is not self:
                return True
        is_breaker_near = breaker is None or breaker.is_near(now)
        return is_breaker_near and (gate is None or gate.is_near(now))

    def must_write(self, stated: Iterable[Quota]) -> bool:
        """Whether a success of the attempt under way, or what its answer stated, is written."""
        if not self._state.is_known:
            return True
        self._find("tokens")
        tokens, breaker, gate, ticket = self.tokens, self.breaker, self.gate, self._ticket
        if self._reservation or (tokens is not None and not tokens.is_calm):
            return True
        if ticket is None:
            return False
        if (
            breaker is not None
            and ticket.breaker is not None
            and breaker.must_write(ticket.breaker)
        ):
            return True
        return gate is not None and ticket.gate is not None and gate.must_write(ticket.gate, stated)

    def reserve(self, failure: Failure, delay: float, *, now: float, wall: float) -> str:
        """Take tokens for a retry in `delay` seconds: empty, or why it must not be made.

        Asked before it is decided to wait: a wait for nothing is waste.
        """
        self._find()
        tokens = self.tokens
        if tokens is None:
            return ""
        name = tokens.reserve(failure, delay, now=now, wall=wall)
        if self.waiting.unfunded.size:
            self._wake_unfunded(now)
        if not self.is_remote:  # else `ended` has just done this
            self._state.refresh(now)
        if name is not None:
            self._reservation = name
        elif self.waits:
            # The attempt waits for tokens after its backoff.
            self.owes_tokens, self._failure = True, failure
        else:
            return "the retry tokens are used up: too many calls to the target fail"
        return ""

    def fund(self, *, now: float, wall: float) -> Hold | None:
        """Take tokens for a retry that is due and has none; how long to hold if there are none."""
        self._find()
        failure, tokens = self._failure, self.tokens
        if failure is None or tokens is None:
            return None
        name = None
        if self._is_first_unfunded(now):
            name = tokens.reserve(failure, 0.0, now=now, wall=wall)
        if name is None:
            return self._unfunded(now)
        self._reservation, self.owes_tokens = name, False
        self.give_up(now)  # its place in the queue for tokens
        self._wake_unfunded(now)  # and there may be enough for the next one
        self._state.refresh(now)
        return None

    def ended(
        self,
        outcome: Outcome,
        failure: Failure | None,
        stated: Iterable[Quota],
        took: float | None,
        *,
        now: float,
        wall: float,
        was_cut: bool,
    ) -> None:
        """The attempt has ended, or a retry that was promised is not made.

        Its answer `stated` limits and `took` tokens of the rate limit, if known. One that `was_cut`
        failed because the caller ran out of time, which says nothing about the target; its retry
        tokens are gone all the same.
        """
        ticket, self._ticket, self.owes_tokens = self._ticket, None, False
        # A ticket goes back to the breaker and gate that gave it.
        self._find(*(("tokens",) if ticket is not None else ()))
        if self.queue is not None:
            self.give_up(now)
        told: _Steps = []
        try:
            if ticket is not None:
                end: Outcome = "cancelled" if was_cut else outcome
                told = self._tell(ticket, end, failure, stated, took, now, wall)
        finally:
            settling: _Steps = []  # done whatever else is wrong
            if self.tokens is not None and (ticket is not None or outcome == "cancelled"):
                if self._reservation or outcome == "succeeded":
                    settling += self.tokens.settling(self._reservation, outcome, now)
                self._reservation = ""
            try:
                results = do_all([*told, *settling], now, wall)[: len(told)]
                if ticket is not None and (any(results) or self.waiting.queue.size):
                    self._told(told, results, now, wall)
            finally:
                if self.waiting.unfunded.size:
                    self._wake_unfunded(now)
                self._state.refresh(now)

    def _wake_unfunded(self, now: float) -> None:
        """Wake the first call that waits for tokens, if there are some."""
        waiting = self.waiting
        if self.tokens is not None and self.tokens.has_some(now):
            with waiting.lock:
                waiting.unfunded.wake_head(now)


def result_of(outcome: Outcome, failure: Failure | None) -> Result:
    """What the end of an attempt says about its target's health.

    A client error never counts (R-C9), except that a probe need not look further. A limit is the
    gate's business: it paces calls, it does not stop them (E-B12).
    """
    if outcome != "failed" or failure is None:
        return "success" if outcome == "succeeded" else "neither"
    kind = failure.kind
    if kind in _UNHEALTHY:
        return "failure"
    is_answer = kind.family is Family.CLIENT or kind is Kind.BAD_ANSWER
    return "alive" if is_answer and failure.reach is Reach.ANSWERED else "neither"
