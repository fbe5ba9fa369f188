"""Tells listeners of guards what happens to a run: its journal entries as events of the core.

A run is told like a call: its program is the target, its id the request id. So the listeners that
count, log and trace calls do the same for runs and for the agents of plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..calls.emit import safely
from ..core.decisions import Ending, GiveUp, RetryAfter
from ..core.events import Cancelled, Ended, Failed, Held, Recovered, Succeeded
from ..core.failure import Failure, Kind
from ..core.story import Story, Try
from .journal.entries import UNASKED, AttemptEnd, RunRescheduled
from .journal.state import state_of
from .listeners import RunListener
from .show.messages import is_as_stated, seconds_waited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..core.decisions import Decision
    from ..core.events import Event
    from ..core.ports import Listener
    from .journal.entries import JournalEntry
    from .journal.state import RunState

__all__ = ("RunEvents", "events_of")

# A newer version may have written others into the journal.
_KINDS, _ENDINGS = frozenset(map(str, Kind)), frozenset(map(str, Ending))


class RunEvents(RunListener):
    """Sends the steps of one run to listeners of events. What a listener raises is logged."""

    def __init__(
        self, id_: str, program: str, state: RunState, listeners: tuple[Listener, ...]
    ) -> None:
        self._id, self._program, self._state = id_, program, state
        self._listeners = listeners

    def step(self, step: JournalEntry) -> None:
        before = self._state
        after = state_of((step,), (before.epoch,), before=before)
        assert after is not None  # noqa: S101 -- it was made
        self._state = after
        for event in events_of(step, before, after, id_=self._id, program=self._program):
            self._tell(event)

    def over(self, state: RunState) -> None:
        # Another process has cancelled it: no step of this one says so.
        if state.status == "cancelled" and _failed(state):
            common = _common(state.at, state, self._id, self._program)
            self._tell(Cancelled(**common, elapsed=_elapsed(state.at, state)))

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            if not isinstance(event, Succeeded) or getattr(listener, "successes", False):
                safely("listener", listener, event)


def events_of(
    step: JournalEntry, before: RunState, after: RunState, *, id_: str, program: str
) -> Iterator[Event]:
    """The events that a step makes, of a run with these states before and after it."""
    common = _common(step.at, after, id_, program)
    match step:
        case AttemptEnd():
            yield from _ended(step, before, after, common)
        case RunRescheduled() if step.until > max(step.at, before.until or 0.0):
            # Another run of its account has met a limit; earlier than planned is no wait.
            common["attempt"] = after.attempts + 1
            yield Held(**common, delay=step.until - step.at, because=step.because)
        case _:
            pass


def _common(at: float, state: RunState, id_: str, program: str) -> dict[str, Any]:
    """What every event says."""
    return {
        "at": at,
        "target": program,
        "name": state.made.name or program,
        "request_id": id_,
        "attempt": state.attempts,
    }


def _ended(
    step: AttemptEnd, before: RunState, after: RunState, common: dict[str, Any]
) -> Iterator[Event]:
    """The events of an attempt's end."""
    elapsed = _elapsed(step.at, after)
    if step.then == "done":
        if _failed(before):
            yield Recovered(**common, waited=seconds_waited(after), elapsed=elapsed, took=step.took)
        else:
            yield Succeeded(**common, took=step.took)
    elif step.then == "pause":
        if _failed(before):
            yield Cancelled(**common, elapsed=elapsed)
    elif _is_failure(step):
        failure, decision = _failure(step), _decision(step)
        if step.stopped != "refused":  # else no attempt was made
            yield Failed(
                **common, failure=failure, decision=decision, elapsed=elapsed, took=step.took
            )
        if isinstance(decision, GiveUp):
            story = _story(decision, after, common)
            yield Ended(
                **common, ending=decision.ending, failure=failure, story=story, elapsed=elapsed
            )


def _is_failure(end: AttemptEnd) -> bool:
    """Whether the attempt failed; one that a stopped supervisor ended did not."""
    return end.then in {"again", "stop"} and end.stopped not in UNASKED


def _failed(state: RunState) -> list[AttemptEnd]:
    return [each for each in state.ended if _is_failure(each) and each.stopped != "refused"]


def _elapsed(at: float, state: RunState) -> float:
    """Seconds since the first failure of the run."""
    failed = _failed(state)
    return max(0.0, at - failed[0].at) if failed else 0.0


def _failure(end: AttemptEnd) -> Failure:
    kind = Kind(end.kind) if end.kind in _KINDS else Kind.UNKNOWN
    found = Failure(kind=kind, message=end.message, status=end.status, because=end.reading)
    return found.cleaned()


def _decision(end: AttemptEnd) -> Decision:
    if end.then == "again":
        delay = max(0.0, (end.until or end.at) - end.at)
        return RetryAfter(delay, source="the program" if is_as_stated(end) else "")
    ending = Ending(end.ending) if end.ending in _ENDINGS else Ending.FINAL
    return GiveUp(ending, end.because, end.until)


def _story(decision: GiveUp, state: RunState, common: dict[str, Any]) -> Story:
    return Story(
        target=common["target"],
        name=common["name"],
        ending=str(decision.ending),
        because=decision.because,
        attempts=state.attempts,
        waited=seconds_waited(state),
        tries=tuple(_try(each) for each in _failed(state)),
        retry_at=decision.retry_at,
    )


def _try(end: AttemptEnd) -> Try:
    failure, decision = _failure(end), _decision(end)
    return Try(
        attempt=end.attempt,
        kind=str(failure.kind),
        message=failure.message,
        status=failure.status,
        code=None,
        decision=type(decision).__name__,
        delay=decision.delay if isinstance(decision, RetryAfter) else None,
        because=decision.because,
        took=end.took,
    )
