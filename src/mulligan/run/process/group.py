"""A process group, seen from the parent of its leader.

The id of a group is not given to anybody else while it has a member, so a signal to a group whose
leader is gone reaches its other members or nobody.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import TYPE_CHECKING

from .table import processes

if TYPE_CHECKING:
    import contextlib

__all__ = ("ending", "has_members", "signal_group")


def signal_group(group: int, number: int) -> bool:
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
    if not signal_group(group, 0):
        return False
    if sys.platform == "darwin":
        return True
    # In a container whose first process reaps nobody, zombies stay members for ever.
    try:
        return any(process.group == group and not process.is_dead for process in processes())
    except OSError:  # no /proc here
        return True


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
