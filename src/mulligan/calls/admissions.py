"""Asks breaker, gate, tokens and a guard's own admissions before each attempt of one call.

They are told how it ended, too. Everything here may be a round trip to a store, and no code of the
user's runs here but the admissions that the guard was given: a coroutine may send it to a thread.
"""

from __future__ import annotations

from threading import local
from typing import TYPE_CHECKING, Any, assert_never

from ..core.admission import Admitted, Hold, Refused
from .emit import report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.admission import Admission, Answer, Outcome, SharedTarget
    from ..core.events import EventName
    from ..core.failure import Failure

__all__ = ("Admissions", "tell")

# The ticket of an admission that failed to answer.
_NOBODY = object()

# What changed while a call asked or was told; its session announces it, in its own thread.
_News = list[tuple["EventName", dict[str, Any]]]


class _Hearing(local):
    """Where `tell` writes, in the thread that asks or is told.

    Not a context variable: setting one would leave a context of its own to every task that waits.
    """

    news: _News | None = None


_hearing = _Hearing()


def tell(event: EventName, **facts: Any) -> None:
    """Something that calls share has changed, with the call that is asking or being told."""
    news = _hearing.news
    if news is not None:
        news.append((event, facts))


class Admissions:
    """The permits that one call holds for the attempt under way.

    Whatever an admission raises is reported: if it cannot answer, the attempt is made.

    Args:
        given: The guard's own admissions, outermost first.
        target: Breaker, gate and tokens of the target, asked last; None without a target.

    Attributes:
        news: What changed while this call asked or was told, for its session to announce.
        stated: What the answer to the attempt under way stated about limits; before `leave`.
        took: What that attempt took of what is counted in tokens; before `leave`.
    """

    __slots__ = ("_asked", "_given", "_is_in", "_is_promised", "news", "stated", "target", "took")

    def __init__(self, given: tuple[Admission, ...], target: SharedTarget | None) -> None:
        self._given, self.target = given, target
        # The admissions that admitted the attempt, with their tickets, outermost first.
        self._asked: tuple[tuple[Admission, object], ...] = ()
        self._is_in = False  # whether an attempt is under way
        self._is_promised = False  # whether the target holds a queue's place or tokens for one
        self.stated: Iterable[Any] = ()
        self.took: float | None = None
        self.news: _News = []

    @property
    def holds_anything(self) -> bool:
        """Whether there is anything to give back: a permit, tokens, a place in a queue."""
        return self._is_in or self._is_promised

    @property
    def may_tell(self) -> bool:
        """Whether a success could take a round trip to a store."""
        target = self.target
        if target is None or not target.is_remote:
            return False
        tickets = [ticket for admission, ticket in self._asked if admission is target]
        known = tickets[0] if tickets and tickets[0] is not _NOBODY else None
        return target.is_news(known, self.stated)

    def begun(self, mark: int) -> None:
        """The first attempt was made unasked, while all was calm; `mark` is when it began."""
        self._is_in = True
        if self.target is not None:
            self._asked = ((self.target, self.target.ticket_since(mark)),)

    def enter(self, attempt: int, now: float, wall: float) -> Hold | None:
        """None once the attempt is admitted by all; else how long to hold.

        Raises:
            NotAdmitted: It was refused; what had been granted is given back.
        """
        before, _hearing.news = _hearing.news, self.news
        try:
            return self._enter(attempt, now, wall)
        finally:
            _hearing.news = before

    def _enter(self, attempt: int, now: float, wall: float) -> Hold | None:
        target, asked = self.target, self._given
        if target is not None:
            if target.owes_tokens and (hold := self._fund(target, now, wall)) is not None:
                return hold
            asked = (*asked, target)
        for admission in asked:
            answer = self._ask(admission, attempt, now, wall)
            match answer:
                case Admitted():
                    self._asked = (*self._asked, (admission, answer.ticket))
                case Hold():
                    self._is_promised = True
                    self._leave("cancelled", None, now, wall)
                    return answer
                case Refused():
                    self._leave("cancelled", None, now, wall)
                    raise answer.error
                case _:
                    assert_never(answer)
        self._is_in = True
        return None

    @staticmethod
    def _ask(admission: Admission, attempt: int, now: float, wall: float) -> Answer:
        try:
            return admission.enter(attempt, now=now, wall=wall)
        except Exception as trouble:  # noqa: BLE001 -- an admission that raises admits
            report("admission", admission, trouble)
            return Admitted(_NOBODY)

    @staticmethod
    def _fund(target: SharedTarget, now: float, wall: float) -> Hold | None:
        try:
            return target.fund(now=now, wall=wall)
        except Exception as trouble:  # noqa: BLE001 -- if tokens cannot be counted, it is retried
            report("tokens", target, trouble)
            return None

    def leave(
        self,
        outcome: Outcome,
        failure: Failure | None = None,
        *,
        now: float,
        wall: float,
        is_cut: bool = False,
    ) -> None:
        """Tell all who admitted the attempt how it ended; nothing if none is under way.

        A retry that was scheduled and is not made any more is ``cancelled``, too. So is for the
        admissions what the caller cut for lack of time: it says nothing about the target. The
        tokens of such a retry are gone all the same, for it was made.
        """
        if not self.holds_anything:
            return
        target = self.target
        before, _hearing.news = _hearing.news, self.news
        try:
            self._leave("cancelled" if is_cut else outcome, failure, now, wall)
            if target is not None:
                target.ended(outcome, now=now, wall=wall)
        except Exception as trouble:  # noqa: BLE001 -- the attempt's outcome is what counts
            report("tokens", target, trouble)
        finally:
            self._is_in = self._is_promised = False
            _hearing.news = before

    def _leave(self, outcome: Outcome, failure: Failure | None, now: float, wall: float) -> None:
        stated, self.stated = self.stated, ()
        took, self.took = self.took, None
        target = self.target
        while self._asked:
            *others, (admission, ticket) = self._asked
            self._asked = tuple(others)
            if ticket is _NOBODY:
                continue
            try:
                if target is not None and admission is target:
                    if stated:
                        target.observe(ticket, stated)
                    if took is not None:
                        target.settle(ticket, took)
                admission.leave(ticket, outcome, failure, now=now, wall=wall)
            except Exception as trouble:  # noqa: BLE001 -- the attempt's outcome is what counts
                report("admission", admission, trouble)

    def reserve(self, failure: Failure, delay: float, now: float, wall: float) -> str:
        """Take tokens for a retry in `delay` seconds; why there are none, or empty."""
        target = self.target
        if target is None:
            return ""
        before, _hearing.news = _hearing.news, self.news
        try:
            why = target.reserve(failure, delay, now=now, wall=wall)
        except Exception as trouble:  # noqa: BLE001 -- if tokens cannot be counted, it is retried
            report("tokens", target, trouble)
            return ""
        finally:
            _hearing.news = before
        self._is_promised = not why
        return why
