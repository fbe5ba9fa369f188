"""The gate as the driver meets it: asked before each attempt, told after it.

While much is left, calls pass unasked and nothing is written. When little is left, the process
leases a block of calls and hands them out itself. When nothing is, everybody is told when to come
back. How much is much depends on how many calls this process has under way: others may have as
many, and none of them has been counted yet. Before it asks for the first time, a process tells
how many it made unasked, and what it heard.
"""

from __future__ import annotations

from math import inf
from threading import Lock
from typing import TYPE_CHECKING

from ..core.admission import Admitted, Hold
from ..core.belief import Stated
from ..core.gate import GATE, Enter, Flow, Go, Leave, Tick, advanced
from .forks import made_anew
from .gate_tickets import Block, Ticket, over
from .view import View
from .waiting import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..core.admission import Answer, Outcome
    from ..core.failure import Failure
    from ..core.gate import Gate
    from ..core.machine import Key
    from ..core.moment import Moment
    from ..core.ports import State
    from .gate_tickets import QuotaLike
    from .waiting import GateWaiter

__all__ = ("GateAdmission",)

# The most calls that a process leases at once.
_BLOCK = 64

# A call may pass unasked while forty times as many are left as this process has under way: four
# processes that do the same have then used a tenth of what is left, and none of it twice.
_PLENTY = 40


class GateAdmission:
    """A gate around attempts.

    Args:
        key: Whose gate.
        settings: How it reads what it is told.
        roll: Rolls the dice, for the spread of those who wait.
        shared: Where it is shared, behind `FailOpen`; None for this process alone.
        on_shut: Told for how many seconds it was shut, and why.
    """

    def __init__(
        self,
        key: Key,
        settings: Gate,
        *,
        roll: Callable[[], float],
        shared: State | None = None,
        on_shut: Callable[[float, str], None] = lambda _seconds, _because: None,
    ) -> None:
        self.target = key.target
        self.settings = settings  # may be changed at any time
        self._roll, self._on_shut = roll, on_shut
        self._view = View(GATE, key, shared)
        self._report = 0
        self.after_fork()
        made_anew(self)

    def after_fork(self) -> None:
        # A forked child has leased nothing, and made none of the calls that are under way.
        self._lock = Lock()
        self._block = Block("", 0, 0, 0, 0.0)
        self._under_way = 0
        self._unasked = 0  # of those under way, the ones that nobody has counted
        self._report += 1
        self._passed = 0  # unasked and answered, one after another without a pause
        self._line = Line()

    @property
    def is_calm(self) -> bool:
        """Whether nothing is believed, as last seen, and nothing is to be found out."""
        return self._view.state.is_idle and not self.settings.scout

    @property
    def has_plenty(self) -> bool:
        """Whether limits are believed, and so much is left of each that no call need be counted."""
        state, settings = self._view.state, self.settings
        least = max(settings.keep, settings.high)
        return bool(state.beliefs) and not (
            state.is_counting or any(each.remaining <= least for each in state.beliefs)
        )

    def is_near(self, now: float) -> bool:
        """Whether `enter` is answered from what was seen already, without a round trip."""
        view = self._view
        if view.shared is None:
            return True
        if not view.is_fresh(now):
            return False
        state, moment = view.seen(now)
        after = advanced(state, moment)
        if self._may_pass(after, now) or after.shut is not None or self._block.left > 0:
            return True
        with self._lock:
            due = self._line.head_comes_at(now)
        return due is not None and now < due  # nobody's turn to ask

    def has_news(self, ticket: object, stated: Iterable[QuotaLike]) -> bool:
        """Whether a success with `ticket`, and what it stated, is written down for others."""
        assert isinstance(ticket, Ticket)  # noqa: S101 -- our own, come back
        if self._view.shared is None:
            return False
        return bool(ticket.permit) or ticket.block is not None or self._is_news(stated)

    def calm_ticket(self) -> object:
        """The ticket of an attempt that was made unasked, while all was calm: for `leave`."""
        return self._passing(self._view.state.turn).ticket

    def enter(self, attempt: int, *, now: float, wall: float) -> Answer:  # noqa: ARG002 -- the signature of the seam
        return self.asked(None, now, wall)

    def asked(self, waiter: GateWaiter | None, now: float, wall: float) -> Answer:
        """May a call be made? `waiter` has a place in the line; None asks past it."""
        view, tokens = self._view, 0.0 if waiter is None else waiter.tokens
        state, moment = view.look(now, wall)
        if state.is_idle and not self.settings.scout:
            return self._passing(state.turn, waiter)
        after = advanced(state, moment)
        if self._may_pass(after, now, tokens):
            if after.is_idle and view.shared is None:
                view.do(Tick(), now, wall)  # what was believed is over: calm again
            return self._passing(after.turn, waiter)
        if waiter is None:
            return self._counted(state, moment, now, wall, tokens)
        with self._lock:
            behind = self._line.behind(waiter, now)
        if behind is not None:
            return Hold(*behind)
        answer = self._counted(state, moment, now, wall, tokens)
        with self._lock:
            if isinstance(answer, Hold):
                self._line.wait(waiter, now, answer.delay, answer.because)
            else:
                self._line.leave(waiter)
        return answer

    def given_up(self, waiter: GateWaiter) -> None:
        """`waiter` waits no more."""
        with self._lock:
            self._line.leave(waiter)

    def _passing(self, turn: int, waiter: GateWaiter | None = None) -> Admitted:
        with self._lock:
            self._line.leave(waiter)
            if not self._under_way:
                self._passed = 0
            self._under_way += 1
            self._unasked += 1
            return Admitted(Ticket("", turn, report=self._report))

    def _may_pass(self, state: Flow, now: float, tokens: float = 0.0) -> bool:
        """Whether so much is left that a call need not be counted."""
        if state.is_idle:
            return not self.settings.scout or state.plain is not None
        if self._view.shared is None or state.is_counting:
            return False  # counting in one's own memory costs nothing
        if self._line.is_crowded(now):
            return False  # a line is through before the others have seen the first of it
        if tokens and _counts_tokens(state):
            return False  # one call may take most of what is left
        plenty, settings = _PLENTY * self._under_way, self.settings
        return all(
            each.remaining > max(plenty, each.low_water, settings.keep, settings.high)
            for each in state.beliefs
            if each.unit == "requests"
        )

    def _counted(
        self, state: Flow, moment: Moment, now: float, wall: float, tokens: float
    ) -> Answer:
        view = self._view
        turn = advanced(state, moment).turn
        is_weighed = bool(tokens) and _counts_tokens(state)
        with self._lock:
            block = self._block
            if block.left and block.turn == turn and now < block.until and not is_weighed:
                block.left -= 1
                block.under_way += 1
                self._under_way += 1
                return Admitted(Ticket("", block.turn, block=block))
            unasked = self._unasked
            # Who has let calls wait knows how many; what it leased beyond them, others would miss.
            waiting = len(self._line)
            most = max(1, waiting) if self._line.is_crowded(now) else _BLOCK
        enter = Enter(
            id=view.name(),
            holder=view.worker,
            settings=self.settings,
            tokens=tokens,
            most=1 if view.shared is None else min(most, _BLOCK),
            unasked=unasked,
            stated=_heard(state, moment) if view.has_notes else (),
            # The head of a line comes as early as the luckiest of all who stand in it would.
            roll=self._roll() / (1 + waiting),
        )
        # Where what we see says wait, the store would say the same, 50 ms later at most.
        _, answer = enter(state, moment)
        if isinstance(answer, Go):
            self._give_back(now, wall)
            answer = view.do(enter, now, wall)
        if not isinstance(answer, Go):
            return Hold(answer.delay, answer.because)
        with self._lock:
            self._under_way += 1
            self._unasked = max(0, self._unasked - unasked)
            self._report += 1
            if answer.count > 1:
                left, until = answer.count - 1, now + answer.seconds
                size = answer.count + unasked
                self._block = block = Block(enter.id, answer.turn, size, left, until, 1)
                return Admitted(Ticket("", answer.turn, block=block))
        return Admitted(Ticket(enter.id, answer.turn, size=1 + unasked, tokens=tokens))

    def _give_back(self, now: float, wall: float) -> None:
        """Return what is left of the block."""
        with self._lock:
            block, self._block = self._block, Block("", 0, 0, 0, 0.0)
            if block.left and now >= block.until and block.under_way:
                block.left = 0  # of use to nobody now; the last of its calls answers for all
        if block.left:
            leave = Leave(
                id=block.permit,
                turn=block.turn,
                reply="cancelled",
                settings=self.settings,
                count=block.size,
                unused=block.left,
            )
            self._view.do(leave, now, wall)

    def observe(self, ticket: object, quotas: Iterable[QuotaLike]) -> None:
        """What the answer to the attempt with `ticket` stated; before `leave`."""
        assert isinstance(ticket, Ticket)  # noqa: S101 -- our own, come back
        ticket.stated = tuple(
            [
                Stated(
                    dimension=quota.dimension,
                    unit=str(quota.unit),
                    limit=quota.limit,
                    remaining=quota.remaining,
                    reset_in=quota.reset_in,
                    window=quota.window,
                )
                for quota in quotas
            ]
        )

    def settle(self, ticket: object, took: float) -> None:
        """What the attempt with `ticket` took of what is counted in tokens; before `leave`."""
        assert isinstance(ticket, Ticket)  # noqa: S101 -- our own, come back
        ticket.took = took

    def leave(
        self, ticket: object, outcome: Outcome, failure: Failure | None, *, now: float, wall: float
    ) -> None:
        assert isinstance(ticket, Ticket)  # noqa: S101 -- our own, come back
        with self._lock:
            self._under_way = max(0, self._under_way - 1)  # a child may end what its parent began
            if ticket.report == self._report:
                self._unasked -= 1
            if ticket.report and outcome == "succeeded":
                self._passed += 1
            if (block := ticket.block) is not None:
                block.under_way -= 1
                if not block.left and not block.under_way:
                    # The last of its block answers for all of it.
                    ticket.permit, ticket.size = block.permit, block.size
        if self._block.left and not self._line:
            self._give_back(now, wall)
        is_limit = outcome == "failed" and failure is not None and failure.kind.is_limit
        if not ticket.permit and not ticket.stated and not is_limit:
            return
        hint = failure.hint if failure is not None and is_limit else None
        passed = 0
        if is_limit:
            passed, self._passed = self._passed, 0
        leave = Leave(
            id=ticket.permit,
            turn=ticket.turn,
            reply="rejected" if is_limit else "cancelled" if outcome == "cancelled" else "answered",
            settings=self.settings,
            stated=ticket.stated,
            hint=0.0 if hint is None else hint.floor,
            because=str(failure) if is_limit else "",
            count=ticket.size,
            passed=passed,
            spent=over(ticket, failure),
            roll=self._roll(),
        )
        if not ticket.permit and not is_limit and not self._is_news(ticket.stated):
            self._view.note(leave, now, wall)
            return
        if self._view.do(leave, now, wall):
            state, moment = self._view.look(now, wall)
            self._on_shut(_shut_for(state, moment), state.because)

    def _is_news(self, stated: Iterable[QuotaLike]) -> bool:
        """Whether everybody has to know: little is left, or we know of more than there is."""
        if self._view.shared is None:
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


def _counts_tokens(state: Flow) -> bool:
    return any(each.unit == "tokens" for each in state.beliefs)


def _heard(state: Flow, moment: Moment) -> tuple[Stated, ...]:
    """What answers have stated since the last reset, as far as this process heard."""
    return tuple(
        [
            Stated(
                dimension=each.dimension,
                unit=each.unit,
                limit=each.limit,
                remaining=each.low,
                reset_in=None if each.reset is None else each.reset.left(moment),
                window=each.window,
            )
            for each in state.beliefs
            if each.low < inf
        ]
    )


def _shut_for(state: Flow, moment: Moment) -> float:
    return 0.0 if state.shut is None else state.shut.left(moment)
