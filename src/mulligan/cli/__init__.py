"""The command line: the list of commands, loaded when used, and the format of errors.

One file per command. The group names them with their one-line help, and imports a command's file
only when that command runs: `mulligan --help` must not load what `mulligan run` needs.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

import click

from ..config.secret_variables import mask_environment_secrets
from ..errors import FileError, MulliganError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ("Unusable", "main", "script")

# Name → help in one line. The file commands/NAME.py has a click command named `command`.
_COMMANDS = {
    "allow": "Let calls and runs start despite known limits and failures.",
    "block": "Block all calls to a target, or all runs of a program.",
    "cancel": "Cancel a run; it cannot be resumed.",
    "classify": "Classify a program's output: kind of failure, reset time.",
    "completion": "Print the shell completion script.",
    "dashboard": "Show runs, targets and failures on a page in the browser.",
    "dead": "List, show, replay or purge dead letters: calls given up on.",
    "doctor": "Check the journal, store and folders of runs; explain repairs.",
    "explain": "Print a policy: what is retried, how often, how long it waits.",
    "faults": "Serve a fake provider that fails on command; show its requests.",
    "git": "List changes that runs have set aside in git, and restore them.",
    "lint": "Check plans and policies before they run.",
    "packs": "List or check pattern packs.",
    "report": "Write a masked sample of output that was misread, to send.",
    "reset": "Forget the limits of runs, or the shared state of a target.",
    "resume": "Resume a run where it stopped.",
    "run": "Run an agent program that survives limits, crashes and reboots.",
    "runs": "List runs: active ones, and the results of recent ones.",
    "show": "Show one run in detail, or its output.",
    "simulate": "Simulate how policies recover from a server's failures.",
    "stats": "Show how often calls and runs failed, recovered and gave up.",
    "status": "Show limits that runs have hit, and the state of every target.",
    "worker": "Resume the runs that are due.",
}

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


class Unusable(click.UsageError):
    """A command line that cannot be used, with a hint: what to write instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class _Commands(click.Group):
    """Commands by name, each imported when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's signature
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(f".commands.{cmd_name}", __name__).command
        assert isinstance(command, click.Command)  # noqa: S101 -- a command file without a command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in _COMMANDS or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        from ..core.redaction import clean

        near = get_close_matches(args[0].lower(), _COMMANDS, n=1)
        raise Unusable(
            f"no such command {clean(args[0], 80)!r}",
            f"did you mean mulligan {near[0]}?" if near else "mulligan --help lists the commands",
        )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        # From the table: click would import every command to ask for its help.
        offered = [
            CompletionItem(name, help=help_)
            for name, help_ in _COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return offered + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's signature
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 75 parked or limited, 130 interrupted.",
)
@click.version_option(
    None, "-V", "--version", package_name="mulligan", message="%(package)s %(version)s"
)
def _group() -> None:
    """The right second chance for AI agents.

    Mulligan classifies each failure of a model call, a tool call or an agent program, and
    decides what to do about it: retry, wait for a reset, park, verify or stop.
    """


def script() -> None:
    """The installed command: `main`, then `os._exit`.

    An orderly end of the interpreter closes the journal; SQLite then checkpoints it and removes
    the files that the next command has to create again: three unnecessary waits for the disk.
    """
    _fill_streams()
    try:
        main()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 0 if done.code is None else 1
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # the reader has closed it
                stream.flush()
        os._exit(code)


def _fill_streams() -> None:
    """Open /dev/null for each standard stream that the caller closed (``2>&-``).

    Else the next file to be opened would get its number, and messages for stderr would be written
    into that file, such as the journal.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            setattr(sys, name, os.fdopen(nowhere, "w" if number else "r", encoding="utf-8"))


def main(argv: list[str] | None = None) -> None:
    """Run the command; exits, never returns. Errors are printed as `error:`, then `hint:`."""
    mask_environment_secrets()
    try:
        code = _group.main(argv, prog_name="mulligan", standalone_mode=False) or 0
        sys.stdout.flush()  # here, where BrokenPipeError is handled
        sys.exit(code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(EXIT_USAGE)
    except click.ClickException as error:
        hint = getattr(error, "hint", "")
        if not hint and isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f"{error.ctx.command_path} --help lists its options"
        if isinstance(error, click.BadParameter) and isinstance(error.param, click.Argument):
            # click would name it as the usage line does: '[FILES]...'
            error.param_hint = error.param.human_readable_name.strip("[]….")
        said = error.format_message().removesuffix(".")
        if isinstance(error, click.MissingParameter):  # click prints choices one a line
            said = " ".join(said.split())
        _complain(said[:1].lower() + said[1:], hint)
        sys.exit(error.exit_code)
    except FileError as error:
        place = error.file if error.line is None else f"{error.file}:{error.line}"
        _complain(": ".join(part for part in (place, error.key, error.message) if part), error.hint)
        sys.exit(EXIT_USAGE)
    except MulliganError as error:
        _complain(str(error), "")
        sys.exit(EXIT_FAILED)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader closed the pipe (`mulligan … | head`). The buffered rest goes to /dev/null, or
        # the interpreter would print an error when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)


def _complain(error: str, hint: str) -> None:
    click.echo(f"error: {error}", err=True)
    if hint:
        click.echo(f"\nhint: {hint}", err=True)
