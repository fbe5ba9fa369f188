"""Retry tokens: the pure state machine of how much retrying a target allows all its callers.

Successes put tokens in, retries take them out, and a retry that succeeds puts its own back. While
the target is well the bucket is full; while it is down the bucket empties and retrying stops,
long before the retries could keep it down. With 14 tokens a retry that happens at 21.5 % failing
calls, with 5 at 32 %.

    free ──reserve──▶ reserved ──succeeded, or not used──▶ free
                         └──failed, or its lease expires──▶ gone

A token is reserved when the retry is scheduled, not when it is sent: a thousand calls that sleep in
backoff must not all count on the same token (E-C2).

Failures are often quicker than answers. A retry that has been under way for longer than any that
failed will probably succeed: another retry may be scheduled with its tokens (`Reserve.expected`).
"""

from __future__ import annotations

from dataclasses import replace

from ..core.moment import Due, Moment
from ..core.record import record
from ..core.shared_settings import Tokens
from ..stores.state_machine import Machine

__all__ = ("TOKENS", "Fund", "Reserve", "Settle", "TokenBucket", "Tokens")


@record()
class Reservation:
    """Tokens that a scheduled retry holds."""

    id: str
    cost: float
    due: Due


@record()
class TokenBucket:
    """The state of a target's tokens.

    Args:
        spent: Tokens missing from a full bucket. Counted from the top, so that a capacity changed
            at run time takes effect at once (E-C4).
        reserved: Reservations whose retries have not ended.
    """

    spent: float = 0.0
    reserved: tuple[Reservation, ...] = ()

    def left(self, tokens: Tokens, expected: float = 0.0) -> float:
        """Tokens that can be reserved, with those that are `expected` back."""
        return max(0.0, tokens.capacity - self.spent + expected)


TOKENS: Machine[TokenBucket] = Machine(name="tokens", start=TokenBucket())


class _Step:
    """Base of the operations on this machine."""

    __slots__ = ()
    machine = TOKENS


@record(kw_only=True)
class Reserve(_Step):
    """Takes tokens for a retry; says whether it may be scheduled.

    Args:
        id: The retry's; the same id reserves once.
        cost: Tokens it takes.
        lease: Seconds after which its tokens are gone for good, should it never be settled.
        tokens: The target's settings.
        funds: Successes since this process last wrote.
        expected: Tokens of retries that have been under way for longer than failed ones were: they
            will probably succeed, and put them back.
    """

    id: str
    cost: float
    lease: float
    tokens: Tokens
    funds: float = 0.0
    expected: float = 0.0

    def __call__(self, state: TokenBucket, moment: Moment) -> tuple[TokenBucket, bool]:
        state = _funded(_tidied(state, moment), self.funds * self.tokens.success, self.tokens)
        if any(each.id == self.id for each in state.reserved):
            return state, True
        left = state.left(self.tokens, self.expected)
        if self.cost > left and len(state.reserved) >= self.tokens.floor:
            return state, False
        taken = min(self.cost, left)  # what the floor allows is not there to be taken
        reservation = Reservation(self.id, taken, moment.lease(self.lease))
        return TokenBucket(state.spent + taken, (*state.reserved, reservation)), True


@record(kw_only=True)
class Settle(_Step):
    """The retry has ended, or never began.

    Args:
        id: The reservation's.
        is_returned: Whether its tokens go back: it succeeded, or was not used.
    """

    id: str
    is_returned: bool

    def __call__(self, state: TokenBucket, moment: Moment) -> tuple[TokenBucket, None]:
        spent, others = state.spent, []
        for each in _tidied(state, moment).reserved:
            if each.id != self.id:
                others.append(each)
            elif self.is_returned:
                spent = max(0.0, spent - each.cost)
        is_same = len(others) == len(state.reserved)
        return (state if is_same else TokenBucket(spent, tuple(others))), None


@record(kw_only=True)
class Fund(_Step):
    """`successes` calls have succeeded at once."""

    successes: float
    tokens: Tokens

    def __call__(self, state: TokenBucket, moment: Moment) -> tuple[TokenBucket, None]:
        state = _tidied(state, moment)
        return _funded(state, self.successes * self.tokens.success, self.tokens), None


def _tidied(state: TokenBucket, moment: Moment) -> TokenBucket:
    """Without expired reservations."""
    live = tuple([each for each in state.reserved if each.due.left(moment) > 0])
    return state if len(live) == len(state.reserved) else replace(state, reserved=live)


def _funded(state: TokenBucket, amount: float, tokens: Tokens) -> TokenBucket:
    # What is gone never exceeds the capacity: after that was lowered, the debt is lowered with it.
    # What is reserved stays spent, or it would be there twice when it is given back.
    reserved = sum([each.cost for each in state.reserved])
    spent = reserved + max(0.0, min(state.spent - reserved, tokens.capacity) - amount)
    # Added in another order the same costs differ in the last digit; that is not a change.
    return state if abs(spent - state.spent) < 1e-9 else replace(state, spent=spent)
