"""The breaker as the driver meets it: asked before each attempt, told after it.

Two circuits stand behind it. One belongs to this process and opens on what this process saw. The
other is shared and opens when a quorum saw the same, so that a worker with a broken network stops
itself and nobody else. Without a shared store the first is all there is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core.admission import Admitted, Refused
from ..core.breaker import BREAKER, Ask, Circuit, Open, Passed, Shut, Tell, verdict_on
from ..errors import CircuitOpen
from .view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.admission import Answer, Outcome
    from ..core.breaker import Breaker, Result
    from ..core.failure import Failure
    from ..core.machine import Key
    from ..core.moment import Moment
    from ..core.ports import State

__all__ = ("BreakerAdmission", "BreakerAlone")


@dataclass(frozen=True, slots=True)
class _Ticket:
    """What an attempt was admitted with."""

    own_permit: str
    own: Passed
    shared_permit: str = ""
    shared: Passed | None = None


class BreakerAdmission:
    """A breaker around attempts.

    Args:
        key: Whose breaker; its target stands in errors.
        settings: When it opens.
        shared: Where it is shared, behind `FailOpen`; None for this process alone.
        quorum: Different processes that must have seen the failures before all of them stop.
        on_change: Told whether it has opened or closed, for how many seconds, and why.
    """

    def __init__(
        self,
        key: Key,
        settings: Breaker,
        *,
        shared: State | None = None,
        quorum: int = 2,
        on_change: Callable[[bool, float, str], None] = lambda _is_open, _seconds, _because: None,
    ) -> None:
        self.target, self._quorum = key.target, quorum
        self.settings = settings
        self._on_change = on_change
        self._own = View(BREAKER, key)
        self._shared = None if shared is None else View(BREAKER, key, shared)

    @property
    def settings(self) -> Breaker:
        """When it opens; may be changed at any time."""
        return self._settings

    @settings.setter
    def settings(self, settings: Breaker) -> None:
        self._settings = replace(settings, quorum=1)
        self._shared_settings = replace(settings, quorum=self._quorum)

    def is_near(self, now: float) -> bool:
        """Whether `enter` is answered from what was seen already, without a round trip."""
        if self._shared is None:
            return True
        if not self._shared.is_fresh(now):
            return False
        return not _is_half_open(*self._shared.seen(now))

    def has_news(self, ticket: object, stated: object) -> bool:  # noqa: ARG002 -- the gate's signature, too
        """Whether a success with `ticket` is written down where others see it."""
        assert isinstance(ticket, _Ticket)  # noqa: S101 -- our own, come back
        if self._shared is None or ticket.shared is None:
            return False
        return ticket.shared.is_probe or not self._shared.state.is_calm

    @property
    def is_calm(self) -> bool:
        """Whether neither circuit, as last seen, has anything to say."""
        return self._own.state.is_calm and (self._shared is None or self._shared.state.is_calm)

    def calm_ticket(self) -> object:
        """The ticket of an attempt that was made unasked, while all was calm: for `leave`."""
        own = Passed(self._own.state.generation)
        if self._shared is None:
            return _Ticket("", own)
        return _Ticket("", own, "", Passed(self._shared.state.generation))

    def enter(self, attempt: int, *, now: float, wall: float) -> Answer:  # noqa: ARG002 -- the signature of the seam
        own = _asked(self._own, self._settings, now, wall)
        if isinstance(own[1], Shut):
            return self._refused(own[1])
        if self._shared is None:
            return Admitted(_Ticket(own[0], own[1]))
        permit, shared = _asked(self._shared, self._shared_settings, now, wall)
        if isinstance(shared, Shut):
            self._tell(self._own, own[0], own[1], "neither", now, wall)
            return self._refused(shared)
        return Admitted(_Ticket(own[0], own[1], permit, shared))

    def leave(
        self, ticket: object, outcome: Outcome, failure: Failure | None, *, now: float, wall: float
    ) -> None:
        assert isinstance(ticket, _Ticket)  # noqa: S101 -- our own, come back
        result: Result = "success" if outcome == "succeeded" else "neither"
        stated = 0.0
        if failure is not None and outcome == "failed":
            result = verdict_on(failure)
            stated = 0.0 if failure.hint is None else failure.hint.floor
        changed = self._tell(self._own, ticket.own_permit, ticket.own, result, now, wall, stated)
        if self._shared is not None and ticket.shared is not None:
            permit, passed = ticket.shared_permit, ticket.shared
            # Where everybody's has changed with it, that is the news.
            changed = self._tell(self._shared, permit, passed, result, now, wall, stated) or changed
        if changed is not None:
            state, moment = changed.look(now, wall)
            retry_in = state.retry_in(moment)
            self._on_change(retry_in > 0, retry_in, state.because)

    def _tell(  # noqa: PLR0917 -- the arguments of one operation
        self,
        view: View[Circuit],
        permit: str,
        passed: Passed,
        result: Result,
        now: float,
        wall: float,
        stated: float = 0.0,
    ) -> View[Circuit] | None:
        """`view`, if this opened or closed its circuit."""
        # A success is news only to a circuit that counts failures; then it is worth a write.
        if not passed.is_probe and (
            result in {"neither", "alive"} or (result == "success" and view.state.is_calm)
        ):
            return None
        settings = self._settings if view is self._own else self._shared_settings
        tell = Tell(
            permit=permit,
            generation=passed.generation,
            result=result,
            worker=view.worker,
            settings=settings,
            stated=stated,
        )
        return view if view.do(tell, now, wall) else None

    def believe(self, failure: Failure, now: float, wall: float) -> None:
        """Stay open until the time that a limit named, if it named one."""
        if not failure.kind.is_limit or failure.hint is None:
            return
        stated = failure.hint.floor
        operation = Open(stated=stated, because=str(failure))
        for view in (self._own, self._shared):
            if view is not None and view.do(operation, now, wall) and view is self._own:
                self._on_change(True, stated, str(failure))  # noqa: FBT003 -- the callback's one flag

    def _refused(self, shut: Shut) -> Refused:
        return Refused(CircuitOpen(self.target, shut.retry_in, shut.because))


class BreakerAlone:
    """A breaker as guards without a gate use it: a limit that names a time opens it until then.

    A gate does that better, where there is one: it paces calls, and does not stop them.

    Args:
        breaker: The target's.
    """

    __slots__ = ("_breaker", "calm_ticket", "enter", "has_news", "is_near")

    def __init__(self, breaker: BreakerAdmission) -> None:
        self._breaker = breaker
        self.enter, self.calm_ticket = breaker.enter, breaker.calm_ticket
        self.is_near, self.has_news = breaker.is_near, breaker.has_news

    def leave(
        self, ticket: object, outcome: Outcome, failure: Failure | None, *, now: float, wall: float
    ) -> None:
        if failure is not None and outcome == "failed":
            self._breaker.believe(failure, now, wall)
        self._breaker.leave(ticket, outcome, failure, now=now, wall=wall)


def _asked(
    view: View[Circuit], settings: Breaker, now: float, wall: float
) -> tuple[str, Passed | Shut]:
    """The permit's name and the answer; written down only if a probe may have been handed out."""
    state, moment = view.look(now, wall)
    if state.is_calm:
        return "", Passed(state.generation)
    if not _is_half_open(state, moment):
        _, answer = Ask(permit="", settings=settings)(state, moment)
        return "", answer
    permit = view.name()
    return permit, view.do(Ask(permit=permit, settings=settings), now, wall)


def _is_half_open(state: Circuit, moment: Moment) -> bool:
    return state.until is not None and not state.hand and state.until.left(moment) <= 0
