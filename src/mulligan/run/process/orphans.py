"""Orphans: processes of a run whose supervisor is gone, found by the mark in their environment.

A killed supervisor leaves its program running, and a program may leave daemons in other process
groups. Both carry the mark of their run in their environment. They are stopped only when a run is
resumed or cancelled: a server that an agent started on purpose may stay while its run succeeds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING

from .table import ProcessInfo, environments, look, processes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .stop import Stop

__all__ = ("MARK", "end_leftovers", "leftovers", "marked")

MARK = "MULLIGAN_RUN"

_LOOK_EVERY = 0.05
_VANISH = 2.0


def marked(environ: Mapping[str, str], *tokens: str) -> dict[str, str]:
    """`environ` for a program of the runs `tokens`; a run inside a run belongs to both."""
    outer = [environ[MARK]] if environ.get(MARK) else []
    return {**environ, MARK: ":".join([*outer, *map(_checked, tokens)])}


def leftovers(token: str) -> list[int]:
    """The ids of the running processes that carry the mark of the run `token`.

    Neither this process nor any that it descends from is among them.
    """
    return sorted(found.pid for found in _find(token))


def end_leftovers(
    token: str, grace: tuple[float, float] = (2.0, 2.0), stop: Stop | None = None
) -> list[int]:
    """Stop the processes with the mark of the run `token`; returns the ids of those that still run.

    SIGINT, SIGTERM, SIGKILL, with seconds of `grace` after the first two, skipped once `stop` is
    set.
    """
    first, second = grace
    ladder = ((signal.SIGINT, first), (signal.SIGTERM, second), (signal.SIGKILL, _VANISH))
    for number, wait in ladder:
        found = _find(token)  # again each time: they may have started others
        for process in found:
            _tell(process, number)
        ends_at = time.monotonic() + wait
        while any(map(_is_running, found)) and time.monotonic() < ends_at:
            if stop is not None and stop.is_set and number is not signal.SIGKILL:
                break
            time.sleep(_LOOK_EVERY)
    return leftovers(token)


def _checked(token: str) -> str:
    if not token or ":" in token or "\0" in token:
        raise ValueError(f"a run's mark is a word without colons; got {token!r}")
    return token


def _find(token: str) -> list[ProcessInfo]:
    _checked(token)
    running = {process.pid: process for process in processes() if not process.is_dead}
    ours, pid = set(), os.getpid()
    while pid in running and pid not in ours:
        ours.add(pid)
        pid = running[pid].parent
    return [
        running[pid]
        for pid, words in environments().items()
        if pid in running and pid not in ours and token in _runs_of(words)
    ]


def _tell(process: ProcessInfo, number: int) -> None:
    # Checked right before the signal: the pid may belong to another process by now.
    if _is_running(process):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)
            if number != signal.SIGKILL:
                os.kill(process.pid, signal.SIGCONT)  # a stopped process does not handle signals


def _is_running(process: ProcessInfo) -> bool:
    now = look(process.pid)
    return now is not None and not now.is_dead and now.started == process.started


def _runs_of(words: list[bytes]) -> list[str]:
    """The runs that a process belongs to, by its environment."""
    prefix = f"{MARK}=".encode()
    for word in words:
        if word.startswith(prefix):
            return word.removeprefix(prefix).decode(errors="replace").split(":")
    return []
