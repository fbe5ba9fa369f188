"""`mulligan run`: an agent program that survives limits, crashes and reboots."""

from __future__ import annotations

from typing import Any

import click

from . import Unusable
from .kinds import DURATION, Length

__all__ = ("command",)


@click.command(
    "run",
    context_settings={"allow_interspersed_args": False},
    epilog="Exit codes: 0 done; the program's own code if it failed for good; 75 parked, or "
    "limited beyond the horizon; 130 interrupted; 127 no such program; 2 wrong usage.",
)
@click.argument("words", metavar="COMMAND [ARGUMENT]…", nargs=-1, type=click.UNPROCESSED)
@click.option("--name", default="", help="A name for the run, beside its id.")
@click.option("--cwd", default="", metavar="FOLDER", help="Run in this folder.")
@click.option(
    "--agent", default="", metavar="NAME", help="Which program it is, if its name does not tell."
)
@click.option(
    "--horizon",
    type=DURATION,
    metavar="TIME",
    help="How far ahead a reset may lie to be waited for.  [6h]",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    metavar="N",
    help="Attempts in total, the first included.",
)
@click.option(
    "--policy", default="", metavar="PRESET|FILE", help="Other rules than those made for programs."
)
@click.option(
    "--idle",
    type=Length(is_off_offered=True),
    metavar="TIME",
    help="Silence after which the program hangs; off for never.  [10m for known programs]",
)
@click.option("--timeout", type=DURATION, metavar="TIME", help="End an attempt that takes longer.")
@click.option(
    "--deadline",
    type=DURATION,
    metavar="TIME",
    help="Begin no attempt that could not end in this time.",
)
@click.option(
    "--own-retries",
    type=click.IntRange(min=0),
    metavar="N",
    help="How often the program may retry by itself.",
)
@click.option(
    "--restart", is_flag=True, help="After a crash start anew a program that cannot resume."
)
@click.option(
    "--final-only", is_flag=True, help="Hold back the output of attempts that are repeated."
)
@click.option(
    "--park",
    type=click.Choice(["wait", "exit"]),
    default="wait",
    show_default=True,
    help="Where it has to wait: wait here, or exit with 75.",
)
@click.option(
    "--notify",
    default="",
    metavar="COMMAND",
    help="Run this when it is parked or over; JSON on its stdin.",
)
@click.option(
    "--json",
    "is_json",
    is_flag=True,
    help="Print events as JSON lines on stdout, the program's text among them.",
)
def command(words: tuple[str, ...], **options: Any) -> int:
    """Run a program, and give it the right second chance.

    A usage limit is waited for, then the same session goes on. Overload, network failures and
    crashes are tried again. What waiting does not mend ends at once, and says what to do. Kill it,
    reboot the machine: `mulligan resume` goes on where it stood.

    \b
    mulligan run -- claude -p "Port the tests to pytest"
    mulligan run --horizon 12h --name port -- codex exec "Port the tests to pytest"
    mulligan run --park exit -- gemini -p "Review this folder"
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    if not words:
        raise Unusable("run needs a command", 'write mulligan run -- claude -p "…"')
    from .running import run_command

    return run_command(words, **options)
