"""Makes the run of a plan, drives it, and reopens failed agents."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...config.lines import path_text
from ...core.redaction import presentable
from ...errors import GitError, SettingError, TreeBusy
from ..attempt.options import WAIT_HERE
from ..journal.entries import PLAN, RunMade, RunReopened, RunRescheduled
from ..journal.store import NoSuchRun
from ..show.notify import Notifier, remember, remembered
from .acceptance import rejection
from .conductor import EX_TEMPFAIL, Conductor
from .load import plan_data, plan_from_data
from .model import KeptPlan
from .prompts import prompt_of
from .trees import check_trees, drop_plan_baselines, files_aside, holding_trees, tree_folders
from .validate import machine_problems, problems

if TYPE_CHECKING:
    from ..attempt.options import DriveOptions
    from ..context import RunContext
    from ..journal.store import ClaimedRun, RunStore
    from ..listeners import PlanListener
    from .model import Agent, Plan
    from .report import Report

__all__ = ("conduct", "kept_plan", "make_plan", "reopen_agents", "set_cost_limit")

# Seconds from which a wait is reported; that of a run under the default policy.
_NEWS_AFTER = 120.0
# How soon a tree in which another run works is looked at again, in seconds.
_BUSY = 60.0
# Default horizon: the longest reset to wait for, in seconds.
_SIX_HOURS = 21_600.0


def make_plan(
    context: RunContext,
    plan: Plan,
    *,
    folder: Path,
    cwd: Path,
    name: str = "",
    notify: tuple[str, ...] = (),
) -> tuple[ClaimedRun, KeptPlan]:
    """A new run of `plan`, claimed by this process, and what it keeps; nothing is started.

    The run keeps a copy of the plan: later changes of the file in `folder` do not affect it. Its
    agents run in `cwd`, as far as the plan does not name a folder. The command `notify` is run when
    it begins a long wait, and when it ends.

    Raises:
        SettingError: It is invalid, or something that it needs is missing.
        GitError: A phase wants its tree cleaned, and there is no such tree.
    """
    runs, environ = context.runs, context.environ
    for problem in (
        *problems(plan, folder=folder, home=cwd),
        *machine_problems(plan, home=cwd, environ=environ),
    ):
        hint = f"; {problem.hint}" if problem.hint else ""
        raise SettingError(f"{path_text(problem.path)}: {problem.message}{hint}")
    _check_promised(runs, check_trees(plan, cwd))
    kept = KeptPlan(_with_prompts(plan, folder), folder, cwd)
    id_ = runs.new_folder((PLAN, plan.name))
    _keep(runs, id_, kept)
    if notify:
        remember(runs.files(id_), notify)
    made = RunMade(
        at=context.now(),
        agent=PLAN,
        command=f"plan {plan.name}",
        cwd=str(cwd),
        host=os.uname().nodename,
        user=os.geteuid(),
        name=presentable(name or plan.name),
        terms={},
        variables=sorted(environ),
        path=environ.get("PATH", ""),
    )
    claimed, _ = runs.make(id_, made)
    return claimed, kept


def _check_promised(runs: RunStore, mine: set[str]) -> None:
    """Refuse trees (`mine`, by folder) in which an unfinished run counts all changes as its own."""
    if not mine:
        return
    for id_, state in runs.all():
        if state.made.agent != PLAN or not (state.is_open and state.attempts):
            continue
        shared: set[str] = set()
        with suppress(GitError, NoSuchRun):  # it cannot be resumed there
            other, _, home = kept_plan(runs, id_)
            shared = tree_folders(other, home, is_exclusive=True) & mine
        if shared:
            names = {"waiting": "is parked", "paused": "was interrupted"}
            how = names.get(state.status, "was cut off")
            raise TreeBusy(
                f"{presentable(min(shared))}: run {id_} {how} and will continue in this tree, "
                f"where it would take other edits for its own; mulligan resume {id_} goes on "
                f"with it, mulligan cancel {id_} ends it and says what it has set aside"
            )


def _with_prompts(plan: Plan, folder: Path) -> Plan:
    """`plan` with the texts of its prompt files, so that no agent can change a later prompt."""

    def with_prompt(agent: Agent) -> Agent:
        if not agent.prompt_file:
            return agent
        return replace(agent, prompt=prompt_of(agent, folder), prompt_file="")

    phases = [replace(phase, agents=tuple(map(with_prompt, phase.agents))) for phase in plan.phases]
    return replace(plan, phases=tuple(phases))


def _keep(runs: RunStore, id_: str, kept: KeptPlan) -> None:
    """Write the plan into its run's folder, whole or not at all."""
    file = runs.files(id_) / "plan.json"
    half = file.with_suffix(".half")
    places = {"folder": str(kept.folder), "cwd": str(kept.cwd)}
    data = json.dumps({**places, "plan": plan_data(kept.plan)})
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(half, flags, 0o600), "w", encoding="utf-8") as opened:
        opened.write(data)
    half.replace(file)


def set_cost_limit(runs: RunStore, id_: str, cost_limit: float) -> None:
    """Change the cost limit, and nothing else, of a plan that this process has claimed."""
    kept = kept_plan(runs, id_)
    _keep(runs, id_, kept._replace(plan=replace(kept.plan, cost_limit=cost_limit)))


def kept_plan(runs: RunStore, id_: str) -> KeptPlan:
    """The plan of a run; raises `NoSuchRun` if the run does not have it any more."""
    file = runs.folder / "runs" / id_ / "plan.json"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return KeptPlan(plan_from_data(data["plan"]), Path(data["folder"]), Path(data["cwd"]))
    except FileNotFoundError:
        why = "is gone"
    except OSError as error:
        why = f"cannot be read: {(error.strerror or str(error)).lower()}"
    except (ValueError, KeyError, TypeError, AttributeError):  # pydantic's are ValueErrors
        why = "was changed, and is not a plan any more"
    raise NoSuchRun(
        f"run {id_} cannot be resumed: the plan that it kept in {file} {why}; run the plan again"
    )


def conduct(
    context: RunContext,
    claimed: ClaimedRun,
    kept: KeptPlan,
    listener: PlanListener,
    how: DriveOptions = WAIT_HERE,
) -> tuple[int, Report]:
    """Drive a plan that this process has claimed until it ends, parks or is stopped.

    The run is released at the end. Returns the exit code and the report.
    """
    runs, (plan, _, cwd) = context.runs, kept
    notifier = None
    if argv := remembered(runs.files(claimed.id)):
        notifier = Notifier(
            context, claimed.id, argv, told=listener.notified, in_place=lambda: _NEWS_AFTER
        )
    conductor = Conductor(
        context,
        claimed,
        kept,
        listener=listener,
        how=how,
        waits=(lambda _: None) if notifier is None else notifier.waits,
    )
    try:
        with holding_trees(plan, cwd, claimed.id, context.stop) as trees:
            code = conductor.go()
            if code == 0:
                drop_plan_baselines(trees, claimed.id)
    except GitError as error:
        if how.park == "exit" and isinstance(error, TreeBusy):
            later = RunRescheduled(context.now(), context.now() + _BUSY, str(error))
            runs.write(claimed, later, f"busy-{later.at}")
            runs.release(claimed)
            return EX_TEMPFAIL, conductor.report()._replace(until=later.until)
        runs.release(claimed)
        raise
    found = conductor.report()
    if notifier is not None or not found.is_over:
        state = runs.look(claimed.id)
        assert state is not None  # noqa: S101 -- it was driven here
        if notifier is not None:
            notifier.over(state)
        if state.status == "waiting":
            found = found._replace(until=state.until)
    if found.is_over:
        found = found._replace(aside=tuple(files_aside(plan, cwd, claimed.id)))
    listener.over(found)
    return code, found


def reopen_agents(
    runs: RunStore,
    id_: str,
    now: float,
    *,
    is_waking: bool = False,
    is_now: bool = False,
    horizon: float | None = None,
) -> None:
    """Let failed agents of a plan be tried again, because the user fixed the cause.

    Args:
        runs: Where runs are kept.
        id_: The plan's run.
        now: Epoch seconds.
        is_waking: Whether to wake waiting agents only, and leave failed ones alone.
        is_now: Whether to ignore known limits.
        horizon: The longest reset to wait for from here on, in seconds; None for the plan's.
    """
    statuses = {"waiting"} if is_waking else {"failed", "limited", "cancelled"}
    bound, why = _SIX_HOURS if horizon is None else horizon, "resumed by the user"
    for child, state in runs.all(id_):
        if state.status not in statuses and (is_waking or not rejection(state)):
            continue
        until = now
        if state.status == "limited" and not is_now and now < (state.until or 0.0) <= now + bound:
            until = state.until or now
        # An agent that has done its work is not started again: only verification and delivery
        # are repeated.
        step = RunReopened(now) if state.is_worked else RunReopened(now, until, why)
        claimed = runs.claim(child, now)
        runs.write(claimed, step, "resumed")
        if horizon is not None and not state.is_worked:
            runs.write(claimed, RunRescheduled(now, until, why, horizon=horizon), "horizon")
        runs.release(claimed)
