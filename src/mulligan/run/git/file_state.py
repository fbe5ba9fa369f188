"""Where a file stands: in the work tree, in the index, or nowhere.

A path has two contents in git, the one on disk and the one that is staged. Setting a file aside
means remembering both, giving it back means restoring both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.redaction import presentable
from ...errors import GitError
from .files import TreeEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("FileState", "Left", "Move", "inside")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """Both contents of a path.

    Args:
        tree: The bytes on disk, as they are.
        index: What is staged.
        is_intended: ``git add --intent-to-add`` was said, and nothing is staged yet.
        permissions: Of the file on disk, where git's two modes cannot say them.
    """

    tree: TreeEntry | None = None
    index: TreeEntry | None = None
    is_intended: bool = False
    permissions: int | None = None

    def is_like(self, other: FileState) -> bool:
        """Whether content, mode and stage are the same."""
        return (self.tree, self.index, self.is_intended) == (
            other.tree,
            other.index,
            other.is_intended,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data; what is absent is left out."""
        data: dict[str, Any] = {}
        if self.tree is not None:
            data["tree"] = [self.tree.mode, self.tree.oid]
        if self.index is not None:
            data["index"] = [self.index.mode, self.index.oid]
        if self.is_intended:
            data["is_intended"] = True
        if self.permissions is not None:
            data["permissions"] = self.permissions
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FileState:
        """The place that `to_json` described."""
        tree, index = data.get("tree"), data.get("index")
        return cls(
            tree=None if tree is None else TreeEntry(*tree),
            index=None if index is None else TreeEntry(*index),
            is_intended=bool(data.get("is_intended")),
            permissions=data.get("permissions"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One path that is set aside.

    Args:
        path: In the tree, with slashes; bytes that are no UTF-8 as surrogates.
        base: What the tree has once it is set aside.
        aside: What was set aside.
    """

    path: str
    base: FileState
    aside: FileState

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "base": self.base.to_json(), "aside": self.aside.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Move:
        """The move that `to_json` described.

        Raises:
            GitError: Its path leads out of the tree; whoever can write into a repository could
                have us write anywhere else.
        """
        return cls(
            path=inside(data["path"]),
            base=FileState.from_json(data["base"]),
            aside=FileState.from_json(data["aside"]),
        )


def inside(path: str) -> str:
    """`path`, if it stays in the tree."""
    if any(part.lower() in {"", ".", "..", ".git"} for part in path.split("/")):
        raise GitError(f"{presentable(path, 200)!r} in a record leads out of the tree; not touched")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """One path that was changed and is not touched.

    Args:
        path: In the tree.
        reason: Why it stays, in a clause.
    """

    path: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "reason": self.reason}
