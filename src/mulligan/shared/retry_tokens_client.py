"""Retry tokens of a target for one process: reserved when a retry is scheduled, settled after it.

Not an `Admission`: that is asked after the wait, and a refusal then would make the wait useless.
`decide` asks here before it decides to wait (E-C2).
"""

from __future__ import annotations

from itertools import islice
from math import inf
from threading import Lock
from typing import TYPE_CHECKING

from ..core.failure import Reach
from ..stores.cache import CachedState
from ..stores.forks import reset_after_fork
from .retry_tokens import TOKENS, Fund, Reserve, Settle

if TYPE_CHECKING:
    from ..core.admission import Outcome
    from ..core.failure import Failure
    from ..core.ports import State
    from ..stores.state_machine import Key
    from .retry_tokens import TokenBucket, Tokens

__all__ = ("RetryTokens",)

# Successes are told to others once they are worth a tenth of the bucket.
_WORTH = 0.1

# A reservation outlives the wait by this: the retry itself takes time, too.
_MARGIN = 600.0

# A retry will probably succeed once it has been under way for so many times as long as the slowest
# that failed. Not all of them are counted where there are many.
_OUTLIVED, _MOST_COUNTED = 1.2, 500


class RetryTokens:
    """One target's tokens, as one process uses them.

    Args:
        key: Whose tokens.
        settings: How many there are, and what a retry costs.
        shared: Where they are shared, behind `FailOpen`; None for this process alone.

    Attributes:
        view: The cached state.
    """

    def __init__(self, key: Key, settings: Tokens, *, shared: State | None = None) -> None:
        self.settings = settings
        self.view = CachedState(TOKENS, key, shared)
        self._funds = 0.0
        self._slowest_failed = inf  # seconds that a retry took to fail; inf where none has
        self.after_fork()
        reset_after_fork(self)

    def after_fork(self) -> None:
        # A forked child has sent none of the retries that are under way.
        self._lock = Lock()
        self._sent: dict[str, float] = {}  # when the retries under way were sent, oldest first

    @property
    def is_calm(self) -> bool:
        """Whether the bucket, as last seen, is full, so that a success need not be reported."""
        return not self.view.state.spent

    def has_some(self, now: float) -> bool:
        """Whether a retry would get its tokens, as last seen."""
        state, settings = self.view.state, self.settings
        if len(state.reserved) < settings.floor:
            return True
        return state.left(settings, self._expected(now)) >= settings.transient

    def _expected(self, now: float) -> float:
        """Tokens of this process's retries that have outlived those that failed."""
        latest = now - _OUTLIVED * self._slowest_failed
        with self._lock:
            oldest = islice(self._sent.values(), _MOST_COUNTED)
            count = sum([sent_at < latest for sent_at in oldest])
        return self.settings.transient * count

    @property
    def keeps(self) -> float:
        """Seconds for which this process must remember it; the store remembers what is shared."""
        return 0.0 if self.view.shared is not None or self.is_calm else self.view.keep

    def reserve(self, failure: Failure, delay: float, *, now: float, wall: float) -> str | None:
        """The name of a reservation for a retry in `delay` seconds; None if there is none left.

        Empty for a retry that is free: it is bounded by its call alone (E-C5).
        """
        if not self.view.state.spent:
            self._slowest_failed = inf
        settings = self.settings
        cost = settings.throttle if failure.kind.is_limit else settings.transient
        if not cost or failure.reach is Reach.NEVER_SENT:
            return ""
        expected = self._expected(now)
        funds, self._funds = self._funds, 0.0
        name = self.view.name()
        reserve = Reserve(
            id=name,
            cost=cost,
            lease=delay + _MARGIN,
            tokens=settings,
            funds=funds,
            expected=expected,
        )
        return name if self.view.do(reserve, now, wall) else None

    def sent(self, name: str, *, now: float) -> None:
        """The retry is under way."""
        with self._lock:
            self._sent[name] = now
            while self._sent[oldest := next(iter(self._sent))] < now - _MARGIN:
                del self._sent[oldest]  # its lease has expired

    def settling(
        self, name: str, outcome: Outcome, now: float
    ) -> list[tuple[CachedState[TokenBucket], Settle | Fund]]:
        """The operation that books how an attempt ended, for `do_all`; empty if none does.

        `name` is the reservation of the retry, or empty for a first attempt. Tokens of a retry that
        was never made go back, too.
        """
        if name:
            is_returned = outcome != "failed"
            with self._lock:
                sent_at = self._sent.pop(name, None)
                if sent_at is not None and not is_returned:
                    slowest = 0.0 if self._slowest_failed == inf else self._slowest_failed
                    self._slowest_failed = max(slowest, now - sent_at)
            return [(self.view, Settle(id=name, is_returned=is_returned))]
        if outcome != "succeeded" or self.is_calm:
            return []
        self._funds += 1
        worth = self._funds * self.settings.success
        if self.view.shared is not None and worth < _WORTH * self.settings.capacity:
            return []
        funds, self._funds = self._funds, 0.0
        return [(self.view, Fund(successes=funds, tokens=self.settings))]
