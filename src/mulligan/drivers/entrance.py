"""The way of one attempt through the admissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from ..core.admission import Admitted, Hold, Refused
from .announce import report

if TYPE_CHECKING:
    from ..core.admission import Admission, Answer, Outcome
    from ..core.failure import Failure
    from ..core.ports import Clock

__all__ = ("Entrance",)

# The ticket of an admission that failed to answer.
_NOBODY = object()


class Entrance:
    """The permits that one call holds for the attempt under way.

    Args:
        admissions: Who is asked, outermost first.
        clock: The time they are told.
    """

    def __init__(self, admissions: tuple[Admission, ...], clock: Clock) -> None:
        self._admissions, self._clock = admissions, clock
        self._tickets: list[object] = []

    def enter(self, attempt: int) -> Hold | None:
        """None once everybody has admitted the attempt; else how long to hold.

        Raises:
            NotAdmitted: Somebody refused; what had been granted is given back.
        """
        for admission in self._admissions:
            answer = self._ask(admission, attempt)
            match answer:
                case Admitted():
                    self._tickets.append(answer.ticket)
                case Hold():
                    self.leave("cancelled", None)
                    return answer
                case Refused():
                    self.leave("cancelled", None)
                    raise answer.error
                case _:
                    assert_never(answer)
        return None

    def _ask(self, admission: Admission, attempt: int) -> Answer:
        try:
            return admission.enter(attempt, now=self._clock.now(), wall=self._clock.wall())
        except Exception as trouble:  # noqa: BLE001 -- who cannot answer does not stand in the way
            report("admission", admission, trouble)
            return Admitted(_NOBODY)

    def leave(self, outcome: Outcome, failure: Failure | None) -> None:
        """Tell everybody who admitted the attempt how it ended."""
        while self._tickets:
            ticket = self._tickets.pop()
            admission = self._admissions[len(self._tickets)]
            if ticket is _NOBODY:
                continue
            try:
                admission.leave(
                    ticket, outcome, failure, now=self._clock.now(), wall=self._clock.wall()
                )
            except Exception as trouble:  # noqa: BLE001 -- the attempt's outcome is what counts
                report("admission", admission, trouble)
