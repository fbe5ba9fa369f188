"""Retry tokens as the driver meets them: reserved when a retry is scheduled, settled after it.

No admission: an admission is asked when the wait is over, and a wait that ends in a refusal was
waited for nothing. The judgement asks here before it decides to wait (E-C2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.tokens import TOKENS, Fund, Reserve, Settle, cost_of
from .view import View

if TYPE_CHECKING:
    from ..core.failure import Failure
    from ..core.machine import Key
    from ..core.ports import State
    from ..core.tokens import Tokens

__all__ = ("RetryTokens",)

# Successes are told to others once they are worth a tenth of the bucket.
_WORTH = 0.1

# A reservation outlives the wait by this: the retry itself takes time, too.
_MARGIN = 600.0


class RetryTokens:
    """One target's tokens, as one process uses them.

    Args:
        key: Whose tokens.
        settings: How many there are, and what a retry costs.
        shared: Where they are shared, behind `FailOpen`; None for this process alone.
    """

    def __init__(self, key: Key, settings: Tokens, *, shared: State | None = None) -> None:
        self.settings = settings
        self._view = View(TOKENS, key, shared)
        self._funds = 0.0

    @property
    def is_calm(self) -> bool:
        """Whether the bucket, as last seen, is full: a success need not be told."""
        return not self._view.state.spent

    def reserve(self, failure: Failure, delay: float, *, now: float, wall: float) -> str | None:
        """The name of a reservation for a retry in `delay` seconds; None if there is none left.

        Empty for a retry that is free: it is bounded by its call alone (E-C5).
        """
        cost = cost_of(failure, self.settings)
        if not cost:
            return ""
        name = self._view.name()
        funds, self._funds = self._funds, 0.0
        reserve = Reserve(
            id=name, cost=cost, lease=delay + _MARGIN, tokens=self.settings, funds=funds
        )
        answer = self._view.do(reserve, now, wall)
        self._view.look(now, wall)
        return name if answer.is_allowed else None

    def settle(self, name: str, *, is_returned: bool, now: float, wall: float) -> None:
        """The retry has ended: `is_returned` if it succeeded or was never made."""
        settle = Settle(id=name, is_returned=is_returned, tokens=self.settings)
        self._view.do(settle, now, wall)
        self._view.look(now, wall)

    def succeeded(self, *, now: float, wall: float) -> None:
        """A call succeeded at its first attempt."""
        if self.is_calm:
            return
        self._funds += 1
        worth = self._funds * self.settings.success
        if self._view.shared is None or worth >= _WORTH * self.settings.capacity:
            funds, self._funds = self._funds, 0.0
            self._view.do(Fund(successes=funds, tokens=self.settings), now, wall)
            self._view.look(now, wall)
