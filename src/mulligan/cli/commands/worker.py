"""`mulligan worker`: resume the runs that are due."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import click

from ...core.redaction import clean
from ...errors import MulliganError
from ..ui.types import DURATION

if TYPE_CHECKING:
    from ...run.context import RunContext
    from ...run.journal.state import RunState
    from ...run.journal.store import ClaimedRun

__all__ = ("command",)


@click.command(
    "worker",
    epilog=(
        "Exit codes: 0 no run is due (with --once), or stopped by SIGTERM, 130 "
        "interrupted. For the results of its runs see mulligan runs."
    ),
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="Number of runs at a time.",
)
@click.option("--once", is_flag=True, help="Exit when no run is due.")
@click.option(
    "--poll",
    type=DURATION,
    default="5s",
    show_default=True,
    metavar="TIME",
    help="How often to look for due runs.",
)
def command(*, jobs: int, once: bool, poll: float) -> int:
    """Resume the runs that are due, until they end or have to wait again.

    A run is due when it was parked or limited until a time that has passed, when its limit was
    lifted (not with --once), or when its supervisor died. Runs that you interrupted are continued
    by mulligan resume only. Any number of workers may run: each run is resumed by one of them.
    Programs inherit the worker's environment, with the PATH of their run. A run whose keys or
    program the worker does not have stays parked, and mulligan show says so. Output goes to the
    logs of the runs (mulligan show RUN --log).

    \b
    mulligan worker                   permanently, under systemd or in tmux
    mulligan worker --once            from cron
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    from ...run.agents.catalogue import recognise
    from ...run.attempt.account_limits_client import limits_of
    from ...run.attempt.options import DriveOptions
    from ...run.context import open_context
    from ...run.drive import drive_run
    from ...run.journal.entries import PLAN
    from ...run.journal.retention import prune_daily
    from ...run.process.environment import environment_of, lacking, lacking_of_plan
    from ...run.process.stop import WorkerStop
    from ...run.show.choose_view import HELD, recording
    from ...run.worker import Worker

    def context_of(state: RunState) -> RunContext:
        return context._replace(environ=environment_of(state.made, os.environ))

    def drive(claimed: ClaimedRun, state: RunState) -> None:
        prune_daily(context.runs, context.now())  # it may stay for months
        click.echo(f"mulligan: {claimed.id}: resumed ({clean(state.made.command)})", err=True)
        own, how = context_of(state), DriveOptions(park="exit")
        if state.made.agent == PLAN:
            from ...run.plan.drive import kept_plan
            from ..plans import drive_plan

            kept = kept_plan(own.runs, claimed.id)
            # Several runs tell theirs here: lines, not a table.
            drive_plan(own, claimed, kept, how, is_table_refused=True)
            return
        drive_run(recording(own, claimed, state), claimed, how=how)
        # A killed `mulligan run` held this back for its own stdout; the attempt's log has it.
        (claimed.folder / HELD).unlink(missing_ok=True)

    def lacked(id_: str, state: RunState) -> str:
        own = context_of(state)
        if state.made.agent == PLAN:
            from ...run.plan.drive import kept_plan

            plan, _, cwd = kept_plan(own.runs, id_)
            return lacking_of_plan(state.made, plan, cwd, own.environ)
        given = own.runs.command(id_)
        return lacking(state.made, given, recognise(given, state.made.agent), own.environ)

    def is_limited(id_: str, state: RunState) -> bool | None:
        if state.made.agent == PLAN or lacked(id_, state):
            return None
        given = context.runs.command(id_)
        limits = limits_of(context_of(state), id_, given, recognise(given, state.made.agent))
        return None if limits is None else limits.is_limited()

    def failed(id_: str, error: Exception) -> None:
        is_ours = isinstance(error, MulliganError)
        what = str(error) if is_ours else f"{type(error).__name__}: {error}"
        click.echo(f"mulligan: {id_}: cannot be resumed: {clean(what)}", err=True)

    with open_context(os.environ) as opened:
        prune_daily(opened.runs, opened.now())
        with closing(WorkerStop(opened.stop)) as stop:
            context = opened._replace(stop=stop)
            worker = Worker(
                context,
                drive=drive,
                jobs=jobs,
                failed=failed,
                lacking=lacked,
                is_limited=is_limited,
            )
            worker.work(is_once=once, glance=poll)
        # A service manager that ends it has asked for nothing else.
        return 130 if opened.stop.reason in {"interrupt", "quit"} else 0
