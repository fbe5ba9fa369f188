"""A breaker and a gate asked directly, without the queue of a target around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mulligan.core.admission import Admitted, Hold, Refused
from mulligan.errors import CircuitOpen
from mulligan.shared.admission import result_of
from mulligan.shared.breaker import Shut
from mulligan.shared.breaker_client import BreakerAdmission
from mulligan.shared.gate.client import GateAdmission
from mulligan.shared.gate.gate import GateWait
from mulligan.stores.cache import do_all, refresh

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mulligan.core.admission import Answer, Outcome
    from mulligan.core.failure import Failure
    from mulligan.shared.breaker import Result


class BreakerAlone(BreakerAdmission):
    def enter(self, attempt: int, *, now: float, wall: float) -> Answer:
        moment = refresh([] if self.shared is None else [self.shared], now, wall)
        answer = self.ask(now, wall, moment)
        if isinstance(answer, Shut):
            return Refused(CircuitOpen(self.target, answer.retry_in, answer.because))
        return Admitted(answer)

    def leave(
        self, ticket: Any, outcome: Outcome, failure: Failure | None, *, now: float, wall: float
    ) -> None:
        told = self.telling(ticket, result_of(outcome, failure), failure, now)
        self.told(told, do_all(told, now, wall), now, wall)


class GateAlone(GateAdmission):
    def enter(self, attempt: int, *, now: float, wall: float) -> Answer:
        if not self.first_burst.is_over:
            self.view.expire()
        _, moment = self.view.look(now, wall)
        answer = self.ask(0.0, now, wall, moment)
        if isinstance(answer, GateWait):
            return Hold(answer.delay, answer.because)
        return Admitted(answer)

    def leave(
        self,
        ticket: Any,
        outcome: Outcome,
        failure: Failure | None,
        result: Result | None = None,
        quotas: Iterable[Any] = (),
        took: float | None = None,
        *,
        now: float,
        wall: float,
    ) -> None:
        result = result or result_of(outcome, failure)
        super().leave(ticket, outcome, failure, result, quotas, took, now=now, wall=wall)
