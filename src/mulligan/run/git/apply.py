"""Moves a tree from one state to another, so that a crash leaves every path in one of the two.

A step has the content that it expects at its path and the content that it leaves there. A path with
the latter is done; a path with neither was changed by others, and is not touched. So the steps are
idempotent, and can be repeated after a crash.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import GitError
from .command import null_terminated
from .files import TreeEntry
from .objects import index_lines
from .record import FileState
from .refs import reading
from .status import TreeStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from concurrent.futures import Future

    from .tree import Tree

__all__ = ("PathStep", "apply_steps", "stage")

# Files written at the same time.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One path to be changed."""

    path: str
    before: TreeEntry | None  # what is expected on disk
    after: TreeEntry | None  # what to write
    permissions: int | None = None
    staged: tuple[FileState, FileState] | None = None  # index: expected, wanted; None: not touched


def apply_steps(tree: Tree, steps: Sequence[PathStep], keep: Collection[str] = ()) -> list[str]:
    """Apply every step; returns the paths with unexpected content, which are left alone.

    Folders in `keep` are not removed when empty, and are created if missing.

    The work tree goes first and the index second: a crash between the two is seen by git as a
    change that is not staged, never as one that is staged and cannot be found.
    """
    files = tree.files
    unexpected: set[str] = set()
    to_do: list[PathStep] = []
    for step in steps:
        now = files.entry(step.path)
        if now == step.before and now != step.after:
            to_do.append(step)
        elif now != step.after:
            unexpected.add(step.path)
    folders = _folders(step.path for step in to_do if step.after is not None)
    # Remove first, deepest first: a folder may become a file.
    for step in sorted(to_do, key=lambda each: each.path.count("/"), reverse=True):
        if step.after is None or step.path in folders:
            files.remove(step.path, keep)
    unexpected |= _put(tree, [step for step in to_do if step.after is not None])
    for folder in sorted(keep):
        files.make_folder(folder)
    stage(tree, [step for step in steps if step.path not in unexpected])
    return sorted(unexpected)


def _put(tree: Tree, steps: list[PathStep]) -> set[str]:
    """Write the new files; returns the paths that are blocked by a folder with other files.

    Several at once: each write waits for fsync.
    """
    blocked: set[str] = set()

    def put(step: PathStep, after: TreeEntry, content: bytes) -> None:
        try:
            tree.files.put(step.path, after, content, step.permissions)
        except GitError:
            blocked.add(step.path)

    if not steps:
        return blocked
    from concurrent.futures import ThreadPoolExecutor  # which brings logging

    with reading(tree) as reader, ThreadPoolExecutor(_AT_ONCE) as pool:
        begun: deque[Future[None]] = deque()
        for step in steps:
            assert step.after is not None  # noqa: S101 -- removals are not put
            begun.append(pool.submit(put, step, step.after, reader.read(step.after.oid)))
            if len(begun) > 2 * _AT_ONCE:  # contents are in memory until they are written
                begun.popleft().result()
        for each in begun:
            each.result()
    return blocked


def _folders(paths: Iterable[str]) -> set[str]:
    """Every parent folder of these files."""
    found = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def stage(tree: Tree, steps: Iterable[PathStep]) -> None:
    """Apply the steps to the index, where it has what they expect."""
    staged = {step.path: step.staged for step in steps if step.staged is not None}
    if not staged:
        return
    changed = {path: each for path, each in staged.items() if each[0].staged != each[1].staged}
    todo = {}
    if changed:
        status = TreeStatus.of(tree)
        for path, (expected, wanted) in changed.items():
            if status.index(path) == expected.staged:
                todo[path] = wanted
    if todo:
        entries = {path: wanted.index for path, wanted in todo.items()}
        tree.git.run("update-index", "-z", "--index-info", stdin=index_lines(tree.git, entries))
    intended = [path for path, wanted in todo.items() if wanted.is_intended]
    if intended:
        options = ("--intent-to-add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
        tree.git.run("add", *options, stdin=null_terminated(intended))
    if tree.files.is_durable:
        # Exit code 1 only says that files differ; the ones just written shall not look modified.
        tree.git.ask("update-index", "-q", "--refresh")
