"""Circuit breaker of a target for one process: local counts, shared state in a store.

It has two circuits. One is local and opens on failures of this process. The other is shared and
opens when a quorum of processes saw failures, so that a worker with a broken network stops only
itself. Without a shared store there is only the first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.moment import Moment
from ..core.record import record
from ..stores.cache import CachedState, do_all
from .breaker import BREAKER, AskBreaker, Circuit, OpenBreaker, Passed, Shut, TellBreaker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.failure import Failure
    from ..core.ports import State
    from ..stores.state_machine import Key
    from .breaker import Breaker, Result

__all__ = ("BreakerAdmission", "BreakerTicket")


# Failures in a row after which the next one may open a breaker.
_FEW = 4


@record()
class BreakerTicket:
    """What an attempt was admitted with."""

    own_permit: str
    own: Passed
    shared_permit: str = ""
    shared: Passed | None = None
    at: float | None = None  # when the attempt began, where it matters how long it takes


class BreakerAdmission:
    """A breaker around attempts.

    Args:
        key: Whose breaker; its target stands in errors.
        settings: When it opens.
        shared: Where it is shared, behind `FailOpen`; None for this process alone.
        quorum: Different processes that must have seen the failures before all of them stop.
        on_change: Told whether it has opened or closed, for how many seconds, and why.
        roll: The random generator, so that processes that share nothing do not probe together.

    Attributes:
        view: The circuit of this process.
        shared: The circuit of all processes, as last read; None without a store.
    """

    def __init__(
        self,
        key: Key,
        settings: Breaker,
        *,
        shared: State | None = None,
        quorum: int = 2,
        on_change: Callable[[bool, float, str], None] = lambda _is_open, _seconds, _because: None,
        roll: Callable[[], float] = lambda: 0.5,
    ) -> None:
        self.target, self._quorum, self._roll = key.target, quorum, roll
        self.settings = settings
        self._on_change = on_change
        self.view = CachedState(BREAKER, key)
        self.shared = None if shared is None else CachedState(BREAKER, key, shared)

    @property
    def settings(self) -> Breaker:
        """When it opens; may be changed at any time."""
        return self._settings

    @settings.setter
    def settings(self, settings: Breaker) -> None:
        self._settings = replace(settings, quorum=1)
        self._shared_settings = replace(settings, quorum=self._quorum)

    def is_near(self, now: float) -> bool:
        """Whether `enter` is answered from cached state, without a round trip."""
        if self.shared is None:
            return True
        if not self.shared.is_fresh(now):
            return False
        state, moment = self.shared.seen(now)
        return state.admits(moment) is not None

    def must_write(self, ticket: BreakerTicket) -> bool:
        """Whether a success with `ticket` must be written to the store."""
        if self.shared is None or ticket.shared is None:
            return False
        return ticket.shared.is_probe or not self.shared.state.is_calm

    @property
    def is_calm(self) -> bool:
        """Whether both circuits, as last seen, are calm and do not measure slow calls."""
        if self._settings.slow is not None:
            return False
        return self.view.state.is_calm and (self.shared is None or self.shared.state.is_calm)

    @property
    def has_failures(self) -> bool:
        """Whether either circuit, as last seen, has counted failures, or measures slow calls."""
        circuits = (self.view,) if self.shared is None else (self.view, self.shared)
        return self._settings.slow is not None or any(
            each.state.streak or each.state.window for each in circuits
        )

    @property
    def keeps(self) -> float:
        """Seconds for which this process must remember it; the store remembers what is shared."""
        return 0.0 if self.view.state.is_calm else self.view.keep

    def calm_ticket(self) -> BreakerTicket:
        """The ticket for `leave` of an attempt made without asking, while the target was calm."""
        own = Passed(self.view.state.generation)
        if self.shared is None:
            return BreakerTicket("", own)
        return BreakerTicket("", own, "", Passed(self.shared.state.generation))

    @property
    def is_open(self) -> bool:
        """Whether either circuit, as last seen, lets no more than a probe through."""
        shared = self.shared
        return self.view.state.until is not None or (
            shared is not None and shared.state.until is not None
        )

    def failing_for(self, now: float, wall: float) -> float:
        """Seconds since the first failure that still counts, of those this process has seen."""
        state, moment = self.view.look(now, wall)
        return state.failing_for(moment, self._settings)

    def ask(self, now: float, wall: float, moment: Moment) -> BreakerTicket | Shut:
        """Ask whether a call may be made: a ticket for `leave`, or the reason why not.

        It writes only if the call may be a probe. `moment` is the time of the store, when the
        shared circuit was last read.
        """
        own, shared, permit, shared_permit = self.view, self.shared, "", ""
        answer = own.state.admits(Moment(now, wall))
        if answer is None:
            permit = own.name()
            answer = own.do(AskBreaker(permit=permit, settings=self._settings), now, wall)
        if isinstance(answer, Shut):
            return answer
        at = None if self._settings.slow is None else now
        if shared is None:
            return BreakerTicket(permit, answer, at=at)
        others = shared.state.admits(moment)
        if others is None:
            shared_permit = shared.name()
            ask = AskBreaker(permit=shared_permit, settings=self._shared_settings)
            others = shared.do(ask, now, wall)
        if isinstance(others, Shut):
            do_all(self.telling(BreakerTicket(permit, answer), "neither", None, now), now, wall)
            return others
        return BreakerTicket(permit, answer, shared_permit, others, at)

    def telling(
        self,
        ticket: BreakerTicket,
        result: Result,
        failure: Failure | None,
        now: float,
        unanswered: int = 0,
    ) -> list[tuple[CachedState[Circuit], TellBreaker]]:
        """The operations that count how an attempt ended, for `do_all`; then call `told`.

        A success is told only to a circuit that has counted failures. `unanswered` are calls under
        way for about as long, which have not failed.
        """
        slow = self._settings.slow
        is_slow = slow is not None and ticket.at is not None and now - ticket.at > slow
        stated = 0.0 if failure is None or failure.hint is None else failure.hint.floor
        circuits = [(self.view, ticket.own_permit, ticket.own, self._settings, is_slow)]
        if self.shared is not None and ticket.shared is not None:
            shared = self.shared, ticket.shared_permit, ticket.shared, self._shared_settings, False
            circuits.append(shared)
        # Most failures open nothing, and need no random number.
        may_open = result == "failure" and max(each[0].state.streak for each in circuits) >= _FEW
        roll = self._roll() if may_open else 0.5
        told = []
        for view, permit, passed, settings, was_slow in circuits:
            if result == "success":
                is_counted = passed.is_probe or was_slow or not view.state.is_calm
            else:
                is_counted = passed.is_probe or result == "failure"
            if not is_counted:
                continue
            tell = TellBreaker(
                permit=permit,
                generation=passed.generation,
                result=result,
                worker=view.worker,
                settings=settings,
                stated=stated,
                is_slow=was_slow,
                unanswered=unanswered,
                roll=roll,
            )
            told.append((view, tell))
        return told

    def told(
        self,
        steps: Sequence[tuple[CachedState[Circuit], TellBreaker]],
        results: Sequence[bool],
        now: float,
        wall: float,
    ) -> None:
        """Report whether a circuit has opened or closed; the shared one, if both have."""
        changed = [
            view for (view, _), has_changed in zip(steps, results, strict=True) if has_changed
        ]
        if changed:
            state, moment = changed[-1].look(now, wall)
            retry_in = state.retry_in(moment)
            self._on_change(retry_in > 0, retry_in, state.because)

    def believe(self, failure: Failure, now: float, wall: float) -> None:
        """Open until the time that a limit stated, if it stated one."""
        if not failure.kind.is_limit or failure.hint is None:
            return
        stated = failure.hint.floor
        operation = OpenBreaker(stated=stated, because=str(failure))
        for view in (self.view, self.shared):
            if view is not None and view.do(operation, now, wall) and view is self.view:
                self._on_change(True, stated, str(failure))  # noqa: FBT003 -- the callback's one flag
