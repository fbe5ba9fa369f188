"""Drives one run from its state in the journal until it ends, parks or is stopped.

    state ─▶ waiting ──time──▶ account open? ──▶ attempt ─▶ read ─▶ state …
              └─parked: exit      └─later: moved

Each round acts on the state of the run as the journal has it, and on nothing else. So a process
that resumes a run after a crash does what the previous one would have done.
"""

from __future__ import annotations

import os
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import Fenced, GitError, GitStopped, SettingError
from ..agents.adapter import LaunchRequest
from ..agents.catalogue import program_name, recognise
from ..journal.entries import (
    INTERRUPTED,
    UNASKED,
    WOKEN,
    AttemptBegun,
    AttemptEnd,
    RunRemark,
    RunRescheduled,
)
from ..journal.state import OPEN, state_of
from ..process.orphans import marked
from .options import RunOptions
from .outcome import is_plainly_well, read_attempt, read_retry
from .output import AttemptFacts, AttemptOutput, read_again

if TYPE_CHECKING:
    from ...classify.output.reader import Outcome
    from ...core.failure import Failure
    from ...core.policy import Policy
    from ..agents.adapter import Launch
    from ..context import RunContext
    from ..journal.entries import How, JournalEntry
    from ..journal.state import RunState
    from ..journal.store import ClaimedRun
    from ..process.stdin import StdinSpool
    from .account_limits_client import RunLimits
    from .clean_tree import TreeCleaner
    from .options import DriveOptions
    from .recovery import RecoveryTerms

__all__ = ("FAR", "GLANCE", "LIFTED", "SPREAD", "Runner")

EX_TEMPFAIL, _INTERRUPTED = 75, 130

EVIDENCE = "MULLIGAN_EVIDENCE"

# Shorter waits for the account are not written to the journal.
_SHORT_HOLD = 5.0

# Seconds between two checks whether an awaited limit was lifted, the shortest remaining wait for
# which to check, and the seconds over which runs resume once it was.
GLANCE, FAR, SPREAD = 15.0, 120.0, 30.0
LIFTED = "the limit was lifted"

# Seconds between two checks whether a user still blocks the account.
_BLOCKED = 600.0


def _new_session() -> str:
    """A new session id: a UUID, made without importing `uuid`."""
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class Runner:
    """Drives one run that this process has claimed; arguments as for `drive_run`."""

    def __init__(
        self,
        context: RunContext,
        claimed: ClaimedRun,
        state: RunState,
        *,
        how: DriveOptions,
        stdin: StdinSpool,
        policy: Policy | None,
        cleaner: TreeCleaner | None,
    ) -> None:
        made, options = state.made, RunOptions.from_journal(state.made.terms)
        # Factor on the timeout of the next attempt after one that timed out.
        self._shrink = 1.0
        if how.may_restart:
            options = options._replace(may_restart=True)
        if policy is not None:
            if options.deadline is None:
                options = options._replace(deadline=policy.deadline)
            if policy.timeouts is not None and options.timeout is None:
                options = options._replace(timeout=policy.timeouts.total)
                self._shrink = policy.timeouts.shrink
        self._context, self._runs, self._platform = context, context.runs, context.platform
        self._stop, self._clock = context.stop, context.platform.clock
        self._claimed, self._state, self._options = claimed, state, options
        self._park, self._is_now = how.park, how.is_now
        self._stdin, self._cleaner = stdin, cleaner
        self._begins_anew = cleaner is not None and cleaner.always_restarts
        self._folder, self._cwd = claimed.folder, Path(made.cwd)
        self._command = self._runs.command(claimed.id)
        self._adapter = recognise(self._command, made.agent)
        # Seconds of silence before the program is stopped; None for any.
        self._idle = self._adapter.idle if options.idle is None else options.idle or None
        self._deadline_at = None if options.deadline is None else made.at + options.deadline
        # Loaded at the first failure.
        self._policy = cache(lambda: (policy or options.load_policy()).but(horizon=state.horizon))
        self._limits: RunLimits | None = None
        self._is_known = self._adapter.name != "generic"
        if self._is_known:
            from .account_limits_client import limits_of

            self._limits = limits_of(context, claimed.id, self._command, self._adapter)

    def go(self) -> int:
        """Drive the run until it ends, is parked or is stopped; returns the exit code.

        Raises:
            SettingError: Another process has claimed the run.
        """
        try:
            return self._driven()
        except Fenced as fenced:
            self._look()
            if self._state.status != "cancelled":
                because = f"run {self._claimed.id} was taken over by another process"
                raise SettingError(because) from fenced
            self._over(self._state)
            return _INTERRUPTED

    def _look(self) -> None:
        """Read what was written to the journal since, also by other processes."""
        state = self._runs.look(self._claimed.id, self._state)
        assert state is not None  # noqa: S101 -- this process holds it
        self._state = state

    def _driven(self) -> int:
        while True:
            if self._stop.is_set:  # perhaps because the run was cancelled
                self._look()
            state = self._state
            if state.status not in OPEN:
                self._over(state)
                return _INTERRUPTED if state.status == "cancelled" else state.exit
            if self._stop.reason == "interrupt" and state.status == "new":
                now, why = self._clock.wall(), "interrupted before it began"
                self._write(
                    AttemptEnd(now, 0, 0.0, then="pause", exit=_INTERRUPTED, because=why), "early"
                )
            elif self._stop.is_set or state.status == "paused":
                return self._stopped(state)
            elif state.is_torn:
                self._mend(state)
            elif state.until is not None and state.until > self._clock.wall():
                if self._park == "exit":
                    self._over(state)
                    return EX_TEMPFAIL
                self._wait(state.until, is_watching=state.waits_for_limit)
            elif self._is_open(state):
                self._attempt(state)

    def _stopped(self, state: RunState) -> int:
        """Report that this process stops; the exit code says whether a worker continues the run."""
        if state.status == "paused":
            self._over(state)
            return state.exit
        if self._stop.reason not in UNASKED:
            self._over(state._replace(because=INTERRUPTED))
            return _INTERRUPTED
        # The next worker continues it.
        due = self._clock.wall() if state.until is None else state.until
        self._over(state._replace(status="waiting", until=due))
        return EX_TEMPFAIL

    # Waiting

    def _wait(self, until: float, *, is_watching: bool = False) -> None:
        """Wait until `until`, a stop, a wake-up by another process, or the lifting of the limit."""
        clock, limits = self._clock, self._limits if is_watching else None
        watched = limits if limits is not None and limits.is_limited() else None
        looked = clock.wall()
        # In steps of a second: the machine may sleep, and the wall clock goes on.
        while (left := until - clock.wall()) > 0:
            for listener in self._context.listeners:
                listener.waiting(until, left)
            if self._platform.wait(self._stop, min(left, 1.0)):
                return
            before = self._state
            self._look()
            if self._state is not before and self._state.because == WOKEN:
                self._is_now = True
                return
            now = clock.wall()
            if watched is None or left < FAR or 0 <= now - looked < GLANCE:
                continue
            looked = now
            if watched.is_limited() is False:
                soon = now + self._platform.roll() * SPREAD
                self._write(RunRescheduled(now, soon, LIFTED), f"lifted-{now}")
                return

    def _is_open(self, state: RunState) -> bool:
        """Whether the account's limits allow an attempt; if not, reschedule or refuse the run."""
        held = None if self._limits is None else self._limits.held()
        is_now, self._is_now = self._is_now, False
        if held is None or is_now:
            return True
        now = self._clock.wall()
        if held.delay <= _SHORT_HOLD:
            self._wait(now + held.delay)
            return False
        if held.delay == inf:
            self._write(RunRescheduled(now, now + _BLOCKED, held.because), f"blocked-{state.steps}")
            return False
        until = max(now + held.delay, held.resets_at or 0.0)
        if until - now > self._policy().horizon:
            because = f"{held.because}; this is beyond the horizon"
            advice = "resume it with --now to try at once; mulligan status shows what is known"
            self._refuse(
                state,
                because,
                "horizon",
                kind="quota",
                until=until,
                exit_=EX_TEMPFAIL,
                advice=advice,
            )
        else:
            self._write(RunRescheduled(now, until, held.because), f"shut-{state.steps}")
        return False

    # Attempts

    def _attempt(self, state: RunState) -> None:
        if self._is_refused(state):
            return
        if self._cleaner is not None and not self._is_tree_clean(state, self._cleaner):
            return
        number = state.attempts + 1
        how, launch = self._launch(state, number)
        reader = self._adapter.reader(launch)
        session = launch.session or (state.session if how == "resume" else "")
        facts = AttemptFacts(number, launch, session)
        printed = AttemptOutput(
            facts,
            reader,
            log=self._folder / f"attempt-{number}",
            show=self._context.output,
            listeners=self._context.listeners,
            answered=None if self._limits is None else self._limits.answered,
            retrying=lambda reason, quiet: self._better_ended(facts, reason, quiet),
            is_tool_spared=self._options.idle is None,
        )
        # By these marks its processes are found.
        marks = (self._claimed.id, f"{self._claimed.id}.{number}")
        environ = marked({**self._context.environ, **launch.environ}, *marks)
        timeout = self._timeout(state, self._clock.wall())
        if self._limits is not None:
            self._limits.began()
        begun = AttemptBegun(self._clock.wall(), number, how, session, state.because)
        try:
            # Last before the start: from here on the attempt counts as started.
            self._write(begun, f"begun-{number}")
            result = self._platform.supervise(
                launch.argv,
                cwd=self._cwd,
                environ=environ,
                # A resumed session has already read it.
                stdin=None if how == "resume" else self._stdin,
                sink=printed,
                idle=self._idle,
                timeout=timeout,
                stop=self._stop,
                counts_cpu=not launch.is_structured,
            )
        finally:
            printed.close()
        if result.stopped or result.signal is not None:
            # Processes that it detached could change the same files as the next attempt.
            self._platform.end_leftovers(marks[1])
        remarks = printed.remarks()
        end = facts.ended(
            self._clock.wall(),
            result,
            idle=self._idle,
            is_end_reported=self._adapter.is_end_reported,
        )
        remarks = [*self._given_back(), *remarks]
        # Not for a session that the user named: only the user can fix that.
        is_lost = facts.is_lost and how == "resume"
        self._ended(state, end, is_lost=is_lost, retried=facts.retried)
        self._remark(remarks)

    def _better_ended(self, facts: AttemptFacts, reason: str, quiet: float) -> str:
        """Why a program that tries again by itself is better ended; empty to let it."""
        from .recovery import better_ended

        now = self._clock.wall()
        if facts.pending:  # a tool is still running
            return ""
        retried = read_retry(self._log(facts.number), reason, self._adapter, now)
        terms = self._terms(facts.resumable(is_cut_short=True), now)
        why = better_ended(retried, terms, quiet=quiet, row=facts.row, is_mute=facts.is_mute)
        if why:
            facts.announced, facts.retried = quiet, retried
        return why

    def _is_refused(self, state: RunState) -> bool:
        """Whether the next attempt must not be made; the reason is written to the journal."""
        because, advice, ending = "", "", "maybe_applied"
        if self._deadline_at is not None and self._clock.wall() >= self._deadline_at:
            because, ending = "its deadline has passed", "deadline"
        elif self._stdin.is_cut and not self._can_resume(state):
            because = "it was killed before all of its input had arrived, and has no session"
            advice = "run it again with all of its input"
        elif state.is_cut_off and not self._options.may_restart and not self._can_resume(state):
            from .recovery import HARMLESS

            because = "it was cut off, and restarting it could repeat its work"
            advice = HARMLESS
        if because:
            self._refuse(state, because, ending, advice=advice)
        return bool(because)

    def _refuse(
        self,
        state: RunState,
        because: str,
        ending: str = "final",
        *,
        kind: str = "",
        until: float | None = None,
        exit_: int = 1,
        advice: str = "",
    ) -> None:
        """End the run without another attempt; `ending` is a value of `Ending`."""
        step = AttemptEnd(
            self._clock.wall(),
            state.attempts,
            0.0,
            stopped="refused",
            kind=kind,
            then="stop",
            until=until,
            exit=exit_,
            because=because,
            advice=advice,
            ending=ending,
        )
        self._write(step, f"refused-{state.steps}")

    def _is_tree_clean(self, state: RunState, cleaner: TreeCleaner) -> bool:
        """Prepare the tree for an attempt, cleaned unless it is the first; False if that failed."""
        try:
            log, is_restart = self._log(state.attempts), not self._can_resume(state)
            said = cleaner.before(state, log, self._stop, is_restart=is_restart)
        except GitError as error:
            if not isinstance(error, GitStopped):  # a resume repeats this step
                self._refuse(state, f"the tree could not be made clean for the retry: {error}")
            return False
        self._remark(said)
        return True

    def _given_back(self) -> list[str]:
        """Give back what was set aside for the attempt; returns remarks for the user.

        Called before the end is written to the journal, because no process looks at an ended run
        again.
        """
        if self._cleaner is None:
            return []
        try:
            return self._cleaner.after(self._stop)
        except GitError as error:
            return [f"git: what was set aside stays aside: {error}"]

    def _remark(self, texts: list[str]) -> None:
        for text in texts:
            self._write(RunRemark(self._clock.wall(), text), f"remark-{os.urandom(4).hex()}")

    def _launch(self, state: RunState, number: int) -> tuple[How, Launch]:
        adapter, command, environ = self._adapter, self._command, self._context.environ
        own_retries = self._options.own_retries
        if self._can_resume(state):
            wish = LaunchRequest(
                own_retries=own_retries,
                environ=environ,
                prompt=state.prompt,
                pending=state.pending,
            )
            return "resume", adapter.resume(command, state.session, wish)
        session = _new_session() if adapter.can_resume else ""
        wish = LaunchRequest(session=session, own_retries=own_retries, environ=environ)
        launch = adapter.start(command, wish)
        if state.prompt:  # a program without a session gets it as a variable
            launch = launch._replace(environ={**launch.environ, EVIDENCE: state.prompt})
        return "restart" if number > 1 else "start", launch

    def _can_resume(self, state: RunState) -> bool:
        if self._begins_anew and not state.prompt:
            return False
        return bool(state.session) and self._adapter.can_resume

    def _ended(
        self, state: RunState, end: AttemptEnd, *, is_lost: bool, retried: Outcome | None
    ) -> None:
        """Write to the journal how the attempt ended and what follows."""
        log, adapter, failure = self._log(end.attempt), self._adapter, None
        if is_lost:
            from .recovery import without_session

            end = without_session(end, state.ended)
        elif self._is_known or not is_plainly_well(end, log):
            terms = self._terms(end.session or state.session, end.at)
            end, failure = read_attempt(end, log, adapter, terms, retried)
        self._write_end(end, failure, f"ended-{end.attempt}")

    def _mend(self, state: RunState) -> None:
        """Find out how an attempt ended whose supervisor died, and write that to the journal."""
        self._platform.end_leftovers(self._claimed.id)
        given = self._given_back()
        begun, adapter, now = state.begun[-1], self._adapter, self._clock.wall()
        log = self._log(begun.attempt)
        past = adapter.start(self._command, LaunchRequest(environ=self._context.environ))
        facts = AttemptFacts(begun.attempt, past, begun.session)
        read_again(log, adapter.reader(past), facts)
        torn = facts.torn(now, max(0.0, now - begun.at))
        end, failure = read_attempt(torn, log, adapter, self._terms(torn.session, now))
        self._write_end(end, failure, f"torn-{begun.attempt}")
        self._remark(given)

    def _write_end(self, end: AttemptEnd, failure: Failure | None, name: str) -> None:
        if self._limits is not None:
            # Do not share a limit that is a guess, or that the next attempt only probes.
            limit = None if end.is_guess or end.is_probe else failure
            self._limits.ended(limit, is_success=end.then == "done")
        self._write(end, name)

    def _log(self, number: int) -> Path:
        return self._folder / f"attempt-{number}"

    def _write(self, step: JournalEntry, name: str) -> None:
        """Write a step to the journal, and tell the listeners before it is taken."""
        place, before = self._runs.write(self._claimed, step, name), self._state
        if place == before.steps + 1:  # no other process has written meanwhile
            self._state = state_of((step,), (self._claimed.epoch,), before=before) or before
        else:
            self._look()
        for listener in self._context.listeners:
            listener.step(step)

    def _over(self, state: RunState) -> None:
        """Tell the listeners that this process is done, in reverse: notification before summary."""
        for listener in reversed(self._context.listeners):
            listener.over(state)

    # Settings of an attempt, from the options and the adapter

    def _timeout(self, state: RunState, now: float) -> float | None:
        """Seconds for the next attempt: its own, and what the deadline leaves; None for any."""
        own = self._options.timeout
        if own is not None and self._shrink != 1.0:
            own *= float(self._shrink ** sum(each.stopped == "timeout" for each in state.ended))
        if self._deadline_at is None:
            return own
        left = max(0.01, self._deadline_at - now)
        return left if own is None else min(left, own)

    def _terms(self, session: str, now: float) -> RecoveryTerms:
        """What the end of an attempt is judged by."""
        from .recovery import RecoveryTerms

        return RecoveryTerms(
            policy=self._policy(),
            program=program_name(self._command),
            can_resume=self._adapter.can_resume and bool(session) and not self._begins_anew,
            may_restart=self._options.may_restart,
            is_exit_trusted=self._adapter.is_exit_trusted,
            deadline_at=self._deadline_at,
            is_known=self._is_known,
            now=now,
            before=self._state.ended,
            roll=self._platform.roll(),
        )
