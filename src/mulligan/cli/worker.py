"""`mulligan worker`: wakes the runs that are due."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ..core.text import clean
from ..errors import MulliganError
from .kinds import DURATION

if TYPE_CHECKING:
    from ..run.desk import Claimed
    from ..run.state import RunState

__all__ = ("command",)


@click.command(
    "worker",
    epilog="Exit codes: 0 nothing was left to do (with --once), 130 interrupted. What it ran tells "
    "its own: mulligan runs.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="How many runs at once.",
)
@click.option("--once", is_flag=True, help="Exit once nothing is due.")
@click.option(
    "--poll",
    type=DURATION,
    default="5s",
    show_default=True,
    metavar="TIME",
    help="How often to look for what is due.",
)
def command(*, jobs: int, once: bool, poll: float) -> int:
    """Wake the runs that are due, and drive them until they end or have to wait again.

    Due is what was parked until a time that has come, and what a supervisor that died left behind.
    What you interrupted yourself goes on with mulligan resume. Any number of workers may run: each
    run is woken by one of them. Programs inherit the worker's environment; their output goes to
    the logs of their runs (mulligan show RUN --log).

    \b
    mulligan worker                   all the time, under systemd or in tmux
    mulligan worker --once            from cron
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    from time import time

    from ..run.begin import go, machine
    from ..run.desk import Desk
    from ..run.prune import prune_daily
    from ..run.showing import recording
    from ..run.steps import PLAN
    from ..run.stop import Stop, Unasked, signals
    from ..run.worker import Worker

    desk = Desk()

    prune_daily(desk, time())

    def drive(claimed: Claimed, state: RunState) -> None:
        prune_daily(desk, time())  # it may stay for months
        click.echo(f"mulligan: {claimed.id}: woken ({state.made.command})", err=True)
        if state.made.agent == PLAN:
            from .planning import drive_plan

            # Several runs tell theirs here: lines, not a table.
            plain = {**os.environ, "TERM": "dumb"}
            drive_plan(desk, claimed, stop=stop, environ=plain, is_parked_by_exit=True)
            return
        go(
            desk,
            claimed,
            environ=os.environ,
            view=recording(desk, claimed.id, state, stop=stop, environ=os.environ),
            stop=stop,
            world=machine(),
            is_parked_by_exit=True,
        )

    def failed(id_: str, error: Exception) -> None:
        what = (
            str(error) if isinstance(error, MulliganError) else f"{type(error).__name__}: {error}"
        )
        click.echo(f"mulligan: {id_}: cannot go on: {clean(what)}", err=True)

    with signals(Stop()) as asked:
        stop = Unasked(asked)
        worker = Worker(
            desk,
            drive=drive,
            stop=stop,
            world=machine(),
            jobs=jobs,
            failed=failed,
        )
        worker.work(is_once=once, glance=poll)
        return 130 if asked.is_set else 0
