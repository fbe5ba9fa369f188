"""Plans whose trees are made clean for retries, with real programs and real repositories (R-P5)."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from threading import Thread

import pytest

from mulligan.cli import main
from mulligan.errors import GitRefused, TreeBusy
from mulligan.run.git import Tree, agent_worktrees, leased, set_aside
from mulligan.run.journal.entries import RunCancelled
from mulligan.run.plan.lint import lint_plan
from mulligan.run.plan.model import Agent, Phase, Plan
from mulligan.run.plan.report import as_lines, as_markdown
from mulligan.run.plan.validate import problems
from mulligan.run.process.stop import Stop

from .test_conductor import Table, Theatre

pytestmark = pytest.mark.real


def git(folder, *words):
    done = subprocess.run(
        ["git", *words],  # noqa: S607 -- the one on the PATH
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=30,
    )
    return done.stdout.decode()


def repository(folder):
    """A repository with one commit."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.com")
    (folder / "a.txt").write_text("as committed\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def theatre(tmp_path):
    return Theatre(tmp_path)


@pytest.fixture
def tree(theatre):
    return repository(theatre.folder / "work")


def once(folder, first, later="true"):
    """A command that does the one thing and dies, then the other at its retry."""
    mark = folder / "once"
    script = f"if [ ! -f {mark} ]; then touch {mark}; {first}; kill -9 $$; fi; {later}"
    return ("sh", "-c", script)


def crashing(theatre, name, first, later="true", **more):
    command = once(theatre.folder, first, later)
    return Agent(name=name, command=command, may_restart=True, **more)


def plan_of(*agents, **more):
    phases = tuple(Phase(name=f"p{n}", agents=(each,)) for n, each in enumerate(agents, 1))
    return Plan(phases=phases, **more)


def test_a_hook_that_sleeps_does_not_keep_a_plan_from_being_interrupted(theatre, tree):
    hook = tree / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ntouch asleep\nsleep 60\n")
    hook.chmod(0o755)
    plan = plan_of(crashing(theatre, "x", "echo half > half.txt"), git="commit")
    claimed, stop = theatre.made(plan), Stop()

    def interrupt():
        while not (tree / "asleep").exists():
            time.sleep(0.01)
        stop.set()

    thread = Thread(target=interrupt)
    thread.start()
    code, _ = theatre.conduct(theatre.context(stop=stop), claimed, Table())
    thread.join()
    stop.close()
    assert (code, theatre.runs.look(claimed.id).status) == (130, "paused")
    assert theatre.runs.look(f"{claimed.id}.p1.x").status == "waiting"
    assert (tree / "half.txt").read_text() == "half\n"
    hook.unlink()
    (tree / "asleep").unlink()
    run = theatre.play(plan, claimed=theatre.runs.claim(claimed.id, theatre.clock.wall()))
    assert run.code == 0
    assert git(tree, "log", "--format=%s", "--", "half.txt") == (
        "mulligan: unfinished changes to half.txt\n"
    )


def test_a_commit_says_what_the_agent_said_last(theatre, tree):
    agent = theatre.agent("x", "write:w.txt limit:1 ok")
    assert theatre.play(plan_of(agent, git="commit")).code == 0
    assert git(tree, "log", "-1", "--format=%s") == "mulligan: Wrote a file.\n"


def test_what_an_earlier_phase_has_changed_is_committed_with_the_rest(theatre, tree):
    """Each agent had a baseline of its own, and took the first one's edit for the user's."""
    first = Agent(name="x", command=("sh", "-c", "echo from x >> a.txt"))
    seen = theatre.folder / "seen"
    second = crashing(theatre, "y", "echo half of y >> a.txt", f"git status --short > {seen}")
    run = theatre.play(plan_of(first, second, git="commit"))
    assert run.code == 0
    assert seen.read_text() == ""
    assert git(tree, "show", "HEAD:a.txt") == "as committed\nfrom x\nhalf of y\n"


def test_a_file_that_the_user_had_changed_is_not_committed_and_that_is_an_error(theatre, tree):
    (tree / "a.txt").write_text("of its user\n")
    agent = crashing(theatre, "x", "echo half >> a.txt")
    run = theatre.play(plan_of(agent, git="commit"))
    because = theatre.runs.look(f"{run.id}.p1.x").because
    assert run.code == 1
    assert "a.txt had changes before the run began" in because
    assert (tree / "a.txt").read_text() == "of its user\nhalf\n"


REFUSED = "git mode 'snapshot' needs a tree for one agent at a time, and 2 run in parallel"


def side_by_side(one, other, **more):
    return Plan(
        git="snapshot",
        phases=(
            Phase(name="one", agents=(Agent(name="x", command=("true",), cwd=one),)),
            Phase(
                name="two",
                needs=(),
                agents=(Agent(name="y", command=("true",), cwd=other),),
                **more,
            ),
        ),
    )


@pytest.mark.parametrize("more", [{}, {"git": "off"}, {"git": "worktree"}])
@pytest.mark.parametrize("folders", [("", ""), ("", "sub"), ("sub", ".")])
def test_phases_that_run_side_by_side_do_not_share_a_tree(theatre, tree, folders, more):
    (tree / "sub").mkdir()
    plan = side_by_side(*folders, **more)
    (problem, *_) = problems(plan, folder=theatre.folder, home=tree)
    assert problem.message.startswith(REFUSED)
    assert problem.hint == "or let phase 'two' need 'one': needs = [\"one\"]"


@pytest.mark.parametrize(
    "plan",
    [
        side_by_side("r1", "r2"),
        side_by_side("", "", git="worktree", merge=False),
        plan_of(*[Agent(name="x", command=("true",))] * 3, git="stash"),
    ],
)
def test_agents_in_different_trees_or_one_after_the_other_are_fine(theatre, tree, plan):
    for name in ("r1", "r2"):
        repository(tree / name)
    assert list(problems(plan, folder=theatre.folder, home=tree)) == []
    assert theatre.play(plan).code == 0


def test_a_tree_in_which_another_run_works_is_refused_and_free_when_it_is_over(theatre, tree):
    plan = plan_of(Agent(name="x", command=("true",)), git="stash")
    with leased(Tree.find(tree), "other"), pytest.raises(TreeBusy, match="run other works in this"):
        theatre.made(plan)
    assert theatre.runs.ids() == ()
    claimed = theatre.made(plan)
    with leased(Tree.find(tree), "other"), pytest.raises(TreeBusy):
        theatre.play(plan, claimed=claimed)
    claimed = theatre.runs.claim(claimed.id, theatre.clock.wall())
    with leased(Tree.find(tree), "other"):
        assert theatre.play(plan, claimed=claimed, park="exit").code == 75
    state = theatre.runs.look(claimed.id)
    assert (state.status, state.until) == ("waiting", theatre.clock.wall() + 60)
    assert "run other works in this tree" in state.because
    claimed = theatre.runs.claim(claimed.id, theatre.clock.wall())
    assert theatre.play(plan, claimed=claimed).code == 0


def test_what_a_plan_that_is_over_has_set_aside_is_in_its_report(theatre, tree):
    agent = crashing(theatre, "x", "echo half > half.txt")
    run = theatre.play(plan_of(agent, git="snapshot"))
    (report,) = run.table.reports
    said = f"1 file stays set aside; in {tree}, mulligan git restore {run.id} restores it"
    assert (run.code, report.aside) == (0, (said,))
    assert as_lines(report)[-1].text == f"git: {said}"
    assert as_markdown(report).endswith(f"mulligan git restore {run.id} restores it\n")


@pytest.mark.parametrize(
    ("first", "second", "is_refused"),
    [
        ("stash", "stash", True),
        ("snapshot", "worktree", True),
        ("commit", "off", False),
        ("worktree", "commit", False),
        ("off", "stash", False),
    ],
)
def test_a_tree_in_which_a_parked_run_goes_on_is_refused(theatre, tree, first, second, is_refused):
    limited = theatre.agent("one", "limit:9000 ok")
    parked = theatre.play(plan_of(limited, git=first), park="exit")
    assert parked.code == 75
    plan = plan_of(Agent(name="x", command=("true",)), git=second)
    if is_refused:
        with pytest.raises(TreeBusy) as refused:
            theatre.made(plan)
        assert str(refused.value) == (
            f"{tree}: run {parked.id} is parked and will continue in this tree, where "
            f"it would take other edits for its own; mulligan resume {parked.id} goes on with it, "
            f"mulligan cancel {parked.id} ends it and says what it has set aside"
        )
        theatre.runs.cancel(parked.id, RunCancelled(theatre.clock.wall(), "by hand"))
    assert theatre.play(plan).code == 0


@pytest.mark.parametrize(
    ("mode", "spoilt", "message"),
    [
        ("worktree", "rm -rf .git; git init -q", "has no commit yet, and a work tree needs one"),
        (
            "commit",
            "git config user.useConfigOnly true; git config --unset user.email",
            "who commits",
        ),
        ("worktree", "echo sub > .gitignore; mkdir sub", "work/sub is ignored by git"),
        ("stash", "touch .git/MERGE_HEAD", "a merge is under way"),
    ],
)
def test_what_git_cannot_do_is_said_before_anybody_pays(
    theatre, tree, monkeypatch, mode, spoilt, message
):
    monkeypatch.setenv("HOME", str(theatre.folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("EMAIL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run(spoilt, shell=True, cwd=tree, check=True, timeout=30)  # noqa: S602 -- our words
    cwd = "sub" if "sub" in message else ""
    paid = Phase(name="pay", agents=(Agent(name="x", command=("true",)),))
    later = Phase(name="b", git=mode, agents=(Agent(name="y", command=("true",), cwd=cwd),))
    plan = Plan(phases=(paid, later))
    with pytest.raises(GitRefused, match=f"^phase b: .*{message}"):
        theatre.made(plan)
    (found,) = [each for each in lint_plan(plan, folder=theatre.folder, home=tree) if each.is_grave]
    assert (found.key, message in found.message) == ("phases[1].git", True)


def test_baselines_go_when_a_plan_has_ended_well(theatre, tree):
    agents = [Agent(name="x", command=("true",)), Agent(name="y", command=("true",))]
    for mode in ("stash", "commit", "worktree"):
        assert theatre.play(plan_of(*agents, git=mode)).code == 0
    assert git(tree, "for-each-ref", "--format=%(refname)") == "refs/heads/main\n"


def test_baselines_stay_with_a_plan_that_can_be_taken_up_again(theatre, tree):
    run = theatre.play(plan_of(Agent(name="x", command=("false",)), git="stash"))
    assert run.code == 1
    assert f"refs/mulligan/{run.id}/agents/" in git(tree, "for-each-ref")


def test_a_tree_that_an_earlier_agent_makes_is_looked_at_when_it_is_there(theatre, tree):
    clone = Agent(name="x", command=("git", "clone", "-q", ".", "made"))
    agent = crashing(theatre, "y", "echo half > half.txt", cwd="made")
    first = Phase(name="a", agents=(clone,), git="off")
    second = Phase(name="b", agents=(agent,), git="snapshot")
    assert theatre.play(Plan(phases=(first, second))).code == 0
    assert not (tree / "made" / "half.txt").exists()


def remarks_of(run):
    return [each for agent in run.table.reports[0].phases[0].agents for each in agent.remarks]


def test_an_agents_tree_with_files_that_git_ignores_is_kept_and_named(theatre, tree):
    (tree / ".gitignore").write_text("results/\n")
    agent = Agent(name="x", command=("sh", "-c", "mkdir results; echo long > results/r"))
    run = theatre.play(plan_of(agent, git="worktree"))
    left, folder = remarks_of(run)
    assert (run.code, left) == (0, "git: left results: git ignores it")
    assert folder.startswith("git: its folder stays: ")
    (lent,) = agent_worktrees(Tree.find(tree), run.id)
    assert (Path(lent.folder) / "results" / "r").read_text() == "long\n"


def test_who_cancels_a_plan_is_told_what_stays_set_aside(theatre, tree, monkeypatch, capsys):
    """A killed conductor has given nothing back, and a cancelled run goes on nowhere."""
    plan = plan_of(Agent(name="x", command=("true",)), git="stash")
    claimed = theatre.made(plan)
    theatre.runs.release(claimed)
    (tree / "half.txt").write_text("half\n")
    set_aside(Tree.find(tree), "stash", f"{claimed.id}/agents/1-1-x")
    monkeypatch.setenv("MULLIGAN_HOME", str(theatre.folder / "home"))
    with pytest.raises(SystemExit):
        main(["cancel", claimed.id])
    assert capsys.readouterr().err == (
        f"cancelled run {claimed.id}\n1 file stays set aside; in {tree}, mulligan git restore "
        f"{claimed.id} restores it\n"
    )
