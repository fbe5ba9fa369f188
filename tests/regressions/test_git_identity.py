"""Who commits, where it is not written in ~/.gitconfig.

Git children run without the caller's ``GIT_*`` variables, because a run that is started from a hook
would work on the hook's index. That threw the identity away as well: with ``GIT_CONFIG_GLOBAL`` or
``GIT_AUTHOR_*`` and ``GIT_COMMITTER_*``, as containers and CI set them, a plan in commit mode was
refused although the user's own ``git commit`` works, or it committed as somebody else. And where
there is no identity at all, a refused commit left a prepared record behind.
"""

# mypy: ignore-errors

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mulligan.errors import GitRefused
from mulligan.run.git import Tree, load_all, record_baseline, set_aside

pytestmark = pytest.mark.real

GIVEN = "-c", "user.name=Ada", "-c", "user.email=ada@example.com"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A repository on a machine where git knows nobody."""
    for name in (*(each for each in os.environ if each.startswith("GIT_")), "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    place = tmp_path / "repo"
    place.mkdir()
    git(place, "init", "-q")
    git(place, "config", "user.useConfigOnly", "true")  # a host name is no identity
    git(place, *GIVEN, "commit", "-qm", "first", "--allow-empty")
    (place / "a.txt").write_text("the agent's\n")
    return place


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)  # noqa: S607
    return done.stdout.decode().strip()


def test_an_identity_in_the_variables_is_honoured(folder, monkeypatch):
    said = {
        "GIT_AUTHOR_NAME": "Grace",
        "GIT_AUTHOR_EMAIL": "grace@example.com",
        "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+0000",
        "GIT_COMMITTER_NAME": "Robot",
        "GIT_COMMITTER_EMAIL": "robot@example.com",
    }
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert set_aside(Tree.find(folder), "commit", "r1", author="Nobody <no@example.com>")
    shown = git(folder, "log", "-1", "--format=%an %ae %aI %cn %ce")
    assert shown == ("Grace grace@example.com 2026-01-02T03:04:05+00:00 Robot robot@example.com")


def test_an_identity_in_the_configuration_that_a_variable_names_is_honoured(
    folder, monkeypatch, tmp_path
):
    (tmp_path / "gitconfig").write_text("[user]\n\tname = Grace\n\temail = grace@example.com\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    assert set_aside(Tree.find(folder), "commit", "r1")
    assert git(folder, "log", "-1", "--format=%an %ae") == "Grace grace@example.com"


def test_variables_that_point_git_elsewhere_are_not(folder, monkeypatch, tmp_path):
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    aside = set_aside(Tree.find(folder), "stash", "r1")
    assert aside is not None
    assert [move.path for move in aside.moves] == ["a.txt"]
    assert not (tmp_path / "elsewhere").exists()


def test_without_any_identity_a_commit_is_refused_with_nothing_written_down(folder):
    tree = Tree.find(folder)
    with pytest.raises(GitRefused, match=r"^git does not know who commits; set user\.name and"):
        set_aside(tree, "commit", "r1")
    assert load_all(tree) == []
    assert (folder / "a.txt").read_text() == "the agent's\n"
    assert set_aside(tree, "stash", "r1")  # who commits is no matter there


def test_a_run_that_goes_on_without_its_variables_commits_as_who_began_it(folder, monkeypatch):
    tree = Tree.find(folder)
    (folder / "a.txt").unlink()
    record_baseline(tree, "r1", author="Grace <grace@example.com>")
    (folder / "a.txt").write_text("the agent's\n")
    assert set_aside(tree, "commit", "r1")
    assert git(folder, "log", "-1", "--format=%an %ae %cn") == "Grace grace@example.com Grace"
