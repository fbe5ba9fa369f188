"""Moving a tree from one state to another, so that a crash leaves every path in one of the two.

A step knows what it expects at its path and what it leaves there. A path that has what it should
have is done; a path that has neither is somebody's newer work, and is not touched. So the same
steps can be taken again after a crash, any number of times, and change nothing that is done.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import GitError
from .files import Entry
from .objects import index_lines, reader
from .places import Place
from .status import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from .places import Move
    from .tree import Tree

__all__ = ("Step", "outward", "stage", "take")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One path on its way.

    Args:
        path: In the tree.
        before: What is expected there.
        after: What is to stand there.
        staged: What the index should have, as (expected, wanted); None leaves it alone.
    """

    path: str
    before: Entry | None
    after: Entry | None
    permissions: int | None = None
    staged: tuple[Place, Place] | None = None


def outward(moves: Iterable[Move]) -> list[Step]:
    """The steps that set `moves` aside."""
    return [
        Step(
            path=move.path,
            before=move.aside.tree,
            after=move.base.tree,
            permissions=move.base.permissions,
            staged=(move.aside, move.base),
        )
        for move in moves
    ]


def take(tree: Tree, steps: Sequence[Step], keep: Collection[str] = ()) -> list[str]:
    """Take every step; the paths where something else was found, and left as it is.

    Folders in `keep` stay, be they empty, or come back.

    The work tree goes first and the index second: a crash between the two is seen by git as a
    change that is not staged, never as one that is staged and cannot be found.
    """
    files = tree.files
    strange: set[str] = set()
    to_do: list[Step] = []
    for step in steps:
        now = files.entry(step.path)
        if now == step.before and now != step.after:
            to_do.append(step)
        elif now != step.after:
            strange.add(step.path)
    folders = _folders(step.path for step in to_do if step.after is not None)
    # Deepest first, and all before the first file comes: a folder may become a file.
    for step in sorted(to_do, key=lambda each: each.path.count("/"), reverse=True):
        if step.after is None or step.path in folders:
            files.remove(step.path, keep)
    with reader(tree.git) as read:
        for step in to_do:
            if step.after is None:
                continue
            content = read(step.after.oid)
            try:
                files.put(step.path, step.after, content, step.permissions)
            except GitError:
                strange.add(step.path)  # a folder with files that are not ours
    for folder in sorted(keep):
        files.make_folder(folder)
    stage(tree, [step for step in steps if step.path not in strange])
    return sorted(strange)


def _folders(paths: Iterable[str]) -> set[str]:
    """Every folder that has to be one for these files to stand in it."""
    found = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def stage(tree: Tree, steps: Iterable[Step]) -> None:
    """Do what the steps say about the index, where it is as they expect."""
    status = Status.of(tree)
    entries: dict[str, Entry | None] = {}
    intended = []
    for step in steps:
        if step.staged is None:
            continue
        expected, wanted = step.staged
        now, is_intended = status.index(step.path)
        if (now, is_intended) != (expected.index, expected.is_intended):
            continue
        if (now, is_intended) == (wanted.index, wanted.is_intended):
            continue
        entries[step.path] = wanted.index
        if wanted.is_intended:
            intended.append(step.path)
    if entries:
        tree.git.run("update-index", "-z", "--index-info", stdin=index_lines(tree.git, entries))
    if intended:
        listed = b"".join(os.fsencode(path) + b"\0" for path in intended)
        options = ("--intent-to-add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
        tree.git.run("add", *options, stdin=listed)
    # Exit code 1 only says that files differ; the ones just written shall not look modified.
    tree.git.ask("update-index", "-q", "--refresh")
