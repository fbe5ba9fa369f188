"""Git's lock files on an index or a reference: held by a running git, or left by a dead one.

Git makes ``index.lock`` and removes it at the end; a git that was killed leaves it, and every later
git refuses to work. The file does not name its owner. It counts as stale only if no process has it
open, no git runs in this tree, and it is old: during a hook a running git holds the lock without
having it open.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ...core.redaction import presentable
from ...errors import GitRefused
from .command import pause
from .record import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .tree import Tree

__all__ = ("free_locks",)

# Age in seconds from which a lock without a visible process is stale.
_OLD = 10.0
# The same where processes cannot be listed, so that age is the only evidence.
_VERY_OLD = 6 * 3600.0
# Seconds to wait for a running git: one that we started may have survived a killed Mulligan.
_WAIT, _PAUSE = 2.0, 0.05
# Seconds between two scans of all processes, which are slow.
_LONG_PAUSE = 0.5


def free_locks(tree: Tree, branch: str) -> bool:
    """Wait for locks to be released, and move stale ones away; whether there were any.

    A lock that no process seems to hold is watched for `_OLD` seconds.

    Raises:
        GitRefused: A process holds one, or it cannot be told.
        GitStopped: A stop was requested while we waited.
    """
    return bool([lock for lock in _locks(tree, branch) if _free(tree, lock)])


def _locks(tree: Tree, branch: str) -> Iterator[str]:
    """Locks on the index, on HEAD, its branch and our own references."""
    yield os.path.join(tree.repository, "index.lock")
    yield os.path.join(tree.repository, "HEAD.lock")
    yield os.path.join(tree.common, "packed-refs.lock")
    if branch:
        yield os.path.join(tree.common, "refs", "heads", f"{branch}.lock")
    for folder, _, names in os.walk(os.path.join(tree.common, ROOT)):
        yield from (os.path.join(folder, name) for name in names if name.endswith(".lock"))


def _free(tree: Tree, lock: str) -> bool:
    """Free one lock; whether it existed."""
    began = seen = time.monotonic()
    was_there = False
    while True:
        try:
            age = time.time() - os.lstat(lock).st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return was_there
        was_there = True
        holder, now = _holder(tree, lock), time.monotonic()
        if holder:
            seen = now
        # A lock with a time in the future counts as old after it was watched for that long.
        if holder == "" and max(age, now - seen) >= _OLD:
            break
        if holder is None and age >= _VERY_OLD:
            break
        if holder != "" and now - began >= _WAIT:
            raise GitRefused(_refusal(lock, holder, age))
        is_long = now - began >= _WAIT
        pause(_LONG_PAUSE if is_long else _PAUSE, f"waiting for {presentable(lock)}")
    # Moved, not removed: the user may want to look at it.
    os.makedirs(tree.scratch, mode=0o700, exist_ok=True)
    with suppress(FileNotFoundError):
        os.replace(lock, os.path.join(tree.scratch, f"{os.path.basename(lock)}.dead"))
    return True


def _refusal(lock: str, holder: str | None, age: float) -> str:
    shown = presentable(lock)
    if holder:
        return f"{shown} is held by {presentable(holder, 120)}; try again when it is done"
    return (
        f"{shown} is {age:.0f} s old, and whether its git still runs cannot be seen here; "
        f"remove it if no git is running"
    )


def _holder(tree: Tree, lock: str) -> str | None:
    """The process that holds the lock; empty for none, None if processes cannot be seen."""
    from ..process.table import can_see_files

    if can_see_files():
        return next(_processes(tree, lock), "")
    lsof = shutil.which("lsof")
    if lsof is None:
        return None
    said = subprocess.run(  # noqa: S603 -- an argv of ours, no shell
        [lsof, "-t", "--", lock], capture_output=True, check=False, timeout=10
    )
    # lsof sees open files; a git in its hook has none open, so that an empty answer proves nothing.
    pids = said.stdout.split()
    return f"process {pids[0].decode()}" if pids else None


def _processes(tree: Tree, lock: str) -> Iterator[str]:
    from ..process.table import folder_of, name_of, open_files, pids

    inside = (tree.folder, tree.repository, tree.common)
    for pid in pids():
        name = name_of(pid)
        if (name == "git" and _is_inside(folder_of(pid), inside)) or lock in open_files(pid):
            yield f"process {pid} ({name})"


def _is_inside(place: str | None, folders: tuple[str, ...]) -> bool:
    return place is None or any(f"{place}/".startswith(f"{each}/") for each in folders)
