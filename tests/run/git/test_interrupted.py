"""Whoever asks to stop is heard while git works, and nothing is lost by it."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread, main_thread

import pytest

from mulligan.errors import GitError, GitStopped
from mulligan.run import git
from mulligan.run.git import interruptible
from mulligan.run.git.command import pause
from mulligan.run.process.stop import Stop

pytestmark = pytest.mark.real


@pytest.fixture
def stop():
    with closing(Stop()) as stop:
        yield stop


@pytest.fixture
def interrupted(stop):
    """A context that is told to stop once something is so, and must end soon after, saying so."""

    @contextmanager
    def interrupted(is_so, what):
        asked = []

        def ask():
            while not is_so():
                time.sleep(0.01)
            asked.append(time.monotonic())
            stop.set()

        thread = Thread(target=ask)
        thread.start()
        try:
            with pytest.raises(GitStopped, match=f"{what} was interrupted"), interruptible(stop):
                yield
        finally:
            thread.join()
            assert time.monotonic() - asked[0] < 10  # or for ever

    return interrupted


def is_waiting():
    """Whether the main thread waits for somebody else."""
    frame = sys._current_frames().get(main_thread().ident or 0)
    while frame is not None and frame.f_code is not pause.__code__:
        frame = frame.f_back
    return frame is not None


def hook(repo, script):
    return repo.write(".git/hooks/pre-commit", f"#!/bin/sh\n{script}\n", 0o755)


@pytest.mark.parametrize("script", ["sleep 60", "trap '' INT TERM; sleep 60; exit 0"])
def test_a_hook_that_sleeps_is_ended_and_the_commit_made_later(repo, interrupted, script):
    sleeps = hook(repo, f"touch asleep; {script}")
    repo.write("a.txt", "the agent's\n")
    with interrupted((repo.folder / "asleep").exists, "^git commit"):
        repo.aside("commit", "r1")
    assert repo.git("rev-list", "--count", "HEAD") == "1\n"
    assert repo.read("a.txt") == "the agent's\n"
    assert not repo.has(".git/index.lock")
    sleeps.unlink()
    assert [each.state for each in git.recover(repo.tree, "r1").finished] == ["committed"]
    assert repo.git("rev-list", "--count", "HEAD") == "2\n"


def test_waiting_for_somebody_else_in_the_tree_is_ended(repo, interrupted):
    repo.write("a.txt", "the agent's\n")
    held = Path(repo.tree.scratch, "held")
    held.parent.mkdir(exist_ok=True)
    with held.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with interrupted(is_waiting, "^waiting for the tree"):
            repo.aside("stash", "r1")
    assert repo.read("a.txt") == "the agent's\n"


def test_waiting_for_a_lock_is_ended(repo, interrupted):
    left = repo.write(".git/index.lock", "")
    repo.write("a.txt", "the agent's\n")
    tree = repo.tree
    with interrupted(is_waiting, "index.lock"):
        git.record_baseline(tree, "r1")
    assert left.exists()


def test_who_was_asked_to_stop_before_still_tidies_up(repo, stop):
    repo.write("a.txt", "the agent's\n")
    aside = repo.aside("stash", "r1")
    stop.set()
    with interruptible(stop):
        git.restore_changes(repo.tree, aside)
    assert repo.read("a.txt") == "the agent's\n"


def test_who_is_asked_again_does_not(repo, stop):
    repo.write("a.txt", "the agent's\n")
    aside = repo.aside("stash", "r1")
    stop.set()
    tree = repo.tree
    with interruptible(stop):
        stop.set()
        with pytest.raises(GitStopped):
            git.restore_changes(tree, aside)
    assert [each.state for each in git.load_all(repo.tree, "r1")] == ["aside"]


def test_reading_what_is_put_back_is_interrupted_and_no_failure(repo, stop, monkeypatch):
    """Ctrl-C while files were set aside was a broken pipe, and the agent's own failure."""
    names = [f"f{number}.txt" for number in range(60)]  # more than are written at once
    repo.commit(**dict.fromkeys(names, "as committed\n"))
    git.record_baseline(repo.tree, "r1")
    for name in names:
        repo.write(name, "the agent's\n")
    replace = os.replace
    ended: list[str] = []

    def meanwhile(new, place):
        replace(new, place)
        if not ended:
            stop.set()
            time.sleep(0.3)  # git is told
            ended.append(place)

    with monkeypatch.context() as patch, interruptible(stop):
        patch.setattr(os, "replace", meanwhile)
        with pytest.raises(GitStopped, match=r"^git cat-file was interrupted"):
            repo.aside("snapshot", "r1")
    assert 0 < [repo.read(name) for name in names].count("the agent's\n") < 60
    assert [each.state for each in git.recover(repo.tree, "r1").finished] == ["aside"]
    assert [repo.read(name) for name in names] == ["as committed\n"] * 60


def test_what_cannot_be_read_is_an_error_and_no_change_of_somebodys(repo):
    file = repo.write("a.txt", "the agent's\n")
    oid = repo.git("hash-object", str(file)).strip()
    aside = repo.aside("stash", "r1")
    (repo.folder / ".git/objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(GitError, match=rf"^object {oid} cannot be read: {oid} missing$"):
        git.restore_changes(repo.tree, aside)
    assert [each.state for each in git.load_all(repo.tree, "r1")] == ["returning"]
