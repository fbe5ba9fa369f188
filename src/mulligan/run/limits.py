"""Limits that programs have met, shared by all runs of one account.

One run's limit is everybody's: a second run of the same program and account does not start into a
closed window. They share a gate, as calls do. It opens again for all once a model has answered
one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.admission import Admitted, Hold
from ..core.gate import Gate
from ..core.machine import Key
from ..stores.failopen import FailOpen
from ..stores.gate_admission import GateAdmission

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.admission import Outcome
    from ..core.failure import Failure
    from ..core.ports import Store
    from .work import Times

__all__ = ("Limits",)

_SIX_HOURS = 21_600.0


class Limits:
    """What one program's account allows.

    Args:
        store: Where it is shared.
        agent: The adapter's name.
        account: What tells this account from others; hashed before it is stored.
        clock: Tells the time.
        roll: Rolls the dice.
    """

    def __init__(
        self, store: Store, agent: str, account: str, clock: Times, roll: Callable[[], float]
    ) -> None:
        key = Key(agent, "gate", store.scoped(account))
        # What a program prints is data that anybody may have written: it is not believed for days.
        gate = Gate(horizon=_SIX_HOURS)
        self._gate = GateAdmission(key, gate, roll=roll, shared=FailOpen(store.state))
        self._clock = clock
        self._ticket: object = None

    def shut_for(self) -> tuple[float, str] | None:
        """Seconds until the account lets anybody in, and why; None if it does, and we are."""
        answer = self._gate.enter(1, now=self._clock.now(), wall=self._clock.wall())
        if isinstance(answer, Hold):
            return answer.delay, answer.because
        if isinstance(answer, Admitted):
            self._ticket = answer.ticket
        return None

    def answered(self) -> None:
        """A model has answered: the account is open."""
        self._leave(None)

    def ended(self, failure: Failure | None) -> None:
        """The attempt is over; a limit is everybody's."""
        if self._ticket is None and failure is not None and failure.kind.is_limit:
            self._ticket = self._gate.calm_ticket()
        self._leave(failure)

    def _leave(self, failure: Failure | None) -> None:
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            outcome: Outcome = "succeeded" if failure is None else "failed"
            now, wall = self._clock.now(), self._clock.wall()
            self._gate.leave(ticket, outcome, failure, now=now, wall=wall)
