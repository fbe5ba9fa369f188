"""Finds the work tree that a run changes, or refuses the folder with the reason.

What git says about a folder is remembered until its ``.git`` or configuration changes.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ...core.redaction import presentable
from ...errors import GitRefused
from ...stores.home import private_folder
from .command import Git
from .files import TreeFiles

__all__ = ("Tree",)

# What rev-parse is asked about a folder, in this order.
_INSIDE = ("--is-inside-work-tree", "--is-bare-repository")
_ABOUT = ("--show-toplevel", "--show-object-format", "--absolute-git-dir", "--git-common-dir")

# A file in the scratch folder of a tree that an agent was lent.
_LENT = "lent"

# --pathspec-from-file and porcelain v2 with intent-to-add, as they are used here.
_OLDEST = (2, 26)


@dataclass(frozen=True, slots=True)
class Tree:
    """A work tree with its repository."""

    folder: str  # the top folder of the work tree
    repository: str  # its ``.git`` folder; for a linked work tree, its own part of it
    common: str  # the ``.git`` folder that all work trees of the repository share
    algorithm: str  # of ids: ``sha1`` or ``sha256``
    ignores_case: bool  # names that differ only in case are one file here
    git: Git = field(init=False)  # in `folder`
    store: Git = field(init=False)  # for objects and references; its cwd holds up no other git
    scratch: str = field(init=False)  # a private folder; its contents may be deleted
    files: TreeFiles = field(init=False)

    def __post_init__(self) -> None:
        null_id = "0" * (64 if self.algorithm == "sha256" else 40)
        scratch = os.path.join(self.repository, "mulligan")
        is_lent = os.path.exists(os.path.join(scratch, _LENT))
        files = TreeFiles(self.folder, scratch, self.algorithm, is_durable=not is_lent)
        object.__setattr__(self, "git", Git(self.folder, null_id=null_id))
        object.__setattr__(self, "store", Git(os.sep, (("GIT_DIR", self.common),), null_id))
        object.__setattr__(self, "scratch", scratch)
        object.__setattr__(self, "files", files)

    @classmethod
    def find(cls, folder: str | os.PathLike[str] = ".") -> Tree:
        """The work tree that `folder` is in; refused if it is in none, or git is too old."""
        asked = os.path.abspath(folder)
        _check_version(os.environ.get("PATH", ""))
        tree, stamp = _known.get(asked, (None, ()))
        if tree is None or stamp != _stamp(asked, tree.folder, tree.common):
            tree = _found(asked)
            _known[asked] = tree, _stamp(asked, tree.folder, tree.common)
            if len(_known) > _MOST_KNOWN:
                del _known[next(iter(_known))]
        return tree

    def new_linked(self, place: str) -> Tree:
        """The linked work tree that git has just made at `place`, for an agent to be lent."""
        with open(os.path.join(place, ".git"), encoding="utf-8", errors="surrogateescape") as file:
            repository = os.path.realpath(file.read().removeprefix("gitdir: ").removesuffix("\n"))
        scratch = os.path.join(repository, "mulligan")
        private_folder(Path(scratch))
        with open(os.path.join(scratch, _LENT), "wb"):
            pass
        tree = Tree(place, repository, self.common, self.algorithm, self.ignores_case)
        _known[place] = tree, _stamp(place, place, self.common)
        return tree

    @property
    def head(self) -> str:
        """The commit that is checked out; empty on a branch without a commit."""
        found = self.git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return found.out.decode().strip()

    def ignores(self, path: str) -> bool:
        """Whether git ignores `path`."""
        # This command knows no literal names; behind a dot nothing is magic.
        git = self.git.with_variables(GIT_LITERAL_PATHSPECS="0")
        return git.ask("check-ignore", "--quiet", "--", f"./{path}").code == 0


# Folders that were asked for, with what the answer depends on.
_known: dict[str, tuple[Tree, tuple[object, ...]]] = {}
_MOST_KNOWN = 64


def _stamp(asked: str, top: str, common: str) -> tuple[object, ...]:
    """Changes if `asked` is in another tree by now, or its repository is another.

    Every repository has a configuration of its own, that says what kind of repository it is; and
    another tree that begins on the way up has a ``.git`` there.
    """
    found: list[object] = []
    for place in (os.path.join(top, ".git"), os.path.join(common, "config")):
        try:
            state = os.lstat(place)
        except OSError:
            return ()
        is_file = not stat.S_ISDIR(state.st_mode)  # a folder changes with every file in it
        found.append((state.st_dev, state.st_ino, is_file and (state.st_mtime_ns, state.st_size)))
    inner = os.path.realpath(asked)
    while inner != top and inner != os.path.dirname(inner):
        found += [
            name for name in (".git", "objects") if os.path.lexists(os.path.join(inner, name))
        ]
        inner = os.path.dirname(inner)
    return (*found, inner)


def _found(asked: str) -> Tree:
    git, shown = Git(asked), presentable(asked)
    inside = git.ask("rev-parse", *_INSIDE, *_ABOUT)
    words = os.fsdecode(inside.out).split("\n")[:-1]
    if len(words) < len(_INSIDE):
        why = inside.text.removeprefix("fatal: ").strip() or "git does not know this folder"
        message = f"{shown}: {why}; run `git init` there, or leave git recovery off"
        raise GitRefused(message, inside.text)
    in_tree, is_bare = words[: len(_INSIDE)]
    if in_tree != "true":
        found = "a bare repository" if is_bare == "true" else "inside a .git folder"
        raise GitRefused(f"{shown} is {found}, with no files to set aside; name a work tree")
    words = words[len(_INSIDE) :]
    if len(words) != len(_ABOUT):  # a folder with a newline in its name
        words = [git.line("rev-parse", each) for each in _ABOUT]
    top, algorithm, repository, common = words
    common = os.path.realpath(os.path.join(asked, common))
    ignores_case = _ignores_case(common, _stamp(asked, top, common)[1:2])
    return Tree(top, os.path.realpath(repository), common, algorithm, ignores_case)


@lru_cache(maxsize=8)
def _ignores_case(common: str, stamp: tuple[object, ...]) -> bool:  # noqa: ARG001 -- of the file
    git = Git(os.sep, (("GIT_DIR", common),))
    return git.ask("config", "--type=bool", "core.ignorecase").out.strip() == b"true"


@lru_cache(maxsize=8)
def _check_version(path: str) -> None:  # noqa: ARG001 -- which git is found depends on it
    said = Git(os.curdir).ask("--version").out.decode("utf-8", "replace")
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise GitRefused(f"git {oldest} or newer is needed; found {presentable(said)!r}")
