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
    from time import time

    from ...run.agents.catalogue import recognise
    from ...run.journal.entries import PLAN
    from ...run.journal.retention import prune_daily
    from ...run.journal.store import RunStore
    from ...run.process.environment import environment_of, lacking, lacking_of_plan
    from ...run.process.stop import Stop, WorkerStop, signals
    from ...run.setup import drive_run, limits_of, real_platform
    from ...run.show.choose import recording
    from ...run.worker import Worker

    platform = real_platform()

    def drive(claimed: ClaimedRun, state: RunState) -> None:
        prune_daily(runs, time())  # it may stay for months
        click.echo(f"mulligan: {claimed.id}: woken ({clean(state.made.command)})", err=True)
        environ = environment_of(state.made, os.environ)
        if state.made.agent == PLAN:
            from ..plans import drive_plan

            # Several runs tell theirs here: lines, not a table.
            drive_plan(
                runs,
                claimed,
                stop=stop,
                environ=environ,
                is_table_refused=True,
                is_parked_by_exit=True,
            )
            return
        with recording(runs, claimed.id, state, stop=stop, environ=environ) as view:
            drive_run(
                runs,
                claimed,
                environ=environ,
                view=view,
                stop=stop,
                platform=platform,
                is_parked_by_exit=True,
            )

    def lacked(id_: str, state: RunState) -> str:
        environ = environment_of(state.made, os.environ)
        if state.made.agent == PLAN:
            from ...run.plan.drive import plan_of

            plan, _, cwd = plan_of(runs, id_)
            return lacking_of_plan(state.made, plan, cwd, environ)
        given = runs.command(id_)
        return lacking(state.made, given, recognise(given, state.made.agent), environ)

    def is_limited(id_: str, state: RunState) -> bool | None:
        if state.made.agent == PLAN or lacked(id_, state):
            return None
        environ = environment_of(state.made, os.environ)
        given = runs.command(id_)
        adapter = recognise(given, state.made.agent)
        limits = limits_of(runs, id_, given, adapter, environ=environ, platform=platform)
        return None if limits is None else limits.is_limited()

    def failed(id_: str, error: Exception) -> None:
        is_ours = isinstance(error, MulliganError)
        what = str(error) if is_ours else f"{type(error).__name__}: {error}"
        click.echo(f"mulligan: {id_}: cannot be resumed: {clean(what)}", err=True)

    with closing(RunStore()) as runs, closing(Stop()) as asked, signals(asked):
        prune_daily(runs, time())
        with closing(WorkerStop(asked)) as stop:
            worker = Worker(
                runs,
                drive=drive,
                stop=stop,
                platform=platform,
                jobs=jobs,
                failed=failed,
                lacking=lacked,
                is_limited=is_limited,
            )
            worker.work(is_once=once, glance=poll)
        # A service manager that ends it has asked for nothing else.
        return 130 if asked.reason in {"interrupt", "quit"} else 0
