"""What differs from the last commit, as git sees it.

One ``git status`` and one listing of HEAD answer every question about staged content; content on
disk is read from the disk. Submodules and repositories inside the tree are other repositories:
named, never entered. A tree is refused, untouched, while setting files aside would break an
operation in it: a merge, a rebase, unresolved paths, a running git.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from ...core.redaction import presentable
from ...errors import GitRefused
from .files import TreeEntry
from .locks import free_locks
from .objects import entries_of
from .record import FileState, LeftPath
from .secret_files import HEAD_BYTES, why_secret
from .tree import Tree

__all__ = ("TreeStatus", "ignored_paths")

# A file or folder in the repository that says what is going on, with how to end it.
_UNDER_WAY = (
    ("MERGE_HEAD", "a merge", "git merge --continue or --abort"),
    ("rebase-merge", "a rebase", "git rebase --continue or --abort"),
    ("rebase-apply", "a rebase or git am", "git rebase --abort or git am --abort"),
    ("CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --continue or --abort"),
    ("REVERT_HEAD", "a revert", "git revert --continue or --abort"),
    ("sequencer", "a cherry-pick or revert of several commits", "git cherry-pick --abort"),
)

_ABSENT = "000000"
_SUBMODULE = "160000"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeStatus:
    """The state of a tree, as git saw it when it was asked."""

    tree: Tree
    commit: str  # that is checked out; empty on a branch without a commit
    branch: str  # that is checked out; empty for a detached HEAD
    head: Mapping[str, TreeEntry]  # every file of the last commit
    dirty: tuple[str, ...]  # paths that differ from it, or are unknown to it
    untracked: frozenset[str]
    left: tuple[LeftPath, ...]  # paths that differ and may not be touched
    unresolved: tuple[str, ...]  # paths with an unresolved conflict
    _staged: dict[str, tuple[TreeEntry | None, bool]] = field(repr=False)

    @classmethod
    def of(cls, tree: Tree) -> TreeStatus:
        """Ask git now."""
        lines = tree.git.fields(
            *("status", "--porcelain=v2", "--branch", "-z", "--no-renames"),
            *("--untracked-files=all", "--ignored=no", "--ignore-submodules=none"),
        )
        about = dict(line.split(" ", 2)[1:] for line in lines if line.startswith("# "))
        commit, branch = about["branch.oid"], about["branch.head"]
        commit = "" if commit == "(initial)" else commit
        head = entries_of(tree, commit) if commit else {}
        unresolved: list[str] = []
        staged: dict[str, tuple[TreeEntry | None, bool]] = {}
        untracked: set[str] = set()
        left: dict[str, str] = {}
        for line in lines:
            if line.startswith("? "):
                path = line[2:]
                if path.endswith("/"):
                    left[path.rstrip("/")] = "a repository of its own"
                else:
                    untracked.add(path)
            elif line.startswith("u "):
                unresolved.append(line.split(" ", 10)[10])
            elif line.startswith("1 "):
                _, states, _, in_head, in_index, _, head_oid, oid, path = line.split(" ", 8)
                if _SUBMODULE in {in_head, in_index}:
                    left[path] = "a submodule: a repository of its own"
                # An intention shows as an addition to the work tree; without its file, as one
                # that the last commit is said to have and does not.
                is_said = states[0] == "." and in_head != _ABSENT
                is_intended = states[1] == "A" or (
                    is_said and head.get(path) != TreeEntry(in_head, head_oid)
                )
                is_staged = in_index != _ABSENT and not is_intended
                staged[path] = (TreeEntry(in_index, oid) if is_staged else None), is_intended
        for path in sorted({*staged, *untracked} - {*left}):
            if why := _why_left(tree, path):
                left[path] = why
        return cls(
            tree=tree,
            commit=commit,
            branch="" if branch == "(detached)" else branch,
            head=head,
            dirty=tuple(sorted({*staged, *untracked} - {*left})),
            untracked=frozenset(untracked - {*staged} - {*left}),
            left=tuple(LeftPath(path=path, reason=why) for path, why in sorted(left.items())),
            unresolved=tuple(unresolved),
            _staged=staged,
        )

    @classmethod
    def checked(cls, tree: Tree) -> TreeStatus:
        """The status; raises `GitRefused` while setting files aside would break an operation."""
        for name, what, how in _UNDER_WAY:
            if os.path.exists(os.path.join(tree.repository, name)):
                raise GitRefused(f"{presentable(tree.folder)}: {what} is under way; {how} first")
        status = cls.of(tree)
        if free_locks(tree, status.branch):  # a git was at work: the status may have changed
            return cls.checked(tree)
        if status.unresolved:
            path = presentable(status.unresolved[0], 200)
            raise GitRefused(f"{path} has a conflict that is not resolved; resolve it first")
        return status

    def index(self, path: str) -> tuple[TreeEntry | None, bool]:
        """What is staged at `path`, and whether there is only an intention."""
        if path in self._staged:
            return self._staged[path]
        return (None if path in self.untracked else self.head.get(path)), False

    def state(self, path: str) -> FileState:
        """Both contents of `path`; reads the file."""
        index, is_intended = self.index(path)
        return FileState(
            tree=self.tree.files.entry(path),
            index=index,
            is_intended=is_intended,
            permissions=self.tree.files.permissions(path),
        )


def ignored_paths(tree: Tree) -> tuple[LeftPath, ...]:
    """Ignored paths, except caches, which can be rebuilt."""
    asked = ("status", "--porcelain=v2", "-z", "--ignored=traditional", "--untracked-files=normal")
    found = [line[2:] for line in tree.git.fields(*asked) if line.startswith("! ")]
    return tuple(
        LeftPath(path=path.rstrip("/"), reason="git ignores it")
        for path in found
        if not _is_cache(tree.files.place(path.rstrip("/")))
    )


def _is_cache(place: str) -> bool:
    if os.path.basename(place) == "__pycache__" or place.endswith(".pyc"):
        return True
    return os.path.isfile(os.path.join(place, "CACHEDIR.TAG"))  # bford.info/cachedir


def _why_left(tree: Tree, path: str) -> str:
    place = tree.files.place(path)
    head = b""
    with suppress(OSError):  # what cannot be read is refused when it is to be stored
        if os.path.isfile(place) and not os.path.islink(place):
            with open(place, "rb") as file:
                head = file.read(HEAD_BYTES)
    reason = why_secret(path, head)
    return f"it looks like a secret: {reason}" if reason else ""
