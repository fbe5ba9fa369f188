"""The process table of this machine: ids, groups, start times, environments, open files.

Process ids are reused. A process is identified by its id and start time, in the kernel's own form:
psutil's `create_time` adds the time of boot, which moves with the wall clock, so a holder of a run
would look dead after the clock was set.

Linux is read from /proc, here and in no other module of runs; other systems from `ps`.
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

__all__ = (
    "ProcessInfo",
    "began",
    "can_see_files",
    "environments",
    "folder_of",
    "look",
    "myself",
    "name_of",
    "open_files",
    "pids",
    "processes",
    "umask",
)

_PROC = Path("/proc")
_HAS_PROC = (_PROC / "self" / "stat").exists()


class ProcessInfo(NamedTuple):
    """A process, as the system shows it.

    Args:
        pid: Its id.
        state: One letter; Z for a zombie.
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
    for pid in pids():
        if (process := look(pid)) is not None:
            yield process


def pids() -> Iterator[int]:
    """The ids of all processes (Linux).

    Raises:
        OSError: They cannot be listed.
    """
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            yield int(folder.name)


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
    for pid in pids():
        folder = _PROC / str(pid)
        # Another user's, or one that forbids looking: not one that we started.
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.geteuid():
                found[pid] = (folder / "environ").read_bytes().split(b"\0")
    return found


def myself() -> tuple[str, str]:
    """The id of this process as /proc shows it, and where that id means this process.

    In a pid namespace with the /proc of another one, getpid() is not our number there. The id
    means this process within its pid namespace, seen through its /proc.
    """
    shown, space, view = str(os.getpid()), "", ""
    with contextlib.suppress(OSError):
        shown = str((_PROC / "self").readlink())
    with contextlib.suppress(OSError):
        space = str((_PROC / "self" / "ns" / "pid").stat().st_ino)
    with contextlib.suppress(OSError):
        view = str(_PROC.stat().st_dev)
    return shown, f"{space}.{view}"


def can_see_files() -> bool:
    """Whether it can be seen which files a process has open."""
    return (_PROC / "self" / "fd").is_dir()


def open_files(pid: int) -> Iterator[str]:
    """What a process has open, as the kernel names it; nothing if it ended or forbids looking."""
    with contextlib.suppress(OSError):
        for descriptor in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):  # it was closed meanwhile
                yield str(descriptor.readlink())


def name_of(pid: int) -> str:
    """The name of a process's program; empty if it has ended."""
    try:
        return (_PROC / str(pid) / "comm").read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""


def folder_of(pid: int) -> str | None:
    """The folder that a process works in; empty if it ended, None if it is another user's."""
    try:
        return str((_PROC / str(pid) / "cwd").readlink())
    except PermissionError:
        return None
    except OSError:
        return ""


def umask() -> int:
    """The umask of this process, without setting it: other threads create files meanwhile."""
    with contextlib.suppress(OSError), (_PROC / "self" / "status").open("rb") as file:
        for line in file:
            if line.startswith(b"Umask:"):
                return int(line.split()[1], 8)
    # A child inherits it, and can print it.
    shown = subprocess.run(
        ["/bin/sh", "-c", "umask"], capture_output=True, text=True, check=True, timeout=10
    )
    return int(shown.stdout, 8)


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
