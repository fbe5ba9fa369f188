"""Limits that programs have met, shared by all runs of one account.

A limit that one run meets holds back the others of the same account, whichever program they run,
until it resets or a model has answered one of them. The state and its changes are in
`account_limits`; this module asks the store before and after an attempt.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from ...core.hint import Confidence
from ...core.redaction import presentable
from ...errors import StoreError
from ...stores.cache import FailOpen
from ...stores.state_machine import Key
from ..agents.catalogue import inherited
from .account_limits import (
    ACCOUNT,
    OWN,
    THIS,
    LimitMet,
    ModelAnswered,
    ProbeReleased,
    StartDelayed,
    StartRequest,
    ordered_for_all,
    plain_model,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.failure import Failure
    from ...core.moment import Moment
    from ...core.ports import Store
    from ..agents.accounts import AgentAccount
    from ..agents.adapter import AgentAdapter
    from ..context import PlatformClock, RunContext
    from .account_limits import AccountState

__all__ = ("PART", "RunLimits", "limits_of")

#: The part of a key under which accounts are stored.
PART = "account"

# Runs that wait for the same limit resume spread over this fraction of the wait, at most this long.
_SPREAD, _LONGEST_SPREAD = 0.05, 30.0

# Seconds between two reports of an answer to the store; programs report every answer.
_NEWS = 30.0


def limits_of(
    context: RunContext, run: str, command: tuple[str, ...], adapter: AgentAdapter
) -> RunLimits | None:
    """The limits of a run's account; None for an unknown program."""
    account = adapter.account(command, inherited(command, context.environ))
    if account is None:
        return None
    if url := context.environ.get("MULLIGAN_STORE"):  # shares limits with other machines
        from ...stores.open import open_store

        store = open_store(url)
    else:
        store = context.runs.store()
    clock, roll = context.platform.clock, context.platform.roll
    return RunLimits(store, account, run=run, program=adapter.name, clock=clock, roll=roll)


class RunLimits:
    """Limits of one account, as seen by one run; `program` is the adapter's name."""

    def __init__(
        self,
        store: Store,
        account: AgentAccount,
        *,
        run: str,
        program: str,
        clock: PlatformClock,
        roll: Callable[[], float],
    ) -> None:
        self._store, self._state = store, FailOpen(store.state)
        self._run, self._program = run, program
        self._label, self._model = account.label, account.model and plain_model(account.model)
        # The account's own key, with a hash of its credential. An order for a program or a provider
        # applies to all of its accounts.
        self._key = Key(account.provider, PART, store.scoped(account.secret))
        keys = (self._key, Key(account.provider, PART), Key(program, PART))
        self._wanted = tuple(zip(keys, repeat(ACCOUNT)))
        self._clock, self._roll = clock, roll
        self.began()

    def began(self) -> None:
        """An attempt begins: what it is answered lifts limits that are older."""
        self._began = self._clock.now()
        self._told = self._began - _NEWS  # when its last answer was reported

    def held(self) -> StartDelayed | None:
        """Why an attempt must not begin now, and for how long; None if it may."""
        (state, *named), moment = self._state.peek_all(self._wanted)
        order = ordered_for_all(named, moment)
        if isinstance(order, StartDelayed):
            return order
        ask = StartRequest(run=self._run, model=self._model)
        after, answer = ask(state, moment)
        if after is not state:
            answer = self._state.transact(self._key, ask)
        if not isinstance(answer, StartDelayed):
            return None
        if order is not None and state.blocked(moment) is None:
            return None
        spread = self._roll() * min(_LONGEST_SPREAD, _SPREAD * answer.delay)
        return StartDelayed(answer.delay + spread, answer.because, answer.resets_at)

    def is_limited(self) -> bool | None:
        """Whether a limit holds for the run, or its account is blocked; None if the store is down.

        Cached state is not used while the store is down: it cannot show that a limit was lifted.
        """
        try:
            states, moment = self._store.state.peek_all(self._wanted)
        except StoreError:
            return None
        if (order := ordered_for_all(states, moment)) is not None:
            return isinstance(order, StartDelayed)
        return any(each.holds(self._model) for each in states[0].limits)

    def answered(self) -> None:
        """A model has answered the attempt: lift the limits that apply to it."""
        now = self._clock.now()
        if now - self._told >= _NEWS:
            self._told = now
            self._lift(*self._state.peek(self._key, ACCOUNT))

    def _lift(self, state: AccountState, moment: Moment) -> None:
        age = max(0.0, self._clock.now() - self._began)
        answered = ModelAnswered(model=self._model, age=age)
        if answered(state, moment)[1]:
            self._state.transact(self._key, answered)

    def ended(self, failure: Failure | None, *, is_success: bool) -> None:
        """The attempt has ended; `failure` is shared with other runs if it is a limit."""
        if failure is not None and failure.kind.is_limit:
            self._state.transact(self._key, self._met(failure))
            return
        state, moment = self._state.peek(self._key, ACCOUNT)
        if is_success:
            self._lift(state, moment)
        if any(each.probe is not None and each.probe.id == self._run for each in state.limits):
            self._state.transact(self._key, ProbeReleased(run=self._run))

    def _met(self, failure: Failure) -> LimitMet:
        hint = failure.hint
        about = failure.model and plain_model(failure.model)
        if about == THIS:
            about = self._model or OWN
        return LimitMet(
            run=self._run,
            program=self._program,
            label=presentable(self._label, 80),
            model=about,
            is_default=not self._model,
            seconds=0.0 if hint is None else hint.floor,
            is_sure=hint is not None and hint.confidence is Confidence.HIGH,
            because=(failure.message or str(failure.kind))[:200],
        )
