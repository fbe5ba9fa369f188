"""Which account a program uses, and which model."""

from __future__ import annotations

import json
from shlex import split

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.run.agents.catalogue import known, recognise

KEY = {"ANTHROPIC_API_KEY": "k1"}
OPENAI = {"OPENAI_API_KEY": "o1"}


def account(command: str, environ: dict[str, str]):
    words = tuple(split(command))
    return recognise(words).account(words, {"HOME": "/home/ann", **environ})


def same(one: str, other: str, environ: dict[str, str]) -> bool:
    first, second = account(one, environ), account(other, environ)
    return (first.provider, first.secret) == (second.provider, second.secret)


@pytest.mark.parametrize(
    "other",
    [
        "pi -p x",
        "pi -p x --provider anthropic --model claude-opus-4-5",
        "opencode run x -m anthropic/claude-opus-4-5",
        "aider --message x --model sonnet",
        "cline x -P anthropic",
    ],
)
def test_programs_with_one_key_of_one_provider_share_its_account(other):
    assert same("claude -p x", other, KEY)
    assert not same("claude -p x", other, {**KEY, "ANTHROPIC_BASE_URL": "https://gw.example.com"})


@pytest.mark.parametrize("other", ["opencode run x -m openai/gpt-5", "pi -p x", "qwen x"])
def test_so_do_programs_with_one_key_of_openai(other):
    assert same("codex exec x", other, OPENAI)


def test_keys_in_files_of_the_programs_are_found(tmp_path):
    environ = {"HOME": str(tmp_path)}
    for folder, entry in (
        (".codex", {"OPENAI_API_KEY": "o1", "tokens": None}),
        (".local/share/opencode", {"openai": {"type": "api", "key": "o1"}}),
        (".pi/agent", {"openai": {"type": "api_key", "key": "MY_KEY"}, "anthropic": 7}),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "auth.json").write_text(json.dumps(entry))
    found = {
        account(command, {**environ, "MY_KEY": "o1"})[:2]
        for command in ("codex exec x", "opencode run x", "pi -p x")
    }
    assert found == {("openai", "openai  o1")}


def test_a_login_names_its_account(tmp_path):
    file = tmp_path / ".claude.json"
    file.write_text(json.dumps({"oauthAccount": {"accountUuid": "u1"}}))
    found = account("claude -p x", {"HOME": str(tmp_path)})
    assert found == ("anthropic", "anthropic  u1", "login in ~/.claude", "")
    for garbage in ("", "[]", '{"oauthAccount": 7}', "\x00", "[" * 100_000):
        file.write_text(garbage)
        assert "u1" not in account("claude -p x", {"HOME": str(tmp_path)}).secret


def test_accounts_are_told_apart_by_keys_then_by_folders():
    one = "claude -p x"
    assert account(one, {"HOME": "/a"}) != account(one, {"HOME": "/b"})
    assert account(one, {"HOME": "/a", "CLAUDE_CONFIG_DIR": "/c"}) != account(one, {"HOME": "/a"})
    assert account(one, {"HOME": "/a", **KEY}) == account(one, {"HOME": "/b", **KEY})
    assert account(one, KEY) != account(one, {"ANTHROPIC_API_KEY": "k2"})
    gateway = {"ANTHROPIC_BASE_URL": "https://user:word@gw.example.com/v1"}
    assert account(one, {**KEY, **gateway}).secret != account(one, KEY).secret
    assert account(one, {**KEY, **gateway}).label == "ANTHROPIC_API_KEY at gw.example.com"
    usual = {"ANTHROPIC_BASE_URL": "https://api.anthropic.com/"}
    assert account(one, {**KEY, **usual}) == account(one, KEY)
    assert account("true", {}) is None


def test_who_cannot_tell_the_provider_shares_with_nobody():
    both = {**KEY, **OPENAI}
    assert account("pi -p x", both).provider == "pi"
    assert account("pi -p x --provider mulligan", KEY).provider == "pi"
    assert account("opencode run x -m local/llama", KEY).provider == "opencode"
    described = "codex exec -c model_provider=azure x"
    assert account(described, OPENAI).provider == "azure"
    assert not same(described, "opencode run x -m openai/gpt-5", OPENAI)
    assert account("pi -p x --model gpt-5", both).provider == "openai"


def test_a_label_has_no_secret_in_it():
    environ = {**KEY, **OPENAI, "GEMINI_API_KEY": "g1", "GITHUB_TOKEN": "t1"}
    for name in known():
        program = recognise(("x", "-p"), name)
        found = program.account(("x", "-p"), environ)
        assert found is not None
        assert not {"k1", "o1", "g1", "t1"} & set(found.label.split())


@pytest.mark.parametrize(
    ("command", "environ", "model"),
    [
        ("claude -p x --model opus", {}, "opus"),
        ("claude -p x", {"ANTHROPIC_MODEL": "sonnet"}, "sonnet"),
        ("claude -p x", {}, ""),
        ("codex exec -m gpt-5.3-codex x", {}, "gpt-5.3-codex"),
        ("codex exec -c model='\"o3\"' x", {}, "o3"),
        ("codex exec -c model=o3 -m o4-mini x", {}, "o4-mini"),
        ("gemini -m gemini-2.5-pro -p x", {}, "gemini-2.5-pro"),
        ("gemini -p x", {"GEMINI_MODEL": "gemini-3-pro"}, "gemini-3-pro"),
        ("opencode run -m anthropic/claude-opus-4-5 x", {}, "anthropic/claude-opus-4-5"),
        ("aider -m 'do it' --model sonnet", {}, "sonnet"),
        ("copilot -p x --model gpt-5", {}, "gpt-5"),
    ],
)
def test_the_model_comes_from_the_command_or_its_environment(command, environ, model):
    words = tuple(split(command))
    found = recognise(words).account(words, environ)
    assert found is not None
    assert found.model == model


@given(st.lists(st.text(), max_size=6))
def test_no_command_makes_it_raise(words):
    command = ("claude", *words)
    program = recognise(command)
    program.account(command, {})
