"""What would surprise the author of a plan, in the words people read."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.core.presets import preset
from mulligan.run.plan.lint import lint_plan
from mulligan.run.plan.load import load_plan
from mulligan.run.plan.model import Agent, Phase, Plan

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "plans").glob("*.toml"))

ECHO = Agent(name="one", command=("sh", "-c", "echo"))
CAT = Agent(name="two", command=("cat",))
PAIR = Phase(name="a", agents=(ECHO, CAT))
PLAN = Plan(phases=(PAIR,))


@pytest.fixture(autouse=True)
def _repository(tmp_path):
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    for line in (["init", "-q"], [*who, "commit", "-qm", "first", "--allow-empty"]):
        subprocess.run(["git", *line], cwd=tmp_path, check=True)  # noqa: S607 -- the one on the PATH


def of(phase: Phase = PAIR, **settings: object) -> Plan:
    return Plan(phases=(phase,), **settings)  # type: ignore[arg-type]


def agent(**settings: object) -> Plan:
    return of(replace(PAIR, agents=(replace(ECHO, **settings), CAT)))  # type: ignore[arg-type]


def test_a_plan_that_says_what_it_does_has_no_findings(tmp_path):
    assert lint_plan(PLAN, folder=tmp_path) == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_every_example_is_sound(file, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "shutil.which", lambda name, path="": f"/bin/{name}"
    )  # none of them is installed
    home = tmp_path / "examples" / "plans"  # in a repository that nobody is at work in
    home.mkdir(parents=True)
    found = lint_plan(load_plan(file), folder=file.parent, home=home)
    # What codex and gemini cost is not known to anybody: the example says so by being warned.
    assert [each.key for each in found] == (["cost_limit"] if file.stem == "review" else [])


def test_there_are_three_examples():
    assert [file.stem for file in EXAMPLES] == ["nightly-port", "review", "vote"]


SURPRISES = {
    "commit_prefix: nothing is committed, so nothing gets the prefix; write git = "
    '"commit", or leave it out': of(commit_prefix="x: "),
    "git: every phase has a mode of its own; leave it out": of(
        replace(PAIR, git="worktree"), git="worktree"
    ),
    "providers.claude: no agent is of this provider; there are none; name it in an agent's "
    "provider, or leave it out": of(providers={"claude": 1}),
    "phases[0].concurrency: its agents run one after the other anyway; leave it out": of(
        replace(PAIR, parallel=False, concurrency=1)
    ),
    "phases[0].concurrency: 2 run at once at most, as many as there are; write 2 or less": of(
        replace(PAIR, concurrency=3)
    ),
    "phases[0].concurrency: 1 run at once at most, as the plan's concurrency is 1; write 1 or "
    "less": of(replace(PAIR, concurrency=2), concurrency=1),
    "phases[0].on_failure: with one agent continue is the same as fail_fast; leave it out, or "
    "add agents": of(replace(PAIR, agents=(ECHO,), on_failure="continue")),
    "phases[0].merge: there is nothing to merge or to keep without worktrees; write git = "
    '"worktree", or leave it out': of(replace(PAIR, merge=False)),
    "phases[0].verify_timeout: there is nothing to verify; add verify, or leave it out": of(
        replace(PAIR, verify_timeout=5)
    ),
    "phases[0].verify: there is no pytset on the PATH here; install it, or write its path": of(
        replace(PAIR, verify=("pytset",))
    ),
    "phases[0].policy.patience: no wait of more than 1m40s is slept through, though in_place is "
    "15m; lower in_place to 1m40s, or leave patience out": of(
        replace(PAIR, policy=replace(preset("default"), patience=100))
    ),
    "phases[0].agents[0].idle: 10m of silence are never reached, because an attempt ends after "
    "5m; lower idle, or raise timeout": agent(idle=600, timeout=300),
    "phases[0].agents[0].input: there is no prompt to give; add prompt, or leave it out": agent(
        input="stdin"
    ),
    "phases[0].agents[0].provider: acme has no limit in providers, so this does nothing; add "
    "providers = { acme = … }, or leave it out": agent(provider="acme"),
    "phases[0].agents[0].command: there is no no-such-program on the PATH here; install it, or "
    "write its path": agent(command=("no-such-program",)),
    "phases[0].agents[0].command: there is no program tools/later here; an earlier agent may make "
    "it; else write where it is": agent(command=("tools/later",)),
    "variables.x: no prompt below says {{x}}; use it, or leave it out": of(variables={"x": "1"}),
    "phases[0].agents[0].variables.x: no prompt below says {{x}}; use it, or leave it out": agent(
        variables={"x": "1"}
    ),
}


@pytest.mark.parametrize("words", SURPRISES)
def test_what_has_no_effect_is_said(tmp_path, words):
    assert [str(each) for each in lint_plan(SURPRISES[words], folder=tmp_path)] == [words]


GRAVE = {
    "phases[0].git: git mode 'stash' needs a tree for one agent at a time, and 2 run in "
    "parallel: one would set the other's edits aside; use 'worktree'; or parallel = false": of(
        git="stash"
    ),
    "phases[0].agents[0].prompt: names {{x}}; known here are none: there are no variables, and no "
    "phase before it; write \\{{ for braces that mean nothing": agent(prompt="Do {{x}}"),
    "env.API_KEY: looks like a secret, and a plan is a file that is shared and kept; set it in "
    "the environment of mulligan run instead; agents inherit it": of(
        env={"API_KEY": "sk-planted-0123456789abcdefghij"}
    ),
}


@pytest.mark.parametrize("words", GRAVE)
def test_what_does_harm_is_grave_and_comes_first(tmp_path, words):
    plan = replace(GRAVE[words], commit_prefix="x: ")
    found = lint_plan(plan, folder=tmp_path)
    assert (str(found[0]), found[0].is_grave, found[-1].is_grave) == (words, True, False)


def test_a_folder_that_is_not_there_is_said_once(tmp_path):
    found = lint_plan(of(cwd="gone"), folder=tmp_path)
    place = str(tmp_path / "gone")
    assert [str(each) for each in found] == [
        f"cwd: there is no folder {place!r} here; make it, or name another"
    ]


def test_outputs_that_could_be_longer_than_an_argument_are_told_before_anybody_pays(tmp_path):
    many = tuple(replace(ECHO, name=f"n{number}") for number in range(7))
    asking = replace(ECHO, prompt="Read {{outputs.a}}")
    later = Phase(name="b", agents=(asking, CAT))
    plan = Plan(phases=(Phase(name="a", agents=many), later))
    (found,) = lint_plan(plan, folder=tmp_path)
    assert str(found) == (
        "phases[1].agents[0].prompt: the outputs of 7 agents can be longer than the 131071 bytes "
        'of an argument; write input = "stdin"'
    )
