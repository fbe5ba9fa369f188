"""One run, from where it stands to where it ends or waits.

    look ─▶ waiting ──time──▶ account open? ──▶ attempt ─▶ read ─▶ look …
             └─parked: exit      └─later: moved

It knows nothing that the journal does not: each round begins with what is written there. Whoever
takes up a run after a crash is therefore in the same place as whoever never crashed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import GitError, GitStopped
from .ending import new_session, with_reading, without_session
from .leftovers import marked
from .reading import Finished, is_plainly_well, read_attempt, read_torn
from .steps import Begun, Ended, Moved, Remark
from .tap import Facts, Tap, read_again

if TYPE_CHECKING:
    from pathlib import Path

    from .agents.adapter import Launch, Note
    from .desk import Claimed, Desk
    from .limits import Limits
    from .state import RunState
    from .steps import How, Step
    from .stop import Stop
    from .tidy import Tidy
    from .view import View
    from .work import Work, World

__all__ = ("Runner",)

EX_TEMPFAIL, _INTERRUPTED = 75, 130

EVIDENCE = "MULLIGAN_EVIDENCE"

# A hold of the gate that is shorter than this is no news.
_SHORT_HOLD = 5.0


class Runner:
    """Drives one run that is in our hand.

    Args:
        desk: Where runs are kept.
        claimed: The run.
        work: What it runs.
        world: Time, luck and processes.
        view: Told of everything that a user wants to see.
        stop: Set to interrupt it.
        limits: What the program's account allows; None for programs that nobody knows.
        tidy: Cleans the tree before a retry; None to leave it alone.
    """

    def __init__(
        self,
        desk: Desk,
        claimed: Claimed,
        work: Work,
        *,
        world: World,
        view: View,
        stop: Stop,
        limits: Limits | None = None,
        tidy: Tidy | None = None,
    ) -> None:
        self._desk, self._claimed, self._work = desk, claimed, work
        self._world, self._view, self._stop, self._limits = world, view, stop, limits
        self._tidy = tidy
        self._is_now = work.settings.is_now

    def go(self) -> int:
        """Run it until it ends, is parked, or is stopped; the exit code."""
        while True:
            state = self._desk.look(self._claimed.id)
            assert state is not None  # noqa: S101 -- it is in our hand
            if not state.is_open:
                self._view.over(state)
                return _INTERRUPTED if state.status == "cancelled" else state.exit
            if self._stop.reason == "interrupt" and state.status == "new":
                now, why = self._world.clock.wall(), "interrupted before it began"
                self._write(
                    Ended(now, 0, 0.0, then="pause", exit=_INTERRUPTED, because=why), "early"
                )
                continue
            if self._stop.is_set or state.status == "paused":
                self._view.over(state)
                return state.exit if state.status == "paused" else _INTERRUPTED
            if state.is_torn:
                self._mend(state)
            elif state.until is not None and state.until > self._world.clock.wall():
                if self._work.settings.is_parked_by_exit:
                    self._view.over(state)
                    return EX_TEMPFAIL
                self._wait(state.until)
            elif self._is_open(state):
                self._attempt(state)

    # Waiting

    def _wait(self, until: float) -> None:
        """Wait until then, or until stopped."""
        clock = self._world.clock
        # In steps: a machine that slept wakes to a calendar that went on without it.
        while (left := until - clock.wall()) > 0:
            self._view.waiting(until, left)
            if self._world.wait(self._stop, min(left, 1.0)):
                return

    def _is_open(self, state: RunState) -> bool:
        """Whether the account lets us in; if not, when it will is written down."""
        shut = None if self._limits is None else self._limits.shut_for()
        is_now, self._is_now = self._is_now, False
        if shut is None or is_now:
            return True
        delay, because = shut
        now = self._world.clock.wall()
        if delay <= _SHORT_HOLD:
            self._wait(now + delay)
            return False
        because = f"a run of this account met a limit: {because}"
        if delay > self._work.policy().horizon:
            because = f"{because}; that is beyond the horizon"
            self._refuse(state, because, kind="quota", until=now + delay, exit_=EX_TEMPFAIL)
        else:
            self._write(Moved(now, now + delay, because), f"shut-{state.steps}")
        return False

    # Attempts

    def _attempt(self, state: RunState) -> None:
        work, world = self._work, self._world
        number = state.attempts + 1
        if self._is_refused(state) or not self._tidied(state):
            return
        how, launch = self._launch(state)
        session = launch.session or (state.session if how == "resume" else "")
        self._write(
            Begun(world.clock.wall(), number, how, session, state.because), f"begun-{number}"
        )
        idle = work.adapter.idle if work.settings.idle is None else work.settings.idle or None
        tap = Tap(
            work.adapter.reader(launch),
            is_translated=launch.is_translated,
            log=self._log(number),
            show=self._view.output,
            noted=lambda note: self._noted(note, tap.facts),
            is_tool_spared=work.settings.idle is None,
        )
        try:
            result = world.supervise(
                launch.argv,
                cwd=work.cwd,
                environ=self._marked(launch, number),
                # A session that goes on has read it.
                stdin=None if how == "resume" else work.stdin,
                sink=tap,
                idle=idle,
                timeout=self._timeout(state),
                stop=self._stop,
            )
        finally:
            tap.close()
        if result.stopped or result.signal is not None:
            # What it detached may still be at work on the same files as its successor.
            world.end_leftovers(f"{self._claimed.id}.{number}")
        is_mute = not launch.is_translated and tap.facts.size
        if not tap.facts.session and (is_mute or result.stopped or result.signal is not None):
            # Its output is none that names sessions, or it was cut off before it could: the one
            # that was chosen for it holds. Whether there is one is the program's to say.
            tap.facts.session = session
        tells_steps = work.adapter.can_resume and launch.is_translated
        finished = Finished(
            result.took,
            result.code,
            result.signal,
            result.stopped,
            idle,
            result.error,
            is_mute=tells_steps and not tap.facts.has_spoken,
        )
        given = self._given_back()
        if how != "resume":
            tap.facts.is_lost = False  # a session that the user named is the user's to mend
        is_cut = launch.is_translated and work.adapter.is_end_reported
        self._ended(state, number, finished, tap.facts, is_end_due=is_cut)
        self._remark([*given, *tap.remarks()])

    def _timeout(self, state: RunState) -> float | None:
        """Seconds for the next attempt: its own, and what the deadline leaves."""
        settings, own = self._work.settings, self._work.settings.limit(state.ended)
        if settings.deadline_at is None:
            return own
        left = max(0.01, settings.deadline_at - self._world.clock.wall())
        return left if own is None else min(left, own)

    def _is_refused(self, state: RunState) -> bool:
        """Whether the next attempt must not be made; then why is written down."""
        settings, now = self._work.settings, self._world.clock.wall()
        because, advice = "", ""
        if settings.deadline_at is not None and now >= settings.deadline_at:
            because = "its deadline is over"
        elif state.is_cut_off and not settings.may_restart and not self._can_resume(state):
            from .advice import HARMLESS

            because = "it was cut off, and starting it anew could do its work twice"
            advice = HARMLESS
        if because:
            self._refuse(state, because, advice=advice)
        return bool(because)

    def _refuse(
        self,
        state: RunState,
        because: str,
        *,
        kind: str = "",
        until: float | None = None,
        exit_: int = 1,
        advice: str = "",
    ) -> None:
        """End the run without another attempt."""
        step = Ended(
            self._world.clock.wall(),
            state.attempts,
            0.0,
            stopped="refused",
            kind=kind,
            then="stop",
            until=until,
            exit=exit_,
            because=because,
            advice=advice,
        )
        self._write(step, f"refused-{state.steps}")

    def _tidied(self, state: RunState) -> bool:
        """Ready the tree for an attempt, clean if it is not the first; False if that failed."""
        if self._tidy is None:
            return True
        try:
            log, is_restart = self._log(state.attempts), not self._can_resume(state)
            said = self._tidy.before(state, log, self._stop, is_restart=is_restart)
        except GitError as error:
            if not isinstance(error, GitStopped):  # whoever takes the run up goes on with that
                self._refuse(state, f"the tree could not be made clean for the retry: {error}")
            return False
        self._remark(said)
        return True

    def _given_back(self) -> list[str]:
        """Give back what was set aside for the attempt; what there is to say about that.

        Before its end is written down: a run that has ended is not looked at again.
        """
        if self._tidy is None:
            return []
        try:
            return self._tidy.after(self._stop)
        except GitError as error:
            return [f"git: what was set aside stays aside: {error}"]

    def _remark(self, texts: list[str]) -> None:
        for text in texts:
            now = self._world.clock.wall()
            self._write(Remark(now, text), f"remark-{os.urandom(4).hex()}")

    def _launch(self, state: RunState) -> tuple[How, Launch]:
        from .agents.adapter import Wish

        adapter, command = self._work.adapter, self._work.command
        own_retries = self._work.settings.own_retries
        if self._can_resume(state):
            wish = Wish(own_retries=own_retries, environ=self._work.environ, prompt=state.prompt)
            return "resume", adapter.resume(command, state.session, wish)
        session = new_session() if adapter.can_resume else ""
        wish = Wish(session=session, own_retries=own_retries, environ=self._work.environ)
        launch = adapter.start(command, wish)
        if state.prompt:  # a program without a session is told by its environment
            launch = launch._replace(environ={**launch.environ, EVIDENCE: state.prompt})
        return "restart" if state.attempts else "start", launch

    def _can_resume(self, state: RunState) -> bool:
        if self._begins_anew and not state.prompt:
            return False
        return bool(state.session) and self._work.adapter.can_resume

    @property
    def _begins_anew(self) -> bool:
        return self._tidy is not None and self._tidy.begins_anew

    def _marked(self, launch: Launch, number: int) -> dict[str, str]:
        """The environment of an attempt, with the marks of its run and its own."""
        environ = marked({**self._work.environ, **launch.environ}, self._claimed.id)
        return marked(environ, f"{self._claimed.id}.{number}")

    def _noted(self, note: Note, facts: Facts) -> None:
        if note.is_work and self._limits is not None:
            self._limits.answered()
        self._view.noted(note, facts)

    def _ended(
        self,
        state: RunState,
        number: int,
        finished: Finished,
        facts: Facts,
        *,
        is_end_due: bool,
    ) -> None:
        """Write down how the attempt ended, with what follows."""
        now = self._world.clock.wall()
        step = Ended(
            now,
            number,
            finished.took,
            finished.code,
            finished.signal,
            finished.stopped,
            facts.session,
            facts.cost,
            facts.tokens,
            facts.retries,
            facts.is_work,
        )
        limit = None
        if facts.is_lost:
            step = without_session(step, state)
        elif not is_plainly_well(finished, self._log(number), self._work.adapter):
            session = "" if self._begins_anew else facts.session or state.session
            reading = read_attempt(
                finished,
                self._log(number),
                self._work.adapter,
                self._work.terms(session, now, is_end_due=is_end_due),
                state.ended,
                roll=self._world.roll(),
            )
            step, limit = with_reading(step, reading)
        if self._limits is not None:
            self._limits.ended(limit)
        self._write(step, f"ended-{number}")

    def _mend(self, state: RunState) -> None:
        """Find out how an attempt ended whose supervisor died, and write it down."""
        from .agents.adapter import Launch

        self._world.end_leftovers(self._claimed.id)
        given = self._given_back()
        begun, work, now = state.begun[-1], self._work, self._world.clock.wall()
        log = self._log(begun.attempt)
        past = Launch(argv=work.command, session=begun.session, is_translated=True)
        facts = read_again(log, work.adapter.reader(past))
        # One that was chosen for it holds even if it did not come to name it. Whether there is
        # such a session is the program's to say.
        session = facts.session or begun.session
        has_started = log.with_suffix(".out").exists()
        reading = read_torn(
            log,
            work.adapter,
            work.terms("" if self._begins_anew else session, now),
            state.ended,
            has_started=has_started,
            roll=self._world.roll(),
        )
        step = Ended(
            now,
            begun.attempt,
            max(0.0, now - begun.at),
            stopped="torn" if has_started else "",
            session=session,
            cost=facts.cost,
            tokens=facts.tokens,
            retries=facts.retries,
            is_work=facts.is_work,
        )
        step, limit = with_reading(step, reading)
        if self._limits is not None:
            self._limits.ended(limit)
        self._write(step, f"torn-{begun.attempt}")
        self._remark(given)

    def _log(self, number: int) -> Path:
        return self._desk.files(self._claimed.id) / f"attempt-{number}"

    def _write(self, step: Step, name: str) -> None:
        self._desk.write(self._claimed, step, name)
        self._view.step(step)
