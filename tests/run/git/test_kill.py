"""kill -9 at any moment: everything that was set aside is complete to the byte.

MULLIGAN_SOAK=N multiplies the number of kills; `make test` makes a handful.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from mulligan.errors import GitRefused
from mulligan.run import git
from mulligan.run.git import command as git_command
from mulligan.run.git import files, locks, record_baseline

pytestmark = pytest.mark.real

KILLS = 4 * int(os.environ.get("MULLIGAN_SOAK", "1"))
WORKER = Path(__file__).with_name("kill_worker.py")


def an_agents_work(repo, count=25):
    repo.write("mine.txt", "my change\n")
    record_baseline(repo.tree, "r1")
    for number in range(count):
        repo.write(f"new/{number % 3}/{number} ü.txt", f"content {number}\n" * 50)
    repo.write("a.txt", "the agent's\n")
    repo.write("staged.txt", "staged\n")
    repo.git("add", "staged.txt")
    repo.write("staged.txt", "and changed\n")
    (repo.folder / "dir/b.txt").unlink()


def killed(repo, mode, dice):
    """Run the worker, and kill it a moment after one of its words."""
    word = dice.choice([b"begun\n", b"prepared\n", b"aside\n"])
    after = dice.random() * 0.3
    with subprocess.Popen(
        [sys.executable, str(WORKER), str(repo.folder), mode, "r1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as worker:
        assert worker.stdout is not None
        while worker.stdout.readline() not in {word, b"done\n", b""}:
            continue
        time.sleep(after)
        if dice.random() < 0.5:
            end_with_children(worker.pid)
        worker.kill()


def end_with_children(pid):
    """As a power cut would: the git that runs right now dies, too."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    for each in children.read_text().split() if children.exists() else ():
        try:
            os.killpg(int(each), signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def recovered(tree, **how):
    """Recover, waiting for a git that outlived its Mulligan."""
    for _ in range(20):
        try:
            return git.recover(tree, "r1", **how)
        except GitRefused:
            time.sleep(0.3)
    return git.recover(tree, "r1", **how)


@pytest.mark.parametrize("number", range(KILLS))
def test_a_tree_survives_kill_9(repo, number, monkeypatch):
    monkeypatch.setattr(locks, "_OLD", 0.2)  # nobody else is here
    dice = random.Random(number)
    an_agents_work(repo)
    agents = repo.state()
    for _ in range(2):  # also while it recovers from the first kill
        killed(repo, dice.choice(["stash", "snapshot"]), dice)
    tree = repo.tree
    if dice.random() < 0.5:
        recovered(tree, is_undone=True)
    else:
        recovered(tree)
    for aside in git.load_all(tree, "r1"):
        if aside.state == "aside":
            assert git.restore_changes(tree, aside).is_whole
    assert repo.state() == agents
    assert git.recover(tree, "r1") == git.RecoveryResult()
    assert not repo.is_clean("r1")  # any look at the tree sweeps it
    left = {each.name for each in Path(tree.scratch).iterdir()}
    assert {name for name in left if not name.endswith(".dead")} == {"held"}  # no rubbish


SLOW_GIT = """#!/bin/sh
case "$*" in *update-ref*)
    echo >> "{calls}"
    if test "$(wc -l < "{calls}")" -eq {number}; then echo > "{calls}.reached"; sleep 0.6; fi
esac
exec "{git}" "$@"
"""


@pytest.mark.parametrize("number", [1, 2, 3, 4])  # prepared, aside, returning, returned
def test_recovery_waits_for_a_git_that_outlives_its_killed_mulligan(repo, number, tmp_path):
    """`recover` looked before that git had moved its reference, and found nothing to do.

    The work of the run then stayed set aside although it was being given back.
    """
    an_agents_work(repo)
    agents = repo.state()
    calls = tmp_path / "calls"
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(SLOW_GIT.format(calls=calls, number=number, git=shutil.which("git")))
    slow.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, str(WORKER), str(repo.folder), "stash", "r1"],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PATH": f"{slow.parent}:{os.environ['PATH']}"},
    ) as worker:
        wait_for(calls.with_suffix(".reached").exists)
        worker.kill()
    git.recover(repo.tree, "r1")
    states = [aside.state for aside in git.load_all(repo.tree, "r1")]
    assert states == ["aside" if number < 3 else "returned"]
    if number < 3:
        assert repo.is_clean("r1")
        assert git.restore_changes(repo.tree, git.load_all(repo.tree, "r1")[0]).is_whole
    assert repo.state() == agents


def wait_for(is_there):
    limit = time.monotonic() + 30
    while not is_there():
        assert time.monotonic() < limit
        time.sleep(0.01)


@pytest.mark.parametrize("number", range(max(1, KILLS // 2)))
def test_a_commit_survives_kill_9(repo, number, monkeypatch):
    monkeypatch.setattr(locks, "_OLD", 0.2)
    dice = random.Random(number)
    an_agents_work(repo)
    seen = repo.seen()
    killed(repo, "commit", dice)
    recovered(repo.tree)
    git.set_aside(repo.tree, "commit", "r1")
    assert repo.seen() == seen
    assert [line[:2] for line in repo.git("status", "--porcelain").splitlines()] == [" M"]
    assert repo.read("mine.txt") == "my change\n"
    assert repo.git("rev-list", "--count", "HEAD").strip() == "2"


@pytest.mark.parametrize("number", range(max(2, KILLS // 2)))
def test_lent_trees_survive_kill_9(repo, number, monkeypatch):
    """Two agents at once, killed while they are lent trees, and while those are taken back."""
    monkeypatch.setattr(locks, "_OLD", 0.2)
    dice = random.Random(number)
    for each in range(130):  # more than a hundred: they are stored as one pack
        repo.write(f"mine/{each}.txt", f"my change {each}\n")
    repo.write("mine.txt", "my change\n")
    users = repo.seen()
    for _ in range(3):
        killed(repo, "worktree", dice)
    argv = [sys.executable, str(WORKER), str(repo.folder), "worktree", "r1"]
    said = b"-"
    for _ in range(20):  # a git may have outlived its Mulligan
        said = subprocess.run(argv, check=False, capture_output=True, timeout=60).stderr
        if not said:
            break
        time.sleep(0.3)
    assert not said, said
    agents = {
        f"{agent}/{each}.txt": f"{each} by {agent}\n"
        for agent in ("one", "two")
        for each in range(60)
    }
    assert {path: repo.read(path) for path in agents} == agents
    assert {path: each for path, each in repo.seen().items() if path not in agents} == users
    assert repo.git("worktree", "list", "--porcelain").count("worktree ") == 1
    assert not list((Path(os.environ["MULLIGAN_HOME"]) / "worktrees").glob("*/*"))
    assert git.load_baseline(repo.tree, "r1/agents/one") is None
    repo.git("fsck", "--strict")


class Crash(BaseException):
    """The process is gone."""


@pytest.fixture
def crashing(monkeypatch):
    """A context in which the process dies before its nth step."""

    @contextmanager
    def crashing(at):
        count = 0

        def counted(real):
            def step(*args, **kwargs):
                nonlocal count
                count += 1
                if count == at:
                    raise Crash
                return real(*args, **kwargs)

            return step

        with monkeypatch.context() as patch, suppress(Crash):
            for kind, name in (
                (git_command.Git, "start"),
                (files.TreeFiles, "put"),
                (files.TreeFiles, "remove"),
            ):
                patch.setattr(kind, name, counted(getattr(kind, name)))
            yield

    return crashing


# More than any of these take: with git and files, some thirty.
STEPS = range(1, 40, 39 // min(39, 2 * KILLS))


@pytest.mark.parametrize("is_undone", [False, True])
@pytest.mark.parametrize("at", STEPS)
def test_a_crash_between_any_two_steps_is_caught_up(repo, crashing, at, is_undone):
    an_agents_work(repo, count=6)
    tree = repo.tree
    agents = repo.state()
    with crashing(at):
        git.restore_changes(tree, repo.aside("stash", "r1"))
    git.recover(tree, "r1", is_undone=is_undone)
    for aside in git.load_all(tree, "r1"):
        if aside.state == "aside":
            assert repo.is_clean("r1")
            assert git.restore_changes(tree, aside).is_whole
    assert repo.state() == agents


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("at", STEPS)
def test_a_crash_while_a_tree_is_lent_or_taken_back_is_caught_up(repo, crashing, at, is_kept):
    repo.write("mine.txt", "my change\n")
    tree = repo.tree
    with crashing(at):
        git.add_worktree(tree, "r1", "one")
    lent = git.add_worktree(tree, "r1", "one")
    own = type(repo)(Path(lent.folder))
    assert own.read("mine.txt") == "my change\n"
    own.write("a.txt", "the agent's\n")
    own.write("new/x.txt", "new\n")
    with crashing(at):
        git.merge_worktree(lent, is_kept=is_kept)
    taken = git.merge_worktree(lent, is_kept=is_kept)
    assert not own.folder.exists()
    assert repo.read("mine.txt") == "my change\n"
    assert taken.branch == ("mulligan/r1/one" if is_kept else "")
    if is_kept:
        assert repo.git("show", "mulligan/r1/one:new/x.txt") == "new\n"
        assert not repo.has("new")
    else:
        assert repo.read("a.txt") == "the agent's\n"
        assert repo.read("new/x.txt") == "new\n"
