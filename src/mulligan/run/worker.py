"""`Worker`: resumes parked runs when they are due.

A worker scans the journal, claims runs that are due or whose supervisor died, and drives each until
it ends or has to wait again. Any number of workers may share one journal: only one of them can
claim a run.

A run that waits for a limit is woken early if the limit is lifted meanwhile: by a model's answer to
another run of the account, or by ``mulligan reset`` or ``allow``. A limit counts as lifted only if
this worker has seen it before: a run may wait for a limit that is shared with no other.

A run that cannot be driven is reported and left alone until it changes. After a transient error,
such as a full disk, it is tried again later, with growing waits.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from ..errors import Fenced, MulliganError, StoreError
from .attempt.runner import FAR, GLANCE, LIFTED, SPREAD
from .journal.entries import RunRemark, RunRescheduled
from .journal.store import RunHeld, UnreadableRun
from .process.spawn import TRANSIENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from .context import RunContext
    from .journal.state import RunState
    from .journal.store import ClaimedRun

__all__ = ("Worker", "is_due", "is_passing")

# Seconds until a run is tried again after an error: at first, and at most.
_FIRST, _MOST = 5.0, 600.0


def is_due(state: RunState, now: float) -> bool:
    """Whether a run should go on by itself now: it is due, or its supervisor died.

    The process that started a run does not wait for a limit beyond the horizon; a worker resumes
    the run when it is due. A run that its user interrupted is resumed only by its user.
    """
    if state.made.parent:
        return False  # its plan wakes it
    if state.status in {"waiting", "limited"}:
        return state.until is None or state.until <= now
    return state.status in {"new", "running"}


def is_passing(error: BaseException) -> bool:
    """Whether the error is transient: the same may work later without a change of the run."""
    if isinstance(error, OSError):
        return error.errno in TRANSIENT
    # Out of memory or threads, or the store is down or full: not the fault of this run.
    is_full = isinstance(error, MemoryError) or "start new thread" in str(error)
    return is_full or (isinstance(error, StoreError) and not isinstance(error, Fenced))


class _Trouble(NamedTuple):
    """Why a run is left alone: until a time on the monotonic clock, None for ever.

    Once its `RunState.changes` rises, it is tried again.
    """

    changes: int
    until: float | None = None
    wait: float = 0.0


class _Watched(NamedTuple):
    """The last check of the limit that a run waits for, at a time on the monotonic clock."""

    changes: int
    at: float
    is_limited: bool


class Worker:
    """Resumes runs that are due, a few at a time.

    Args:
        context: The store of the runs; its stop ends the worker, and interrupts what it drives.
        drive: Drives a run that this process holds until it ends or has to wait.
        jobs: How many runs at once.
        failed: Told of runs that cannot be driven: (id, error).
        lacking: (id, state) → what this process lacks to drive a run, which then stays parked.
        is_limited: (id, state) → whether the limit that a run waits for holds; None if unknown.
    """

    def __init__(
        self,
        context: RunContext,
        *,
        drive: Callable[[ClaimedRun, RunState], object],
        jobs: int,
        failed: Callable[[str, Exception], None],
        lacking: Callable[[str, RunState], str] = lambda _id, _state: "",
        is_limited: Callable[[str, RunState], bool | None] = lambda _id, _state: None,
    ) -> None:
        self._runs, self._stop, self._platform = context.runs, context.stop, context.platform
        self._run, self._jobs, self._failed = drive, jobs, failed
        self._lacking, self._is_limited = lacking, is_limited
        self._watched: dict[str, _Watched] = {}
        self._under_way: dict[str, Thread] = {}
        self._troubles: dict[str, _Trouble] = {}
        self._known: dict[str, tuple[int, RunState | None]] = {}

    def work(self, *, is_once: bool, glance: float) -> int:
        """Resume runs that are due, until stopped or, with `is_once`, until nothing is due.

        Looks every `glance` seconds; returns how many were resumed.
        """
        woken = 0
        while not self._stop.is_set:
            self._under_way = {id_: run for id_, run in self._under_way.items() if run.is_alive()}
            try:
                found = self._wake()
            except (StoreError, OSError) as error:
                if is_once or not is_passing(error):
                    raise
                self._failed("the journal", error)
                found = 0
            woken += found
            if is_once and not found and not self._under_way:
                break
            self._platform.wait(self._stop, min(glance, 0.05) if is_once else glance)
        for thread in self._under_way.values():
            thread.join()
        return woken

    def _wake(self) -> int:
        """Claim and start runs that are due, up to `jobs`."""
        woken, now = 0, self._platform.clock.wall()
        if len(self._under_way) >= self._jobs:
            return 0
        counts = self._runs.steps_of()
        self._troubles = {id_: each for id_, each in self._troubles.items() if id_ in counts}
        self._known = {id_: each for id_, each in self._known.items() if id_ in counts}
        self._watched = {id_: each for id_, each in self._watched.items() if id_ in counts}
        for id_, count in counts.items():
            if len(self._under_way) >= self._jobs or self._stop.is_set:
                break
            if id_ in self._under_way or "." in id_:  # a plan wakes its agents
                continue
            state = self._look(id_, count)
            if state is None or self._is_left_alone(id_, state):
                continue
            if not is_due(state, now):
                if self._is_lifted(id_, state, now):
                    self._wake_early(id_, now)
                continue
            if self._runs.is_held(id_) or not self._runs.is_here(state.made):
                continue
            woken += self._start(id_, state, now)
        return woken

    def _is_lifted(self, id_: str, state: RunState, now: float) -> bool:
        """Whether the limit that a run waits for held when it was last looked at, and does not."""
        if not state.waits_for_limit or (state.until or now) - now < FAR:
            return False
        before, at = self._watched.get(id_), self._platform.clock.now()
        if before is not None and before.changes != state.changes:
            before = None
        if before is not None and at - before.at < GLANCE:
            return False
        try:
            is_here = self._runs.is_here(state.made) and not self._runs.is_held(id_)
            is_limited = self._is_limited(id_, state) if is_here else None
        except (MulliganError, OSError):  # reported when the run is due
            is_limited = None
        was_limited = before is not None and before.is_limited
        self._watched[id_] = _Watched(
            state.changes, at, is_limited=was_limited if is_limited is None else is_limited
        )
        return was_limited and is_limited is False

    def _wake_early(self, id_: str, now: float) -> None:
        """Make a run due soon whose limit was lifted; many of them are spread."""
        try:
            claimed = self._runs.claim(id_, now)
        except RunHeld:
            return
        except (MulliganError, OSError) as error:
            self._failed(id_, error)
            return
        with suppress(StoreError, OSError):
            found = self._runs.look(id_)
            if found is not None and found.waits_for_limit:
                soon = now + self._platform.roll() * SPREAD
                self._runs.write(
                    claimed, RunRescheduled(now, soon, LIFTED), f"lifted-{found.steps}"
                )
        with suppress(StoreError, OSError):
            self._runs.release(claimed)

    def _look(self, id_: str, count: int) -> RunState | None:
        """The state of a run with so many steps; cached, because most runs have ended."""
        known = self._known.get(id_)
        if known is not None and known[0] == count:
            return known[1]
        state = None
        try:
            state = self._runs.look(id_)
        except UnreadableRun as error:
            self._give_up(id_, 0, error)
        self._known[id_] = count, state
        return state

    def _start(self, id_: str, state: RunState, now: float) -> bool:
        """Claim a run that is due, and drive it in a thread; False if that fails."""
        try:
            if lacking := self._lacking(id_, state):
                self._leave_parked(id_, state, lacking)
                return False
            claimed = self._runs.claim(id_, now)
        except RunHeld:
            return False
        except (MulliganError, OSError) as error:
            self._give_up(id_, state.changes, error)
            return False
        try:
            # Another worker may have woken it between the look and the claim.
            found = self._runs.look(id_)
            if found is not None and is_due(found, now):
                if found.status == "limited":
                    self._runs.write(claimed, RunRescheduled(now, now, "it is due"), "due")
                thread = Thread(target=self._drive, args=(claimed, found), name=f"run {id_}")
                thread.start()
                self._under_way[id_] = thread
                return True
        except (MulliganError, OSError, RuntimeError) as error:
            self._give_up(id_, state.changes, error)
        with suppress(StoreError, OSError):
            self._runs.release(claimed)
        return False

    def _drive(self, claimed: ClaimedRun, state: RunState) -> None:
        try:
            self._run(claimed, state)
            self._troubles.pop(claimed.id, None)
        except Exception as error:  # noqa: BLE001 -- an error of one run must not stop the others
            found = None
            with suppress(MulliganError, OSError):
                found = self._runs.look(claimed.id)
            self._give_up(claimed.id, (found or state).changes, error)
            with suppress(StoreError, OSError):
                self._runs.release(claimed)

    def _is_left_alone(self, id_: str, state: RunState) -> bool:
        trouble = self._troubles.get(id_)
        if trouble is None or trouble.changes != state.changes:
            return False
        return trouble.until is None or self._platform.clock.now() < trouble.until

    def _leave_parked(self, id_: str, state: RunState, lacking: str) -> None:
        """Leave a run parked that needs what this process lacks; noted once in the journal."""
        note = f"a worker did not wake it: {lacking}"
        if all(each.text != note for each in state.remarks):
            self._runs.note(
                id_, RunRemark(self._platform.clock.wall(), note), f"lacking-{state.steps}"
            )
        found = self._runs.look(id_)
        self._later(id_, (found or state).changes, MulliganError(f"it stays parked: {lacking}"))

    def _give_up(self, id_: str, changes: int, error: Exception) -> None:
        """Report a run that cannot be driven, now or at all."""
        if is_passing(error):
            self._later(id_, changes, error)
            return
        self._troubles[id_] = _Trouble(changes)
        self._failed(id_, error)

    def _later(self, id_: str, changes: int, error: Exception) -> None:
        """Try a run again later; reported once until the run changes."""
        before = self._troubles.get(id_)
        is_new = before is None or before.changes != changes or not before.wait
        wait = _FIRST if before is None or is_new else min(2 * before.wait, _MOST)
        self._troubles[id_] = _Trouble(changes, self._platform.clock.now() + wait, wait)
        if is_new:
            self._failed(id_, error)
