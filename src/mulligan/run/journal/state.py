"""The state of a run: the fold of the entries of its journal. Pure."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Literal, NamedTuple, assert_never

from .entries import (
    AttemptBegun,
    AttemptEnd,
    RunAdopted,
    RunCancelled,
    RunMade,
    RunRemark,
    RunReopened,
    RunRescheduled,
    RunTaken,
    WorkDelivered,
    WorkVerified,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .entries import JournalEntry, Then

__all__ = ("RunState", "Status", "new_state", "state_of")

# new: nothing was tried. running: an attempt is under way, or its supervisor died. waiting: the
# next attempt has a time. paused: its user interrupted it. limited: the time to go on lies beyond
# the horizon.
Status = Literal["new", "running", "waiting", "paused", "done", "failed", "limited", "cancelled"]

OPEN: frozenset[str] = frozenset({"new", "running", "waiting", "paused"})
# Only `RunReopened` makes a run in one of these states continue.
_FINAL: frozenset[str] = frozenset({"done", "cancelled"})
# The status after an attempt; ``limited`` if it stopped and could go on later.
_STATUSES: dict[Then, Status] = {
    "done": "done",
    "again": "waiting",
    "stop": "failed",
    "pause": "paused",
}

# Stopped by us for a failure that the program reported: treated as its own exit.
_AS_REPORTED = frozenset({"announced", "final"})


class RunState(NamedTuple):
    """The state of a run.

    Args:
        made: The entry that made it.
        status: Where it is.
        begun: The attempts that were begun.
        ended: The attempts that have ended.
        until: When it is due, or could go on.
        because: Why it is in this state.
        session: The session to resume; empty if there is none.
        prompt: The prompt for the resumed session; empty for the default one.
        horizon: The longest reset to wait for, in seconds, where its user changed it since.
        checks: Results of its verifications.
        checked_from: Index of the first that counts: the run was reopened after those before.
        remarks: Remarks for the user.
        is_torn: Whether the last attempt has a `begun` entry without its end.
        is_delivered: Whether its answer and its changes were delivered.
        undelivered: Why it could not be.
        is_worked: Whether its last attempt succeeded, and no other was requested since.
        holder: The last holder.
        epoch: The newest epoch of its entries: entries of an older one are ignored.
        is_final: Whether it was cancelled finally and cannot be reopened.
        steps: How many steps the journal has.
        changes: How many of them are more than a claim.
        at: When the last of them was written, in epoch seconds.
    """

    made: RunMade
    status: Status
    begun: tuple[AttemptBegun, ...] = ()
    ended: tuple[AttemptEnd, ...] = ()
    until: float | None = None
    because: str = ""
    session: str = ""
    prompt: str = ""
    horizon: float | None = None
    checks: tuple[WorkVerified, ...] = ()
    checked_from: int = 0
    remarks: tuple[RunRemark, ...] = ()
    is_torn: bool = False
    is_delivered: bool = False
    undelivered: str = ""
    is_worked: bool = False
    holder: str = ""
    epoch: int = 1
    is_final: bool = False
    steps: int = 0
    changes: int = 0
    at: float = 0.0

    @property
    def attempts(self) -> int:
        return len(self.begun)

    @property
    def is_open(self) -> bool:
        """Whether it continues by itself or can be resumed."""
        return self.status in OPEN

    @property
    def is_cut_off(self) -> bool:
        """Whether its last attempt was interrupted, so that it is unclear what it did."""
        last = next((each for each in reversed(self.ended) if each.stopped != "refused"), None)
        # The journal already has a decision for this attempt: it is not judged again.
        if last is None or last.then in {"done", "again"}:
            return False
        is_gone = last.is_lost and any(each.is_work for each in self.ended)
        if is_gone or last.is_doubt or last.stopped in _AS_REPORTED:
            return is_gone or last.is_doubt
        return bool(last.stopped) or last.signal is not None

    @property
    def pending(self) -> str:
        """The tool calls that were under way when its session was interrupted, in words."""
        told = (each for each in reversed(self.ended) if each.pending or each.is_work)
        last = next(told, None)
        return "" if last is None else last.pending

    @property
    def needs_restart(self) -> bool:
        """Whether it can continue only if its user allows a restart."""
        if self.is_final or self.made.terms.get("may_restart"):
            return False
        return self.is_cut_off and not self.session

    @property
    def waits_for_limit(self) -> bool:
        """Whether it waits for a limit, its own or its account's, and not for a backoff."""
        if self.status not in {"waiting", "limited"} or self.until is None:
            return False
        last = self.ended[-1] if self.ended else None
        return last is None or last.until != self.until or last.kind in {"quota", "rate_limit"}

    @property
    def verdict(self) -> bool | None:
        """What the verification says of the last attempt; None if there was none that counts."""
        checks = self.checks[self.checked_from :]
        return next((c.is_good for c in reversed(checks) if c.attempt == self.attempts), None)

    @property
    def exit(self) -> int:
        return self.ended[-1].exit if self.ended else 0

    @property
    def cost(self) -> float | None:
        """US dollars of all attempts, failed ones too; None if no attempt said."""
        said = [each.cost for each in self.ended if each.cost is not None]
        return sum(said) if said else None

    @property
    def tokens(self) -> int | None:
        said = [each.tokens for each in self.ended if each.tokens is not None]
        return sum(said) if said else None


def new_state(made: RunMade, *, epoch: int = 1, steps: int = 1) -> RunState:
    """The state of a run that was just made."""
    return RunState(
        made, "new", holder=made.holder, epoch=epoch, steps=steps, changes=1, at=made.at
    )


def state_of(
    steps: Iterable[JournalEntry],
    epochs: Iterable[int] = repeat(1),
    *,
    before: RunState | None = None,
) -> RunState | None:
    """The state of a run with these entries; None if it was never made.

    Args:
        steps: The entries, in their order.
        epochs: The epoch of each. The journal refuses an older one after a newer one; such an entry
            is counted here, and changes nothing else.
        before: The state after the entries before these; None if these are all.
    """
    state = before
    first = 1 if before is None else before.steps + 1
    for number, (step, epoch) in enumerate(zip(steps, epochs, strict=False), first):
        if state is None:
            if isinstance(step, RunMade):
                state = new_state(step, epoch=epoch, steps=number)
            continue
        state = state._replace(steps=number)
        if epoch >= state.epoch and not isinstance(step, RunMade):  # made twice changes nothing
            changes = state.changes + (not isinstance(step, RunTaken))
            state = _after(state, step)._replace(epoch=epoch, changes=changes, at=step.at)
    return state


def _after(  # noqa: C901, PLR0911, PLR0912 -- one a case
    state: RunState, step: JournalEntry
) -> RunState:
    match step:
        case RunMade():
            return state
        case RunTaken():
            return state._replace(holder=step.holder)
        case RunAdopted():
            made = state.made._replace(machine=step.machine, host=step.host, user=step.user)
            return state._replace(made=made)
        case AttemptBegun() | RunRescheduled() if state.status in _FINAL:
            return state
        case AttemptBegun():
            after = state._replace(status="running", until=None, is_torn=True)
            return after._replace(begun=(*state.begun, step), because=step.because)
        case AttemptEnd():
            return _ended(state, step)
        case RunRescheduled():
            horizon = state.horizon if step.horizon is None else step.horizon
            after = _due(state, step.until, step.because, step.prompt)
            return after._replace(horizon=horizon)
        case WorkVerified():
            return state._replace(checks=(*state.checks, step))
        case WorkDelivered():
            return state._replace(is_delivered=not step.trouble, undelivered=step.trouble)
        case RunReopened():
            return state if state.is_final else _reopened(state, step)
        case RunRemark():
            return state._replace(remarks=(*state.remarks, step))
        case RunCancelled():
            # Finished work is not cancelled; its phase can still ignore it.
            if state.is_final or (state.status == "done" and step.is_for_good):
                return state
            after = state._replace(status="cancelled", until=None, because=step.because)
            return after._replace(is_final=step.is_for_good)
        case _:
            assert_never(step)


def _due(state: RunState, until: float, because: str, prompt: str) -> RunState:
    after = state._replace(status="waiting", until=until, because=because, is_worked=False)
    return after._replace(prompt=prompt or state.prompt)


def _reopened(state: RunState, step: RunReopened) -> RunState:
    if step.until is not None:
        return _due(state, step.until, step.because, step.prompt)
    is_bad = state.verdict is False
    after = state._replace(undelivered="", because="")
    after = after._replace(checked_from=len(state.checks) if is_bad else state.checked_from)
    # It may have been cancelled after its work was done, because a sibling failed.
    return after._replace(status="done") if state.is_worked else after


def _ended(state: RunState, step: AttemptEnd) -> RunState:
    session = "" if step.is_lost else step.session or state.session
    after = state._replace(ended=(*state.ended, step), session=session, is_torn=False)
    if state.status == "done":
        return after
    # Keep the prompt until an attempt has worked on it: one may be interrupted before.
    is_worked = step.then == "done"
    after = after._replace(is_worked=is_worked, prompt="" if is_worked else state.prompt)
    if state.status == "cancelled":  # its attempt ended because of that
        return after
    is_limited = step.then == "stop" and step.until is not None
    status = "limited" if is_limited else _STATUSES[step.then]
    return after._replace(status=status, until=step.until, because=step.because)
