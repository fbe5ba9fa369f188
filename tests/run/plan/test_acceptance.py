"""Who has done its work is not started again: only what came after it is repeated."""

from __future__ import annotations

import os
import subprocess

import pytest

from mulligan.errors import GitStopped
from mulligan.run.attempt import clean_tree as tidy
from mulligan.run.git import restore_changes
from mulligan.run.journal.entries import RunReopened
from mulligan.run.plan.acceptance import rejection
from mulligan.run.plan.drive import reopen_agents
from mulligan.run.plan.model import Agent, Phase, Plan
from mulligan.run.process.orphans import marked

from .test_conductor import Theatre

pytestmark = pytest.mark.real

# Does its work, and says how often it was asked to.
WORK = ("sh", "-c", "echo worked >> log; cat log > answer; echo done")


@pytest.fixture
def theatre(tmp_path):
    return Theatre(tmp_path)


@pytest.fixture
def work(theatre):
    return theatre.folder / "work"


def plan_of(*agents, **more):
    return Plan(phases=(Phase(name="a", agents=agents, **more),))


def taken_up(theatre, plan, run):
    """The plan, resumed by the user."""
    reopen_agents(theatre.runs, run.id, theatre.clock.wall())
    return theatre.play(plan, claimed=theatre.runs.claim(run.id, 0.0, is_by_hand=True))


def worked(work):
    return (work / "log").read_text().split()


def test_an_answer_that_could_not_be_delivered_is_delivered_once_that_is_mended(theatre, work):
    blocking = ("sh", "-c", f"mkdir out.md; {WORK[-1]}")
    plan = plan_of(Agent(name="one", command=blocking, output="out.md"))
    run = theatre.play(plan)
    assert (run.code, rejection(theatre.runs.look(f"{run.id}.a.one"))) == (1, "not delivered")
    (work / "out.md").rmdir()
    assert taken_up(theatre, plan, run).code == 0
    assert ((work / "out.md").read_text(), worked(work)) == ("done\n", ["worked"])


def test_a_verification_is_repeated_once_what_it_missed_is_mended(theatre, work):
    plan = plan_of(Agent(name="one", command=WORK), verify=("test", "-e", "database"))
    run = theatre.play(plan)
    assert (run.code, rejection(theatre.runs.look(f"{run.id}.a.one"))) == (1, "not verified")
    assert taken_up(theatre, plan, run).code == 1
    (work / "database").touch()
    assert taken_up(theatre, plan, run).code == 0
    assert worked(work) == ["worked"]


def test_who_was_stopped_while_it_was_verified_is_verified_again_and_not_run(theatre, work):
    plan = plan_of(
        Agent(name="good", command=WORK),
        Agent(
            name="bad",
            command=("sh", "-c", "until test -e checking; do sleep 0.01; done; test -e mended"),
        ),
        verify=("sh", "-c", "touch checking; test -e mended || sleep 30"),
    )
    run = theatre.play(plan)
    assert (run.code, run.ends) == (1, {"a/good": "cancelled", "a/bad": "failed"})
    (work / "mended").touch()
    assert taken_up(theatre, plan, run).code == 0
    assert worked(work) == ["worked"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_who_dies_before_it_told_the_agent_of_a_failed_check_tells_it_later(theatre, monkeypatch):
    write = theatre.runs.write
    deaths: list[str] = []

    def dying(claimed, step, name, **more):
        if isinstance(step, RunReopened) and not deaths:
            deaths.append(name)
            raise SystemExit  # ends the thread, as nothing else does
        write(claimed, step, name, **more)

    monkeypatch.setattr(theatre.runs, "write", dying)
    plan = plan_of(theatre.agent("one", "ok write:fixed ok"), verify=("test", "-e", "fixed"))
    run = theatre.play(plan)
    state = theatre.runs.look(f"{run.id}.a.one")
    assert (run.code, len(deaths), state.attempts) == (0, 1, 2)
    assert [each.is_good for each in state.checks] == [False, True]


@pytest.fixture
def repository(work):
    for line in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
        subprocess.run(["git", *who, *line], cwd=work, check=True, timeout=30)  # noqa: S607 -- the one on the PATH
    return work


def test_a_stash_whose_return_was_interrupted_is_back_before_the_work_counts(
    theatre, repository, monkeypatch
):
    interrupted: list[bool] = []

    def once(*args, **more):
        if not interrupted:
            interrupted.append(True)
            raise GitStopped("giving files back was interrupted")
        return restore_changes(*args, **more)

    monkeypatch.setattr(tidy, "restore_changes", once)
    agent = theatre.agent("one", "write:half.txt crash ok")
    run = theatre.play(
        plan_of(agent, parallel=False, git="stash", verify=("test", "-e", "half.txt"))
    )
    assert (run.code, interrupted) == (0, [True])


@pytest.mark.parametrize("mode", ["stash", "snapshot"])
def test_who_is_to_mend_its_work_finds_it_in_the_tree(theatre, repository, mode):
    agent = theatre.agent("one", "write:half.txt ok note:half.txt write:fixed ok")
    plan = plan_of(agent, parallel=False, git=mode, verify=("test", "-e", "fixed"))
    run = theatre.play(plan)
    log = theatre.runs.files(f"{run.id}.a.one") / "attempt-2.out"
    assert (run.code, b"half.txt exists" in log.read_bytes()) == (0, True)
    assert (repository / "half.txt").exists()


def test_a_program_without_sessions_is_told_by_its_environment(theatre, work):
    script = 'printf "%s" "$MULLIGAN_EVIDENCE" > told; echo again >> log'
    plan = plan_of(
        Agent(name="one", command=("sh", "-c", script), may_restart=True),
        verify=("sh", "-c", "echo two lines wanted; test $(wc -l < log) = 2"),
    )
    run = theatre.play(plan)
    assert (run.code, worked(work)) == (0, ["again", "again"])
    assert "two lines wanted" in (work / "told").read_text()


def test_who_is_cut_off_in_the_attempt_with_evidence_is_told_again(theatre, work):
    script = 'echo "${MULLIGAN_EVIDENCE:+told}" >> log; test $(wc -l < log) != 2 || kill -9 $$'
    plan = plan_of(
        Agent(name="one", command=("sh", "-c", script), may_restart=True),
        verify=("sh", "-c", "test $(wc -l < log) = 3"),
    )
    run = theatre.play(plan)
    assert (run.code, worked(work)) == (0, ["told", "told"])


def test_work_that_is_paid_for_is_delivered_when_the_money_is_used_up(theatre, work):
    agent = theatre.agent("one", "ok", output="one.md")
    phases = (Phase(name="a", agents=(agent,), verify=("true",)),)
    run = theatre.play(Plan(cost_limit=0.01, phases=phases))
    assert (run.code, (work / "one.md").exists()) == (0, True)


def test_what_must_not_be_started_anew_is_not_told(theatre, work):
    plan = plan_of(Agent(name="one", command=WORK), verify=("false",))
    run = theatre.play(plan)
    assert (run.code, worked(work)) == (1, ["worked"])


def test_the_attempt_with_evidence_costs_as_much_as_any_other(theatre):
    agent = theatre.agent("one", "ok ok")
    plan = Plan(
        cost_limit=0.01,
        phases=(Phase(name="a", agents=(agent,), verify=("false",)),),
    )
    run = theatre.play(plan)
    state = theatre.runs.look(f"{run.id}.a.one")
    assert (run.code, state.attempts) == (1, 1)


def test_a_verification_that_nobody_supervises_any_more_is_ended_before_the_next(theatre, work):
    plan = plan_of(Agent(name="one", command=WORK), verify=("true",))
    claimed = theatre.made(plan)
    environ = marked(os.environ, f"{claimed.id}.a.one.verify")
    with subprocess.Popen(["sleep", "30"], env=environ) as left:  # noqa: S607 -- the one on the PATH
        assert theatre.play(plan, claimed=claimed).code == 0
        assert left.wait(timeout=5) < 0
