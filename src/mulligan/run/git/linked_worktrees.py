"""The linked work trees of a repository, be they ours or somebody else's.

Git forgets the work trees whose folder is missing when it is asked to prune, and with them what
is staged there and commits that no branch has. The folder of a user may be missing for a moment
only, on a drive that is not mounted: here nothing is forgotten but what is named.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .tree import Tree

__all__ = ("clear", "is_leaving", "linked", "move_out")

_GONE = ".gone-"


def linked(tree: Tree) -> list[tuple[str, str]]:
    """Every work tree that git knows, there or not, with the commit that is checked out there."""
    said = tree.git.run("worktree", "list", "--porcelain").decode(errors="surrogateescape")
    found = []
    for block in said.split("\n\n"):
        words = [line.partition(" ") for line in block.splitlines()]
        facts = {name: value for name, _, value in words}
        found.append((facts.get("worktree", ""), facts.get("HEAD", "")))
    return found


def move_out(place: str) -> None:
    """Let a folder be gone in one step: whoever is killed on the way leaves no half of one."""
    above, name = os.path.split(place)
    if os.path.isdir(place):
        os.rename(place, os.path.join(above, f"{_GONE}{os.urandom(4).hex()}-{name}"))


def is_leaving(place: str) -> bool:
    """Whether `move_out` was called, and nobody has come to `clear`."""
    return any(_moved_out(place))


def clear(tree: Tree, place: str) -> None:
    """Remove what was moved out, and what git knows of it."""
    if _is_known(tree, place):
        # Held, for git takes the last tree's folder away, where a sibling's may be coming.
        with tree.held():
            if _is_known(tree, place):
                # Twice, for one that its agent has locked.
                tree.git.run("worktree", "remove", "--force", "--force", "--", place)
    for each in list(_moved_out(place)):
        shutil.rmtree(each, ignore_errors=True)
    with suppress(OSError):
        os.rmdir(os.path.dirname(place))  # the run's folder, once its last agent has left


def _is_known(tree: Tree, place: str) -> bool:
    """Whether git knows a work tree at `place`: it keeps one file for each, with its folder."""
    above = os.path.join(tree.common, "worktrees")
    with suppress(FileNotFoundError):
        for name in os.listdir(above):
            with suppress(OSError), open(os.path.join(above, name, "gitdir"), "rb") as file:
                said = os.fsdecode(file.read().removesuffix(b"\n"))
                if os.path.dirname(os.path.join(above, name, said)) == place:
                    return True
    return False


def _moved_out(place: str) -> Iterator[str]:
    above, name = os.path.split(place)
    with suppress(OSError):
        for each in os.listdir(above):
            if each.startswith(_GONE) and each[len(_GONE) + 9 :] == name:
                yield os.path.join(above, each)
