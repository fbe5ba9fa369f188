"""`mulligan resume`: go on with a run where it stands."""

from __future__ import annotations

from typing import Any

import click

from . import Unusable
from .run_names import RunName

__all__ = ("command",)


@click.command("resume", epilog="Exit codes are those of mulligan run.")
@click.argument("run", required=False, type=RunName(is_open=True))
@click.option("--now", "is_now", is_flag=True, help="Do not wait for the time that was stated.")
@click.option(
    "--restart", is_flag=True, help="Start anew a program that was cut off and cannot resume."
)
@click.option(
    "--park",
    type=click.Choice(["wait", "exit"]),
    default="wait",
    show_default=True,
    help="Where it has to wait: wait here, or exit with 75.",
)
@click.option(
    "--report",
    metavar="FILE.md",
    default="",
    help="Of a plan: write what came of it to this file, with the reason of every decision.",
)
@click.option(
    "--cost-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DOLLARS",
    help="Of a plan: what it may cost in all, instead of the cost_limit that it has reached.",
)
@click.option("--json", "is_json", is_flag=True, help="Print events as JSON lines on stdout.")
def command(run: str | None, **options: Any) -> int:
    """Go on with RUN: its id, the beginning of it, or its name.

    Without RUN it is the newest one of this folder that can go on: interrupted, waiting, cut off
    by a crash, or stopped by something that you have mended meanwhile. Its session goes on with
    the flags it had; --final-only, --notify and the like are remembered. A plan belongs to the
    folder of its file, and to the one that its agents run in.

    \b
    mulligan resume                  the newest of this folder
    mulligan resume port --now       do not wait for the reset that was stated
    mulligan resume port --park exit
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    from .running import resume_run

    if run == "":  # a variable that was empty: no order to take up any run at all
        raise Unusable(
            "resume needs the id or the name of a run; got ''", "mulligan runs lists them"
        )
    return resume_run(run, **options)
