"""Resumes a run: finds and claims it, and drives it from where it stands."""

from __future__ import annotations

import contextlib
import os
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ..core.duration import duration_text
from ..run.attempt.options import DriveOptions, RunOptions
from ..run.context import open_context
from ..run.journal.entries import PLAN, WOKEN, RunRescheduled
from ..run.journal.store import NoSuchRun, RunHeld
from ..run.process.environment import credentials, environment_of
from ..run.show.messages import clock
from . import EXIT_INTERRUPTED, Unusable
from .run_start import current_folder, drive_shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..run.journal.state import RunState
    from ..run.journal.store import RunStore

__all__ = ("resume_run",)

EX_TEMPFAIL = 75
_OVER = frozenset({"done", "cancelled"})


def resume_run(
    run: str | None,
    *,
    is_now: bool,
    horizon: float | None,
    may_restart: bool,
    is_here: bool,
    park: Literal["wait", "exit"],
    report: str,
    cost_limit: float | None,
    is_json: bool,
) -> int:
    """Claim a run, and drive it from where it stands."""
    with open_context(os.environ, ends_process=True) as opened:
        runs = opened.runs
        id_ = runs.find(run) if run else _newest(runs)
        state = runs.look(id_)
        assert state is not None  # noqa: S101 -- it was found
        if state.status == "done":
            shown = f"mulligan show {id_} shows the result"
            click.echo(f"mulligan: run {id_} is done; {shown}", err=True)
            return 0
        _check_resumable(runs, id_, state, report, cost_limit)
        _check_here(runs, id_, state, is_here=is_here)
        environ = environment_of(state.made, os.environ)
        _warn_of_missing(credentials(state.made.variables) - environ.keys())
        now = opened.now()
        if not is_now and _is_far(id_, state, now, horizon):
            return EX_TEMPFAIL
        if opened.stop.is_set:  # interrupted before anything was changed
            return EXIT_INTERRUPTED
        context = opened._replace(environ=environ)
        try:
            claimed = runs.claim(id_, now, is_by_hand=True)
        except RunHeld:
            if not (is_now and state.status == "waiting" and state.made.agent != PLAN):
                raise
            # It waits in another process: that one is told to try at once.
            runs.note(id_, RunRescheduled(now, now, WOKEN), f"woken-{now}")
            click.echo(f"mulligan: run {id_} tries again now, in {runs.holder(id_)}", err=True)
            return 0
        state = runs.look(id_)
        assert state is not None  # noqa: S101 -- this process holds it
        if state.status in _OVER:  # between the look and the claim
            runs.release(claimed)
            _check_resumable(runs, id_, state, report, cost_limit)
        if not runs.is_here(state.made):
            runs.adopt(claimed, now)
        if moved := _moved(state, now, horizon, is_now=is_now):
            runs.write(claimed, moved, "resumed")
        how = DriveOptions(park, is_now, may_restart)
        if state.made.agent == PLAN:
            from ..run.plan.drive import kept_plan
            from .plans import drive_plan

            _ready_plan(
                runs, id_, state, now, is_now=is_now, horizon=horizon, cost_limit=cost_limit
            )
            kept = kept_plan(runs, id_)
            return drive_plan(context, claimed, kept, how, is_json=is_json, report=report)
        state = runs.look(id_, state) or state
        return drive_shown(context, claimed, state, how, is_json=is_json)


def _warn_of_missing(names: Iterable[str]) -> None:
    for missing in sorted(names):
        when = "was set when the run was created, and is not set now"
        click.echo(f"mulligan: {missing} {when}", err=True)


def _ready_plan(
    runs: RunStore,
    id_: str,
    state: RunState,
    now: float,
    *,
    horizon: float | None,
    cost_limit: float | None,
    is_now: bool,
) -> None:
    """Let the agents of a plan go on as its user asked."""
    from ..run.plan.drive import reopen_agents, set_cost_limit

    if cost_limit is not None:
        set_cost_limit(runs, id_, cost_limit)
    if state.status in {"failed", "limited"}:
        reopen_agents(runs, id_, now, is_now=is_now, horizon=horizon)
    if is_now:
        reopen_agents(runs, id_, now, is_waking=True)


def _moved(
    state: RunState, now: float, horizon: float | None, *, is_now: bool
) -> RunRescheduled | None:
    """When a resumed run continues; None for when it would anyway."""
    is_stated = state.status in {"waiting", "limited"} and not is_now
    until = max(now, state.until or now) if is_stated else now
    is_open = state.status not in {"paused", "failed", "limited"}
    if is_open and not is_now and horizon is None:
        return None
    return RunRescheduled(now, until, "resumed by the user", horizon=horizon)


def _is_far(id_: str, state: RunState, now: float, horizon: float | None) -> bool:
    """Whether the run is limited beyond its horizon, and not waited for here; then that is said."""
    if state.status != "limited" or state.until is None or state.made.agent == PLAN:
        return False
    own = RunOptions.from_journal(state.made.terms).load_policy().horizon
    bounds = (horizon, state.horizon, own)
    bound = next(each for each in bounds if each is not None)
    left = state.until - now
    if left <= bound:
        return False
    until, resume = clock(state.until, now), f"mulligan resume {id_}"
    click.echo(
        f"mulligan: run {id_} is limited until {until}, in {duration_text(left)}: beyond the "
        f"horizon of {duration_text(bound)}\n"
        f"mulligan: to continue then: mulligan worker; to wait for it here: {resume} --horizon "
        f"{ceil(left / 86_400)}d; to try now: {resume} --now",
        err=True,
    )
    return True


def _check_resumable(
    runs: RunStore, id_: str, state: RunState, report: str, cost_limit: float | None
) -> None:
    """Refuse what cannot go on, or not here, before anything is changed."""
    if state.status in _OVER:
        raise Unusable(
            f"run {id_} is {state.status}: it cannot be resumed",
            f"mulligan show {id_} shows the result",
        )
    if state.made.parent:
        raise Unusable(
            f"run {id_} is an agent of the plan {state.made.parent}, which controls it",
            f"mulligan resume {state.made.parent} resumes both",
        )
    if state.made.agent == PLAN:
        from ..run.plan.drive import kept_plan
        from .plans import check_report

        check_report(report)
        kept_plan(runs, id_)  # before it is resumed: a missing plan must not change the run
    elif report or cost_limit is not None:
        option = "--report" if report else "--cost-limit"
        raise Unusable(f"{option} is for plans", f"mulligan show {id_} shows the result")


def _check_here(runs: RunStore, id_: str, state: RunState, *, is_here: bool) -> None:
    """Refuse a run of another machine or user, unless its user says that it belongs here now."""
    if is_here or runs.is_here(state.made):
        return
    raise Unusable(
        f"run {id_} was made by user {state.made.user} on {state.made.host}: its sessions and "
        f"files are there",
        f"resume it there; if they are here now, mulligan resume {id_} --here adopts it",
    )


def _folders(runs: RunStore, id_: str, state: RunState) -> Iterator[Path]:
    """Where a run is looked for: its folder; of a plan also the one that its agents run in."""
    yield Path(state.made.cwd)
    if state.made.agent == PLAN:
        from ..run.plan.drive import kept_plan

        with contextlib.suppress(NoSuchRun):
            plan, _, cwd = kept_plan(runs, id_)
            yield (cwd / plan.cwd).resolve()


def _newest(runs: RunStore) -> str:
    """The newest run of this folder that can go on."""
    here = current_folder()
    for id_, state in runs.all():
        if state.status not in {"done", "cancelled"} and here in _folders(runs, id_, state):
            return id_
    raise Unusable(f"no run in {here} can be resumed", "mulligan runs lists them")
