"""What differs from the last commit, as git sees it.

One ``git status`` and one listing of HEAD answer every question about staged content; content on
disk is read from the disk. Submodules and repositories inside the tree are other repositories:
named, never entered.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field

from .files import Entry
from .objects import entries_of
from .places import Left, Place
from .secrets import HEAD_BYTES, why_secret
from .tree import Tree

__all__ = ("Status", "ignored")

_ABSENT = "000000"
_SUBMODULE = "160000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A look at the tree.

    Args:
        tree: The tree.
        head: Every file of the last commit.
        dirty: Paths that differ from it, or are unknown to it.
        untracked: Those that git does not track.
        left: Paths that differ and may not be touched.
    """

    tree: Tree
    head: dict[str, Entry]
    dirty: tuple[str, ...]
    untracked: frozenset[str]
    left: tuple[Left, ...]
    _staged: dict[str, tuple[Entry | None, bool]] = field(repr=False)

    @classmethod
    def of(cls, tree: Tree) -> Status:
        """Look now."""
        head = entries_of(tree.git, "HEAD") if tree.head else {}
        staged: dict[str, tuple[Entry | None, bool]] = {}
        untracked: set[str] = set()
        left: dict[str, str] = {}
        for line in tree.git.fields(
            *("status", "--porcelain=v2", "-z", "--no-renames"),
            *("--untracked-files=all", "--ignored=no", "--ignore-submodules=none"),
        ):
            if line.startswith("? "):
                path = line[2:]
                if path.endswith("/"):
                    left[path.rstrip("/")] = "a repository of its own"
                else:
                    untracked.add(path)
            elif line.startswith("1 "):
                _, states, _, in_head, in_index, _, head_oid, oid, path = line.split(" ", 8)
                if _SUBMODULE in {in_head, in_index}:
                    left[path] = "a submodule: a repository of its own"
                # An intention shows as an addition to the work tree; without its file, as one
                # that the last commit is said to have and does not.
                is_said = states[0] == "." and in_head != _ABSENT
                is_intended = states[1] == "A" or (
                    is_said and head.get(path) != Entry(in_head, head_oid)
                )
                is_staged = in_index != _ABSENT and not is_intended
                staged[path] = (Entry(in_index, oid) if is_staged else None), is_intended
        for path in sorted({*staged, *untracked} - {*left}):
            if why := _why_left(tree, path):
                left[path] = why
        return cls(
            tree=tree,
            head=head,
            dirty=tuple(sorted({*staged, *untracked} - {*left})),
            untracked=frozenset(untracked - {*staged} - {*left}),
            left=tuple(Left(path=path, reason=why) for path, why in sorted(left.items())),
            _staged=staged,
        )

    def index(self, path: str) -> tuple[Entry | None, bool]:
        """What is staged at `path`, and whether there is only an intention."""
        if path in self._staged:
            return self._staged[path]
        return (None if path in self.untracked else self.head.get(path)), False

    def place(self, path: str) -> Place:
        """Both contents of `path`; reads the file."""
        index, is_intended = self.index(path)
        return Place(
            tree=self.tree.files.entry(path),
            index=index,
            is_intended=is_intended,
            permissions=self.tree.files.permissions(path),
        )


def ignored(tree: Tree) -> tuple[Left, ...]:
    """What git ignores here, but for caches, which anybody can make again."""
    asked = ("status", "--porcelain=v2", "-z", "--ignored=traditional", "--untracked-files=normal")
    found = [line[2:] for line in tree.git.fields(*asked) if line.startswith("! ")]
    return tuple(
        Left(path=path.rstrip("/"), reason="git ignores it")
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
