"""Pruning that lost paid work.

Agents of a plan that was still open were pruned one by one 30 days after each had ended, and run
again when the plan was resumed. A run whose folder was missing made the next ``mulligan run`` exit
with 1 though its program had succeeded. What git kept for a pruned run stayed for ever. And a
journal of zero bytes counted as new, so that pruning swept away the folders of every earlier run.

Once what git kept was pruned as well, it went whether it had been given back or not: files set
aside that conflicted, the tree of an agent that failed, a tree whose repository was not mounted,
and, after a day, any tree that was lent without a run. And a run whose limit was over in 31 days
was removed on the 30th.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from mulligan.cli import main
from mulligan.errors import StoreError
from mulligan.run.git import (
    Tree,
    add_worktree,
    merge_worktree,
    record_baseline,
    restore_changes,
    set_aside,
)
from mulligan.run.journal.entries import PLAN, AttemptBegun, AttemptEnd, RunMade
from mulligan.run.journal.retention import KEPT, prune
from mulligan.run.journal.store import RunStore

NOW = time.time()
OLD = NOW - KEPT - 1000
DONE = AttemptEnd(OLD, 1, 1.0, code=0, then="done")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    runs = RunStore()
    yield runs
    runs.close()


def add(runs, *steps, agent="claude", id_="", parent=""):
    made = RunMade(OLD, agent, "claude", "/src", "host", os.geteuid(), "", {}, [], parent=parent)
    claimed, _ = runs.make(runs.new_folder(("claude",), id_), made)
    for number, step in enumerate(steps):
        runs.write(claimed, step, f"step-{number}")
    runs.release(claimed)
    return claimed.id


BEGUN = AttemptBegun(OLD, 1, "start", "", "")


def test_agents_of_an_open_plan_stay_however_old_they_are(runs):
    plan = add(runs, BEGUN, AttemptEnd(OLD, 1, 1.0, then="pause", exit=130), agent=PLAN)
    agent = add(runs, BEGUN, DONE, id_=f"{plan}.review.one", parent=plan)
    assert prune(runs, NOW) == ()
    assert runs.look(agent).status == "done"
    assert (runs.folder / "runs" / agent).is_dir()


def test_agents_go_with_their_plan(runs):
    plan = add(runs, BEGUN, DONE, agent=PLAN)
    agent = add(runs, BEGUN, DONE, id_=f"{plan}.review.one", parent=plan)
    assert prune(runs, NOW) == (plan,)
    assert runs.ids() == ()
    assert not (runs.folder / "runs" / agent).exists()


def test_agents_whose_plan_is_gone_go_as_well(runs):
    agent = add(runs, BEGUN, DONE, id_="gone.review.one", parent="gone")
    assert prune(runs, NOW) == (agent,)


def test_a_run_whose_folder_is_missing_is_pruned_and_fails_nobody(runs, capfd):
    old = add(runs, BEGUN, DONE)
    shutil.rmtree(runs.folder / "runs" / old)
    (runs.folder / "pruned").touch()
    os.utime(runs.folder / "pruned", (OLD, OLD))
    with pytest.raises(SystemExit) as caught:
        main(["run", "--", "true"])
    assert (caught.value.code, old in runs.ids()) == (0, False), capfd.readouterr().err


def test_a_run_that_is_held_is_not_pruned(runs):
    old = add(runs, BEGUN, DONE)
    claimed = runs.claim(old, OLD)
    assert prune(runs, NOW) == ()
    runs.release(claimed)
    assert prune(runs, NOW) == (old,)


@pytest.fixture
def git(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words):
        argv = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", *words]
        done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, check=True)
        return done.stdout.decode()

    git("init", "-q")
    (folder / "a.txt").write_text("a\n")
    (folder / ".gitignore").write_text("*.log\n")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    return git


@pytest.fixture
def tree(git, tmp_path):
    return Tree.find(tmp_path / "tree")


@pytest.fixture
def plan(runs, tree):
    """An old plan that has ended, and whose agent was lent a tree."""
    plan = add(runs, BEGUN, DONE, agent=PLAN)
    phase = {"name": "review", "git": "worktree", "agents": [{"name": "one", "command": ["true"]}]}
    kept = {"folder": tree.folder, "cwd": tree.folder, "plan": {"phases": [phase]}}
    (runs.folder / "runs" / plan / "plan.json").write_text(json.dumps(kept))
    record_baseline(tree, plan)
    return plan


@pytest.fixture
def lent(runs, tree, plan):
    return add_worktree(tree, plan, "1-1-review-one", under=str(runs.folder / "worktrees"))


def test_what_git_keeps_for_a_run_goes_with_it(runs, git, plan, lent):
    assert "refs/mulligan" in git("for-each-ref")
    assert Path(lent.folder).is_dir()
    assert prune(runs, NOW) == (plan,)
    assert "refs/mulligan" not in git("for-each-ref")
    assert not Path(lent.folder).exists()
    assert not (runs.folder / "worktrees" / plan).exists()
    assert lent.folder not in git("worktree", "list")


@pytest.mark.parametrize("name", ["a.txt", "new.txt", "result.log"])
def test_the_tree_of_an_agent_stays_with_what_is_only_there(runs, plan, lent, name):
    (Path(lent.folder) / name).write_text("paid for\n")
    assert prune(runs, NOW) == ()
    assert (Path(lent.folder) / name).read_text() == "paid for\n"
    assert runs.look(plan) is not None


def test_a_plan_goes_once_its_work_was_given_back(runs, git, tree, plan, lent):
    (Path(lent.folder) / "a.txt").write_text("paid for\n")
    assert prune(runs, NOW) == ()
    merge_worktree(lent)
    assert (Path(tree.folder) / "a.txt").read_text() == "paid for\n"
    assert prune(runs, NOW) == (plan,)
    assert "refs/mulligan" not in git("for-each-ref")


def test_files_set_aside_stay_until_they_are_given_back(runs, git, tree, plan):
    (Path(tree.folder) / "a.txt").write_text("paid for\n")
    aside = set_aside(tree, "snapshot", plan)
    assert aside is not None
    assert prune(runs, NOW) == ()
    assert aside.ref in git("for-each-ref")
    assert restore_changes(tree, aside).is_whole
    assert prune(runs, NOW) == (plan,)
    assert (Path(tree.folder) / "a.txt").read_text() == "paid for\n"


def test_the_tree_of_an_agent_stays_while_its_repository_is_away(runs, tree, plan, lent):
    (Path(lent.folder) / "a.txt").write_text("paid for\n")
    Path(tree.folder).rename(f"{tree.folder}-unmounted")
    assert prune(runs, NOW) == ()
    assert (Path(lent.folder) / "a.txt").read_text() == "paid for\n"


def test_a_tree_that_was_lent_without_a_run_is_not_swept(runs, tree):
    lent = add_worktree(tree, "night-1", "one")
    (Path(lent.folder) / "a.txt").write_text("paid for\n")
    assert prune(runs, NOW + 3 * 86_400) == ()
    assert (Path(lent.folder) / "a.txt").read_text() == "paid for\n"


def test_a_limited_run_stays_until_its_limit_is_long_over(runs):
    until = NOW + 86_400.0
    limited = AttemptEnd(OLD, 1, 1.0, code=1, kind="quota", then="stop", until=until, exit=75)
    run = add(runs, BEGUN, limited)
    assert prune(runs, NOW) == ()
    assert prune(runs, until + KEPT + 1) == (run,)


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_journal_that_was_lost_is_not_a_new_one(runs, capfd, is_gone):
    id_ = add(runs, BEGUN, DONE)
    runs.close()
    for each in runs.folder.glob("state.journal.db*"):
        each.unlink()
    if not is_gone:
        (runs.folder / "state.journal.db").touch(mode=0o600)
    for argv in (["runs", "--prune"], ["run", "--", "true"], ["worker", "--once"]):
        with pytest.raises(SystemExit) as caught:
            main(argv)
        said = capfd.readouterr().err
        assert caught.value.code == 1
        assert ("is gone" if is_gone else "is empty") in said
        assert "mulligan doctor shows what to do" in said
    assert (runs.folder / "runs" / id_).is_dir()


def test_folders_that_are_older_than_the_journal_are_never_swept(runs):
    add(runs, BEGUN, DONE)
    for name, age in (("older", 90 * 86_400), ("half", 0)):
        folder = runs.folder / "runs" / name
        folder.mkdir()
        at = runs.made_at() - age + 10
        os.utime(folder, (at, at))
    prune(runs, NOW + 2 * 86_400)
    assert (runs.folder / "runs" / "older").exists()
    assert not (runs.folder / "runs" / "half").exists()


def test_the_first_run_of_a_folder_may_be_killed_between_any_two_steps(tmp_path):
    """The journal is made before the first folder: what a kill leaves is never refused."""
    runs = RunStore(tmp_path / "home")
    runs.new_folder(("true",))  # and no more
    runs.close()
    again = RunStore(tmp_path / "home")
    assert again.ids() == ()
    again.close()
    (tmp_path / "home" / "state.journal.db").unlink()
    with pytest.raises(StoreError, match="is gone"):
        RunStore(tmp_path / "home")
