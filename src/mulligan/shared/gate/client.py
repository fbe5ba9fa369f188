"""The gate of a target for one process: leases calls from the shared state in a store.

While much quota is left, calls pass without asking and nothing is written. When little is left, the
process leases a block of calls and hands them out itself. When nothing is left, each caller is told
when to ask again. How much is "much" depends on how many calls this process has under way: other
processes may have as many, not counted yet. When it first asks, a process reports how many calls it
made without asking, and which limits answers stated.
"""

from __future__ import annotations

from itertools import count as numbers
from math import inf
from threading import Lock
from typing import TYPE_CHECKING

from ...classify.quotas import Quota
from ...core.failure import Reach
from ...stores.cache import CachedState
from ...stores.forks import reset_after_fork
from ..breaker import MOST_UNANSWERED
from .first_burst import FirstBurst
from .gate import (
    GATE,
    BeginSlowStart,
    EnterGate,
    GateState,
    GateWait,
    LeaveGate,
    PassTime,
    PermitGranted,
    advanced,
)
from .queue import TargetQueues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...core.admission import Outcome
    from ...core.failure import Failure
    from ...core.moment import Moment
    from ...core.ports import State
    from ...stores.state_machine import Key
    from ..breaker import Result
    from .gate import Gate, Reply

__all__ = ("GateAdmission", "Ticket")

# The most calls that a process leases at once.
_BLOCK = 64

# A call may pass unasked while forty times as many are left as this process has under way: four
# processes that do the same have then used a tenth of what is left, and none of it twice.
_PLENTY = 40

# How much later than a failed call another one may have begun, as a share of the time that it
# took, to show that not all calls fail like that; and how many seconds before the first failed one.
_ABOUT, _TOGETHER = 0.1, 0.25

_STARTING = "a few calls go first, because the target has not answered yet"


class PermitBlock:
    """Calls that the store has let through and this process has not made."""

    __slots__ = ("left", "permit", "size", "turn", "under_way", "until")

    def __init__(  # noqa: PLR0917 -- made for every block of calls, in one place
        self, permit: str, turn: int, size: int, left: int, until: float, under_way: int = 0
    ) -> None:
        self.permit, self.turn, self.size = permit, turn, size
        self.left, self.until, self.under_way = left, until, under_way


class Ticket:
    """Ticket of an admitted attempt, with the limits that its answer stated.

    Args:
        permit: What the store calls it.
        turn: The turn of the gate in which it was given.
        size: Calls that its permit stands for.
        report: The report in which it is counted, if it passed without asking.
        tokens: Tokens reserved for it.
        block: The block of calls that it is one of.
    """

    __slots__ = (
        *("began", "block", "number", "permit", "report"),
        *("size", "stated", "tokens", "took", "turn"),
    )

    def __init__(
        self,
        permit: str,
        turn: int,
        *,
        size: int = 1,
        report: int = 0,
        tokens: float = 0.0,
        block: PermitBlock | None = None,
    ) -> None:
        self.permit, self.turn, self.size, self.report = permit, turn, size, report
        self.tokens, self.block = tokens, block
        self.stated: tuple[Quota, ...] = ()
        self.took: float | None = None  # the tokens that it really used
        self.number = 0  # among the calls of this process
        self.began = inf  # when it was let through; inf where it was never asked for


class GateAdmission:
    """A gate around attempts.

    Args:
        key: Whose gate.
        settings: The gate's settings.
        roll: The random generator, to spread waiting calls.
        shared: Where it is shared, behind `FailOpen`; None for this process alone.
        on_shut: Told for how many seconds it was shut, and why.
        waiting: The calls of this process that wait for the target.

    Attributes:
        first_burst: How many calls of this process may go before the first answers.
        view: The cached state.
    """

    def __init__(
        self,
        key: Key,
        settings: Gate,
        *,
        roll: Callable[[], float],
        shared: State | None = None,
        on_shut: Callable[[float, str], None] = lambda _seconds, _because: None,
        waiting: TargetQueues | None = None,
    ) -> None:
        self.target = key.target
        self.waiting = TargetQueues() if waiting is None else waiting
        self.settings = settings  # may be changed at any time
        self._roll, self._on_shut = roll, on_shut
        self.view = CachedState(GATE, key, shared)
        self.first_burst = FirstBurst()
        self._report = 0
        self.after_fork()
        reset_after_fork(self)

    def after_fork(self) -> None:
        # A forked child has leased nothing, and made none of the calls that are under way.
        self._lock = Lock()
        self._block = PermitBlock("", 0, 0, 0, 0.0)
        self._numbers = numbers(1)
        # When calls under way began, by number; those made while all is calm are not counted.
        self._under_way: dict[int, float] = {}
        self._unasked = 0  # of those under way, the uncounted ones
        self._report += 1
        self._passed = 0  # made without asking and answered, without a pause in between

    @property
    def is_calm(self) -> bool:
        """Whether no limit is known, as last seen, and none is being probed."""
        return self.view.state.is_idle and not self.settings.scout and self.first_burst.is_over

    @property
    def is_shared(self) -> bool:
        """Whether other processes may get the answers that its callers wait for."""
        return self.view.shared is not None

    @property
    def keeps(self) -> float:
        """Seconds for which this process must remember it; the store remembers what it was told."""
        view = self.view
        is_told = view.shared is not None and not view.has_notes
        return 0.0 if is_told or view.state.is_idle else view.keep

    @property
    def has_plenty(self) -> bool:
        """Whether limits are known, with so much left of each that calls need not be counted."""
        state, settings = self.view.state, self.settings
        least = max(settings.keep, settings.high)
        return bool(state.beliefs) and not (
            state.is_counting or any(each.remaining <= least for each in state.beliefs)
        )

    def is_near(self, now: float) -> bool:
        """Whether `enter` is answered from cached state, without a round trip."""
        view = self.view
        if view.shared is None:
            return True
        if not view.is_fresh(now) or not self.first_burst.is_over:
            return False
        state, moment = view.seen(now)
        after = advanced(state, moment)
        return self._may_pass(after, now) or after.shut is not None or self._block.left > 0

    def must_write(self, ticket: Ticket, stated: Iterable[Quota]) -> bool:
        """Whether a success with `ticket`, or a limit it stated, must go to the store."""
        if self.view.shared is None:
            return False
        if ticket.permit or ticket.block is not None or self.view.state.frees_places:
            return True
        return self._is_scarce(stated)

    def calm_ticket(self) -> Ticket:
        """The ticket for `leave` of an attempt made without asking, while the target was calm."""
        return self._passing(self.view.state.turn, inf)

    def count_as_old(self, ticket: Ticket, failing_for: float, now: float) -> int:
        """Calls under way for about as long as the one with `ticket` was, which has just failed.

        Not those that began before anything failed, `failing_for` seconds ago, such as streams from
        before an outage. Not all of them where there are many: `MOST_UNANSWERED` are enough.
        """
        if ticket.began == inf:
            return 0  # how long it took is unknown
        took = now - ticket.began
        earliest, latest = now - failing_for - took - _TOGETHER, ticket.began + _ABOUT * took
        count = 0
        with self._lock:
            for began in reversed(self._under_way.values()):
                if began < earliest or count >= MOST_UNANSWERED:
                    break
                count += began <= latest
        return count

    def ask(
        self, tokens: float, now: float, wall: float, moment: Moment, deadline_at: float = inf
    ) -> Ticket | GateWait:
        """May a call be made that may use so many tokens of the rate limit?

        `moment` is the time of the store, when the gate was last read.
        """
        view = self.view
        state = view.state
        if (answered := state.answered) is not None and answered.era == moment.era:
            # The last answer may be another process's; convert its time to our clock.
            heard_at = now - (moment.now - answered.at)
            self.waiting.answered_at = max(self.waiting.answered_at, min(heard_at, now))
        if (state is GATE.start or state.is_idle) and not self.settings.scout:
            if self.first_burst.is_over:
                return self._passing(state.turn, now)
            return self._starting(state.turn, now, deadline_at)
        after = advanced(state, moment)
        if self._may_pass(after, now, tokens):
            if after.is_idle and view.shared is None:
                view.do(PassTime(), now, wall)  # the limit has expired: calm again
            return self._passing(after.turn, now)
        return self._counted(state, moment, now, wall, tokens)

    def next_wait(self, tokens: float, now: float, wall: float) -> GateWait | None:
        """The wait of the next call, if it is known that it has to wait."""
        view, start = self.view, self.first_burst
        if view.shared is not None and not view.is_fresh(now):
            return None
        state, moment = view.look(now, wall)
        if state.is_idle and not start.is_over:
            with self._lock:
                wait = start.next_at(len(self._under_way), now) - now
            return GateWait(wait, _STARTING, wakes_early=True) if wait > 0 else None
        after = advanced(state, moment)
        if self._may_pass(after, now, tokens) or (self._block.left and now < self._block.until):
            return None
        roll = self._roll() / (1 + len(self.waiting.queue))
        enter = EnterGate(
            id="?", holder=view.worker, settings=self.settings, tokens=tokens, roll=roll
        )
        _, answer = enter(state, moment)
        return answer if isinstance(answer, GateWait) else None

    def ease(self, now: float, wall: float) -> None:
        """The target was down and answers again: let calls through slowly."""
        self.first_burst.is_over = True
        self.view.do(BeginSlowStart(), now, wall)

    def hasten(self, now: float, deadline_at: float) -> None:
        """A call with a deadline waits: the first burst holds it for a small share of that."""
        if not self.first_burst.is_over:
            with self._lock:
                self.first_burst.hasten(now, deadline_at)

    def _starting(self, turn: int, now: float, deadline_at: float) -> Ticket | GateWait:
        """The answer to a call of the first burst."""
        with self._lock:
            start = self.first_burst
            wait = start.wait(len(self._under_way), now, deadline_at)
        if not wait:
            return self._passing(turn, now)
        return GateWait(wait, _STARTING, max(0.0, start.until - now), wakes_early=True)

    def _passing(self, turn: int, now: float) -> Ticket:
        with self._lock:
            if not self._under_way and self.first_burst.is_over:
                self._passed = 0
            self._unasked += 1
            ticket = Ticket("", turn, report=self._report)
            return self._begun(ticket, now)

    def _begun(self, ticket: Ticket, now: float) -> Ticket:
        """The ticket of a call that begins now; under the lock."""
        ticket.number, ticket.began = next(self._numbers), now
        self._under_way[ticket.number] = now
        return ticket

    def _may_pass(self, state: GateState, now: float, tokens: float = 0.0) -> bool:
        """Whether so much is left that a call need not be counted."""
        if state.is_idle:
            return not self.settings.scout or state.plain is not None
        if self.view.shared is None or state.is_counting:
            return False  # counting in local memory costs nothing
        if self.waiting.queue.is_crowded(now):
            return False  # a queue would pass before other processes see its first call
        if tokens and _counts_tokens(state):
            return False  # one call may take most of what is left
        plenty, settings = _PLENTY * len(self._under_way), self.settings
        return all(
            each.remaining > max(plenty, each.low_water, settings.keep, settings.high)
            for each in state.beliefs
            if each.unit == "requests"
        )

    def _counted(
        self, state: GateState, moment: Moment, now: float, wall: float, tokens: float
    ) -> Ticket | GateWait:
        view = self.view
        turn = advanced(state, moment).turn
        is_weighed = bool(tokens) and _counts_tokens(state)
        with self._lock:
            block = self._block
            if block.left and block.turn == turn and now < block.until and not is_weighed:
                block.left -= 1
                block.under_way += 1
                return self._begun(Ticket("", block.turn, block=block), now)
            unasked = self._unasked
            # A process with a queue leases only as many as wait: more would be missing elsewhere.
            waiting = len(self.waiting.queue)
            most = max(1, waiting) if self.waiting.queue.is_crowded(now) else _BLOCK
        enter = EnterGate(
            id=view.name(),
            holder=view.worker,
            settings=self.settings,
            tokens=tokens,
            most=1 if view.shared is None else min(most, _BLOCK),
            unasked=unasked,
            stated=_heard(state, moment) if view.has_notes else (),
            # The head asks as early as the shortest random delay in its queue would be.
            roll=self._roll() / (1 + waiting),
        )
        # If the cached state says wait, so does the store: the cache is at most 50 ms old.
        _, answer = enter(state, moment)
        if isinstance(answer, PermitGranted):
            self._give_back(now, wall)
            answer = view.do(enter, now, wall)
        if not isinstance(answer, PermitGranted):
            return answer
        with self._lock:
            self._unasked = max(0, self._unasked - unasked)
            self._report += 1
            if answer.count > 1:
                left, until = answer.count - 1, now + answer.seconds
                size = answer.count + unasked
                self._block = block = PermitBlock(enter.id, answer.turn, size, left, until, 1)
                ticket = Ticket("", answer.turn, block=block)
            else:
                ticket = Ticket(enter.id, answer.turn, size=1 + unasked, tokens=tokens)
            return self._begun(ticket, now)

    def _give_back(self, now: float, wall: float) -> None:
        """Return what is left of the block."""
        with self._lock:
            block, self._block = self._block, PermitBlock("", 0, 0, 0, 0.0)
            if block.left and now >= block.until and block.under_way:
                block.left = 0  # expired; the last of its calls reports for all
        if block.left:
            leave = LeaveGate(
                id=block.permit,
                turn=block.turn,
                reply="cancelled",
                settings=self.settings,
                count=block.size,
                unused=block.left,
            )
            self.view.do(leave, now, wall)

    def _ended(
        self, ticket: Ticket, reply: Reply, stated: float, now: float, *, has_succeeded: bool
    ) -> None:
        """Count the attempt with `ticket` out."""
        with self._lock:
            self._under_way.pop(ticket.number, None)  # a child may end what its parent began
            if ticket.report == self._report:
                self._unasked -= 1
            if ticket.report and has_succeeded:
                self._passed += 1
            if (block := ticket.block) is not None:
                block.under_way -= 1
                if not block.left and not block.under_way:
                    # The last call of a block reports for the whole block.
                    ticket.permit, ticket.size = block.permit, block.size
            if self.first_burst.is_over:
                return
            if reply == "answered":
                self.first_burst.answered(now, is_awaited=bool(self.waiting.queue))
            elif reply == "failed":
                self.first_burst.failed(now, stated)

    def leave(  # noqa: PLR0917 -- all that is known of one end
        self,
        ticket: Ticket,
        outcome: Outcome,
        failure: Failure | None,
        result: Result,
        quotas: Iterable[Quota] = (),
        took: float | None = None,
        *,
        now: float,
        wall: float,
    ) -> None:
        """Count out an attempt, whose answer stated `quotas` and took so many tokens, if known."""
        ticket.took = took
        ticket.stated = tuple(quotas)
        reply: Reply = "failed" if result == "failure" else "answered"
        if outcome == "cancelled":
            reply = "cancelled"
        elif outcome == "failed" and failure is not None and failure.kind.is_limit:
            reply = "rejected"
        hint = None if failure is None else failure.hint
        stated = 0.0 if hint is None else min(hint.floor, self.settings.horizon)
        self._ended(ticket, reply, stated, now, has_succeeded=outcome == "succeeded")
        if self._block.left and not self.waiting.queue:
            self._give_back(now, wall)
        is_limit = reply == "rejected"
        state = self.view.state
        is_heard = is_limit or (state is not GATE.start and state.frees_places)
        if not ticket.permit and not ticket.stated and not is_heard:
            return
        hint = failure.hint if failure is not None and is_limit else None
        passed = 0
        if is_limit:
            passed, self._passed = self._passed, 0
        is_unsent = failure is not None and failure.reach is Reach.NEVER_SENT
        leave = LeaveGate(
            id=ticket.permit,
            turn=ticket.turn,
            reply=reply,
            settings=self.settings,
            stated=ticket.stated,
            hint=0.0 if hint is None else hint.floor,
            because=str(failure) if is_limit else "",
            count=ticket.size,
            unused=int(is_unsent),
            passed=passed,
            spent=_beyond(ticket, failure),
            roll=self._roll(),
            lasted=max(0.0, now - ticket.began),
        )
        if not ticket.permit and not is_heard and not self._is_scarce(ticket.stated):
            self.view.note(leave, now, wall)
            return
        was_shut = self.view.do(leave, now, wall)
        if is_limit:
            # From here on all processes see how far the gate may open.
            self.first_burst.is_over = True
        if was_shut:
            state, moment = self.view.look(now, wall)
            self._on_shut(_shut_for(state, moment), state.because)

    def _is_scarce(self, stated: Iterable[Quota]) -> bool:
        """Whether to record this at once: the gate is local, or little is left."""
        if self.view.shared is None:
            return True
        return any(
            said.remaining is not None
            and (
                said.remaining == 0
                or (
                    said.unit == "requests"
                    and said.remaining < max(20.0, 0.1 * (said.limit or 0.0))
                )
            )
            for said in stated
        )


def _beyond(ticket: Ticket, failure: Failure | None) -> float:
    """Tokens that the attempt used beyond those reserved; 0 if its use is unknown."""
    if ticket.took is not None:
        return ticket.took - ticket.tokens
    is_refused = failure is not None and (
        failure.kind.is_limit or failure.reach is Reach.NEVER_SENT
    )
    return -ticket.tokens if is_refused else 0.0


def _counts_tokens(state: GateState) -> bool:
    return any(each.unit == "tokens" for each in state.beliefs)


def _heard(state: GateState, moment: Moment) -> tuple[Quota, ...]:
    """The limits that answers to this process have stated since the last reset."""
    return tuple(
        [
            Quota(
                dimension=each.dimension,
                unit=each.unit,  # type: ignore[arg-type]  # one that is not known is not counted
                limit=each.limit,
                remaining=each.low,
                reset_in=None if each.reset is None else each.reset.left(moment),
                window=each.window,
            )
            for each in state.beliefs
            if each.low < inf
        ]
    )


def _shut_for(state: GateState, moment: Moment) -> float:
    return 0.0 if state.shut is None else state.shut.left(moment)
