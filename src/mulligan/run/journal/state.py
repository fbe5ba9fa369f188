"""What the steps of a run amount to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, assert_never

from .steps import (
    Begun,
    Checked,
    Delivered,
    Ended,
    Made,
    Moved,
    Over,
    Remark,
    Reopened,
    Taken,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .steps import Step

__all__ = ("RunState", "Status", "state_of")

# new: nothing was tried. running: an attempt is under way, or its supervisor died. waiting: the
# next attempt has a time. paused: somebody interrupted it. limited: the time to go on lies beyond
# the horizon.
Status = Literal["new", "running", "waiting", "paused", "done", "failed", "limited", "cancelled"]

OPEN: frozenset[str] = frozenset({"new", "running", "waiting", "paused"})


class RunState(NamedTuple):
    """A run as it stands.

    Args:
        made: How it was asked for.
        status: Where it is.
        begun: The attempts that were begun.
        ended: The attempts that have ended.
        until: When it is due, or could go on.
        because: Why it stands there.
        session: The session to go on with; empty if there is none.
        prompt: What the program is told when it goes on; empty for the usual.
        checks: How what it did was verified.
        checked_from: The first of them that counts: those before were reopened.
        remarks: What happened beside it.
        is_torn: Whether the last attempt was begun, and nobody wrote down its end.
        is_delivered: Whether what it did was given to whoever asked for it.
        undelivered: Why it could not be.
        is_worked: Whether its last attempt ended well, and none was asked for since.
        holder: Who took it last.
        epoch: How often it was taken.
        steps: How many steps the journal has.
        at: When the last of them was written, in epoch seconds.
    """

    made: Made
    status: Status
    begun: tuple[Begun, ...] = ()
    ended: tuple[Ended, ...] = ()
    until: float | None = None
    because: str = ""
    session: str = ""
    prompt: str = ""
    checks: tuple[Checked, ...] = ()
    checked_from: int = 0
    remarks: tuple[Remark, ...] = ()
    is_torn: bool = False
    is_delivered: bool = False
    undelivered: str = ""
    is_worked: bool = False
    holder: str = ""
    epoch: int = 1
    steps: int = 0
    at: float = 0.0

    @property
    def attempts(self) -> int:
        return len(self.begun)

    @property
    def is_open(self) -> bool:
        """Whether it will go on by itself, or can be taken up where it is."""
        return self.status in OPEN

    @property
    def is_cut_off(self) -> bool:
        """Whether its last attempt ended in the middle, so that nobody knows what it did."""
        last = next((each for each in reversed(self.ended) if each.stopped != "refused"), None)
        # Who said that it goes on has asked this question already, and knew more.
        if last is None or last.then in {"done", "again"}:
            return False
        is_gone = last.is_lost and any(each.is_work for each in self.ended)
        return is_gone or bool(last.stopped) or last.signal is not None

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


def state_of(steps: Iterable[Step]) -> RunState | None:
    """Where a run with these steps stands; None if it was never made."""
    state: RunState | None = None
    for number, step in enumerate(steps, 1):
        if isinstance(step, Made):
            state = RunState(step, "new", holder=step.holder, steps=number, at=step.at)
        elif state is not None:
            state = _after(state, step)._replace(steps=number, at=step.at)
    return state


def _after(  # noqa: PLR0911 -- one a case
    state: RunState,
    step: Taken | Begun | Ended | Moved | Checked | Delivered | Reopened | Remark | Over,
) -> RunState:
    match step:
        case Taken():
            return state._replace(holder=step.holder, epoch=state.epoch + 1)
        case Begun():
            after = state._replace(status="running", until=None, is_torn=True)
            return after._replace(begun=(*state.begun, step), because=step.because)
        case Ended():
            return _ended(state, step)
        case Moved():
            after = state._replace(status="waiting", until=step.until, because=step.because)
            return after._replace(prompt=step.prompt or state.prompt, is_worked=False)
        case Checked():
            return state._replace(checks=(*state.checks, step))
        case Delivered():
            return state._replace(is_delivered=not step.trouble, undelivered=step.trouble)
        case Reopened():
            return _reopened(state)
        case Remark():
            return state._replace(remarks=(*state.remarks, step))
        case Over():
            return state._replace(status="cancelled", until=None, because=step.because)
        case _:
            assert_never(step)


def _reopened(state: RunState) -> RunState:
    is_bad = state.verdict is False
    after = state._replace(undelivered="", because="")
    after = after._replace(checked_from=len(state.checks) if is_bad else state.checked_from)
    # It may have been cancelled after its work was done, because a sibling failed.
    return after._replace(status="done") if state.is_worked else after


def _ended(state: RunState, step: Ended) -> RunState:
    session = "" if step.is_lost else step.session or state.session
    after = state._replace(ended=(*state.ended, step), session=session, is_torn=False)
    # What it was told stands until it has worked on that: an attempt may be cut off before.
    is_worked = step.then == "done"
    after = after._replace(is_worked=is_worked, prompt="" if is_worked else state.prompt)
    if state.status == "cancelled":  # its attempt ended because of that
        return after
    return after._replace(status=_status(step), until=step.until, because=step.because)


def _status(step: Ended) -> Status:
    if step.then == "again":
        return "waiting"
    if step.then == "pause":
        return "paused"
    if step.then == "stop":
        return "failed" if step.until is None else "limited"
    return "done"
