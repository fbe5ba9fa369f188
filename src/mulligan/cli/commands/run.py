"""`mulligan run`: run an agent program or a plan."""

from __future__ import annotations

from typing import Any

import click

from .. import Unusable
from ..ui.completion import agents, policies
from ..ui.manual import Manual
from ..ui.types import DURATION, DurationType

__all__ = ("command",)

_BOUND = DurationType(is_zero_refused=True)
_GROUPS = {
    "Time and attempts": (
        *("--horizon", "--attempts", "--deadline", "--timeout", "--idle", "--own-retries"),
        *("--restart", "--policy"),
    ),
    "Waiting": ("--now", "--park", "--notify"),
    "Output": ("--json", "--final-only", "--stream"),
    "Plans": ("--dry-run", "--report"),
    "Identity": ("--name", "--cwd", "--agent"),
}
_SECTIONS = {
    "How failures are handled": [
        ("usage limit", "waits for the announced reset, checks again, resumes the session"),
        ("rate limit, overload, network, server", "retries, with growing waits"),
        ("crash, silence", "resumes the session; restarts only with --restart"),
        ("exit code 0 but no final report", "result unclear: restarts only with --restart"),
        ("wrong key, no credit, prompt too long", "stops at once, and says what to do"),
        ("any other failure", "stops, with the program's own exit code"),
    ],
    "Exit codes": [
        ("0", "done"),
        ("75", "parked, or limited beyond the horizon; says until when; a worker resumes it"),
        ("130", "interrupted by you, or cancelled; an interrupted run can be resumed"),
        ("143, 129", "stopped by SIGTERM or SIGHUP with no session to resume; else 75"),
        ("2", "wrong usage, or a command that would ask questions; nothing was started"),
        ("1", "a plan failed; or a program was stopped for being idle or a timeout"),
        ("127, 126", "no such program, or it cannot be started"),
        ("141", "stdout was closed by its reader"),
        ("others", "the program's own, if it failed for good"),
    ],
    "Environment": [
        ("MULLIGAN_HOME", "where runs are stored  [the user's state folder]"),
        ("MULLIGAN_STORE", "store that shares limits with other machines: redis://…"),
        ("MULLIGAN_EVENTS", "file for events of runs, as JSON lines  [none]"),
        ("NO_COLOR, TERM", "colours on or off; TERM=dumb for plain lines"),
    ],
    "Examples": [
        ('mulligan run -- claude -p "Port the tests to pytest"', ""),
        ('mulligan run --horizon 12h --name port -- codex exec "Port the tests"', ""),
        ("mulligan run --park exit --notify 'mail -s run me' -- gemini -p \"Review\"", ""),
        ('answer=$(mulligan run -- claude -p "Which tests are slow?")', ""),
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
@click.option("--name", default="", help="A name for the run, in addition to its id.")
@click.option(
    "--cwd",
    type=click.Path(file_okay=False),
    default="",
    metavar="FOLDER",
    help="Run in this folder. For a plan: the folder that its cwd settings start from.  "
    "[the current folder; the plan's own]",
)
@click.option(
    "--agent",
    shell_complete=agents,
    default="",
    metavar="NAME",
    help="Which program it is, if its name does not show it.",
)
@click.option(
    "--horizon",
    type=DURATION,
    metavar="TIME",
    help="The longest reset to wait for; beyond it the run exits with 75.  [6h]",
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
    help="Retry policy instead of the one for programs; mulligan explain prints it.",
)
@click.option(
    "--idle",
    type=DurationType(is_off_offered=True),
    metavar="TIME",
    help="Stop an attempt after this time without output, CPU use or network; off for never.  "
    "[10m for known programs, 1h inside their tools]",
)
@click.option("--timeout", type=_BOUND, metavar="TIME", help="Stop an attempt that takes longer.")
@click.option(
    "--deadline",
    type=_BOUND,
    metavar="TIME",
    help="Start no attempt that could not finish within this time.",
)
@click.option(
    "--own-retries",
    type=click.IntRange(min=0),
    metavar="N",
    help="How often the program itself may retry.  [claude 3, codex 2]",
)
@click.option(
    "--restart",
    "may_restart",
    is_flag=True,
    help="After a crash, restart a program that cannot resume its session.",
)
@click.option(
    "--final-only",
    is_flag=True,
    help="Print only the last attempt's output.  [if stdout is not a terminal]",
)
@click.option(
    "--stream",
    is_flag=True,
    help="Print the output of each attempt as it comes.  [on a terminal]",
)
@click.option(
    "--now",
    "is_now",
    is_flag=True,
    help="Make the first attempt now, even if the account is known to be limited.",
)
@click.option(
    "--park",
    type=click.Choice(["wait", "exit"]),
    default="wait",
    show_default=True,
    help="Wait here, or exit with 75 and let mulligan worker or resume continue.",
)
@click.option(
    "--notify",
    default="",
    metavar="COMMAND",
    help="Run this command when a long wait begins and at the end; JSON on its stdin, no shell.",
)
@click.option(
    "--json",
    "is_json",
    is_flag=True,
    help="Print events as JSON lines on stdout, including the program's text.",
)
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Print what a plan would run; execute nothing."
)
@click.option(
    "--report", default="", metavar="FILE.md", help="Write a report of a plan, with all reasons."
)
def command(words: tuple[str, ...], **options: Any) -> int:
    """Run an agent program; retry, wait and resume as its failures require.

    The program runs unchanged: its text goes to stdout, messages of mulligan go to stderr. On a
    terminal its text is shown as it comes; otherwise only the last attempt is printed, once it
    has ended. Its output and exit code decide what happens after a failure. Every step is
    recorded first, so after a kill or a reboot mulligan resume continues the run.

    Known programs: claude, codex, gemini, opencode, qwen, copilot, pi, cline, continue,
    aider and agy. Any other program is judged by its output and its exit code.
    """
    is_dry, report = options.pop("is_dry"), options.pop("report")
    if not words:
        raise Unusable("run needs a command", 'write mulligan run -- claude -p "…"')
    if words[0].endswith(".toml"):
        if options.pop("is_now"):
            raise Unusable(
                "--now is for a bare command",
                "mulligan reset NAME forgets a limit, mulligan status names those that are known",
            )
        from ..plans import run_plan

        return run_plan(words, is_dry=is_dry, report=report, **options)
    if is_dry or report:
        option = "--dry-run" if is_dry else "--report"
        raise Unusable(f"{option} is for plans", "write mulligan run --dry-run PLAN.toml")
    from ..run_start import run_command

    return run_command(words, **options)
