"""Telling somebody who is not looking.

A notification is a program that gets JSON on its stdin. It runs without a shell, in its own
group, for ten seconds at most, and whatever becomes of it changes nothing about the run. Its
command may hold a secret, so it lies in the run's folder beside the run's own, not in the journal.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

from ..journal.entries import AttemptEnd, RunRescheduled
from .json_events import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..agents.adapter import OutputNote, Stream
    from ..attempt.output import AttemptFacts
    from ..journal.entries import JournalEntry
    from ..journal.state import RunState
    from ..process.stop import Stop
    from .views import RunView

__all__ = ("NEWS", "NotifyingView", "remember", "remembered", "send")

# How long a notification may take, and how long once somebody wants us to end.
_PATIENCE, _HURRY = 10.0, 1.0
# What becomes of a run that nobody need be told: whoever interrupted it knows.
NEWS = frozenset({"done", "failed", "limited", "cancelled"})


def remember(folder: Path, argv: tuple[str, ...]) -> None:
    """Keep the command for whoever drives the run later."""
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(folder / "notify.json", new, 0o600), "w", encoding="utf-8") as file:
        json.dump(argv, file)


def remembered(folder: Path) -> tuple[str, ...]:
    """The command that was kept; empty if none was."""
    try:
        return tuple(json.loads((folder / "notify.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return ()


class NotifyingView:
    """Shows a run to another view, and tells somebody when it is parked or over.

    Args:
        view: Who shows it.
        argv: The program to tell.
        look: Tells where the run stands.
        in_place: Tells how long a wait is no news, in seconds.
        stop: Set to interrupt the run; a notification then has a second.
        environ: The environment of the program.
        id_: The run.
    """

    def __init__(
        self,
        view: RunView,
        argv: tuple[str, ...],
        *,
        id_: str,
        look: Callable[[], RunState | None],
        in_place: Callable[[], float],
        stop: Stop,
        environ: Mapping[str, str],
    ) -> None:
        self._view, self._argv, self._id, self._look = view, argv, id_, look
        self._in_place, self._stop, self._environ = in_place, stop, environ

    def step(self, step: JournalEntry) -> None:
        self._view.step(step)
        is_wait = isinstance(step, RunRescheduled) or (
            isinstance(step, AttemptEnd) and step.then == "again"
        )
        until = step.until if isinstance(step, RunRescheduled | AttemptEnd) else None
        if is_wait and until is not None and until - step.at > self._in_place():
            state = self._look()
            if state is not None:
                self._tell("parked", state)

    def output(self, stream: Stream, chunk: bytes) -> None:
        self._view.output(stream, chunk)

    def noted(self, note: OutputNote, facts: AttemptFacts) -> None:
        self._view.noted(note, facts)

    def waiting(self, until: float, left: float) -> None:
        self._view.waiting(until, left)

    def notified(self, error: str) -> None:
        self._view.notified(error)

    def over(self, state: RunState) -> None:
        if state.status in NEWS:
            self._tell("over", state)
        self._view.over(state)

    def _tell(self, event: str, state: RunState) -> None:
        news = {"event": event, "run": self._id, **summary(state)}
        self.notified(send(self._argv, news, stop=self._stop, environ=self._environ))


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
    """The program's name: its arguments are nobody's business."""
    from ...core.redaction import presentable

    return presentable(os.path.basename(argv[0]), 80)  # noqa: PTH119 -- a name, not a path of ours
