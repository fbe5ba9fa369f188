"""Processes of a run that nobody supervises any more.

A supervisor that is killed leaves its program running, and a program may leave daemons that no
group holds together. Both carry the mark of their run in their environment. What is found is ended
only when a run is resumed or cancelled: a server that an agent started on purpose may stay as long
as its run goes well.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .group import look, seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .stop import Stop

__all__ = ("MARK", "end_leftovers", "leftovers", "marked")

MARK = "MULLIGAN_RUN"

_LOOK_EVERY = 0.05
_VANISH = 2.0


class _Found(NamedTuple):
    pid: int
    parent: int
    started: str
    runs: tuple[str, ...]


def marked(environ: Mapping[str, str], token: str) -> dict[str, str]:
    """`environ` for a program of the run `token`; a run inside a run belongs to both."""
    outer = environ.get(MARK)
    return {**environ, MARK: f"{outer}:{_checked(token)}" if outer else _checked(token)}


def leftovers(token: str) -> list[int]:
    """The ids of the running processes that carry the mark of the run `token`.

    Neither this process nor any that it descends from is among them.
    """
    return sorted(found.pid for found in _find(token))


def end_leftovers(
    token: str, grace: tuple[float, float] = (2.0, 2.0), stop: Stop | None = None
) -> list[int]:
    """End what carries the mark of the run `token`: SIGINT, SIGTERM, SIGKILL.

    Args:
        token: The run.
        grace: Seconds after SIGINT, and after SIGTERM.
        stop: Once set, there is no grace.

    Returns:
        The ids of those that run all the same.
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


def _find(token: str) -> list[_Found]:
    _checked(token)
    everybody = {process.pid: process for process in _processes()}
    ours, pid = set(), os.getpid()
    while pid in everybody and pid not in ours:
        ours.add(pid)
        pid = everybody[pid].parent
    return [
        process for pid, process in everybody.items() if token in process.runs and pid not in ours
    ]


def _tell(process: _Found, number: int) -> None:
    # Looked at again right before: the number may belong to somebody else by now.
    if _is_running(process):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)
            if number != signal.SIGKILL:
                os.kill(process.pid, signal.SIGCONT)  # whoever is stopped cannot act on it


def _is_running(process: _Found) -> bool:
    if sys.platform == "darwin":
        return any(process[:3] == other[:3] for other in _listed(_ps("-p", str(process.pid))))
    now = look(process.pid)
    return now is not None and not now.is_dead and now.started == process.started


def _processes() -> Iterator[_Found]:
    """Everybody who runs, with the marks of those that are ours."""
    if sys.platform == "darwin":
        yield from _listed(_ps("-ax"))
        return
    me = os.geteuid()
    for process in seen():
        if process.is_dead:
            continue
        folder, variables = Path("/proc", str(process.pid)), b""
        # Another user's, or one that forbids looking: not one that we started.
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == me:
                variables = (folder / "environ").read_bytes()
        words = variables.split(b"\0")
        yield _Found(process.pid, process.parent, process.started, _runs(words))


def _ps(*which: str) -> str:
    # -E: with the environment, for our own processes.
    command = ["/bin/ps", *which, "-E", "-ww", "-o", "pid=,ppid=,stat=,lstart=,command="]
    answer = subprocess.run(  # noqa: S603 -- a fixed program with fixed flags, a number at most
        command,
        env={"LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=10,
    )
    return answer.stdout.decode(errors="replace")


def _listed(text: str) -> Iterator[_Found]:
    """What `ps` lists; those that have ended left out."""
    for line in text.splitlines():
        # 512 1 Ss Sun Nov 15 23:35:26 2026 command and arguments NAME=value …
        fields = line.split(None, 8)
        if len(fields) == 9 and not fields[2].startswith("Z"):
            words = fields[8].encode().split()
            yield _Found(int(fields[0]), int(fields[1]), " ".join(fields[3:8]), _runs(words))


def _runs(words: Iterable[bytes]) -> tuple[str, ...]:
    prefix = f"{MARK}=".encode()
    for word in words:
        if word.startswith(prefix):
            return tuple(word.removeprefix(prefix).decode(errors="replace").split(":"))
    return ()
