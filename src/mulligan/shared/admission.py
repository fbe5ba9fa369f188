"""A target as one call uses it: its breaker and gate, its queue, its retry tokens.

The call asks the breaker first, then the gate. If either makes it wait, it joins the target's
queue; `Hold` says what it waits for. A call that does not want to wait for a target that is down
(`when_open="fail"`) is refused instead.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.admission import Admitted, Hold, Refused
from ..errors import CircuitOpen
from ..stores.cache import do_all, refresh
from .breaker import Shut, result_of
from .gate.gate import GateWait
from .gate.queue import QueuedCall

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.admission import Answer, Outcome
    from ..core.failure import Failure
    from ..core.moment import Moment
    from ..stores.cache import CachedState
    from .breaker import Result
    from .breaker_client import BreakerAdmission
    from .gate.client import GateAdmission, QuotaLike
    from .gate.queue import TargetQueues
    from .retry_tokens_client import RetryTokens
    from .targets import TargetParts, TargetSettings

__all__ = ("CallAdmission", "TargetCall")

# Seconds after which the head of a queue checks again what another process may have changed: a
# probe that is under way, retry tokens. What one process sees of a gate is no newer than `_FRESH`.
_AGAIN, _FRESH = 1.0, 0.05

# Tokens that are not shared: the call that returns some wakes the first waiter, but an expired
# reservation wakes no waiter.
_UNCALLED = 60.0


class _Tickets(NamedTuple):
    breaker: object
    gate: object


class CallAdmission(QueuedCall):
    """Asks a target's breaker and gate on behalf of one call.

    Args:
        waiting: The target's queue.
        breaker: The target's breaker, if the call uses it.
        gate: The target's gate, if the call uses it.
        waits: Whether the call waits while the breaker is open, and for retry tokens.
        is_remote: Whether other processes share them.
    """

    __slots__ = (
        *("breaker", "deadline_at", "estimate", "gate", "hears", "is_remote", "polls_for"),
        *("waiting", "waits"),
    )

    def __init__(
        self,
        waiting: TargetQueues,
        breaker: BreakerAdmission | None,
        gate: GateAdmission | None,
        *,
        waits: bool = True,
        is_remote: bool = False,
    ) -> None:
        super().__init__()
        self.waiting, self.breaker, self.gate, self.waits = waiting, breaker, gate, waits
        self.is_remote = is_remote
        self.deadline_at = inf
        self.estimate = 0.0  # tokens of the rate limit that it may use
        self.hears = False  # whether an answer to another call may end its wait, and
        self.polls_for = 0.0  # for how many seconds nothing else does

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
                    hears=self.hears or answer.reason == "outage",
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
            queue.wait(following, now, delay, wait.because, least=wait.least, hears=wait.hears)

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
                waiting.unfunded.wait(self, now, again, "", hears=True, next_after=again)
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
        self.hears, self.polls_for = False, 0.0
        breaker, gate = self.breaker, self.gate
        moment = self._read(now, wall)
        passed: object = None
        if breaker is not None:
            passed = breaker.ask(now, wall, moment)
            if isinstance(passed, Shut):
                return self._is_shut(passed)
        if gate is None:
            return Admitted(_Tickets(passed, None))
        admitted = gate.ask(self.estimate, now, wall, moment, self.deadline_at)
        if isinstance(admitted, GateWait):
            if breaker is not None:
                breaker.leave(passed, "cancelled", None, now=now, wall=wall)
            self.hears, self.polls_for = admitted.hears, admitted.polls_for
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
        self, ticket: object, outcome: Outcome, failure: Failure | None, *, now: float, wall: float
    ) -> None:
        """The attempt admitted with `ticket` has ended."""
        self._tell(ticket, outcome, failure, [], now, wall)

    def _tell(  # noqa: C901, PLR0917 -- all that is known of one end
        self,
        ticket: object,
        outcome: Outcome,
        failure: Failure | None,
        more: list[tuple[CachedState[Any], Any]],
        now: float,
        wall: float,
        stated: Iterable[QuotaLike] = (),
        took: float | None = None,
    ) -> None:
        """Tell gate and breaker how an attempt ended, and apply `more` in the same transaction.

        `more` is empty once it was applied.
        """
        assert isinstance(ticket, _Tickets)  # noqa: S101 -- a ticket of ours
        if stated:
            self.observe(ticket, stated)
        if took is not None:
            self.settle(ticket, took)
        waiting, breaker, gate = self.waiting, self.breaker, self.gate
        result: Result = "success"
        if outcome == "succeeded":
            waiting.answered_at = now
        else:
            result = result_of(outcome, failure)
        if gate is not None and ticket.gate is not None:
            gate.leave(ticket.gate, outcome, failure, now=now, wall=wall, result=result)
        told: list[tuple[CachedState[Any], Any]] = []
        if breaker is not None and ticket.breaker is not None:
            if gate is None and failure is not None and outcome == "failed":
                # Left to the gate, if there is one: it delays calls instead of refusing them.
                breaker.believe(failure, now, wall)
            unanswered = 0
            is_timed = gate is not None and ticket.gate is not None
            if result == "failure" and is_timed and breaker.has_failures:
                unanswered = gate.count_as_old(ticket.gate, breaker.failing_for(now, wall), now)  # type: ignore[union-attr]
            cause = failure if outcome == "failed" else None
            told = breaker.telling(ticket.breaker, result, cause, now, unanswered)
        if told or more:
            results = do_all((*told, *more), now, wall)
            more.clear()
            if breaker is not None and any(results[: len(told)]):
                breaker.told(told, results[: len(told)], now, wall)
        if waiting.queue.size:
            with waiting.lock:
                if waiting.queue.hears:
                    waiting.queue.rouse(now, self._next_in(now, wall))

    def observe(self, ticket: object, quotas: Iterable[QuotaLike]) -> None:
        """What the answer to the attempt with `ticket` stated; before `leave`."""
        assert isinstance(ticket, _Tickets)  # noqa: S101 -- a ticket of ours
        if self.gate is not None and ticket.gate is not None:
            self.gate.observe(ticket.gate, quotas)

    def settle(self, ticket: object, took: float) -> None:
        """What the attempt with `ticket` took of what is counted in tokens; before `leave`."""
        assert isinstance(ticket, _Tickets)  # noqa: S101 -- a ticket of ours
        if self.gate is not None and ticket.gate is not None:
            self.gate.settle(ticket.gate, took)

    def calm_ticket(self, *, has_breaker: bool = True) -> object:
        """The ticket for `leave` of an attempt made without asking, while the target was calm."""
        return _Tickets(
            self.breaker.calm_ticket() if self.breaker is not None and has_breaker else None,
            None if self.gate is None else self.gate.calm_ticket(),
        )

    def is_near(self, now: float) -> bool:
        """Whether `enter` is answered from cached state, without a round trip."""
        waiting = self.waiting
        if waiting.queue.size:
            with waiting.lock:
                head = waiting.queue.head(now)
            if head is not None and head is not self:
                return True
        if self.breaker is not None and not self.breaker.is_near(now):
            return False
        return self.gate is None or self.gate.is_near(now)

    def must_write(self, ticket: object, stated: Iterable[QuotaLike]) -> bool:
        """Whether a success with `ticket`, or a limit it stated, must go to the store."""
        assert isinstance(ticket, _Tickets)  # noqa: S101 -- a ticket of ours
        told = self.breaker is not None and ticket.breaker is not None
        if told and self.breaker.must_write(ticket.breaker):  # type: ignore[union-attr]
            return True
        return (
            self.gate is not None
            and ticket.gate is not None
            and self.gate.must_write(ticket.gate, stated)
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
    """The breaker, gate and retry tokens of one target, for one call (`SharedTarget`).

    Args:
        parts: The target's.
        wants: The guard's settings.
        waits: Whether it waits for a target that is down, and for retry tokens.
        deadline_at: When the call ends at the latest.
    """

    __slots__ = (
        *("_is_found", "_is_made", "_owing", "_parts", "_reservation", "_tokens", "_wants"),
        *("believes", "has_gate", "owes_tokens"),
    )

    def __init__(
        self, parts: TargetParts, wants: TargetSettings, *, waits: bool, deadline_at: float
    ) -> None:
        is_remote = parts.home.state is not None
        super().__init__(parts.waiting, None, None, waits=waits, is_remote=is_remote)
        self.deadline_at = deadline_at
        self._parts, self._wants = parts, wants
        self.has_gate = wants.gate is not None
        self.believes = inf if wants.gate is None else wants.gate.horizon
        self._is_found = False
        self._is_made = False  # whether an attempt is under way
        self._reservation = ""  # of the tokens for the retry that is scheduled or under way
        self.owes_tokens = False  # whether a retry has no tokens yet, and
        self._owing: Failure | None = None  # what it failed with
        self._tokens: RetryTokens | None = None

    def _find(self) -> None:
        """Use the target's breaker, gate and tokens; while the store is down, local ones."""
        if not self._is_found:
            parts, wants = self._parts, self._wants
            made: dict[str, Any] = parts.made if parts.is_named else {}
            if wants.breaker is not None:
                self.breaker = made.get("breaker") or parts.part("breaker")
            if wants.gate is not None:
                self.gate = made.get("gate") or parts.part("gate")
            if wants.tokens is not None:
                self._tokens = made.get("tokens") or parts.part("tokens")
            self._is_found = parts.is_named

    def _find_tokens(self) -> None:
        """Use the target's tokens; a ticket goes back to the breaker and gate that gave it."""
        if not self._is_found and self._wants.tokens is not None:
            self._tokens = self._parts.part("tokens")

    @property
    def is_down(self) -> bool:
        self._find()
        return self.waits and self.is_open

    @property
    def answered_at(self) -> float:
        return self.waiting.answered_at

    def enter(self, attempt: int, *, now: float, wall: float) -> Answer:
        self._find()
        answer = super().enter(attempt, now=now, wall=wall)
        if isinstance(answer, Admitted):
            self._is_made = True
            if self._reservation and self._tokens is not None:
                self._tokens.sent(self._reservation, now=now)
        return answer

    def ticket_since(self, mark: int) -> object:
        self._find()
        self._is_made = True
        # An attempt from before the breaker changed says nothing about the target now (E-B4).
        return self.calm_ticket(has_breaker=not self._parts.has_changed_since(mark))

    def is_near(self, now: float) -> bool:
        if not self.is_remote:
            return True
        if not self._parts.is_known:
            return False
        self._find()
        return super().is_near(now)

    def must_write(self, ticket: object, stated: Iterable[QuotaLike]) -> bool:
        if not self._parts.is_known:
            return True
        self._find_tokens()
        tokens = self._tokens
        if self._reservation or (tokens is not None and not tokens.is_calm):
            return True
        return ticket is not None and super().must_write(ticket, stated)

    def weigh(self, tokens: float) -> None:
        self.estimate = tokens

    def reserve(self, failure: Failure, delay: float, *, now: float, wall: float) -> str:
        self._find()
        tokens = self._tokens
        if tokens is None:
            return ""
        name = tokens.reserve(failure, delay, now=now, wall=wall)
        if self.waiting.unfunded.size:
            self._rouse_unfunded(now)
        if not self.is_remote:  # else `ended` has just done this
            self._parts.refresh(now)
        if name is not None:
            self._reservation = name
        elif self.waits:
            # The attempt waits for tokens after its backoff.
            self.owes_tokens, self._owing = True, failure
        else:
            return "the retry tokens are used up: too many calls to the target fail"
        return ""

    def fund(self, *, now: float, wall: float) -> Hold | None:
        self._find()
        failure, tokens = self._owing, self._tokens
        if failure is None or tokens is None:
            return None
        name = None
        if self._is_first_unfunded(now):
            name = tokens.reserve(failure, 0.0, now=now, wall=wall)
        if name is None:
            return self._unfunded(now)
        self._reservation, self.owes_tokens = name, False
        self.give_up(now)  # its place in the queue for tokens
        self._rouse_unfunded(now)  # and there may be enough for the next one
        self._parts.refresh(now)
        return None

    def ended(
        self,
        ticket: object,
        outcome: Outcome,
        failure: Failure | None,
        stated: Iterable[QuotaLike],
        took: float | None,
        *,
        now: float,
        wall: float,
        was_cut: bool,
    ) -> None:
        if ticket is None:
            self._find()
        else:
            self._find_tokens()
        if self.queue is not None:
            self.give_up(now)
        booked: list[tuple[CachedState[Any], Any]] = []
        if self._tokens is not None and (self._is_made or outcome == "cancelled"):
            if self._reservation or outcome == "succeeded":
                booked += self._tokens.settling(self._reservation, outcome, now)
            self._reservation = ""
        self.owes_tokens = self._is_made = False
        told = "cancelled" if was_cut else outcome
        try:
            if ticket is None:
                do_all(booked, now, wall)
            else:
                self._tell(ticket, told, failure, booked, now, wall, stated, took)
        except Exception:
            do_all(booked, now, wall)  # the tokens are settled, whatever else is wrong
            raise
        finally:
            if self.waiting.unfunded.size:
                self._rouse_unfunded(now)
            self._parts.refresh(now)

    def _rouse_unfunded(self, now: float) -> None:
        """Wake the first call that waits for tokens, if there are some."""
        if self._tokens is not None and self._tokens.has_some(now):
            self.waiting.rouse_unfunded(now)
