"""The way of one attempt through the admissions.

Everything here may be a round trip to a store, and nothing here runs code of the user's: a
coroutine may send it to a thread.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, assert_never

from ..core.admission import Admitted, Hold, Refused
from .announce import report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.admission import Admission, Answer, Commons, Outcome
    from ..core.events import Event
    from ..core.failure import Failure
    from ..core.ports import Clock

__all__ = ("Entrance", "tell")

# The ticket of an admission that failed to answer.
_NOBODY = object()

# What changed while a call asked or was told; its session announces it, in its own thread.
_News = list[tuple["type[Event]", dict[str, Any]]]
_hearing: ContextVar[_News | None] = ContextVar("mulligan.news", default=None)


def tell(event: type[Event], **facts: Any) -> None:
    """Something that calls share has changed, with the call that is asking or being told."""
    news = _hearing.get()
    if news is not None:
        news.append((event, facts))


class Entrance:
    """The permits that one call holds for the attempt under way.

    Args:
        admissions: Who is asked, outermost first.
        commons: What all calls to the target share, if there is a target.
        clock: The time they are told.
    """

    def __init__(
        self, admissions: tuple[Admission, ...], commons: Commons | None, clock: Clock
    ) -> None:
        self._given, self._commons, self._clock = admissions, commons, clock
        self._asked: list[
            tuple[Admission, object]
        ] = []  # who admitted the attempt, outermost first
        self._is_in = False  # whether an attempt is under way
        self._held_by: Admission | None = None  # who let the call wait, and keeps its place
        self._reservation = ""
        self._stated: Iterable[Any] = ()
        self._took: float | None = None
        self.news: _News = []

    @property
    def may_wait(self) -> bool:
        """Whether the next question could take a round trip to a store."""
        commons = self._commons
        return commons is not None and not commons.is_near(now=self._clock.now())

    @property
    def may_tell(self) -> bool:
        """Whether a success could take a round trip to a store."""
        commons = self._commons
        if commons is None or not commons.is_remote:
            return False
        return bool(self._reservation) or commons.is_news(self._asked, self._stated)

    @property
    def is_remote(self) -> bool:
        return self._commons is not None and self._commons.is_remote

    def begun(self, mark: int) -> None:
        """The first attempt was made unasked, while all was calm; `mark` is when it began."""
        self._is_in = True
        if self._commons is not None:
            self._asked = self._commons.calm_tickets(mark)

    def enter(self, attempt: int) -> Hold | None:
        """None once everybody has admitted the attempt; else how long to hold.

        Raises:
            NotAdmitted: Somebody refused; what had been granted is given back.
        """
        token = _hearing.set(self.news)
        try:
            return self._enter(attempt)
        finally:
            _hearing.reset(token)

    def _enter(self, attempt: int) -> Hold | None:
        for admission in self._given + self._shared():
            answer = self._ask(admission, attempt)
            match answer:
                case Admitted():
                    self._asked.append((admission, answer.ticket))
                case Hold():
                    self._held_by = admission
                    self._leave("cancelled", None)
                    return answer
                case Refused():
                    self._leave("cancelled", None)
                    raise answer.error
                case _:
                    assert_never(answer)
        self._is_in, self._held_by = True, None
        return None

    def _shared(self) -> tuple[Admission, ...]:
        """The target's own admissions; none if they cannot be had."""
        commons = self._commons
        if commons is None:
            return ()
        try:
            return commons.admissions
        except Exception as trouble:  # noqa: BLE001 -- what is shared does not stand in the way
            report("admission", commons, trouble)
            return ()

    def _ask(self, admission: Admission, attempt: int) -> Answer:
        try:
            return admission.enter(attempt, now=self._clock.now(), wall=self._clock.wall())
        except Exception as trouble:  # noqa: BLE001 -- who cannot answer does not stand in the way
            report("admission", admission, trouble)
            return Admitted(_NOBODY)

    def weigh(self, tokens: float) -> None:
        """What the call may take of what is counted in tokens."""
        if self._commons is not None:
            self._commons.weigh(tokens)

    def took(self, tokens: float) -> None:
        """What the attempt under way took of it; before `leave`."""
        self._took = tokens

    def states(self, quotas: Iterable[Any]) -> None:
        """What the answer to the attempt under way stated about limits; before `leave`."""
        self._stated = quotas

    def leave(
        self, outcome: Outcome, failure: Failure | None = None, *, is_cut: bool = False
    ) -> None:
        """Tell everybody who admitted the attempt how it ended; nothing if nobody is in.

        A retry that was scheduled and is not made any more is ``cancelled``, too. So is for the
        admissions what the caller cut for lack of time: it says nothing about the target. The
        tokens of such a retry are gone all the same, for it was made.
        """
        waiting, self._held_by = self._held_by, None
        if waiting is not None and (give_up := getattr(waiting, "give_up", None)) is not None:
            give_up()
        if not self._is_in and not self._reservation:
            return
        token = _hearing.set(self.news)
        try:
            self._leave("cancelled" if is_cut else outcome, failure)
            try:
                if self._is_in or outcome == "cancelled":
                    self._settle(outcome)
                if self._commons is not None:
                    self._commons.settled()
            except Exception as trouble:  # noqa: BLE001 -- the attempt's outcome is what counts
                report("tokens", self._commons, trouble)
        finally:
            self._is_in = False
            _hearing.reset(token)

    def _leave(self, outcome: Outcome, failure: Failure | None) -> None:
        stated, self._stated = self._stated, ()
        took, self._took = self._took, None
        while self._asked:
            admission, ticket = self._asked.pop()
            if ticket is _NOBODY:
                continue
            try:
                if stated and (observe := getattr(admission, "observe", None)) is not None:
                    observe(ticket, stated)
                if took is not None and (settle := getattr(admission, "settle", None)) is not None:
                    settle(ticket, took)
                admission.leave(
                    ticket, outcome, failure, now=self._clock.now(), wall=self._clock.wall()
                )
            except Exception as trouble:  # noqa: BLE001 -- the attempt's outcome is what counts
                report("admission", admission, trouble)

    # Tokens, for the retry that is scheduled

    def reserve(self, failure: Failure, delay: float) -> str:
        """Take tokens for a retry in `delay` seconds; why there are none, or empty."""
        commons = self._commons
        if commons is None:
            return ""
        token = _hearing.set(self.news)
        try:
            tokens = commons.tokens
            if tokens is None:
                return ""
            name = tokens.reserve(failure, delay, now=self._clock.now(), wall=self._clock.wall())
            commons.settled()
        except Exception as trouble:  # noqa: BLE001 -- who cannot count does not stand in the way
            report("tokens", commons, trouble)
            return ""
        finally:
            _hearing.reset(token)
        if name is None:
            return "the retry tokens are used up: too many calls to the target fail"
        self._reservation = name
        return ""

    def _settle(self, outcome: Outcome) -> None:
        """The retry that was scheduled has ended, or the only attempt has."""
        name, self._reservation = self._reservation, ""
        tokens = None if self._commons is None else self._commons.tokens
        if tokens is None:
            return
        now, wall = self._clock.now(), self._clock.wall()
        if name:
            tokens.settle(name, is_returned=outcome != "failed", now=now, wall=wall)
        elif outcome == "succeeded":
            tokens.succeeded(now=now, wall=wall)
