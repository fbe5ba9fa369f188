"""Starts a run: checks its options, makes it, drives it and shows it to its user."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..errors import FileError, SettingError
from ..run.agents.adapter import CommandRefused
from ..run.attempt.options import DriveOptions, RunOptions
from ..run.context import open_context
from ..run.drive import drive_run, make_run
from ..run.journal.retention import prune_daily
from ..run.show.choose_view import showing
from ..run.show.standard_streams import StandardStreams
from . import Unusable

if TYPE_CHECKING:
    from ..run.context import RunContext
    from ..run.journal.state import RunState
    from ..run.journal.store import ClaimedRun
    from ..run.process.stdin import StdinSpool

__all__ = (
    "check_name",
    "current_folder",
    "drive_shown",
    "notify_argv",
    "run_command",
    "working_folder",
)

# What a shell says of a program that wrote to a pipe without a reader.
_UNREAD = 141


def run_command(
    words: tuple[str, ...],
    *,
    name: str,
    cwd: str,
    policy: str,
    final_only: bool,
    stream: bool,
    notify: str,
    park: Literal["wait", "exit"],
    is_json: bool,
    is_now: bool,
    **asked: Any,
) -> int:
    """Make a run of `words`, and drive it; `asked` are further fields of `RunOptions`."""
    if final_only and stream:
        raise Unusable(
            "--final-only and --stream contradict each other",
            "--final-only prints the last attempt, --stream all attempts as they come",
        )
    options = RunOptions(
        policy=str(Path(policy).absolute()) if policy.endswith(".toml") else policy,
        is_final_only=final_only or (False if stream else None),
        is_notified=bool(notify),
        **asked,
    )
    check_name(name)
    if policy:
        _check_policy(options)
    told = notify_argv(notify)
    folder = working_folder(cwd)
    with open_context(os.environ, ends_process=True) as context:
        try:
            claimed, state, stdin = make_run(
                context, words, options, cwd=str(folder), name=name, stdin=0
            )
        except CommandRefused as refused:
            raise Unusable(refused.because, refused.hint) from None
        except SettingError as error:
            raise Unusable(str(error), "mulligan run --help lists its options") from None
        if told:
            from ..run.show.notify import remember

            remember(claimed.folder, told)
        how = DriveOptions(park, is_now)
        return drive_shown(context, claimed, state, how, is_json=is_json, stdin=stdin)


def drive_shown(
    context: RunContext,
    claimed: ClaimedRun,
    state: RunState,
    how: DriveOptions,
    *,
    is_json: bool,
    stdin: StdinSpool | None = None,
) -> int:
    """Drive the run that this process holds, and show it."""
    streams = StandardStreams(context.stop)
    shown, view = showing(context, claimed, state, streams, is_json=is_json)
    with closing(view):
        code = drive_run(shown, claimed, how=how, state=state, stdin=stdin)
    if not code and streams.is_unread:
        # What was done is done; but the reader does not have all of the answer.
        click.echo(
            f"mulligan: its output was not fully read: mulligan show {claimed.id} --answer",
            err=True,
        )
        code = _UNREAD
    prune_daily(context.runs, context.platform.clock.wall())
    return code


def _check_policy(options: RunOptions) -> None:
    """Refuse rules that do not exist now: they are not read before something fails."""
    try:
        options.load_policy()
    except FileError:
        raise
    except SettingError as error:
        raise Unusable(str(error), "name a preset, or the path of a .toml file") from None


def check_name(name: str) -> None:
    """Refuse what is not a line of text."""
    if not name.isprintable():
        raise Unusable(
            f"--name needs a line of text; {name!r} has control characters", "write it without them"
        )


def working_folder(cwd: str) -> Path:
    """The folder that was asked for, without links and dots, as `resume` sees it from within."""
    folder = (Path(cwd) if cwd.startswith("/") else current_folder() / cwd).resolve()
    if not folder.is_dir():
        raise Unusable(f"--cwd needs a folder; {folder} is not one", "make it, or name another")
    return folder


def notify_argv(notify: str) -> tuple[str, ...]:
    """The command of a notification, split as a shell would."""
    if not notify:
        return ()
    import shlex

    try:
        argv = tuple(shlex.split(notify))
    except ValueError as error:
        raise Unusable(f"--notify cannot be split: {error}".lower(), "close its quotes") from None
    if not argv:
        raise Unusable("--notify needs a command", "write --notify 'notify-send mulligan'")
    return argv


def current_folder() -> Path:
    """The folder that the command was called in."""
    try:
        return Path.cwd()
    except OSError as trouble:
        because = (trouble.strerror or str(trouble)).lower()
        raise Unusable(
            f"the folder this was called in cannot be used: {because}",
            "go to one that exists, or name a run",
        ) from None
