"""Finds the work tree that a run changes, or refuses the folder with the reason.

What git says about a folder is remembered until its ``.git`` or configuration changes.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A work tree with its repository."""

    folder: str  # the top folder of the work tree
    repository: str  # its ``.git`` folder; for a linked work tree, its own part of it
    common: str  # the ``.git`` folder that all work trees of the repository share
    git: Git  # in `folder`
    store: Git  # for objects and references: its cwd is not in a tree, so it holds up no other git
    scratch: str  # a private folder in `repository`; its contents may be deleted
    files: TreeFiles
    ignores_case: bool = False  # names that differ only in case are one file here

    @classmethod
    def find(cls, folder: str | os.PathLike[str] = ".") -> Tree:
        """The work tree that `folder` is in.

        Raises:
            GitRefused: It is in none, or git does not trust it, or is too old.
        """
        asked = os.path.abspath(folder)
        _check_version()
        known = _known.get(asked)
        if known is None or known.stamp != _stamp(asked, known.top, known.common):
            known = _known[asked] = _found(asked)
            if len(_known) > _MOST_KNOWN:
                del _known[next(iter(_known))]
        null_id = "0" * (64 if known.algorithm == "sha256" else 40)
        scratch = os.path.join(known.repository, "mulligan")
        is_lent = os.path.exists(os.path.join(scratch, _LENT))
        return cls(
            folder=known.top,
            repository=known.repository,
            common=known.common,
            git=Git(known.top, null_id=null_id),
            store=Git(os.sep, (("GIT_DIR", known.common),), null_id),
            scratch=scratch,
            files=TreeFiles(known.top, scratch, known.algorithm, is_durable=not is_lent),
            ignores_case=known.ignores_case,
        )

    def new_linked(self, place: str) -> Tree:
        """The linked work tree that git has just made at `place`, for an agent to be lent."""
        with open(os.path.join(place, ".git"), encoding="utf-8", errors="surrogateescape") as file:
            repository = os.path.realpath(file.read().removeprefix("gitdir: ").removesuffix("\n"))
        scratch = os.path.join(repository, "mulligan")
        private_folder(Path(scratch))
        with open(os.path.join(scratch, _LENT), "wb"):
            pass
        facts = (place, repository, self.common, self.files.algorithm, self.ignores_case)
        _known[place] = _Known(*facts, _stamp(place, place, self.common))
        return Tree.find(place)

    @property
    def head(self) -> str:
        """The commit that is checked out; empty on a branch without a commit."""
        return (
            self.git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}").out.decode().strip()
        )

    def ignores(self, path: str) -> bool:
        """Whether git ignores `path`."""
        # This command knows no literal names; behind a dot nothing is magic.
        git = self.git.with_variables(GIT_LITERAL_PATHSPECS="0")
        return git.ask("check-ignore", "--quiet", "--", f"./{path}").code == 0


class _Known(NamedTuple):
    """What git says about a folder, and what that depends on."""

    top: str
    repository: str
    common: str
    algorithm: str
    ignores_case: bool
    stamp: tuple[object, ...]


_known: dict[str, _Known] = {}
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


def _found(asked: str) -> _Known:
    git, shown = Git(asked), presentable(asked)
    inside = git.ask("rev-parse", *_INSIDE, *_ABOUT)
    words = os.fsdecode(inside.out).split("\n")[:-1]
    if len(words) < len(_INSIDE):
        raise GitRefused(
            f"{shown}: {_first_line(inside.text)}; run `git init` there, or leave git recovery off",
            inside.text,
        )
    in_tree, is_bare = words[: len(_INSIDE)]
    if in_tree != "true":
        found = "a bare repository" if is_bare == "true" else "inside a .git folder"
        raise GitRefused(f"{shown} is {found}, with no files to set aside; name a work tree")
    words = words[len(_INSIDE) :]
    if len(words) != len(_ABOUT):  # a folder with a newline in its name
        words = [git.line("rev-parse", each) for each in _ABOUT]
    top, algorithm, repository, common = words
    common = os.path.realpath(os.path.join(asked, common))
    stamp = _stamp(asked, top, common)
    return _Known(
        top=top,
        repository=os.path.realpath(repository),
        common=common,
        algorithm=algorithm,
        ignores_case=_ignores_case(common, stamp[1:2]),
        stamp=stamp,
    )


@lru_cache(maxsize=8)
def _ignores_case(common: str, stamp: tuple[object, ...]) -> bool:  # noqa: ARG001 -- of the file
    git = Git(os.sep, (("GIT_DIR", common),))
    return git.ask("config", "--type=bool", "core.ignorecase").out.strip() == b"true"


@lru_cache(maxsize=8)
def _version(path: str) -> str:  # noqa: ARG001 -- which git is found depends on it
    return Git(os.curdir).ask("--version").out.decode("utf-8", "replace")


def _check_version() -> None:
    said = _version(os.environ.get("PATH", ""))
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise GitRefused(f"git {oldest} or newer is needed; found {presentable(said)!r}")


def _first_line(words: str) -> str:
    return words.removeprefix("fatal: ").strip() or "git does not know this folder"
