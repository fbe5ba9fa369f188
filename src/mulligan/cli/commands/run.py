"""`mulligan run`: an agent program that survives the night."""

from __future__ import annotations

from typing import Any

import click

from . import Unusable
from .kinds import DURATION, Length
from .manual import Manual
from .offers import agents, policies

__all__ = ("command",)

_BOUND = Length(is_zero_refused=True)
_GROUPS = {
    "How long, how often": (
        *("--horizon", "--attempts", "--deadline", "--timeout", "--idle", "--own-retries"),
        *("--restart", "--policy"),
    ),
    "Where it has to wait": ("--park", "--notify"),
    "What it shows": ("--json", "--final-only"),
    "Plans": ("--dry-run", "--report"),
    "What it is": ("--name", "--cwd", "--agent"),
}
_SECTIONS = {
    "What follows from a failure": [
        ("usage limit", "waits for the stated reset, looks again, goes on with the same session"),
        ("rate limit, overload, network, server", "tries again, with growing waits"),
        ("crash, silence", "goes on with the session; starts anew only with --restart"),
        ("wrong key, no credit, prompt too long", "ends at once, and says what to do"),
        ("any other failure", "ends, with the program's own exit code"),
    ],
    "Exit codes": [
        ("0", "done"),
        ("75", "parked, or limited beyond the horizon; it says until when"),
        ("130", "interrupted, or cancelled; an interrupted run can be resumed"),
        ("2", "wrong usage, or a command that would ask questions; nothing was started"),
        ("1", "a plan failed; or a program that was ended here, for silence or a timeout"),
        ("127, 126", "no such program, or none that can be started"),
        ("others", "the program's own, if it failed for good"),
    ],
    "Environment": [
        ("MULLIGAN_HOME", "where runs are kept; else the state folder of the user"),
        ("MULLIGAN_STORE", "where limits are shared with other machines: redis://…"),
        ("NO_COLOR, TERM", "whether to paint; TERM=dumb for plain lines"),
    ],
    "Examples": [
        ('mulligan run -- claude -p "Port the tests to pytest"', ""),
        ('mulligan run --horizon 12h --name port -- codex exec "Port the tests"', ""),
        ("mulligan run --park exit --notify 'mail -s run me' -- gemini -p \"Review\"", ""),
        ('mulligan run --json -- opencode run "Fix the build" | jq .event', ""),
        ("mulligan run --restart --attempts 5 -- ./nightly.sh", ""),
        ("mulligan run --report night.md review.toml", ""),
    ],
}


@click.command(
    "run",
    cls=Manual,
    groups=_GROUPS,
    sections=_SECTIONS,
    context_settings={"allow_interspersed_args": False},
)
@click.argument(
    "words", metavar="[--] COMMAND [ARGUMENT]… | PLAN.toml", nargs=-1, type=click.UNPROCESSED
)
@click.option("--name", default="", help="A name for the run, beside its id.")
@click.option(
    "--cwd",
    type=click.Path(file_okay=False),
    default="",
    metavar="FOLDER",
    help="Run in this folder. In a plan: where its cwd and its agents' start from.  "
    "[this folder; the plan's own]",
)
@click.option(
    "--agent",
    shell_complete=agents,
    default="",
    metavar="NAME",
    help="Which program it is, if its name does not tell.",
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
    help="Attempts in total, the first included.  [as the policy says]",
)
@click.option(
    "--policy",
    shell_complete=policies,
    default="",
    metavar="PRESET|FILE",
    help="Other rules than those made for programs; mulligan explain prints them.",
)
@click.option(
    "--idle",
    type=Length(is_off_offered=True),
    metavar="TIME",
    help="Silence after which the program hangs, in tools as well; off for never.  "
    "[10m for known programs, 1h in their tools]",
)
@click.option("--timeout", type=_BOUND, metavar="TIME", help="End an attempt that takes longer.")
@click.option(
    "--deadline",
    type=_BOUND,
    metavar="TIME",
    help="Begin no attempt that could not end in this time.",
)
@click.option(
    "--own-retries",
    type=click.IntRange(min=0),
    metavar="N",
    help="How often the program may retry by itself.  [claude 3, codex 2]",
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
    help="Wait here, or exit with 75 and leave the rest to mulligan worker or resume.",
)
@click.option(
    "--notify",
    default="",
    metavar="COMMAND",
    help="Run this once it waits for long, and when it is over; JSON on its stdin, no shell.",
)
@click.option(
    "--json",
    "is_json",
    is_flag=True,
    help="Print events as JSON lines on stdout, the program's text among them.",
)
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Print what a plan would run; execute nothing."
)
@click.option(
    "--report", default="", metavar="FILE.md", help="Write what came of a plan, reasons and all."
)
def command(words: tuple[str, ...], **options: Any) -> int:
    """Run a program, and give it the right second chance.

    The program runs as it would without us: its text on stdout as it comes, everything of ours on
    stderr. What it says when it fails decides what follows; every step is written down before it
    is taken. Kill it, reboot the machine: mulligan resume goes on where it stood.

    Known are claude, codex, gemini, opencode, qwen, copilot, pi, cline, continue and aider; any
    other program is judged by its words and its exit code.
    """
    is_dry, report = options.pop("is_dry"), options.pop("report")
    if not words:
        raise Unusable("run needs a command", 'write mulligan run -- claude -p "…"')
    if words[0].endswith(".toml"):
        from .planning import run_plan

        return run_plan(words, is_dry=is_dry, report=report, **options)
    if is_dry or report:
        option = "--dry-run" if is_dry else "--report"
        raise Unusable(f"{option} is for plans", "write mulligan run --dry-run PLAN.toml")
    from .running import run_command

    return run_command(words, **options)
