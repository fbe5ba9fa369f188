"""What keeps a plan from being started, before anybody pays."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.config.lines import path_text
from mulligan.core.presets import preset
from mulligan.run.plan.model import Agent, Phase, Plan
from mulligan.run.plan.validate import machine_problems, missing_programs, problems


def plan(*agents, later=(), **more):
    phases = [Phase(name="a", agents=agents, verify=more.pop("verify", ()))]
    if later:
        phases.append(Phase(name="b", agents=later))
    return Plan(phases=tuple(phases), **more)


def agent(**more):
    return Agent(**{"name": "x", "command": ("true",), **more})


def said(found):
    return [f"{path_text(each.path)}: {each.message}" for each in found]


SECRETS = [
    ("OPENAI_API_KEY", "sk-proj-planted0123456789abcdefghij"),
    ("DB_PASSWORD", "hunter2hunter2"),
    ("WHATEVER", "ghp_planted0123456789abcdefghijklmnop"),
]


@pytest.mark.parametrize(("name", "value"), SECRETS)
def test_a_key_in_a_plan_keeps_it_from_being_started(tmp_path, name, value):
    words = "looks like a secret, and a plan is a file that is shared and kept"
    whole = problems(plan(agent(), env={name: value}), folder=tmp_path)
    own = problems(plan(agent(env={name: value})), folder=tmp_path)
    assert said(whole) == [f"env.{name}: {words}"]
    assert said(own) == [f"phases[0].agents[0].env.{name}: {words}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/google/credentials.json"),
        ("NETRC_PASSWORD_FILE", "~/.netrc-password"),
        ("MODEL", "claude-sonnet-4"),
        ("MAX_TOKENS", "100000000"),
    ],
)
def test_a_switch_a_number_or_a_path_lets_nobody_in(tmp_path, name, value):
    assert said(problems(plan(agent(), env={name: value}), folder=tmp_path)) == []


NULLS = {
    "variables.v": plan(agent(), variables={"v": "a\0b"}),
    "phases[0].agents[0].command[1]": plan(agent(command=("echo", "\0"))),
    "phases[0].agents[0].env.Z": plan(agent(env={"Z": "x\0y"})),
    "phases[0].agents[0].output": plan(agent(output="x\0y")),
    "phases[0].agents[0].prompt": plan(agent(prompt="x\0y")),
    "phases[0].verify[0]": plan(agent(), verify=("x\0y",)),
}


@pytest.mark.parametrize("key", NULLS)
def test_a_null_character_anywhere_is_noticed_before_anybody_pays(tmp_path, key):
    words = "contains a null character, which arguments cannot contain"
    assert said(problems(NULLS[key], folder=tmp_path)) == [f"{key}: {words}"]


@pytest.mark.parametrize(
    ("field", "value"), [("store", "sqlite:x"), ("codes", {"A": "server"}), ("key_ttl", 60)]
)
def test_a_policy_of_python_code_says_nothing_that_has_no_effect(tmp_path, field, value):
    policy = replace(preset("pipeline"), **{field: value})
    found = Plan(phases=(Phase(name="a", agents=(agent(),), policy=policy),))
    (said_of,) = problems(found, folder=tmp_path)
    assert said_of.message.startswith("has no effect on programs: it is ")


def test_a_variable_of_the_environment_has_no_equals_sign_in_its_name(tmp_path):
    (found,) = problems(plan(agent(env={"A=B": "c"})), folder=tmp_path)
    assert found.message == "a variable needs a name without '='; got 'A=B'"


def test_a_verification_that_cannot_be_started_is_noticed_before_anybody_pays(tmp_path):
    (found,) = machine_problems(
        plan(agent(), verify=("no-such-program",)), home=tmp_path, environ={}
    )
    assert said([found]) == ["phases[0].verify: there is no no-such-program on the PATH here"]


def test_a_verification_is_looked_for_on_the_path_that_the_plan_sets(tmp_path):
    check = tmp_path / "check"
    check.write_text("#!/bin/sh\n")
    check.chmod(0o755)
    found = plan(agent(command=("check",)), verify=("check",), env={"PATH": str(tmp_path)})
    assert list(machine_problems(found, home=tmp_path, environ={})) == []


def test_a_verification_by_its_path_may_be_what_the_agent_writes(tmp_path):
    assert (
        list(machine_problems(plan(agent(), verify=("./check",)), home=tmp_path, environ={})) == []
    )


NOBODY = ("no-such-program",)
ABSENT = "there is no no-such-program on the PATH here"


def test_a_program_that_is_not_here_is_noticed_before_an_earlier_phase_is_paid(tmp_path):
    found = plan(agent(), later=(agent(command=NOBODY),))
    assert said(machine_problems(found, home=tmp_path, environ=dict(os.environ))) == [
        f"phases[1].agents[0].command: {ABSENT}"
    ]
    found = plan(agent(), later=(agent(program="codex", command=(), prompt="x"),))
    *_, problem = machine_problems(found, home=tmp_path, environ={"PATH": str(tmp_path)})
    assert problem.message == "there is no codex on the PATH here"


@pytest.mark.parametrize(
    ("more", "is_refused"),
    [
        ({"on_failure": "continue"}, False),
        ({"on_failure": "require_minimum", "minimum": 1}, False),
        ({"on_failure": "require_minimum", "minimum": 2}, True),
        ({"on_failure": "fail_fast"}, True),
    ],
)
def test_a_phase_may_do_without_the_programs_of_agents_it_may_do_without(
    tmp_path, more, is_refused
):
    agents = (agent(name="one"), agent(name="two", command=NOBODY))
    found = Plan(phases=(Phase(name="a", agents=agents, **more),))
    assert (
        bool(list(machine_problems(found, home=tmp_path, environ=dict(os.environ)))) is is_refused
    )


def test_a_program_beside_the_plan_is_found_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    found = plan(agent(command=("./tool",)))
    assert list(missing_programs(found, 0, home=Path(), environ={})) == []


def test_a_program_inside_the_folder_may_be_made_by_an_earlier_agent(tmp_path):
    for path, is_refused in (("./x", False), ("../x/y", False), ("/no/such/x", True)):
        found = plan(agent(command=(path,)))
        assert bool(list(machine_problems(found, home=tmp_path, environ={}))) is is_refused
    found = plan(agent(command=(str(tmp_path / "made" / "later"),)))
    assert list(machine_problems(found, home=tmp_path, environ={})) == []


def test_only_an_earlier_phase_could_make_a_folder_that_is_not_there(tmp_path):
    missing = agent(cwd="gone")
    (found,) = machine_problems(plan(missing, later=(missing,)), home=tmp_path, environ={})
    place = str(tmp_path / "gone")
    assert said([found]) == [f"phases[0].agents[0].cwd: there is no folder {place!r} here"]


def test_a_folder_of_the_path_is_looked_for_where_the_agent_runs(tmp_path, monkeypatch):
    tool = tmp_path / "home" / "tools" / "mine"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    found = plan(agent(command=("mine",), env={"PATH": "tools:/nowhere"}))
    assert list(machine_problems(found, home=tmp_path / "home", environ={})) == []
