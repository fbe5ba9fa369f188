"""Data classes: files that were set aside, the baseline of a run, and the record with its states.

prepared ──▶ aside ──▶ returning ──▶ returned          stash, snapshot, worktree
│                      └──────▶ partly             what conflicts stays here
├──▶ committed                                     commit
└──▶ kept                                          worktree, on a branch
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from ...core.redaction import presentable
from ...errors import GitError
from .files import TreeEntry

__all__ = (
    "OPEN",
    "ROOT",
    "Baseline",
    "FileState",
    "LeftPath",
    "Mode",
    "Move",
    "SetAside",
    "State",
    "checked_path",
    "entry_from_json",
    "entry_to_json",
)

# Every reference of ours begins with this.
ROOT = "refs/mulligan"

Mode = Literal["commit", "stash", "worktree", "snapshot"]
State = Literal["prepared", "aside", "returning", "returned", "partly", "committed", "kept"]

# States from which a run can still be given its changes back.
OPEN: frozenset[State] = frozenset({"prepared", "aside", "returning", "partly"})


def entry_to_json(entry: TreeEntry | None) -> list[str] | None:
    """Plain data for a record."""
    return None if entry is None else [entry.mode, entry.oid]


def entry_from_json(data: list[str] | None) -> TreeEntry | None:
    """The entry that `entry_to_json` described."""
    return None if data is None else TreeEntry(*data)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """Both contents of a path: the one on disk and the one that is staged."""

    tree: TreeEntry | None = None  # the bytes on disk, as they are
    index: TreeEntry | None = None
    is_intended: bool = False  # added by ``git add --intent-to-add`` only
    permissions: int | None = None  # on disk, where git's two modes cannot store them

    @property
    def staged(self) -> tuple[TreeEntry | None, bool]:
        """What the index has: the entry, and whether there is only an intention."""
        return self.index, self.is_intended

    def is_like(self, other: FileState) -> bool:
        """Whether content, mode and stage are the same."""
        return (self.tree, self.staged) == (other.tree, other.staged)

    def to_json(self) -> dict[str, Any]:
        """Plain data; what is absent is left out."""
        data = {
            "tree": entry_to_json(self.tree),
            "index": entry_to_json(self.index),
            "is_intended": self.is_intended or None,
            "permissions": self.permissions,
        }
        return {name: value for name, value in data.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FileState:
        """The state that `to_json` described."""
        return cls(
            tree=entry_from_json(data.get("tree")),
            index=entry_from_json(data.get("index")),
            is_intended=bool(data.get("is_intended")),
            permissions=data.get("permissions"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One path that is set aside."""

    path: str  # in the tree, with slashes; bytes that are not UTF-8 as surrogates
    base: FileState  # what the tree has once it is set aside
    aside: FileState  # what was set aside

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "base": self.base.to_json(), "aside": self.aside.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Move:
        """The move that `to_json` described."""
        return cls(
            path=checked_path(data["path"]),
            base=FileState.from_json(data["base"]),
            aside=FileState.from_json(data["aside"]),
        )


def checked_path(path: str) -> str:
    """`path` of a record, refused if it leads out of the tree.

    Otherwise a crafted repository could make us write anywhere.
    """
    if any(part.lower() in {"", ".", "..", ".git"} for part in path.split("/")):
        raise GitError(f"{presentable(path, 200)!r} in a record leads out of the tree; not touched")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftPath:
    """A path that was changed and is not touched, with the reason in a clause."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The tree when a run began: what the user had changed already."""

    run: str
    head: str  # the commit that was checked out; empty if there was none
    commit: str  # the whole tree at that moment
    states: Mapping[str, FileState]  # every path that differed from the last commit
    folders: tuple[str, ...] = ()  # with nothing in them that git tracks, empty ones included
    author: str = ""  # of commits if git has no identity configured; empty if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """Changes that were set aside, with all that is needed to give them back."""

    run: str
    number: int  # counted from 1 in each run
    mode: Mode
    folder: str  # the work tree that it was taken from, or is given back to
    head: str  # the commit that was checked out; empty if there was none
    branch: str  # empty for a detached HEAD
    at: float  # epoch seconds
    moves: tuple[Move, ...] = field(repr=False)
    left: tuple[LeftPath, ...] = ()
    folders: tuple[str, ...] = ()  # kept even if empty
    since: str = ""  # for a tree of an agent's own, the baseline it was lent with
    words: str = ""  # the agent's last words, for a commit's message
    prefix: str = ""  # stands before them
    author: str = ""  # if git has no identity configured
    state: State = "prepared"
    commit: str = ""  # the object that holds it
    tip: str = ""  # what the reference points to
    made: str = ""  # the commit made on the branch, or the branch it is kept on

    @property
    def ref(self) -> str:
        """The reference that keeps it reachable."""
        return f"{ROOT}/{self.run}/{self.number}"

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record; `from_json` reads it."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "moves": [move.to_json() for move in self.moves],
            "left": [asdict(left) for left in self.left],
            "folders": list(self.folders),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SetAside:
        """What `to_json` described."""
        moves = tuple(Move.from_json(each) for each in data["moves"])
        left = tuple(LeftPath(**each) for each in data["left"])
        folders = tuple(checked_path(each) for each in data.get("folders", ()))
        return cls(**{**data, "moves": moves, "left": left, "folders": folders})
