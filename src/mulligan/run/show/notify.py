"""Notifications: the user's command is run when a run or a plan begins a long wait, and at its end.

The command gets JSON on its stdin. It runs without a shell, in its own group, for ten seconds at
most, and its result changes nothing about the run. It may hold a secret, so it is kept in the run's
folder beside the run's own command, not in the journal.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

from ..journal.entries import AttemptEnd, RunRescheduled
from ..listeners import RunListener
from .json_events import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..context import RunContext
    from ..journal.entries import JournalEntry
    from ..journal.state import RunState
    from ..process.stop import Stop

__all__ = ("Notifier", "remember", "remembered", "send")

# Timeout of the notify command, and its timeout after a stop request.
_PATIENCE, _HURRY = 10.0, 1.0
# Ends that are worth a notification: the user who interrupts a run knows that it ended.
_NEWS = frozenset({"done", "failed", "limited", "cancelled"})


def remember(folder: Path, argv: tuple[str, ...]) -> None:
    """Keep the command for the process that drives the run later."""
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(folder / "notify.json", new, 0o600), "w", encoding="utf-8") as file:
        json.dump(argv, file)


def remembered(folder: Path) -> tuple[str, ...]:
    """The command that was kept; empty if none was."""
    try:
        return tuple(json.loads((folder / "notify.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return ()


class Notifier(RunListener):
    """Runs the notify command of one run or plan; once its stop is set, the command has a second.

    Args:
        context: Its store, environment and stop.
        id_: The run.
        argv: The command; empty if it was lost.
        told: Told what went wrong with the command, or nothing.
        in_place: Returns the longest wait without a notification, in seconds.
    """

    def __init__(
        self,
        context: RunContext,
        id_: str,
        argv: tuple[str, ...],
        *,
        told: Callable[[str], None],
        in_place: Callable[[], float],
    ) -> None:
        self._context, self._id, self._argv = context, id_, argv
        self._told, self._in_place = told, in_place
        self._told_until = 0.0

    def step(self, step: JournalEntry) -> None:
        is_wait = isinstance(step, RunRescheduled) or (
            isinstance(step, AttemptEnd) and step.then == "again"
        )
        until = step.until if isinstance(step, RunRescheduled | AttemptEnd) else None
        if is_wait and until is not None and until - step.at > self._in_place():
            state = self._context.runs.look(self._id)
            if state is not None:
                self._tell("parked", state)

    def waits(self, until: float) -> None:
        """All agents of a plan have to wait until then; told once."""
        if until == self._told_until or until - self._context.now() <= self._in_place():
            return
        self._told_until = until
        state = self._context.runs.look(self._id)
        if state is not None:
            self._tell("parked", state._replace(status="waiting", until=until))

    def over(self, state: RunState) -> None:
        if state.status in _NEWS:
            self._tell("over", state)

    def _tell(self, event: str, state: RunState) -> None:
        news = {"event": event, "run": self._id, **summary(state)}
        context = self._context
        self._told(send(self._argv, news, stop=context.stop, environ=context.environ))


def send(
    argv: tuple[str, ...], news: Mapping[str, Any], *, stop: Stop, environ: Mapping[str, str]
) -> str:
    """Run `argv` with `news` on its stdin; what went wrong, or nothing."""
    if not argv:
        return "its command was lost with the process that created the run"
    import signal
    import subprocess
    import tempfile
    import time

    from ..process.spawn import spawn

    # A file, not a pipe: a program that does not read must not hold us up.
    with tempfile.TemporaryFile() as body:
        body.write(json.dumps(news).encode("ascii") + b"\n")
        body.seek(0)
        try:
            child = spawn(
                argv,
                stdin=body,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environ),
            )
        except OSError as trouble:
            return f"cannot run {_named(argv)}: {trouble.strerror or trouble}"
    ends_at, is_hurried = time.monotonic() + _PATIENCE, False
    while child.poll() is None:
        if stop.is_set and not is_hurried:
            is_hurried, ends_at = True, min(ends_at, time.monotonic() + _HURRY)
        if time.monotonic() >= ends_at:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            limit = _HURRY if is_hurried else _PATIENCE
            return f"{_named(argv)} took longer than {limit:g}s, and was stopped"
        time.sleep(0.02)
    if child.returncode:
        return f"{_named(argv)} exited with {child.returncode}"
    return ""


def _named(argv: tuple[str, ...]) -> str:
    """The program's name: its arguments may hold secrets."""
    from ...core.redaction import presentable

    return presentable(os.path.basename(argv[0]), 80)  # noqa: PTH119 -- a name, not a path of ours
