"""`mulligan lint`: what is wrong, and what would surprise."""

from __future__ import annotations

import json

import pytest

from mulligan.cli import main

POLICY = 'preset = "default"\npatience = 100\n'
PLAN = '[[phases]]\nname = "a"\nconcurrency = 3\nagents = [{ command = ["sh"] }]\n'


@pytest.fixture
def lint(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def lint(*args: str, **files: str) -> tuple[int, str]:
        for name, words in files.items():
            (tmp_path / f"{name}.toml").write_text(words)
        with pytest.raises(SystemExit) as done:
            main(["lint", *args, *[f"{name}.toml" for name in files]])
        return int(str(done.value.code)), capsys.readouterr().out

    return lint


def test_a_sound_file_has_nothing_said_about_it(lint):
    assert lint(a='preset = "default"') == (0, "a.toml: no problems found\n")


def test_a_plan_is_told_from_a_policy_by_its_phases(lint):
    code, said = lint(plan=PLAN, policy=POLICY)
    assert code == 0
    assert said == (
        "plan.toml:3: warning: phases[0].concurrency: 1 run at once at most, as many as there are\n"
        "  hint: write 1 or less\n"
        "policy.toml:2: warning: patience: no wait of more than 1m40s is slept through, though "
        "in_place is 15m\n"
        "  hint: lower in_place to 1m40s, or leave patience out\n"
    )


def test_errors_are_all_told_and_exit_1(lint):
    code, said = lint(
        a="parralel = 1\n" + PLAN, b=PLAN + 'git = "x"', c='preset = "skil"', d='preset = "skill"'
    )
    assert code == 1
    assert [line.partition(": ")[0] for line in said.splitlines() if not line.startswith(" ")] == [
        "a.toml:1",
        "b.toml:5",
        "c.toml:1",
        "d.toml",
    ]
    assert "a.toml:1: error: parralel: unknown key\n  hint: 'parralel'" not in said


def test_what_is_grave_is_an_error(lint):
    code, said = lint(a=PLAN + 'verify = ["sh"]\n[phases.policy.rules.billing]\n')
    assert code == 1
    assert "a.toml:6: error: phases[0].policy.rules.billing: repeating does not help" in said


def test_every_prompt_that_is_wrong_is_told(lint):
    agents = '{ command = ["sh"], prompt = "{{x}}" }, { command = ["cat"], prompt = "{{y}}" }'
    code, said = lint(a=f'[[phases]]\nname = "a"\nagents = [{agents}]\n')
    assert (code, said.count(": error: phases[0].agents[")) == (1, 2)


def test_programs_get_one_object_a_line(lint):
    code, said = lint("--json", plan=PLAN)
    assert code == 0
    assert json.loads(said) == {
        "file": "plan.toml",
        "line": 3,
        "level": "warning",
        "key": "phases[0].concurrency",
        "message": "1 run at once at most, as many as there are",
        "hint": "write 1 or less",
    }


def test_a_file_that_is_not_there_is_an_error_about_it(lint):
    assert lint("gone.toml") == (1, "gone.toml: error: no such file\n")
