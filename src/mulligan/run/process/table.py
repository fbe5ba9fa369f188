"""The processes of this machine: who runs, in which group, since when.

Process ids are used again. A process is known by its id and when it began, in the exact form that
the kernel has it: psutil's `create_time` adds the time of boot, which moves with the wall clock, so
that a holder of a run would be taken for dead after the clock was set.

Linux is read from /proc, other systems from `ps`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...stores.boot_clock import boot_id

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("ProcessInfo", "began", "environments", "look", "processes")

_PROC = Path("/proc")
_HAS_PROC = (_PROC / "self" / "stat").exists()


class ProcessInfo(NamedTuple):
    """A process, as the system shows it.

    Args:
        pid: Its id.
        state: One letter; Z for one that has ended and whose parent did not look yet.
        parent: The id of its parent.
        group: The id of its process group.
        started: When it began, as the system says it: with `pid`, it is this process and no other.
        cpu: Processor time, in seconds; on Linux with that of its children that have ended.
    """

    pid: int
    state: str
    parent: int
    group: int
    started: str
    cpu: float = 0.0

    @property
    def is_dead(self) -> bool:
        return self.state in "ZX"


def processes() -> Iterator[ProcessInfo]:
    """All processes of the machine.

    Raises:
        OSError: They cannot be listed.
        subprocess.SubprocessError: `ps` fails.
    """
    if not _HAS_PROC:
        yield from _listed(_ps("-ax", "-o", _COLUMNS))
        return
    for path in _PROC.iterdir():
        if path.name.isdigit() and (process := look(int(path.name))) is not None:
            yield process


def look(pid: int) -> ProcessInfo | None:
    """The process `pid`; None if there is none."""
    if not _HAS_PROC:
        return next(_listed(_ps("-p", str(pid), "-o", _COLUMNS)), None)
    try:
        text = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # 12 (a name, with anything in it, also a parenthesis) S 1 12 12 0 …
    fields = text.rpartition(b")")[2].decode("ascii").split()
    cpu = sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return ProcessInfo(pid, fields[0], int(fields[1]), int(fields[2]), fields[19], cpu)


def began(pid: int) -> str:
    """When the process began, in the form that journals have it; empty if it is dead."""
    process = look(pid)
    if process is None or process.is_dead:
        return ""
    return f"{process.started}.{boot_id()[:8]}" if _HAS_PROC else process.started


def environments() -> dict[int, list[bytes]]:
    """The environments of the current user's processes, as NAME=value; `ps` adds the command."""
    if not _HAS_PROC:
        # -E: with the environment, for our own processes.
        return _environments(_ps("-ax", "-E", "-ww", "-o", "pid=,command="))
    found = {}
    for folder in _PROC.iterdir():
        # Another user's, or one that forbids looking: not one that we started.
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and folder.stat().st_uid == os.geteuid():
                found[int(folder.name)] = (folder / "environ").read_bytes().split(b"\0")
    return found


_COLUMNS = "pid=,ppid=,pgid=,stat=,time=,lstart="


def _listed(text: str) -> Iterator[ProcessInfo]:
    """The processes that `ps` lists."""
    for line in text.splitlines():
        # 512 1 512 Ss 0:03.04 Sun Nov 15 23:35:26 2026
        fields = line.split()
        if len(fields) != 10:
            continue
        seconds = 0.0
        for part in fields[4].replace("-", ":").split(":"):  # 1-02:03:04.05, in practice 3:04.05
            seconds = seconds * 60 + float(part)
        pid, parent, group = map(int, fields[:3])
        yield ProcessInfo(pid, fields[3][0], parent, group, "-".join(fields[5:]), seconds)


def _environments(text: str) -> dict[int, list[bytes]]:
    """What `ps` lists of each process: its command and its environment, in words."""
    lines = [line.encode().split() for line in text.splitlines()]
    return {int(words[0]): words[1:] for words in lines if words and words[0].isdigit()}


def _ps(*words: str) -> str:
    answer = subprocess.run(  # noqa: S603 -- a fixed program with fixed flags, a number at most
        ["/bin/ps", *words],
        env={"LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=10,
    )
    return answer.stdout.decode(errors="replace")
