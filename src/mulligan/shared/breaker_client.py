"""Circuit breaker of a target for one process: local counts, shared state in a store.

It has two circuits. One is local and opens on failures of this process. The other is shared and
opens when a quorum of processes saw failures, so that a worker with a broken network stops only
itself. Without a shared store there is only the first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.admission import Admitted, Refused
from ..core.record import record
from ..errors import CircuitOpen
from ..stores.cache import CachedState
from .breaker import (
    BREAKER,
    AskBreaker,
    Circuit,
    OpenBreaker,
    Passed,
    Shut,
    TellBreaker,
    verdict_on,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.admission import Answer, Outcome
    from ..core.failure import Failure
    from ..core.moment import Moment
    from ..core.ports import State
    from ..stores.machine import Key
    from .breaker import Breaker, Result

__all__ = ("BreakerAdmission",)


# Failures in a row after which the next one may open a breaker.
_FEW = 4


@record()
class _Ticket:
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
        self._own = CachedState(BREAKER, key)
        self._shared = None if shared is None else CachedState(BREAKER, key, shared)

    @property
    def view(self) -> CachedState[Circuit]:
        """The cached state."""
        return self._own

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
        if self._shared is None:
            return True
        if not self._shared.is_fresh(now):
            return False
        return not _is_half_open(*self._shared.seen(now))

    def has_news(self, ticket: object) -> bool:
        """Whether a success with `ticket` must be written to the store."""
        assert isinstance(ticket, _Ticket)  # noqa: S101 -- a ticket of ours
        if self._shared is None or ticket.shared is None:
            return False
        return ticket.shared.is_probe or not self._shared.state.is_calm

    @property
    def is_calm(self) -> bool:
        """Whether both circuits, as last seen, are calm and do not measure slow calls."""
        if self._settings.slow is not None:
            return False
        return self._own.state.is_calm and (self._shared is None or self._shared.state.is_calm)

    @property
    def keeps(self) -> float:
        """Seconds for which this process must remember it; the store remembers what is shared."""
        return 0.0 if self._own.state.is_calm else self._own.keep

    def calm_ticket(self) -> object:
        """The ticket for `leave` of an attempt made without asking, while the target was calm."""
        own = Passed(self._own.state.generation)
        if self._shared is None:
            return _Ticket("", own)
        return _Ticket("", own, "", Passed(self._shared.state.generation))

    @property
    def is_open(self) -> bool:
        """Whether either circuit, as last seen, lets no more than a probe through."""
        shared = self._shared
        return self._own.state.until is not None or (
            shared is not None and shared.state.until is not None
        )

    def failing_for(self, now: float, wall: float) -> float:
        """Seconds since the first failure that still counts, of those this process has seen."""
        state, moment = self._own.look(now, wall)
        return state.failing_for(moment, self._settings)

    def enter(self, attempt: int, *, now: float, wall: float) -> Answer:  # noqa: ARG002 -- the signature of the seam
        """Ask whether an attempt may be made; for a breaker without a queue."""
        answer = self.ask(now, wall)
        if isinstance(answer, Shut):
            return Refused(CircuitOpen(self.target, answer.retry_in, answer.because))
        return Admitted(answer)

    def ask(self, now: float, wall: float) -> object | Shut:
        """Ask whether a call may be made: a ticket for `leave`, or the reason why not."""
        own = _asked(self._own, self._settings, now, wall)
        if isinstance(own[1], Shut):
            return own[1]
        at = None if self._settings.slow is None else now
        if self._shared is None:
            return _Ticket(own[0], own[1], at=at)
        permit, shared = _asked(self._shared, self._shared_settings, now, wall)
        if isinstance(shared, Shut):
            self._tell(self._own, own[0], own[1], "neither", now, wall)
            return shared
        return _Ticket(own[0], own[1], permit, shared, at)

    def leave(
        self,
        ticket: object,
        outcome: Outcome,
        failure: Failure | None,
        *,
        now: float,
        wall: float,
        unheard: int = 0,
    ) -> None:
        assert isinstance(ticket, _Ticket)  # noqa: S101 -- a ticket of ours
        result: Result = "success" if outcome == "succeeded" else "neither"
        stated = 0.0
        if failure is not None and outcome == "failed":
            result = verdict_on(failure)
            stated = 0.0 if failure.hint is None else failure.hint.floor
        slow = self._settings.slow
        is_slow = slow is not None and ticket.at is not None and now - ticket.at > slow
        changed = self._tell(
            self._own,
            ticket.own_permit,
            ticket.own,
            result,
            now,
            wall,
            stated=stated,
            unheard=unheard,
            is_slow=is_slow,
        )
        if self._shared is not None and ticket.shared is not None:
            permit, passed = ticket.shared_permit, ticket.shared
            # If the shared state has changed with it, report that.
            own = changed
            changed = self._tell(
                self._shared, permit, passed, result, now, wall, stated=stated, unheard=unheard
            )
            changed = changed or own
        if changed is not None:
            state, moment = changed.look(now, wall)
            retry_in = state.retry_in(moment)
            self._on_change(retry_in > 0, retry_in, state.because)

    def _tell(  # noqa: PLR0917 -- the arguments of one operation
        self,
        view: CachedState[Circuit],
        permit: str,
        passed: Passed,
        result: Result,
        now: float,
        wall: float,
        *,
        stated: float = 0.0,
        unheard: int = 0,
        is_slow: bool = False,
    ) -> CachedState[Circuit] | None:
        """`view`, if this opened or closed its circuit."""
        # A success is written only if the circuit has counted failures.
        if not passed.is_probe and (
            result in {"neither", "alive"}
            or (result == "success" and view.state.is_calm and not is_slow)
        ):
            return None
        settings = self._settings if view is self._own else self._shared_settings
        # Most failures open nothing, and need no random number.
        may_open = result == "failure" and view.state.streak >= _FEW
        tell = TellBreaker(
            permit=permit,
            generation=passed.generation,
            result=result,
            worker=view.worker,
            settings=settings,
            stated=stated,
            is_slow=is_slow,
            unheard=unheard,
            roll=self._roll() if may_open else 0.5,
        )
        return view if view.do(tell, now, wall) else None

    def believe(self, failure: Failure, now: float, wall: float) -> None:
        """Open until the time that a limit stated, if it stated one."""
        if not failure.kind.is_limit or failure.hint is None:
            return
        stated = failure.hint.floor
        operation = OpenBreaker(stated=stated, because=str(failure))
        for view in (self._own, self._shared):
            if view is not None and view.do(operation, now, wall) and view is self._own:
                self._on_change(True, stated, str(failure))  # noqa: FBT003 -- the callback's one flag


def _asked(
    view: CachedState[Circuit], settings: Breaker, now: float, wall: float
) -> tuple[str, Passed | Shut]:
    """The permit's name and the answer; writes only if the call may be a probe."""
    state, moment = view.look(now, wall)
    if state.is_calm:
        return "", Passed(state.generation)
    if not _is_half_open(state, moment):
        _, answer = AskBreaker(permit="", settings=settings)(state, moment)
        return "", answer
    permit = view.name()
    return permit, view.do(AskBreaker(permit=permit, settings=settings), now, wall)


def _is_half_open(state: Circuit, moment: Moment) -> bool:
    return state.until is not None and not state.hand and state.until.left(moment) <= 0
