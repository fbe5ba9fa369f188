"""Results that could not be recorded yet, and are offered to the store again.

The operation has run, but its store went down, or its caller was cancelled. So this process keeps
the result for as long as the store would have, and offers it to the store until that accepts it. A
caller in this process gets it from here, without asking the store.
"""

from __future__ import annotations

import atexit
from time import monotonic
from typing import TYPE_CHECKING

from .claims import Done, Mismatch
from .renewal import RENEWALS
from .wakeups import wake

if TYPE_CHECKING:
    from ..stores.state_machine import Key
    from .claims import Finish
    from .holder import OnceTerms

__all__ = ("offer", "remembered")

# How soon a result is offered again, and at most how much later; it doubles in between. It is
# offered several times in a lease, however long the store has been away: once it is back, the
# result has to be recorded before another caller may take the key.
_SOON, _LATE, _IN_A_LEASE = 1.0, 60.0, 6

# By the identity of the keys, which an offer keeps alive.
_offers: dict[tuple[int, Key], _Offer] = {}


def offer(terms: OnceTerms, finish: Finish) -> None:
    """Remember what came of it, and have it recorded as soon as the store takes it."""
    made = _Offer(terms, finish)
    _offers[made.place] = made
    RENEWALS.add(made, 0.0)


def remembered(terms: OnceTerms) -> Done | Mismatch | None:
    """What this process knows of the key of `terms` and the store does not."""
    found = _offers.get((id(terms.keys), terms.place)) if _offers else None
    if found is None or found.is_over:
        return None
    if found.fingerprint != terms.fingerprint:
        return Mismatch(found.fingerprint)
    return Done(found.finish.value)


class _Offer:
    """A result that the store has not taken yet."""

    def __init__(self, terms: OnceTerms, finish: Finish) -> None:
        self.keys, self.finish, self.fingerprint = terms.keys, finish, terms.fingerprint
        self.place = (id(terms.keys), terms.place)
        self._until, self._delay = monotonic() + terms.ttl, _SOON
        self._latest = min(terms.lease / _IN_A_LEASE, _LATE)

    @property
    def is_over(self) -> bool:
        return monotonic() >= self._until

    def act(self) -> float | None:
        _, place = self.place
        try:
            self.keys.transact(place, self.finish)
        except Exception:  # noqa: BLE001 -- a store that is being closed raises anything
            if not self.is_over:
                delay, self._delay = self._delay, self._delay * 2
                return min(delay, self._latest)
        # Taken; or not, because a successor has taken over, and then its result is the one.
        if _offers.get(self.place) is self:
            del _offers[self.place]
        wake(place)
        return None


@atexit.register
def _at_the_end() -> None:
    """Offer everything once more: after this it is unknown."""
    for each in list(_offers.values()):
        if each.act() is not None:
            break  # the store is still away; the others need not wait for it one by one
