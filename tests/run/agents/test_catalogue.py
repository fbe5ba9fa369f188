"""Which adapter a command gets."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mulligan.errors import SettingError
from mulligan.run.agents.adapter import LaunchRequest
from mulligan.run.agents.catalogue import inherited, known, recognise

COMMANDS = {
    "claude -p hi": "claude",
    "/opt/homebrew/bin/claude -p hi": "claude",
    "npx -y @anthropic-ai/claude-code@2.1.325 -p hi": "claude",
    "npx --yes -- claude -p hi": "claude",
    "bunx @openai/codex exec hi": "codex",
    "pnpm dlx @google/gemini-cli -p hi": "gemini",
    "pnpm --filter app exec opencode run hi": "opencode",
    "npm exec -- qwen hi": "qwen",
    "yarn dlx @github/copilot -p hi": "copilot",
    "env -u CI X=1 pi -p hi": "pi",
    "env -i HOME=/h PATH=/bin claude -p hi": "claude",
    "nice -n 10 cline hi": "cline",
    "timeout -k 5 30m cn -p hi": "continue",
    "uvx --from aider-chat aider --message hi": "aider",
    "uv tool run aider-chat --message hi": "aider",
    "pipx run aider-chat --message hi": "aider",
    "python3.12 -m aider --message hi": "aider",
    "/venv/bin/python -m aider --message hi": "aider",
    "mise exec node@22 -- codex exec hi": "codex",
    "mise x -- codex exec hi": "codex",
    "asdf exec codex exec hi": "codex",
    "volta run --node 20 claude -p hi": "claude",
    "node /lib/node_modules/@anthropic-ai/claude-code/cli.js -p hi": "claude",
    "/lib/node_modules/.bin/gemini -p hi": "gemini",
    "agy -p hi": "agy",
    # No agent's work: a program like any other.
    "claude --version": "generic",
    "claude mcp list": "generic",
    "codex login": "generic",
    "codex --help": "generic",
    "gemini extensions list": "generic",
    "opencode serve": "generic",
    "aider --commit": "generic",
    # What is started elsewhere, or by a shell, cannot be resumed from here.
    "bash -c 'claude -p hi'": "generic",
    "ssh host claude -p hi": "generic",
    "docker run --rm agents claude -p hi": "generic",
    "true": "generic",
    "grep claude notes.txt": "generic",
    "echo codex": "generic",
    "python train.py": "generic",
    "python -m pytest": "generic",
    "npx prettier claude": "generic",
    "make claude": "generic",
}


def split(command: str) -> tuple[str, ...]:
    import shlex

    return tuple(shlex.split(command))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_program_is_recognised_through_what_starts_it(command):
    assert recognise(split(command)).name == COMMANDS[command]


def test_a_program_can_be_named():
    adapter = recognise(("./my-wrapper", "-p", "hi"), "claude")
    launch = adapter.start(("./my-wrapper", "-p", "hi"), LaunchRequest())
    assert adapter.name == "claude"
    assert launch.argv[0] == "./my-wrapper"
    assert launch.argv[-2:] == ("-p", "hi")


def test_generic_can_be_named():
    assert recognise(("claude", "-p", "hi"), "generic").name == "generic"


def test_a_name_that_nobody_has_is_refused_with_the_nearest():
    with pytest.raises(
        SettingError, match=r"^no agent is called 'clade'; did you mean 'claude'\?$"
    ):
        recognise(("x",), "clade")
    with pytest.raises(SettingError, match=r"^no agent is called '!!'; known are agy, aider, .*"):
        recognise(("x",), "!!")


def test_every_command_without_a_word_is_generic():
    assert recognise(()).name == "generic"
    assert recognise(("env",)).name == "generic"


def test_ten_programs_are_known_beside_antigravity():
    assert known() == (
        "agy",
        "aider",
        "claude",
        "cline",
        "codex",
        "continue",
        "copilot",
        "gemini",
        "opencode",
        "pi",
        "qwen",
    )


@pytest.mark.real
def test_wrapping_an_unknown_program_imports_no_known_one():
    code = (
        "import sys; from mulligan.run.agents.catalogue import recognise; recognise(('true',));"
        "print(*[name for name in sys.modules if name.startswith('mulligan.run.agents.')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = {name.rpartition(".")[2] for name in out.stdout.split()}
    assert names == {"adapter", "catalogue"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("claude -p x", {"A": "1", "B": "2"}),
        ("env A=k1 claude -p x", {"A": "k1", "B": "2"}),
        ("nice env -u B A=k1 C=a=b npx claude -p x D=4", {"A": "k1", "C": "a=b"}),
        ("env -i A=k1 claude -p x", {"A": "k1"}),
        ("sudo -u B A=k1 claude -p x", {"A": "k1", "B": "2"}),
        ("timeout 5m claude -p A=k1", {"A": "1", "B": "2"}),
        ("env A=k1 unknown", {"A": "1", "B": "2"}),
    ],
)
def test_what_env_sets_is_the_programs_environment(command, expected):
    assert inherited(tuple(command.split()), {"A": "1", "B": "2"}) == expected
