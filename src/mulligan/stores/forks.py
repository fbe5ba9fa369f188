"""Callbacks that reset locks, threads and connections in a forked child.

A lock that another thread held at the fork is never freed in the child, and a database connection
must not be used by two processes. Owners of such things register themselves here.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ("reset_after_fork",)


class Forkable(Protocol):
    """An object that has to be reset after a fork."""

    def after_fork(self) -> None:
        """Reset; runs in the child, before other code of Mulligan."""
        ...


_owners: WeakSet[Forkable] = WeakSet()


def reset_after_fork(owner: Forkable) -> None:
    """Have `owner.after_fork()` called in the child of every fork, as long as it lives."""
    _owners.add(owner)


def _after_fork() -> None:
    for owner in list(_owners):
        owner.after_fork()


os.register_at_fork(after_in_child=_after_fork)
