"""Locks on a work tree: `locked` for one operation, `leased` for as long as a run works in it.

One thread of one process at a time reads a tree whole, or moves files in it. Threads of one process
queue, first come, first served, and wait as long as it takes: everything that the holder does has a
timeout of its own. Another process is waited for as long as it shows progress. The kernel holds the
lock, and releases it when the process dies and every git that it started with the lock has ended.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import threading
import time
from collections import defaultdict, deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.redaction import presentable
from ...errors import GitError, GitRefused, TreeBusy
from ...stores.home import private_folder
from .command import check_stop, inherited_locks, pause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .tree import Tree

__all__ = ("leased", "lock_file", "locked")

# Seconds that another process may hold the lock without a heartbeat, and between two heartbeats.
_PATIENCE, _BEAT = 60.0, 1.0
# Seconds between two looks for a free lock, or a request to stop.
_POLL = 0.02
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class _Queue:
    """The threads of this process that want one lock, in the order in which they came."""

    def __init__(self) -> None:
        self.line: deque[threading.Event] = deque()
        self.beat = 0.0  # the last heartbeat of another process
        self.seen = 0.0  # when it was first seen, by our clock


_queues: dict[str, _Queue] = defaultdict(_Queue)
_guard = threading.Lock()


@contextmanager
def locked(tree: Tree) -> Iterator[None]:
    """Lock `tree` in this block against all other threads and processes of Mulligan.

    Raises:
        GitRefused: Another process holds the lock, and has shown no progress for a minute.
        GitStopped: A stop was requested while we waited.
        GitError: A file could not be read or written.
    """
    private_folder(Path(tree.scratch))
    with lock_file(os.path.join(tree.scratch, "held"), tree.folder):
        try:
            _sweep(tree.scratch)
            yield
        except OSError as trouble:
            what = f"{trouble.strerror or trouble}: {trouble.filename or tree.folder!r}"
            raise GitError(f"setting files aside met {presentable(what)}") from trouble


def _sweep(scratch: str) -> None:
    """Remove what a Mulligan that was killed has left half written."""
    for name in os.listdir(scratch):
        place = os.path.join(scratch, name)
        if name.startswith("tmp"):
            shutil.rmtree(place, ignore_errors=True)
        elif name.startswith(".mulligan-"):
            with suppress(OSError):
                if not stat.S_ISDIR(os.lstat(place).st_mode):
                    os.unlink(place)


@contextmanager
def lock_file(place: str, folder: str) -> Iterator[None]:
    """Hold the lock in the file `place`, for the work tree `folder`; raises as `locked` does."""
    with _turn(place) as queue:
        handle = os.open(place, _FLAGS, 0o600)
        try:
            _wait(handle, queue, folder)
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            token = inherited_locks.set((*inherited_locks.get(), handle))
            try:
                with _beating(handle):
                    yield
            finally:
                inherited_locks.reset(token)
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # a git that still reads has it open, too
            os.close(handle)


@contextmanager
def _turn(place: str) -> Iterator[_Queue]:
    """Wait until this thread is first in the queue of this process."""
    mine = threading.Event()
    with _guard:
        queue = _queues[place]
        queue.line.append(mine)
        if queue.line[0] is mine:
            mine.set()
    try:
        while not mine.wait(_POLL):
            check_stop("waiting for the tree")
        yield queue
    finally:
        with _guard:
            queue.line.remove(mine)
            if queue.line:
                queue.line[0].set()
            else:
                del _queues[place]


def _wait(handle: int, queue: _Queue, folder: str) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            beat, now = os.fstat(handle).st_mtime, time.monotonic()
            if beat != queue.beat:
                queue.beat, queue.seen = beat, now
            if now - queue.seen > _PATIENCE:
                pid = os.pread(handle, 20, 0).decode("ascii", "replace")
                who = f"process {pid}" if pid.isdigit() else "another process"
                raise GitRefused(
                    f"{presentable(folder)}: {who} is setting files aside there, and has shown no "
                    f"progress for {_PATIENCE:.0f} s; let it go on (kill -CONT) or end it, and try "
                    f"again"
                ) from None
            pause(_POLL, "waiting for the tree")
        else:
            queue.beat = 0.0
            return


@contextmanager
def _beating(handle: int) -> Iterator[None]:
    """Show others that this process is alive, as long as it has the lock."""
    is_over = threading.Event()

    def beat() -> None:
        while not is_over.wait(_BEAT):
            with suppress(OSError):
                os.utime(handle)

    thread = threading.Thread(target=beat, name="git lock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def leased(tree: Tree, run: str, *, is_shared: bool = False) -> Iterator[None]:
    """Hold `tree` for as long as a run works in it; the kernel releases it if the process dies.

    Two runs in one tree cannot tell their edits apart: a retry of one would set aside what the
    other has just written. Runs that only deliver changes from trees of their own may share it.

    Raises:
        TreeBusy: Another run works there. One that is stopped, but not dead, still does.
    """
    private_folder(Path(tree.scratch))
    handle = os.open(os.path.join(tree.scratch, "leased"), _FLAGS, 0o600)
    try:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(handle, 200, 0).decode("utf-8", "replace")
            if other != run:  # same run: claimed from a process that still holds the lock
                raise TreeBusy(
                    f"{presentable(tree.folder)}: run {presentable(other, 80)} works in this tree, "
                    f"and each would set the other's edits aside; wait until it ends"
                ) from None
        else:
            os.ftruncate(handle, 0)
            os.pwrite(handle, run.encode(), 0)
        yield
    finally:
        os.close(handle)
