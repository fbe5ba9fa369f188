"""Data classes: files that were set aside, the baseline of a run, and the record with its states.

prepared ──▶ aside ──▶ returning ──▶ returned          stash, snapshot, worktree
│                      └──────▶ partly             what conflicts stays here
├──▶ committed                                     commit
└──▶ kept                                          worktree, on a branch
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...core.redaction import presentable
from ...errors import GitError
from .files import TreeEntry
from .objects import ROOT

__all__ = (
    "OPEN",
    "Baseline",
    "FileState",
    "LeftPath",
    "Mode",
    "Move",
    "SetAside",
    "State",
    "inside",
)

Mode = Literal["commit", "stash", "worktree", "snapshot"]
State = Literal["prepared", "aside", "returning", "returned", "partly", "committed", "kept"]

# States from which a run can still be given its changes back.
OPEN: frozenset[State] = frozenset({"prepared", "aside", "returning", "partly"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """Both contents of a path: the one on disk and the one that is staged.

    Args:
        tree: The bytes on disk, as they are.
        index: What is staged.
        is_intended: Whether the path was added by ``git add --intent-to-add`` only.
        permissions: Permissions on disk that git's two modes cannot store.
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
            GitError: Its path leads out of the tree. Otherwise a crafted repository could make us
                write anywhere.
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
class LeftPath:
    """One path that was changed and is not touched.

    Args:
        path: In the tree.
        reason: Why it stays, in a clause.
    """

    path: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The tree when a run began: what the user had changed already.

    Args:
        run: Whose it is.
        head: The commit that was checked out; empty if there was none.
        commit: The whole tree at that moment.
        places: Every path that differed from the last commit.
        folders: Folders with nothing in them that git tracks; it does not hold empty ones.
        author: The author for commits if git has no identity configured; empty if unknown.
    """

    run: str
    head: str
    commit: str
    places: Mapping[str, FileState]
    folders: tuple[str, ...] = ()
    author: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """Changes that were set aside, with all that is needed to give them back.

    Args:
        run: Whose it is.
        number: Counted from 1 in each run.
        mode: How it was set aside.
        folder: The work tree it was taken from.
        head: The commit that was checked out; empty if there was none.
        branch: The branch; empty for a detached HEAD.
        at: When, in epoch seconds.
        moves: Every path, with what stands there instead.
        left: Paths that were changed and stay as they are.
        folders: Folders that are kept even if empty.
        since: For a tree of an agent's own, the baseline it was lent with.
        words: The agent's last words, for a commit's message.
        prefix: Stands before them.
        author: The author if git has no identity configured.
        state: Its state.
        commit: The object that holds it.
        tip: What the reference points to.
        made: The commit made on the branch, or the branch it is kept on.
    """

    run: str
    number: int
    mode: Mode
    folder: str
    head: str
    branch: str
    at: float
    moves: tuple[Move, ...] = field(repr=False)
    left: tuple[LeftPath, ...] = ()
    folders: tuple[str, ...] = ()
    since: str = ""
    words: str = ""
    prefix: str = ""
    author: str = ""
    state: State = "prepared"
    commit: str = ""
    tip: str = ""
    made: str = ""

    @property
    def ref(self) -> str:
        """The reference that keeps it reachable."""
        return f"{ROOT}/{self.run}/{self.number}"

    def to_json(self) -> dict[str, Any]:
        """Plain data for a journal; `from_json` reads it."""
        plain = ("run", "number", "mode", "folder", "head", "branch", "at")
        texts = ("since", "words", "prefix", "author", "state", "commit", "tip", "made")
        return {
            **{name: getattr(self, name) for name in (*plain, *texts)},
            "moves": [move.to_json() for move in self.moves],
            "left": [left.to_json() for left in self.left],
            "folders": list(self.folders),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SetAside:
        """What `to_json` described."""
        moves = tuple(Move.from_json(each) for each in data["moves"])
        left = tuple(LeftPath(**each) for each in data["left"])
        folders = tuple(inside(each) for each in data.get("folders", ()))
        return cls(**{**data, "moves": moves, "left": left, "folders": folders})
