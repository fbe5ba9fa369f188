"""The work tree that a run changes: found, or refused with the reason.

Refused are states in which setting something aside would break what somebody is in the middle of:
a merge, a rebase, unresolved paths, a git that is running. Nothing has been touched then.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.text import presentable
from ...errors import GitError, GitRefused
from ...stores.home import private_folder
from .command import Git, pause
from .files import Files
from .locks import free_locks

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Tree",)

# --pathspec-from-file and porcelain v2 with intent-to-add, as they are used here.
_OLDEST = (2, 26)

# How long a sibling that takes its tree back is waited for.
_PATIENCE = 60.0

# A file or folder in the repository that says what is going on, with how to end it.
_UNDER_WAY = (
    ("MERGE_HEAD", "a merge", "git merge --continue or --abort"),
    ("rebase-merge", "a rebase", "git rebase --continue or --abort"),
    ("rebase-apply", "a rebase or git am", "git rebase --abort or git am --abort"),
    ("CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --continue or --abort"),
    ("REVERT_HEAD", "a revert", "git revert --continue or --abort"),
    ("sequencer", "a cherry-pick or revert of several commits", "git cherry-pick --abort"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A work tree with its repository.

    Args:
        folder: The top folder of the work tree.
        repository: Its ``.git`` folder; for a linked work tree, its own part of it.
        common: The ``.git`` folder that all work trees of the repository share.
        git: Git in `folder`.
        files: The files in `folder`.
    """

    folder: str
    repository: str
    common: str
    git: Git
    files: Files

    @classmethod
    def find(cls, folder: str | os.PathLike[str] = ".") -> Tree:
        """The work tree that `folder` is in.

        Raises:
            GitRefused: It is in none, or git does not trust it, or is too old.
        """
        asked = os.path.abspath(folder)
        git = Git(asked)
        shown = presentable(asked)
        _check_version()
        inside = git.ask("rev-parse", "--is-inside-work-tree", "--is-bare-repository")
        if inside.code:
            raise GitRefused(
                f"{shown}: {_first_line(inside.words)}; run `git init` there, "
                f"or leave git recovery off",
                inside.words,
            )
        in_tree, is_bare = inside.out.decode().split()
        if in_tree != "true":
            found = "a bare repository" if is_bare == "true" else "inside a .git folder"
            raise GitRefused(f"{shown} is {found}, with no files to set aside; name a work tree")
        top = git.line("rev-parse", "--show-toplevel")
        algorithm, repository, common = _about(Git(top))
        git = Git(top, nothing="0" * (64 if algorithm == "sha256" else 40))
        scratch = os.path.join(os.path.realpath(repository), "mulligan")
        files = Files(root=top, scratch=scratch, algorithm=algorithm)
        return cls(
            folder=top,
            repository=os.path.realpath(repository),
            common=os.path.realpath(os.path.join(top, common)),
            git=git,
            files=files,
        )

    @property
    def scratch(self) -> str:
        """A private folder beside the repository's own files; what is left in it is rubbish."""
        return self.files.scratch

    @property
    def head(self) -> str:
        """The commit that is checked out; empty on a branch without a commit."""
        answer = self.git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return answer.out.decode().strip()

    @property
    def branch(self) -> str:
        """The branch that is checked out; empty for a detached HEAD."""
        answer = self.git.ask("symbolic-ref", "--quiet", "--short", "HEAD")
        return os.fsdecode(answer.out.removesuffix(b"\n"))

    def check(self) -> None:
        """Whether something may be set aside now.

        Raises:
            GitRefused: Something is under way, or paths are unresolved, or git is running.
        """
        for name, what, how in _UNDER_WAY:
            if os.path.exists(os.path.join(self.repository, name)):
                raise GitRefused(f"{presentable(self.folder)}: {what} is under way; {how} first")
        unresolved = self.git.fields("ls-files", "--unmerged", "-z")
        if unresolved:
            path = presentable(unresolved[0].partition("\t")[2], 200)
            raise GitRefused(f"{path} has a conflict that is not resolved; resolve it first")
        free_locks(self)

    def ignores(self, path: str) -> bool:
        """Whether git ignores `path`."""
        # This command knows no literal names; behind a dot nothing is magic.
        git = self.git.having(GIT_LITERAL_PATHSPECS="0")
        return git.ask("check-ignore", "--quiet", "--", f"./{path}").code == 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other Mulligans out of this tree; the kernel lets go when the process dies.

        Raises:
            GitRefused: Another one is at work.
            GitStopped: We were told to stop while we waited for it.
        """
        private_folder(Path(self.scratch))
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(os.path.join(self.scratch, "held"), flags, 0o600)
        try:
            self._wait_for(handle)
            self._sweep()
            yield
        except OSError as trouble:
            what = f"{trouble.strerror or trouble}: {trouble.filename or self.folder!r}"
            raise GitError(f"setting files aside met {presentable(what)}") from trouble
        finally:
            os.close(handle)

    def _wait_for(self, handle: int) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise GitRefused(
                        f"{presentable(self.folder)}: another mulligan has been setting files "
                        f"aside there for {_PATIENCE:.0f} s; try again when it is done"
                    ) from None
                pause(0.02, "waiting for the tree")
            else:
                return

    def _sweep(self) -> None:
        """Remove what a Mulligan that was killed has left half written."""
        for name in os.listdir(self.scratch):
            place = os.path.join(self.scratch, name)
            if name.startswith("tmp"):
                shutil.rmtree(place, ignore_errors=True)
            elif name.startswith(".mulligan-"):
                with suppress(OSError):
                    if not stat.S_ISDIR(os.lstat(place).st_mode):
                        os.unlink(place)


def _about(git: Git) -> list[str]:
    asked = ("--show-object-format", "--absolute-git-dir", "--git-common-dir")
    lines = git.line("rev-parse", *asked).split("\n")
    if len(lines) == len(asked):
        return lines
    return [git.line("rev-parse", each) for each in asked]  # a folder with a newline in its name


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
