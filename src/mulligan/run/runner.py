"""One run, from where it stands to where it ends or waits.

    look ─▶ waiting ──time──▶ account open? ──▶ attempt ─▶ read ─▶ look …
             └─parked: exit      └─later: moved

It knows nothing that the journal does not: each round begins with what is written there. Whoever
takes up a run after a crash is therefore in the same place as whoever never crashed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import GitError
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
        step: Step = Moved(now, now + delay, because)
        if delay > self._work.policy().horizon:
            step = Ended(
                now,
                state.attempts,
                0.0,
                kind="quota",
                then="stop",
                until=now + delay,
                exit=EX_TEMPFAIL,
                because=f"{because}; that is beyond the horizon",
            )
        self._write(step, f"shut-{state.steps}")
        return False

    # Attempts

    def _attempt(self, state: RunState) -> None:
        work, world = self._work, self._world
        number = state.attempts + 1
        if not self._tidied(state):
            return
        how, launch = self._launch(state)
        session = launch.session or state.session
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
                timeout=work.settings.timeout,
                stop=self._stop,
            )
        finally:
            tap.close()
        if result.stopped or result.signal is not None:
            # What it detached may still be at work on the same files as its successor.
            world.end_leftovers(f"{self._claimed.id}.{number}")
        if not tap.facts.session and not launch.is_translated and tap.facts.size:
            # Its output is none that names sessions; the one that was chosen for it holds.
            tap.facts.session = session
        finished = Finished(
            result.took, result.code, result.signal, result.stopped, idle, result.error
        )
        given = self._given_back()
        self._ended(state, number, finished, tap.facts)
        self._remark([*given, *tap.remarks()])

    def _tidied(self, state: RunState) -> bool:
        """Clean the tree before an attempt that is not the first; False if that failed."""
        if self._tidy is None:
            return True
        try:
            said = self._tidy.begin()
            if state.attempts:
                words = state.ended[-1].message if state.ended else ""
                is_restart = not (state.session and self._work.adapter.can_resume)
                said += self._tidy.before(words, is_restart=is_restart)
        except GitError as error:
            because = f"the tree could not be made clean for the retry: {error}"
            now = self._world.clock.wall()
            ended = Ended(now, state.attempts, 0.0, then="stop", exit=1, because=because)
            self._write(ended, f"untidy-{state.steps}")
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
            return [*self._tidy.begin(), *self._tidy.after()]
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
        if state.session and adapter.can_resume:
            wish = Wish(own_retries=own_retries, environ=self._work.environ, prompt=state.prompt)
            return "resume", adapter.resume(command, state.session, wish)
        session = _uuid() if adapter.can_resume else ""
        wish = Wish(session=session, own_retries=own_retries, environ=self._work.environ)
        return "restart" if state.attempts else "start", adapter.start(command, wish)

    def _marked(self, launch: Launch, number: int) -> dict[str, str]:
        """The environment of an attempt, with the marks of its run and its own."""
        environ = marked({**self._work.environ, **launch.environ}, self._claimed.id)
        return marked(environ, f"{self._claimed.id}.{number}")

    def _noted(self, note: Note, facts: Facts) -> None:
        if note.is_work and self._limits is not None:
            self._limits.answered()
        self._view.noted(note, facts)

    def _ended(self, state: RunState, number: int, finished: Finished, facts: Facts) -> None:
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
            step = _without_session(step, state)
        elif not is_plainly_well(finished, self._log(number), self._work.adapter):
            settings = self._work.settings
            verdict, message, source = read_attempt(
                finished,
                self._log(number),
                self._work.adapter,
                program=self._work.program,
                session=facts.session or state.session,
                policy=self._work.policy(),
                before=state.ended,
                may_restart=settings.may_restart,
                deadline_at=settings.deadline_at,
                now=now,
                roll=self._world.roll(),
            )
            failure = verdict.failure
            limit = None if verdict.is_probe else failure  # nobody else need believe it yet
            hint = None if failure is None else failure.hint
            step = step._replace(
                kind="" if failure is None else str(failure.kind),
                status=None if failure is None else failure.status,
                message=message,
                reading=source,
                reset_at=None if hint is None else now + hint.delay,
                then=verdict.then,
                until=verdict.until,
                exit=verdict.exit,
                because=verdict.because,
                advice=verdict.advice,
                is_probe=verdict.is_probe,
            )
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
        verdict = read_torn(
            log,
            work.adapter,
            has_started=log.with_suffix(".out").exists(),
            session=session,
            may_restart=work.settings.may_restart,
            now=now,
        )
        step = Ended(
            now,
            begun.attempt,
            max(0.0, now - begun.at),
            session=session,
            cost=facts.cost,
            tokens=facts.tokens,
            retries=facts.retries,
            is_work=facts.is_work,
            message="" if verdict.then == "done" else "its supervisor died",
            then=verdict.then,
            until=verdict.until,
            exit=verdict.exit,
            because=verdict.because,
            advice=verdict.advice,
        )
        self._write(step, f"torn-{begun.attempt}")
        self._remark(given)

    def _log(self, number: int) -> Path:
        return self._desk.files(self._claimed.id) / f"attempt-{number}"

    def _write(self, step: Step, name: str) -> None:
        self._desk.write(self._claimed, step, name)
        self._view.step(step)


def _without_session(step: Ended, state: RunState) -> Ended:
    """What follows where the program knows nothing of the session it was to go on with.

    It was killed before it kept anything of it; or somebody removed the session, and with it all
    that was done.
    """
    message = "the program knows nothing of its session"
    if any(each.is_work for each in state.ended):
        return step._replace(
            message=message,
            is_lost=True,
            then="stop",
            exit=step.code or 1,
            because="its session is gone, and starting it anew would do its work twice",
        )
    because = "nothing was kept of its session: it starts anew"
    return step._replace(
        message=message, is_lost=True, then="again", until=step.at, because=because
    )


def _uuid() -> str:
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
