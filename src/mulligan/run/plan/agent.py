"""Drives one agent of a plan: its run, its tree, its verification and delivery.

The run is made when the agent is first started, because its prompt may need the outputs of earlier
phases. The program's answer is kept in the run's folder, where later phases read it.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.redaction import clean, mask
from ...errors import SettingError
from ..attempt.options import RunOptions
from ..attempt.policy import run_policy
from ..drive import drive_run, make_run
from ..journal.entries import (
    AttemptBegun,
    AttemptEnd,
    RunMade,
    RunRemark,
    RunReopened,
    RunRescheduled,
    WorkDelivered,
    WorkVerified,
    name_of,
)
from ..journal.state import RunState, state_of
from ..listeners import RunListener
from ..process.orphans import marked
from .acceptance import gets_another_attempt, is_verified
from .artifacts import output_path, write_output
from .prompts import command_for, read_output, variables_of
from .trees import merge_remarks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...core.policy import Policy
    from ..agents.adapter import Stream
    from ..attempt.clean_tree import TreeCleaner
    from ..attempt.options import DriveOptions
    from ..context import RunContext
    from ..git import AgentWorktree
    from ..journal.entries import JournalEntry
    from ..journal.store import ClaimedRun
    from ..process.stdin import StdinSpool
    from ..process.stop import Stop
    from .model import Agent, GitMode, KeptPlan, Phase

__all__ = ("AnswerKeeper", "PlanAgent", "verification_feedback")


# How much of a verification's output goes back to the agent: its end, where test runners sum up.
_KEPT = 6000


class PlanAgent:
    """One agent of the plan whose run is `run`."""

    def __init__(
        self, context: RunContext, run: str, kept: KeptPlan, phase: Phase, agent: Agent
    ) -> None:
        plan = kept.plan
        self.id = f"{run}.{phase.name}.{agent.name}"
        environ = {**context.environ, **plan.env, **agent.env}
        self._context, self._runs = context._replace(environ=environ), context.runs
        self._run, self._plan = run, plan
        self._phase, self._agent = phase, agent
        # Its name for git, with the phase: an agent's name is unique only in its phase.
        at, number = plan.phases.index(phase) + 1, phase.agents.index(agent) + 1
        self._git_name = f"{at}-{number}-{phase.name}-{agent.name}"[:64]
        self._folder = kept.folder
        # The folder that the plan names for it.
        self._base = kept.cwd / plan.cwd / agent.cwd
        self._mode: GitMode = phase.git or plan.git
        self._now = context.platform.clock.wall
        self._unwritten: AttemptEnd | None = None
        self._own_tree: AgentWorktree | None = None

    def state(self, *, is_made: bool = True) -> RunState | None:
        """The state of its run; None if it was never started."""
        state, ended = self._runs.look(self.id) if is_made else None, self._unwritten
        if ended is None:
            return state
        state = state or RunState(self._made(ended.at), "new")
        after = state._replace(status="failed", ended=(*state.ended, ended), until=None)
        return after._replace(because=ended.because, steps=state.steps + 1, at=ended.at)

    def drive(
        self,
        state: RunState | None,
        states: Mapping[str, RunState],
        stop: Stop,
        changed: Callable[[RunState], None],
        how: DriveOptions,
    ) -> None:
        """Drive it until it ends, has to wait, or is stopped; `changed` gets each new state.

        `state` is that of its run, None if it was never started; `states` those of all agents of
        the plan that were started, by ``phase/agent``.
        """
        self._own_tree = None  # a user may have taken it back since
        if state is None or state.status != "done":
            state = self._run_it(state, states, stop, changed, how)
        if state.status == "done" and not stop.is_set:
            self._accept(state, stop)
            state = self._known()
        changed(state)

    def _run_it(
        self,
        state: RunState | None,
        states: Mapping[str, RunState],
        stop: Stop,
        changed: Callable[[RunState], None],
        how: DriveOptions,
    ) -> RunState:
        """Make or claim its run, and drive that; returns its state."""
        # Refuse what can be refused before claiming the run.
        policy, cleaner = self._policy(), self._cleaner()
        if state is None:
            claimed, known, stdin = self._made_run(states)
        else:
            claimed, stdin = self._runs.claim(self.id, self._now()), None
            if state.status == "paused":
                moved = RunRescheduled(self._now(), self._now(), "the plan goes on")
                self._runs.write(claimed, moved, "plan-goes-on")
            known = self._known()
        answer = AnswerKeeper(self._answer, known, changed)
        drive_run(
            self._context._replace(stop=stop, listeners=(answer,), output=answer.output),
            claimed,
            state=known,
            stdin=stdin,
            how=how._replace(
                park="exit",
                # Only an agent that waited ignores limits; others are not started into one.
                is_now=how.is_now and state is not None and state.status != "paused",
                # Snapshot mode means that every attempt starts over.
                may_restart=how.may_restart or self._mode == "snapshot",
            ),
            policy=policy,
            cleaner=cleaner,
        )
        # A run that was stopped reports more than its journal has.
        return answer.state if answer.state.status == "done" else self._known()

    def give_up(self, because: str, now: float) -> None:
        """Mark it as failed, because it cannot be run, verified or delivered.

        If even that cannot be written to the journal, this process remembers it; a later resume of
        the plan tries again.
        """
        state = self.state()
        ended = AttemptEnd(now, 0, 0.0, kind="client", then="stop", exit=1, because=because)
        try:
            if state is None:
                made = self._made(now)
                claimed, _ = self._runs.make(self._runs.new_folder((made.command,), self.id), made)
            else:
                claimed = self._runs.claim(self.id, now)
            is_worked = state is not None and state.is_worked
            step = WorkDelivered(now, because) if is_worked else ended
            self._runs.write(claimed, step, "given-up")
            self._runs.release(claimed)
        except Exception as error:  # noqa: BLE001 -- else it would be started again endlessly
            also = f"{because}; nor could that be written down: {clean(str(error))}"
            self._unwritten = ended._replace(because=also)

    def _made(self, now: float) -> RunMade:
        """Its run, made without starting it; needs no tree, which may be what failed."""
        return RunMade(
            now,
            "generic",
            self._agent.program or self._agent.command[0],
            str(self._base),
            os.uname().nodename,
            os.geteuid(),
            self._title(),
            {},
            [],
            parent=self._run,
        )

    # Starting

    def _made_run(self, states: Mapping[str, RunState]) -> tuple[ClaimedRun, RunState, StdinSpool]:
        """Its run, made and claimed, with its input."""
        command, stdin = command_for(
            self._agent,
            folder=self._folder,
            outputs=self._outputs(states),
            variables=variables_of(self._plan, self._phase, self._agent),
        )
        agent = self._agent
        asked = RunOptions(timeout=agent.timeout, idle=agent.idle, may_restart=agent.may_restart)
        return make_run(
            self._context,
            command,
            asked,
            cwd=str(self._cwd()),
            name=self._title(),
            stdin=stdin,
            id_=self.id,
            parent=self._run,
        )

    def _title(self) -> str:
        return f"{self._plan.name} {self._phase.name}/{self._agent.name}"

    def _policy(self) -> Policy:
        policy = self._phase.policy
        return run_policy(policy) if isinstance(policy, str) else policy

    def _outputs(self, states: Mapping[str, RunState]) -> dict[str, dict[str, str]]:
        """What the agents of earlier phases answered; nothing where one did not succeed."""
        found: dict[str, dict[str, str]] = {}
        for key, phase, agent in self._plan.agents():
            if phase is self._phase:
                break
            state, output = states.get(key), ""
            # Never pass on a partial answer, or one that failed verification.
            if state is not None and state.status == "done" and is_verified(phase, state):
                run = f"{self._run}.{phase.name}.{agent.name}"
                output = read_output(self._runs.folder / "runs" / run / "answer")
            found.setdefault(phase.name, {})[agent.name] = output
        return found

    @property
    def _answer(self) -> Path:
        return self._runs.files(self.id) / "answer"

    # Folders and trees

    def _cwd(self) -> Path:
        worktree = self._lent()
        if worktree is None:
            return self._base
        # The same place in the tree of its own.
        return Path(worktree.folder) / os.path.relpath(os.path.realpath(self._base), worktree.owner)

    def _lent(self) -> AgentWorktree | None:
        """The tree of its own, made if it has none yet; None in modes other than worktree."""
        if self._mode != "worktree":
            return None
        if self._own_tree is None or not Path(self._own_tree.folder).is_dir():
            from ..git import Tree, add_worktree

            tree = Tree.find(self._base)
            self._own_tree = add_worktree(tree, self._run, self._git_name, under=self._trees)
        return self._own_tree

    @property
    def _trees(self) -> str:
        return str(self._runs.folder / "worktrees")

    @property
    def tree(self) -> str:
        """The folder of the tree that it was lent, if that is still there."""
        place = self._runs.folder / "worktrees" / self._run / self._git_name
        return str(place.resolve()) if place.is_dir() else ""

    def _cleaner(self) -> TreeCleaner | None:
        if self._mode == "off":
            return None
        from ..attempt.clean_tree import TreeCleaner
        from ..git import Tree
        from .trees import plan_baseline

        worktree = self._lent()
        if worktree is None:
            tree = Tree.find(self._base)
            key = f"{self._run}/agents/{self._git_name}"
            # A commit takes all changes of the plan, whichever of its agents made them.
            since = plan_baseline(tree, self._run) if self._mode == "commit" else ""
            return TreeCleaner(tree, self._mode, key, since=since, prefix=self._plan.commit_prefix)
        # The agent's own tree: cleaned for a restart, left alone for a resumed session.
        own = Tree.find(worktree.folder)
        return TreeCleaner(own, "snapshot", worktree.key, is_for_restarts_only=True)

    # Acceptance

    def _accept(self, state: RunState, stop: Stop) -> None:
        """Verify what it did, then deliver it, or tell the agent what is wrong."""
        self._restore(stop)
        if is_verified(self._phase, state) is None:
            self._verify(state, stop)
            state = self._known()
        if gets_another_attempt(self._phase, self._agent, state):
            check = state.checks[-1]
            because = "the verification failed: one more attempt, with its output"
            told = verification_feedback(self._phase.verify, check)
            # The schedule decides whether and when it is made: the cost limit may forbid it.
            self._write(RunReopened(check.at, check.at, because, told))
        elif is_verified(self._phase, state) and not state.is_delivered:
            self._deliver(state)

    def _restore(self, stop: Stop) -> None:
        """Give back what was stashed for its last attempt, if that was interrupted."""
        cleaner = self._cleaner() if self._mode == "stash" else None
        if cleaner is not None and (said := cleaner.after(stop)):
            self._write(*[RunRemark(self._now(), text) for text in said])

    def _verify(self, state: RunState, stop: Stop) -> None:
        """Run the verification command of the phase, and write down its result."""
        cwd, token, timeout = self._cwd(), f"{self.id}.verify", self._phase.verify_timeout
        self._show_answer(cwd)
        self._context.platform.end_leftovers(token)  # left by a killed supervisor
        tail = _Tail()
        ended = self._context.platform.supervise(
            self._phase.verify,
            cwd=cwd,
            environ=marked(self._context.environ, token),
            stdin=None,
            sink=tail,
            idle=None,
            timeout=timeout,
            stop=stop,
        )
        if ended.stopped and ended.stopped != "timeout":
            return
        # Masked before it is cut: it is kept in the journal, and shown.
        said = mask(_readable(tail.text.decode("utf-8", "replace")))
        if ended.error:
            said = ended.error
        elif ended.stopped:
            said += f"\n[it was still running after {timeout:g} seconds, and was stopped]"
        elif ended.code and not said.strip():
            said = f"[it exited with {ended.code}, and printed nothing]"
        is_good = ended.code == 0 and not ended.stopped and not ended.error
        self._write(WorkVerified(self._now(), state.attempts, is_good, said[-_KEPT:]))

    def _show_answer(self, cwd: Path) -> None:
        """Write its answer to its output file before verification, which may check that file.

        A file outside the lent tree is written to the path that the plan names.
        """
        output = self._agent.output
        is_inside = output and self.tree and output_path(cwd, output).is_relative_to(self.tree)
        self._put_answer(cwd if is_inside else self._base)

    def _deliver(self, state: RunState) -> None:
        """Deliver its answer and its changes. Idempotent."""
        trouble, said = self._taken_back()
        now, known = self._now(), {each.text for each in state.remarks}
        remarks = [RunRemark(now, text) for text in said if text not in known]
        try:
            self._put_answer(self._base)
        except SettingError as wrong:  # report both problems
            trouble = f"{trouble}; also, {wrong}" if trouble else str(wrong)
        self._write(*remarks, WorkDelivered(now, trouble))

    def _write(self, *steps: JournalEntry) -> None:
        if not steps:
            return
        claimed = self._runs.claim(self.id, self._now())
        try:
            for number, step in enumerate(steps):
                self._runs.write(claimed, step, f"{name_of(step)}-{number}")
        finally:
            self._runs.release(claimed)

    def _put_answer(self, folder: Path) -> None:
        """Copy its answer to the file that the plan names. Idempotent."""
        if self._agent.output and self._answer.exists():
            write_output(self._answer, folder, self._agent.output)

    def _taken_back(self) -> tuple[str, list[str]]:
        """Bring the changes of its own tree into the plan's.

        Returns why they could not be merged, if so, and remarks for the user.
        """
        if self._mode != "worktree":
            return "", []
        from ..git import Tree, merge_worktree, worktree_of

        # Not lent again: a supervisor that was killed may have taken it back before.
        tree = Tree.find(self._base)
        worktree = worktree_of(tree, self._run, self._git_name, under=self._trees)
        self._own_tree = None
        taken = merge_worktree(worktree, is_kept=not self._phase.merge)
        return merge_remarks(taken, worktree.key)

    def _known(self) -> RunState:
        state = self.state()
        assert state is not None  # noqa: S101 -- it was made
        return state


class AnswerKeeper(RunListener):
    """Keeps the stdout of the last attempt in `file`, and passes each new state to `changed`."""

    def __init__(self, file: Path, state: RunState, changed: Callable[[RunState], None]) -> None:
        self._file, self._changed = file, changed
        #: The state after the last step.
        self.state = state

    def step(self, step: JournalEntry) -> None:
        if isinstance(step, AttemptBegun):
            self._file.unlink(missing_ok=True)
        state = state_of((step,), (self.state.epoch,), before=self.state)
        assert state is not None  # noqa: S101 -- it was made
        self.state = state
        self._changed(state)

    def over(self, state: RunState) -> None:
        self.state = state

    def output(self, stream: Stream, chunk: bytes) -> None:
        """Keep what the program printed."""
        if stream != "stdout":
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(self._file, flags, 0o600), "ab") as file:
            file.write(chunk)


class _Tail:
    """The end of what a command prints, both streams in one."""

    def __init__(self) -> None:
        self.text = b""

    def take(self, _stream: Stream, chunk: bytes) -> None:
        self.text = (self.text + chunk)[-4 * _KEPT :]

    def ending(self) -> None: ...

    def quiet_until(self) -> float:
        return 0.0


def verification_feedback(command: tuple[str, ...], checked: WorkVerified) -> str:
    """What the agent is told after a verification that failed."""
    shown = mask(shlex.join(command))
    return (
        f"Your work was checked with the command {shown!r}, and the check failed. "
        f"This is the end of what it printed:\n\n{checked.said}\n\n"
        "Fix what it complains about. Do not repeat what is finished, and do not weaken the check."
    )


def _readable(text: str) -> str:
    """`text` without what could move a cursor or hide words; its lines stay."""
    return "".join(each for each in text if each in "\n\t" or each.isprintable())
