"""What an agent did in a tree of its own comes into the plan's, or it is not called delivered."""

from __future__ import annotations

import subprocess

import pytest

from mulligan.run.git import Tree, drop
from mulligan.run.plan.acceptance import rejection
from mulligan.run.plan.drive import reopen_agents
from mulligan.run.plan.model import Agent, Phase, Plan

from .test_conductor import Theatre

pytestmark = pytest.mark.real


@pytest.fixture
def theatre(tmp_path):
    return Theatre(tmp_path)


@pytest.fixture
def repository(theatre):
    tree = theatre.folder / "work"
    (tree / "kept.txt").write_text("as committed\n")
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "first")
    return tree


def git(tree, *words):
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    subprocess.run(["git", *who, *words], cwd=tree, check=True, timeout=30)  # noqa: S607 -- the one on the PATH


def one(script, **more):
    agent = Agent(name="one", command=("sh", "-c", script), **more)
    return Plan(git="worktree", phases=(Phase(name="a", agents=(agent,)),))


def taken_up(theatre, plan, run):
    """The plan, resumed by the user."""
    reopen_agents(theatre.runs, run.id, theatre.clock.wall())
    return theatre.play(plan, claimed=theatre.runs.claim(run.id, 0.0, is_by_hand=True))


def state_of(theatre, run):
    return theatre.runs.look(f"{run.id}.a.one")


def test_a_conflict_stays_one_when_the_answer_could_not_be_put_either(theatre, repository):
    (repository / "out").write_text("in the way\n")
    script = f"echo user > {repository}/kept.txt; echo agent > kept.txt; echo answer"
    plan = one(script, output=f"{repository}/out/answer.md")
    run = theatre.play(plan)
    assert (run.code, rejection(state_of(theatre, run))) == (1, "not delivered")
    branch = f"mulligan/{run.id}/1-1-a-one"
    assert state_of(theatre, run).undelivered == (
        f"kept.txt conflicts with the tree: it was changed since; merge the branch {branch}, or "
        f"delete it; also, output '{repository}/out/answer.md' cannot be written: file exists"
    )
    (repository / "out").unlink()
    assert taken_up(theatre, plan, run).code == 1
    state = state_of(theatre, run)
    assert state.undelivered.startswith("kept.txt conflicts with the tree: it was changed since;")
    assert (repository / "out/answer.md").read_text() == "answer\n"
    assert [each.text for each in state.remarks] == [f"git: its changes are on the branch {branch}"]
    git(repository, "commit", "-qam", "mine")
    git(repository, "merge", "-q", "--strategy=ours", branch)
    assert taken_up(theatre, plan, run).code == 0
    assert state_of(theatre, run).attempts == 1


@pytest.mark.parametrize(("cwd", "is_seen"), [("", False), ("sub", True)])
def test_an_output_beside_its_folder_is_never_written_beside_the_tree_it_was_lent(
    theatre, repository, cwd, is_seen
):
    (repository / "sub").mkdir()
    (repository / "sub/kept.txt").write_text("as committed\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    agent = Agent(name="one", command=("echo", "answer"), cwd=cwd, output="../answer.md")
    seen = theatre.folder / "seen"
    look = ("sh", "-c", f"test ! -e ../answer.md || touch {seen}")
    plan = Plan(git="worktree", phases=(Phase(name="a", agents=(agent,), verify=look),))
    run = theatre.play(plan)
    place = repository if cwd else repository.parent
    assert (run.code, (place / "answer.md").read_text()) == (0, "answer\n")
    assert seen.exists() is is_seen  # in the tree it is where the verification looks
    assert not list((theatre.runs.folder / "worktrees").rglob("answer.md"))


def test_an_agent_that_removed_its_own_tree_has_delivered_nothing(theatre, repository):
    plan = one('echo x > x.txt; rm -rf "$PWD"')
    run = theatre.play(plan)
    key = f"{run.id}/agents/1-1-a-one"
    for again in (run, taken_up(theatre, plan, run)):
        assert again.code == 1
        assert state_of(theatre, run).undelivered == (
            "its tree is gone, removed while it worked: what was not committed is lost; "
            f"forget it with mulligan git drop {key}"
        )
    drop(Tree.find(repository), key)
    assert taken_up(theatre, plan, run).code == 0
