"""A process group, seen from the parent of its leader.

The id of a group is not given to anybody else while it has a member, so a signal to a group whose
leader is gone reaches its other members or nobody.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Iterator

__all__ = ("Seen", "ending", "has_members", "look", "seen", "tell")

_PROCESSES = Path("/proc")


class Seen(NamedTuple):
    """A process, as /proc shows it.

    Args:
        pid: Its id.
        state: One letter; Z for one that has ended and whose parent did not look yet.
        parent: The id of its parent.
        group: The id of its process group.
        started: When it began, in ticks since boot: with `pid`, it is this process and no other.
    """

    pid: int
    state: str
    parent: int
    group: int
    started: str

    @property
    def is_dead(self) -> bool:
        return self.state in "ZX"


def tell(group: int, number: int) -> bool:
    """Send a signal to the whole group; False if there is nobody to take it."""
    try:
        os.killpg(group, number)
        if number not in {0, signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT}:
            os.killpg(group, signal.SIGCONT)  # whoever is stopped cannot act on it
    except (ProcessLookupError, PermissionError):  # macOS: a group of zombies is not permitted
        return False
    return True


def has_members(group: int) -> bool:
    """Whether anybody of the group, whose leader was reaped, still runs."""
    if not tell(group, 0):
        return False
    if sys.platform == "darwin":
        return True
    # In a container whose first process reaps nobody, zombies stay members for ever.
    try:
        return any(process.group == group and not process.is_dead for process in seen())
    except OSError:  # no /proc here
        return True


def seen() -> Iterator[Seen]:
    """The processes of the machine (Linux)."""
    for path in _PROCESSES.iterdir():
        if path.name.isdigit() and (process := look(int(path.name))) is not None:
            yield process


def look(pid: int) -> Seen | None:
    """The process `pid`; None if there is none (Linux)."""
    try:
        text = (_PROCESSES / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # 12 (a name, with anything in it) S 1 12 12 0 …
    fields = text.rpartition(b")")[2].decode("ascii").split()
    return Seen(pid, fields[0], int(fields[1]), int(fields[2]), fields[19])


def ending(pid: int, opened: contextlib.ExitStack) -> int | None:
    """A descriptor that is readable once the child `pid` has ended; None where there is none.

    It says so without reaping the child, and is closed with `opened`.
    """
    try:
        if sys.platform == "darwin":
            queue = select.kqueue()
            opened.callback(queue.close)
            exits = select.kevent(pid, select.KQ_FILTER_PROC, fflags=select.KQ_NOTE_EXIT)
            queue.control([exits], 0)
            return queue.fileno()
        descriptor = os.pidfd_open(pid)
        opened.callback(os.close, descriptor)
    except OSError:  # an old kernel, a sandbox; or it has ended already
        return None
    return descriptor
