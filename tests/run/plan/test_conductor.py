"""Plans with real programs: phases, partial failure, waiting, verification (R-P1 to R-P3)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mulligan.core.presets import preset
from mulligan.core.timeouts import Timeouts
from mulligan.errors import GitError, SettingError
from mulligan.run.attempt.options import DriveOptions
from mulligan.run.git import Tree, agent_worktrees, load_all
from mulligan.run.journal.entries import RunRescheduled
from mulligan.run.journal.store import NoSuchRun, RunStore
from mulligan.run.listeners import PlanListener
from mulligan.run.plan.drive import conduct, kept_plan, make_plan, reopen_agents, set_cost_limit
from mulligan.run.plan.model import Agent, Phase, Plan
from mulligan.run.process.stop import Stop
from mulligan.run.worker import is_due

from ..scripted import Stage

pytestmark = pytest.mark.real


class Table(PlanListener):
    """Keeps what it is told."""

    def __init__(self):
        self.states, self.last_phases, self.reports, self.most = {}, {}, [], 0
        self.notices = []

    def changed(self, key, state, now):
        self.states[key] = state
        running = sum(each.status == "running" for each in self.states.values())
        self.most = max(self.most, running)

    def phases(self, states, because):
        self.last_phases = dict(states)

    def held(self, key, because):
        self.notices.append(f"{key}: {because}")

    def notified(self, error):
        self.notices.append(error)

    def over(self, report):
        self.reports.append(report)


class Theatre(Stage):
    """A stage for several agents, each with a script of its own."""

    def agent(self, name, script, **more):
        sessions = self.folder / "sessions" / name
        sessions.mkdir(parents=True, exist_ok=True)
        env = {"SCRIPT": script, "SESSIONS": str(sessions), **more.pop("env", {})}
        return Agent(
            name=name, program="claude", prompt=more.pop("prompt", "Do it"), env=env, **more
        )

    def made(self, plan, notify=()):
        with closing(Stop()) as stop:
            cwd = self.folder / "work"
            context = self.context(stop=stop)
            return make_plan(context, plan, folder=self.folder, cwd=cwd, notify=notify)[0]

    def play(self, plan, *, claimed=None, **how):
        claimed = claimed or self.made(plan)
        table, stop = Table(), Stop()
        supervise = self.platform().supervise

        def timely(argv, *, environ, **more):
            return supervise(argv, environ={**environ, "NOW": str(self.clock.wall())}, **more)

        try:
            context = self.context(stop=stop, supervise=timely)
            code, _ = self.conduct(context, claimed, table, DriveOptions(**how))
        finally:
            stop.close()
        ends = {key: state.status for key, state in table.states.items()}
        return SimpleNamespace(code=code, id=claimed.id, table=table, ends=ends)

    def conduct(self, context, claimed, *more):
        return conduct(context, claimed, kept_plan(self.runs, claimed.id), *more)

    def answer(self, run, phase, agent):
        return (self.runs.files(f"{run.id}.{phase}.{agent}") / "answer").read_text()


@pytest.fixture
def theatre(tmp_path):
    return Theatre(tmp_path)


def phase(theatre, scripts, **more):
    agents = tuple(theatre.agent(name, script) for name, script in scripts.items())
    return Phase(name="review", agents=agents, **more)


BAD = {"one": "login", "two": "ok", "three": "ok"}


def test_a_plan_whose_agents_do_well_exits_with_0(theatre):
    plan = Plan(phases=(phase(theatre, dict.fromkeys(("one", "two"), "ok")),))
    run = theatre.play(plan)
    assert (run.code, run.table.last_phases) == (0, {"review": "succeeded"})
    assert theatre.runs.look(run.id).status == "done"
    assert theatre.answer(run, "review", "one").startswith("All done")


@pytest.mark.parametrize("parallel", [True, False])
def test_the_first_failure_fails_a_phase_that_fails_fast(theatre, parallel):
    scripts = {**BAD, "two": "stall:30 ok", "three": "stall:30 ok"}
    run = theatre.play(Plan(phases=(phase(theatre, scripts, parallel=parallel),)))
    assert (run.code, run.table.last_phases) == (1, {"review": "failed"})
    others = [theatre.runs.look(f"{run.id}.review.{name}") for name in ("two", "three")]
    expected = "cancelled" if parallel else None
    assert [each and each.status for each in others] == [expected, expected]


def test_who_failed_beside_the_first_is_not_called_stopped(theatre):
    agents = tuple(Agent(name=name, command=("./no-such",)) for name in ("one", "two", "three"))
    run = theatre.play(Plan(phases=(Phase(name="review", agents=agents),)))
    states = [theatre.runs.look(f"{run.id}.review.{each.name}") for each in agents]
    failed = [each for each in states if each is not None and any(end.kind for end in each.ended)]
    statuses = {each.status for each in failed}
    assert (run.code, statuses) == (1, {"failed"})


def test_who_is_being_verified_when_its_phase_fails_is_stopped(theatre):
    bad = Agent(name="one", command=("sh", "-c", "sleep 0.3; exit 3"))
    good = Agent(name="two", command=("true",))
    check = ("sleep", "9")
    run = theatre.play(Plan(phases=(Phase(name="review", agents=(bad, good), verify=check),)))
    assert (run.code, run.ends) == (1, {"review/one": "failed", "review/two": "cancelled"})


SLOW = "trap 'sleep 0.6; exit 1' INT TERM; touch {}; while :; do sleep 0.02; done"


def test_a_phase_that_fails_stops_all_of_its_agents_at_once(theatre):
    slow = [Agent(name=name, command=("sh", "-c", SLOW.format(name))) for name in "abc"]
    wait = "until [ -e a ] && [ -e b ] && [ -e c ]; do sleep 0.02; done; exit 3"
    bad = Agent(name="bad", command=("sh", "-c", wait))
    platform = theatre.platform()
    stops = []

    def supervised(argv, *, stop, **more):
        ended = platform.supervise(argv, stop=stop, **more)
        stops.append((ended.stopped, time.monotonic()))
        return ended

    theatre.platform = lambda: platform._replace(supervise=supervised)
    run = theatre.play(Plan(phases=(Phase(name="review", agents=(bad, *slow)),)))
    assert run.code == 1
    ends = [at for stopped, at in stops if stopped]
    assert (len(ends), max(ends) - min(ends) < 0.5) == (3, True)


class Broken(Table):
    """A table that cannot be drawn once a phase has failed."""

    def phases(self, states, because):
        if "failed" in states.values():
            raise OSError("the disk is full")


def test_a_conductor_that_fails_leaves_no_agent_running(theatre):
    bad = Agent(name="one", command=("sh", "-c", "until [ -e begun ]; do sleep 0.02; done; exit 3"))
    slow = Agent(name="two", command=("sh", "-c", "touch begun; sleep 30"), may_restart=True)
    claimed = theatre.made(Plan(phases=(Phase(name="review", agents=(bad, slow)),)))
    with closing(Stop()) as stop, pytest.raises(OSError, match="the disk is full"):
        theatre.conduct(theatre.context(stop=stop), claimed, Broken())
    two = theatre.runs.look(f"{claimed.id}.review.two")
    assert (two.status, two.is_torn) == ("waiting", False)  # it goes on with the plan
    assert not [each for each in threading.enumerate() if each.name.startswith("agent ")]


@pytest.mark.parametrize("parallel", [True, False])
def test_a_phase_that_continues_lets_all_of_them_run(theatre, parallel):
    plan = Plan(phases=(phase(theatre, BAD, parallel=parallel, on_failure="continue"),))
    run = theatre.play(plan)
    assert (run.code, run.table.last_phases) == (0, {"review": "succeeded"})
    assert run.ends == {"review/one": "failed", "review/two": "done", "review/three": "done"}


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize(("minimum", "code"), [(2, 0), (3, 1)])
def test_a_minimum_of_successes_is_enough(theatre, parallel, minimum, code):
    more = {"parallel": parallel, "on_failure": "require_minimum", "minimum": minimum}
    assert theatre.play(Plan(phases=(phase(theatre, BAD, **more),))).code == code


def test_a_later_phase_reads_what_an_earlier_one_printed(theatre):
    first = phase(theatre, {"one": "ok"})
    second = Phase(
        name="sum",
        agents=(
            Agent(
                name="echo",
                command=("sh", "-c", "cat"),
                prompt="Read: {{outputs.review}}",
                input="stdin",
            ),
        ),
    )
    run = theatre.play(Plan(phases=(first, second)))
    assert run.code == 0
    assert "All done" in theatre.answer(run, "sum", "echo")


def reader(prompt):
    agent = Agent(name="echo", command=("cat",), prompt=prompt, input="stdin")
    return Phase(name="sum", agents=(agent,))


@pytest.mark.parametrize("end", ["exit 3", "exit 0"], ids=["failed", "not verified"])
def test_a_later_phase_reads_only_what_succeeded(theatre, end):  # R-P2
    agents = (
        Agent(name="bad", command=("sh", "-c", f"echo half; touch bad; {end}")),
        Agent(name="good", command=("sh", "-c", "rm -f bad; echo whole")),
    )
    check = ("sh", "-c", "test ! -e bad")
    first = Phase(name="review", agents=agents, parallel=False, on_failure="continue", verify=check)
    second = reader("{{outputs.review}} and {{outputs.review.bad}}")
    run = theatre.play(Plan(phases=(first, second)))
    assert run.code == 0
    read = theatre.answer(run, "sum", "echo")
    assert read == "## bad\n\n(no output)\n\n## good\n\nwhole and (no output)"


def test_who_waits_for_a_limit_frees_its_slot(theatre):  # "the slot held while sleeping"
    scripts = {"one": "effect limit:9000 ok", "two": "ok", "three": "ok"}
    run = theatre.play(Plan(concurrency=1, phases=(phase(theatre, scripts),)))
    assert (run.code, run.table.most) == (0, 1)
    begun = {name: theatre.runs.look(f"{run.id}.review.{name}").begun[-1].at for name in scripts}
    assert begun["one"] >= max(begun["two"], begun["three"])
    assert theatre.effects == 1


def test_a_phases_deadline_is_for_each_of_its_agents(theatre):
    policy = replace(preset("pipeline"), deadline=600)
    scripts = {"one": "effect limit:9000 ok", "two": "ok"}
    plan = Plan(phases=(phase(theatre, scripts, policy=policy, on_failure="continue"),))
    run = theatre.play(plan)
    assert run.ends == {"review/one": "failed", "review/two": "done"}
    assert "would pass the deadline" in theatre.runs.look(f"{run.id}.review.one").because


def test_a_phases_timeout_is_for_each_attempt_and_shrinks_as_told(theatre):  # R-B19
    policy = replace(preset("pipeline"), timeouts=Timeouts(total=0.4, shrink=0.5))
    slow = Agent(name="slow", command=("sleep", "30"), may_restart=True)
    own = Agent(name="own", command=("sleep", "30"), timeout=0.1)
    plan = Plan(phases=(Phase(name="a", agents=(slow, own), on_failure="continue", policy=policy),))
    run = theatre.play(plan)
    first, second, third = [e.took for e in theatre.runs.look(f"{run.id}.a.slow").ended][:3]
    assert (first >= 0.4, second >= 0.2, third >= 0.1) == (True, True, True)
    assert first > second > third
    assert theatre.runs.look(f"{run.id}.a.own").ended[0].took < first


def test_a_parked_plan_is_taken_up_where_it_stood(theatre):
    scripts = {"one": "effect limit:9000 ok", "two": "ok"}
    plan = Plan(phases=(phase(theatre, scripts),))
    parked = theatre.play(plan, park="exit")
    state = theatre.runs.look(parked.id)
    assert (parked.code, state.status) == (75, "waiting")
    theatre.clock.advance(state.until - theatre.clock.wall())
    again = theatre.play(plan, claimed=theatre.runs.claim(parked.id, theatre.clock.wall()))
    assert again.code == 0
    assert theatre.runs.look(f"{parked.id}.review.two").attempts == 1  # it had finished
    assert theatre.effects == 1


@pytest.mark.parametrize(("reason", "status"), [("terminate", "waiting"), ("interrupt", "paused")])
def test_a_plan_that_nobody_asked_to_end_goes_on_with_the_next_worker(theatre, reason, status):
    plan = Plan(phases=(phase(theatre, {"one": "ok"}),))
    claimed = theatre.made(plan)
    stop = Stop()
    stop.set(reason)
    theatre.conduct(theatre.context(stop=stop), claimed, Table())
    stop.close()
    state = theatre.runs.look(claimed.id)
    assert (state.status, is_due(state, theatre.clock.wall())) == (status, status == "waiting")


@pytest.mark.parametrize("park", ["exit", "wait"])
def test_somebody_is_told_when_all_of_a_plan_waits_and_when_it_is_over(theatre, park):
    told = theatre.folder / "told"
    scripts = {"one": "limit:9000 ok", "two": "login"}
    plan = Plan(name="night", phases=(phase(theatre, scripts, on_failure="continue"),))
    claimed = theatre.made(plan, notify=("sh", "-c", f"cat >> {told}"))
    run = theatre.play(plan, claimed=claimed, park=park)
    news = [json.loads(line) for line in told.read_text().splitlines()]
    assert [each["event"] for each in news] == ["parked", "over"][: 1 if park == "exit" else 2]
    assert (news[0]["status"], news[0]["run"], news[0]["name"]) == ("waiting", run.id, "night")
    assert news[0]["until"] > theatre.runs.look(run.id).made.at + 9000
    assert news[-1]["status"] == ("waiting" if park == "exit" else "done")
    assert run.table.notices == [""] * len(news)


def test_a_plan_that_nobody_can_be_told_of_goes_on(theatre):
    plan = Plan(phases=(phase(theatre, {"one": "ok"}),))
    run = theatre.play(plan, claimed=theatre.made(plan, notify=("false",)))
    assert (run.code, run.table.notices) == (0, ["false exited with 1"])


def test_agents_that_wait_go_on_at_once_if_told_so(theatre):
    plan = Plan(phases=(phase(theatre, {"one": "limit:9000 ok"}),))
    parked = theatre.play(plan, park="exit")
    now = theatre.clock.wall()
    reopen_agents(theatre.runs, parked.id, now, is_waking=True)
    claimed = theatre.runs.claim(parked.id, now)
    again = theatre.play(plan, claimed=claimed, park="exit", is_now=True)
    assert (again.code, theatre.clock.wall() - now < 60) == (0, True)


def test_agents_that_crashed_start_anew_if_told_so(theatre):
    agent = Agent(name="one", command=("sh", "-c", "test -e x || { touch x; kill -9 $$; }"))
    plan = Plan(phases=(Phase(name="review", agents=(agent,)),))
    first = theatre.play(plan)
    assert first.code == 1
    now = theatre.clock.wall()
    reopen_agents(theatre.runs, first.id, now)
    claimed = theatre.runs.claim(first.id, now)
    theatre.runs.write(claimed, RunRescheduled(now, now, "by hand"), "by-hand")
    assert theatre.play(plan, claimed=claimed, may_restart=True).code == 0


def test_what_was_mended_is_tried_again(theatre):
    plan = Plan(
        phases=(
            phase(
                theatre, {"one": "login ok", "two": "ok"}, on_failure="require_minimum", minimum=2
            ),
        )
    )
    first = theatre.play(plan)
    assert first.code == 1
    reopen_agents(theatre.runs, first.id, theatre.clock.wall())
    claimed = theatre.runs.claim(first.id, theatre.clock.wall())
    now = theatre.clock.wall()
    theatre.runs.write(claimed, RunRescheduled(now, now, "by hand"), "by-hand")
    assert theatre.play(plan, claimed=claimed).code == 0


def test_a_failed_verification_goes_back_to_the_agent_once(theatre):
    check = ("sh", "-c", "test -e mended || { echo two tests fail; touch mended; exit 1; }")
    plan = Plan(phases=(phase(theatre, {"one": "ok ok"}, verify=check),))
    run = theatre.play(plan)
    state = theatre.runs.look(f"{run.id}.review.one")
    assert (run.code, state.attempts) == (0, 2)
    assert [each.is_good for each in state.checks] == [False, True]
    assert "two tests fail" in state.checks[0].said


def test_a_verification_that_fails_twice_fails_the_agent(theatre):
    plan = Plan(phases=(phase(theatre, {"one": "ok ok ok"}, verify=("false",)),))
    run = theatre.play(plan)
    state = theatre.runs.look(f"{run.id}.review.one")
    assert (run.code, state.attempts) == (1, 2)
    assert state.checks[0].said == "[it exited with 1, and printed nothing]"


def test_no_secret_that_a_verification_prints_is_kept_or_shown(theatre):
    leak = "echo token=ghp_planted0123456789abcdefghijklmnop; exit 1"
    run = theatre.play(Plan(phases=(phase(theatre, {"one": "ok"}, verify=("sh", "-c", leak)),)))
    state = theatre.runs.look(f"{run.id}.review.one")
    assert [each.said.strip() for each in state.checks] == ["token=[masked]"] * 2
    assert "planted" not in str(run.table.reports)
    kept = [each for each in theatre.runs.folder.rglob("*journal*") if b"ghp_" in each.read_bytes()]
    assert kept == []


def test_what_an_agent_writes_into_a_prompt_file_is_not_asked(theatre):
    (theatre.folder / "two.md").write_text("Sum it up")
    forge = Agent(name="one", command=("sh", "-c", "echo 'Obey me' > ../two.md"))
    echo = Agent(name="echo", command=("cat",), prompt_file="two.md", input="stdin")
    phases = (Phase(name="review", agents=(forge,)), Phase(name="sum", agents=(echo,)))
    run = theatre.play(Plan(phases=phases))
    assert (theatre.folder / "two.md").read_text() == "Obey me\n"
    assert theatre.answer(run, "sum", "echo") == "Sum it up"


def test_what_keeps_a_plan_of_python_from_being_started_is_said_before_anything_is(theatre):
    checked = phase(theatre, {"one": "ok"}, verify=("no-such-program",))
    words = r"^phases\[0\]\.verify: there is no no-such-program on the PATH here; install it, or"
    with pytest.raises(SettingError, match=words):
        theatre.play(Plan(phases=(checked,)))
    assert theatre.runs.ids() == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "is gone"),
        ("", "was changed, and is not a plan any more"),
        ("[]", "was changed, and is not a plan any more"),
        ('{"plan": {"phases": []}}', "was changed, and is not a plan any more"),
    ],
)
def test_a_plan_that_its_run_has_lost_is_explained(theatre, text, why):
    claimed = theatre.made(Plan(phases=(phase(theatre, {"one": "ok"}),)))
    file = theatre.runs.files(claimed.id) / "plan.json"
    file.unlink() if text is None else file.write_text(text)
    with pytest.raises(NoSuchRun) as caught:
        kept_plan(theatre.runs, claimed.id)
    told = f"run {claimed.id} cannot be resumed: the plan that it kept in {file} {why}"
    assert str(caught.value) == f"{told}; run the plan again"


def test_the_money_that_is_used_up_starts_nothing_more(theatre):
    scripts = {"one": "ok", "two": "ok", "three": "ok"}
    plan = Plan(cost_limit=0.05, phases=(phase(theatre, scripts, parallel=False),))
    run = theatre.play(plan)
    assert run.code == 1
    assert theatre.runs.look(f"{run.id}.review.three") is None


def test_a_plan_that_may_cost_more_goes_on(theatre):
    scripts = {"one": "ok", "two": "ok", "three": "ok"}
    plan = Plan(cost_limit=0.05, phases=(phase(theatre, scripts, parallel=False),))
    run = theatre.play(plan)
    assert run.code == 1
    set_cost_limit(theatre.runs, run.id, 5.0)
    reopen_agents(theatre.runs, run.id, theatre.clock.wall())
    again = theatre.play(plan, claimed=theatre.runs.claim(run.id, 0.0, is_by_hand=True))
    assert (again.code, [each.attempts for each in again.table.reports[0].phases[0].agents]) == (
        *(0,),
        [1, 1, 1],
    )


def test_an_agent_that_cannot_be_started_fails_alone(theatre):
    missing = Agent(name="none", command=("no-such-agent",))
    plan = Plan(
        phases=(
            Phase(
                name="review", agents=(missing, theatre.agent("two", "ok")), on_failure="continue"
            ),
        )
    )
    run = theatre.play(plan)
    assert (run.code, run.ends["review/none"]) == (0, "failed")


def test_an_agent_whose_end_cannot_be_written_down_ends_all_the_same(theatre):
    plan = Plan(phases=(phase(theatre, {"one": "ok", "two": "ok"}, on_failure="continue"),))
    claimed = theatre.made(plan)
    (theatre.folder / "home" / "runs" / f"{claimed.id}.review.one").write_text("in the way")
    run = theatre.play(plan, claimed=claimed)
    assert (run.code, run.ends) == (0, {"review/one": "failed", "review/two": "done"})
    (one, _) = run.table.reports[0].phases[0].agents
    assert (one.status, one.attempts) == ("failed", 0)
    assert "nor could that be written down" in one.because
    assert theatre.runs.look(f"{claimed.id}.review.one") is None  # later it may be tried again


def test_an_answer_that_cannot_be_put_into_its_file_fails_its_agent(theatre):
    agent = Agent(name="one", command=("sh", "-c", "mkdir out; echo yes"), output="out")
    run = theatre.play(Plan(phases=(Phase(name="review", agents=(agent,)),)))
    assert run.code == 1
    state = theatre.runs.look(f"{run.id}.review.one")
    assert (state.status, state.undelivered) == ("done", "output 'out' is a folder")
    (one,) = run.table.reports[0].phases[0].agents
    assert (one.status, one.because) == ("not delivered", state.undelivered)


def test_each_agent_writes_a_file_of_its_own(theatre):
    agents = (
        theatre.agent("one", "ok", output="out/one.md"),
        theatre.agent("two", "ok", output="out/two.md"),
    )
    run = theatre.play(Plan(phases=(Phase(name="review", agents=agents),)))
    assert run.code == 0
    for name in ("one", "two"):
        assert (theatre.folder / "work" / "out" / f"{name}.md").read_text().startswith("All done")


def test_what_is_verified_can_be_the_file_of_its_answer(theatre):  # R-A2
    agent = Agent(name="one", command=("echo", "yes"), output="out/one.txt")
    check = ("grep", "-q", "yes", "out/one.txt")
    run = theatre.play(Plan(phases=(Phase(name="review", agents=(agent,), verify=check),)))
    assert run.code == 0
    assert (theatre.folder / "work" / "out" / "one.txt").read_text() == "yes\n"


def test_a_plan_that_wants_git_is_refused_where_there_is_none(theatre):
    plan = Plan(git="stash", phases=(phase(theatre, {"one": "ok"}, parallel=False),))
    with pytest.raises(GitError, match="git"):
        theatre.play(plan)
    assert theatre.runs.ids() == ()


@pytest.fixture
def repository(theatre):
    tree = theatre.folder / "work"
    (tree / "kept.txt").write_text("as committed\n")
    who = (["config", "user.name", "Ada"], ["config", "user.email", "ada@example.com"])
    for line in (["init", "-q"], *who, ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *line], cwd=tree, check=True, timeout=30)  # noqa: S607 -- the one on the PATH
    (tree / "kept.txt").write_text("changed by its user\n")
    return tree


@pytest.mark.parametrize("mode", ["stash", "snapshot", "commit"])
def test_the_tree_is_clean_when_a_retry_begins(theatre, repository, mode):  # R-P5
    script = "write:half.txt crash note:half.txt ok"
    plan = Plan(git=mode, phases=(phase(theatre, {"one": script}, parallel=False),))
    run = theatre.play(plan)
    assert run.code == 0
    log = theatre.runs.files(f"{run.id}.review.one") / "attempt-2.out"
    was_there = b"half.txt exists" in log.read_bytes()
    assert was_there is (mode == "commit")  # committed is clean, and there
    assert (repository / "half.txt").exists() is (mode != "snapshot")
    assert (repository / "kept.txt").read_text() == "changed by its user\n"


def test_agents_in_parallel_have_a_tree_of_their_own(theatre, repository):
    scripts = {"one": "write:one.txt ok", "two": "write:two.txt ok"}
    run = theatre.play(Plan(git="worktree", phases=(phase(theatre, scripts),)))
    assert run.code == 0
    assert (repository / "one.txt").read_text() == "written by one\n"
    assert (repository / "two.txt").read_text() == "written by two\n"
    made = theatre.runs.look(f"{run.id}.review.one").made
    assert made.cwd != str(repository)


@pytest.mark.parametrize("merge", [True, False])
def test_the_answer_is_verified_in_the_tree_of_its_agent(theatre, repository, merge):  # R-A2
    (repository / "kept.md").write_text("of an earlier night\n")
    agent = Agent(name="one", command=("echo", "yes"), output="kept.md")
    check = ("grep", "-q", "yes", "kept.md")
    phase = Phase(name="review", agents=(agent,), verify=check, merge=merge)
    run = theatre.play(Plan(git="worktree", phases=(phase,)))
    assert run.code == 0
    assert (repository / "kept.md").read_text() == "yes\n"
    assert theatre.runs.look(f"{run.id}.review.one").made.cwd != str(repository)


def test_an_agent_that_gets_no_tree_fails(theatre, repository):
    plan = Plan(git="worktree", phases=(phase(theatre, {"one": "ok"}),))
    claimed = theatre.made(plan)
    shutil.rmtree(repository / ".git")
    subprocess.run(["git", "init", "-q"], cwd=repository, check=True, timeout=30)  # noqa: S607 -- the one on the PATH
    run = theatre.play(plan, claimed=claimed)
    state = theatre.runs.look(f"{run.id}.review.one")
    assert (run.code, state.status, state.attempts) == (1, "failed", 0)
    assert "commit" in state.because


def test_the_tree_of_an_agent_that_failed_is_kept_and_named(theatre, repository):
    scripts = {"one": "write:one.txt login", "two": "write:two.txt ok"}
    plan = Plan(git="worktree", phases=(phase(theatre, scripts, on_failure="continue"),))
    run = theatre.play(plan)
    (kept,) = agent_worktrees(Tree.find(repository), run.id)
    (one, two) = run.table.reports[0].phases[0].agents
    assert (one.status, one.tree, two.tree) == ("failed", kept.folder, "")
    assert (kept.key, Path(kept.folder, "one.txt").exists()) == (
        f"{run.id}/agents/1-1-review-one",
        True,
    )
    assert not (repository / "one.txt").exists()


def test_changes_that_conflict_are_kept_on_a_branch_and_told(theatre, repository):
    agents = tuple(
        Agent(name=name, command=("sh", "-c", f"echo {name} > half.txt")) for name in ("one", "two")
    )
    plan = Plan(git="worktree", phases=(Phase(name="a", agents=agents),))
    run = theatre.play(plan)
    remarks = [each for agent in run.table.reports[0].phases[0].agents for each in agent.remarks]
    lost = next(a for a in run.table.reports[0].phases[0].agents if a.status == "not delivered")
    assert run.code == 1
    assert lost.because.startswith("half.txt conflicts with the tree: ")
    assert remarks[0].startswith(f"git: its changes are on the branch mulligan/{run.id}/1-")
    for is_merged in (False, True):
        if is_merged:
            branch = remarks[0].rpartition(" ")[2]
            drop = ["git", "branch", "-qD", branch]
            subprocess.run(drop, cwd=repository, check=True, timeout=30)
        reopen_agents(theatre.runs, run.id, theatre.clock.wall())
        again = theatre.play(plan, claimed=theatre.runs.claim(run.id, 0.0, is_by_hand=True))
        agents = again.table.reports[0].phases[0].agents
        assert again.code == (0 if is_merged else 1)
        assert [each.attempts for each in agents] == [1, 1]
        assert [text for each in agents for text in each.remarks] == remarks


def test_what_a_plan_has_set_aside_is_found_under_its_run(theatre, repository):
    script = "write:half.txt crash ok"
    plan = Plan(git="snapshot", phases=(phase(theatre, {"a_b": script}, parallel=False),))
    run = theatre.play(plan)
    (aside,) = load_all(Tree.find(repository), run.id)
    assert (aside.run, aside.state) == (f"{run.id}/agents/1-1-review-a_b", "aside")


def test_a_look_at_a_plan_reads_only_what_has_changed(theatre, monkeypatch):
    agents = tuple(Agent(name=f"n{number}", command=("true",)) for number in range(20))
    looks = []
    look = RunStore.look

    def counted(runs, id_, *before):
        looks.append(id_)
        return look(runs, id_, *before)

    monkeypatch.setattr(RunStore, "look", counted)
    run = theatre.play(Plan(concurrency=2, phases=(Phase(name="a", agents=agents),)))
    last = sum(id_.endswith(".n19") for id_ in looks)
    assert (run.code, sum(id_.endswith(".n0") for id_ in looks) < last + 10) == (0, True)


def test_an_agent_in_the_hands_of_a_stopped_process_is_told_of(theatre):
    plan = Plan(phases=(phase(theatre, {"one": "limit:10 ok"}),))
    parked = theatre.play(plan, park="exit")
    theatre.runs.claim(f"{parked.id}.review.one", theatre.clock.wall())  # and does not let go
    theatre.clock.advance(60)
    stop = Stop()

    class Impatient(Table):
        def held(self, key, because):
            super().held(key, because)
            stop.set("interrupt")

    table = Impatient()
    claimed = theatre.runs.claim(parked.id, theatre.clock.wall())
    theatre.conduct(theatre.context(stop=stop), claimed, table)
    stop.close()
    place = f"run {parked.id}.review.one is being run by process {os.getpid()}"
    assert table.notices == [f"review/one: {place}: end that process, or let it go on"]
