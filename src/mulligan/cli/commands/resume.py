"""`mulligan resume`: resume a run where it stopped."""

from __future__ import annotations

from typing import Any

import click

from .. import Unusable
from ..run_names import RunName
from ..ui.types import DURATION

__all__ = ("command",)


@click.command("resume", epilog="Exit codes are those of mulligan run.")
@click.argument("run", required=False, type=RunName(is_open=True))
@click.option("--now", "is_now", is_flag=True, help="Do not wait for the announced reset; try now.")
@click.option(
    "--horizon",
    type=DURATION,
    metavar="TIME",
    help="The longest reset to wait for from now on.  [as the run was started]",
)
@click.option(
    "--restart",
    "may_restart",
    is_flag=True,
    help="Restart a program that was cut off and cannot resume its session.",
)
@click.option(
    "--here",
    "is_here",
    is_flag=True,
    help="Take over a run of another machine or user whose sessions and files are here now.",
)
@click.option(
    "--park",
    type=click.Choice(["wait", "exit"]),
    default="wait",
    show_default=True,
    help="When it has to wait: wait here, or exit with 75.",
)
@click.option(
    "--report",
    metavar="FILE.md",
    default="",
    help="For a plan: write its report to this file, with the reason for every decision.",
)
@click.option(
    "--cost-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DOLLARS",
    help="For a plan: a new cost_limit, if it has reached its own.",
)
@click.option("--json", "is_json", is_flag=True, help="Print events as JSON lines on stdout.")
def command(run: str | None, **options: Any) -> int:
    """Resume RUN, given by its id, a prefix of it, or its name.

    Without RUN: the newest run of this folder that can be resumed, because it was interrupted,
    is waiting, was cut off by a crash, or failed for a reason that you have fixed. Its session
    continues with the options that it was started with. A plan belongs to the folder of its
    file, and to the folder that its agents run in.

    For a run that is limited beyond its horizon, resume prints when the limit resets and exits
    with 75, unless --horizon covers that time or --now tries at once.

    \b
    mulligan resume                  the newest run of this folder
    mulligan resume port --now       do not wait for the announced reset
    mulligan resume port --horizon 3d --park exit
    mulligan resume port --here      its files were moved to this machine
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    from ..run_resume import resume_run

    if run == "":  # a variable that was empty: not a request to resume just any run
        raise Unusable(
            "resume needs the id or the name of a run; got ''", "mulligan runs lists them"
        )
    return resume_run(run, **options)
