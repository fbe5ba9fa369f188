"""A tree that somebody works in.

Two runs in one tree take each other's edits for their own: the retry of one would set aside what
the other has just written. So whoever sets things aside in a tree has it alone for as long as it
works there. The kernel holds the lease, and lets go when the process dies.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.redaction import presentable
from ...errors import TreeBusy
from ...stores.home import private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .tree import Tree

__all__ = ("leased",)

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def leased(tree: Tree, run: str, *, is_shared: bool = False) -> Iterator[None]:
    """Have `tree` as long as this lasts.

    Args:
        tree: The tree.
        run: Who works in it.
        is_shared: Whether others may as well who share it: those that only bring changes from
            trees of their own.

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
            if other != run:  # a run that was taken over from a process that does not let go
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
