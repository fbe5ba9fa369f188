"""Real repositories in folders of their own, with nobody's configuration."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from pathlib import Path

import pytest

from mulligan.run.git import (
    Mode,
    SetAside,
    Tree,
    changes,
    load_baseline,
    prepare,
    set_aside,
)
from mulligan.run.git.tree_lock import locked


class Repo:
    """A repository, and a look at everything in its work tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *arguments: str, check: bool = True, stdin: str | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments],  # noqa: S607
            cwd=self.folder,
            capture_output=True,
            check=False,
            input=None if stdin is None else stdin.encode(),
            timeout=60,
        )
        said = os.fsdecode(done.stdout + done.stderr)
        assert not check or done.returncode == 0, said
        return os.fsdecode(done.stdout)

    def write(self, path: str, content: str | bytes, mode: int | None = None) -> Path:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        if mode is not None:
            place.chmod(mode)
        return place

    def read(self, path: str) -> str:
        return (self.folder / path).read_bytes().decode()

    def has(self, path: str) -> bool:
        return os.path.lexists(self.folder / path)

    def commit(self, **files: str | bytes) -> str:
        for path, content in files.items():
            self.write(path, content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "by hand")
        return self.git("rev-parse", "HEAD").strip()

    def seen(self) -> dict[str, str]:
        """Every file outside .git with its mode and the hash of its content."""
        found = {}
        for base, folders, files in os.walk(self.folder):
            if ".git" in folders:
                folders.remove(".git")
            for name in [*files, *folders]:
                place = Path(base, name)
                path = str(place.relative_to(self.folder))
                state = place.lstat()
                if stat.S_ISLNK(state.st_mode):
                    found[path] = f"link to {place.readlink()}"
                elif stat.S_ISREG(state.st_mode):
                    digest = hashlib.sha256(place.read_bytes()).hexdigest()
                    found[path] = f"{stat.S_IMODE(state.st_mode):o} {digest}"
        return found

    def status(self) -> str:
        return self.git("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames")

    def state(self) -> tuple[dict[str, str], str]:
        """Files and index: all that giving back has to restore."""
        return self.seen(), self.status()

    @property
    def tree(self) -> Tree:
        return Tree.find(self.folder)

    def aside(self, mode: Mode, run: str, **how: str) -> SetAside:
        """Set aside something that is there."""
        aside = set_aside(self.tree, mode, run, **how)
        assert aside is not None
        return aside

    def is_clean(self, run: str = "") -> bool:
        """Whether nothing has changed since the run began, or since the last commit."""
        tree = self.tree
        with locked(tree):
            return not changes(tree, load_baseline(tree, run) if run else None).moves

    def prepared(self, mode: Mode, run: str) -> SetAside:
        """Write down something that is there, and touch nothing."""
        aside = prepare(self.tree, mode, run)
        assert aside is not None
        return aside


@pytest.fixture(autouse=True)
def _nobodys_configuration(monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("MULLIGAN_HOME", str(home / "mulligan"))
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n"
        "[core]\n\tfsync = none\n"
    )


def make_repo(folder: Path) -> Repo:
    folder.mkdir(parents=True, exist_ok=True)
    repo = Repo(folder)
    repo.git("init", "--quiet")
    return repo


@pytest.fixture
def new_repo(tmp_path_factory):
    """A function that makes repositories: for properties, which need one an example."""
    return lambda: make_repo(tmp_path_factory.mktemp("repo"))


@pytest.fixture
def empty(tmp_path) -> Repo:
    """A repository without a commit."""
    return make_repo(tmp_path / "repo")


@pytest.fixture
def repo(empty: Repo) -> Repo:
    """A repository with a commit."""
    empty.commit(
        **{"a.txt": "one\ntwo\nthree\nfour\nfive\n", "dir/b.txt": "b\n", "mine.txt": "m\n"}
    )
    return empty
