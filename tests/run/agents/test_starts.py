"""How programs are started and resumed: argv in, argv out."""

from __future__ import annotations

import itertools
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.errors import SettingError
from mulligan.run.agents.adapter import CommandRefused, LaunchRequest
from mulligan.run.agents.catalogue import known, recognise
from mulligan.run.agents.program import CONTINUE

NEW = "0f0e0d0c-0b0a-4908-8706-050403020100"
OLD = "11111111-2222-4333-8444-555555555555"
WISH = LaunchRequest(session=NEW, environ={"HOME": "/nowhere"})

# The command; how it is started; how it goes on. NEW, OLD are ids, GO the prompt to go on.
LAUNCHES = [
    (
        "claude -p 'fix it' --allowedTools Bash Edit --permission-mode plan",
        (
            "claude --output-format stream-json --verbose --session-id NEW"
            " -p 'fix it' --allowedTools Bash Edit --permission-mode plan"
        ),
        (
            "claude --output-format stream-json --verbose --resume OLD -p GO"
            " --allowedTools Bash Edit --permission-mode plan"
        ),
    ),
    (
        "claude --print --output-format text 'fix it'",
        "claude --session-id NEW --print --output-format text 'fix it'",
        "claude --resume OLD -p GO --output-format text",
    ),
    (
        "claude -p --continue -- '--help is broken'",
        "claude --output-format stream-json --verbose -p --continue -- '--help is broken'",
        "claude --output-format stream-json --verbose --resume OLD -p GO",
    ),
    (
        "claude -p -r OLD --fork-session go",
        "claude --output-format stream-json --verbose -p -r OLD --fork-session go",
        "claude --output-format stream-json --verbose --resume OLD -p GO",
    ),
    (
        "claude -p --input-format stream-json --output-format stream-json --verbose",
        (
            "claude --session-id NEW -p --input-format stream-json --output-format stream-json"
            " --verbose"
        ),
        "claude --resume OLD -p GO --output-format stream-json --verbose",
    ),
    (
        "npx -y @anthropic-ai/claude-code -p hi --dangerously-skip-permissions",
        (
            "npx -y @anthropic-ai/claude-code --output-format stream-json --verbose"
            " --session-id NEW -p hi --dangerously-skip-permissions"
        ),
        (
            "npx -y @anthropic-ai/claude-code --output-format stream-json --verbose"
            " --resume OLD -p GO --dangerously-skip-permissions"
        ),
    ),
    (
        "codex -m gpt-5 exec -s workspace-write -i shot.png -- 'fix it'",
        "codex -m gpt-5 exec --json -s workspace-write -i shot.png -- 'fix it'",
        "codex -m gpt-5 exec --json -s workspace-write resume OLD GO",
    ),
    (
        "codex exec --json --skip-git-repo-check -",
        "codex exec --json --skip-git-repo-check -",
        "codex exec --json --skip-git-repo-check resume OLD GO",
    ),
    (
        "codex exec resume --last 'and now?' -o last.txt",
        "codex exec --json resume --last 'and now?' -o last.txt",
        "codex exec --json -o last.txt resume OLD GO",
    ),
    (
        "gemini -yp 'fix it' -e none -m gemini-2.5-flash",
        "gemini -o stream-json --session-id NEW -y -p 'fix it' -e none -m gemini-2.5-flash",
        "gemini -o stream-json --resume OLD -p GO -y -e none -m gemini-2.5-flash",
    ),
    (
        "gemini --output-format=json --prompt='fix it' --approval-mode plan",
        "gemini --session-id NEW --output-format=json --prompt='fix it' --approval-mode plan",
        "gemini --resume OLD -p GO --output-format=json --approval-mode plan",
    ),
    (
        "opencode run --title night fix the bug -f a.txt b.txt --agent build",
        "opencode run --format json --title night fix the bug -f a.txt b.txt --agent build",
        "opencode run --format json --session OLD GO --title night --agent build",
    ),
    (
        "opencode --print-logs run --command review main --format default",
        "opencode --print-logs run --command review main --format default",
        "opencode --print-logs run --session OLD GO --format default",
    ),
    (
        "qwen 'fix it' --approval-mode plan",
        "qwen --session-id NEW 'fix it' --approval-mode plan",
        "qwen --resume OLD GO --approval-mode plan",
    ),
    (
        "qwen -p 'fix it' -o stream-json",
        "qwen --session-id NEW -p 'fix it' -o stream-json",
        "qwen --resume OLD -p GO -o stream-json",
    ),
    (
        "copilot -p 'fix it' --allow-tool 'shell(git:*)' --attachment a.png",
        (
            "copilot --output-format json --session-id NEW"
            " -p 'fix it' --allow-tool 'shell(git:*)' --attachment a.png"
        ),
        "copilot --output-format json --resume=OLD -p GO --allow-tool 'shell(git:*)'",
    ),
    (
        "pi --model sonnet -nt -p @notes.md 'fix it'",
        "pi --mode json --model sonnet -nt -p @notes.md 'fix it'",
        "pi --mode json --session OLD -p GO --model sonnet -nt",
    ),
    ("cline --auto-approve false 'fix it'", "cline --json --auto-approve false 'fix it'", ""),
    ("cn -p 'fix it' --readonly", "cn -p 'fix it' --readonly", ""),
    ("aider --message 'fix it' --no-git", "aider --message 'fix it' --no-git", ""),
    ("agy -p 'fix it'", "agy -p 'fix it'", ""),
    ("make all", "make all", ""),
]


def split(command: str) -> tuple[str, ...]:
    known = {"NEW": NEW, "OLD": OLD, "--resume=OLD": f"--resume={OLD}", "GO": CONTINUE}
    return tuple(known.get(word, word) for word in shlex.split(command))


@pytest.mark.parametrize(("command", "started", "resumed"), LAUNCHES)
def test_a_program_is_started_with_what_the_user_wrote(command, started, resumed):
    launch = recognise(split(command)).start(split(command), WISH)
    assert launch.argv == split(started)
    assert launch.is_translated == (
        launch.argv != split(command) and _is_form_ours(launch.argv, command)
    )


def _is_form_ours(argv: tuple[str, ...], command: str) -> bool:
    forms = ("--output-format", "--json", "-o", "--format", "--mode")
    return any(word in forms for word in argv if word not in split(command))


@pytest.mark.parametrize(("command", "started", "resumed"), LAUNCHES)
def test_a_session_goes_on_with_the_users_flags_and_another_prompt(command, started, resumed):
    adapter = recognise(split(command))
    assert adapter.can_resume == bool(resumed)
    launch = adapter.resume(split(command), OLD, WISH)
    assert launch.argv == split(resumed or command)
    assert launch.session == (OLD if resumed else "")


@pytest.mark.parametrize(("command", "started", "resumed"), LAUNCHES)
def test_what_was_added_is_not_added_again(command, started, resumed):
    adapter = recognise(split(command))
    once = adapter.start(split(command), WISH)
    assert adapter.start(once.argv, WISH).argv == once.argv


def test_the_session_is_known_before_the_program_has_said_a_word():
    for command in ("claude -p x", "gemini -p x", "qwen x", "copilot -p x"):
        assert recognise(split(command)).start(split(command), WISH).session == NEW


def test_a_session_that_the_user_chose_is_kept():
    for flag in ("--session-id", "--resume", "-r"):
        command = ("claude", "-p", "x", flag, OLD)
        launch = recognise(command).start(command, WISH)
        assert launch.session == OLD
        assert NEW not in launch.argv
    named = ("claude", "-p", "x", "--resume", "the-big-one")
    assert recognise(named).start(named, WISH).session == ""


INTERACTIVE = {
    "claude": 'claude -p "…"',
    "claude 'fix it'": 'claude -p "…"',
    "codex": 'codex exec "…"',
    "codex 'fix it'": 'codex exec "…"',
    "codex resume --last": 'codex exec "…"',
    "gemini": 'gemini -p "…"',
    "gemini -i hi": 'gemini -p "…"',
    "opencode": 'opencode run "…"',
    "opencode run -i hi": 'opencode run "…"',
    "qwen": 'qwen "…"',
    "qwen -i hi": 'qwen "…"',
    "copilot": 'copilot -p "…"',
    "copilot -i hi": 'copilot -p "…"',
    "pi hi": 'pi -p "…"',
    "cline": 'cline "…"',
    "cn hi": 'cn -p "…"',
    "aider file.py": 'aider --message "…"',
}


@pytest.mark.parametrize("command", INTERACTIVE)
def test_an_interactive_command_is_refused_with_what_to_write(command):
    with pytest.raises(CommandRefused, match=r"interactive|waits for a person") as refused:
        recognise(split(command)).start(split(command), WISH)
    assert refused.value.hint.startswith(f"write {INTERACTIVE[command]}; or ")


def test_own_retries_of_claude_are_bounded_by_a_variable():
    command = ("claude", "-p", "x")
    adapter = recognise(command)
    assert adapter.start(command, LaunchRequest()).environ == {"CLAUDE_CODE_MAX_RETRIES": "3"}
    assert adapter.start(command, LaunchRequest(own_retries=0)).environ == {
        "CLAUDE_CODE_MAX_RETRIES": "0"
    }
    assert adapter.resume(command, OLD, LaunchRequest()).environ == {"CLAUDE_CODE_MAX_RETRIES": "3"}


def test_own_retries_that_the_user_set_are_kept():
    environ = {"CLAUDE_CODE_MAX_RETRIES": "7"}
    start = recognise(("claude",)).start
    assert start(("claude", "-p", "x"), LaunchRequest(environ=environ)).environ == {}
    asked = LaunchRequest(own_retries=0, environ=environ)  # said of this run: it wins
    assert start(("claude", "-p", "x"), asked).environ == {"CLAUDE_CODE_MAX_RETRIES": "0"}


def settings(argv: tuple[str, ...]) -> list[str]:
    return [after for before, after in itertools.pairwise(argv) if before == "-c"]


PROVIDER = ("-c", 'model_provider="lab"', "-c", 'model_providers.lab.name="Lab"')


def test_own_retries_of_codex_are_bounded_for_a_provider_of_the_users():
    command = ("codex", *PROVIDER, "exec", "x")
    argv = recognise(command).start(command, LaunchRequest()).argv
    assert settings(argv)[2:] == [
        "model_providers.lab.request_max_retries=2",
        "model_providers.lab.stream_max_retries=1",
    ]
    off = recognise(command).start(command, LaunchRequest(own_retries=0)).argv
    assert settings(off)[2:] == [
        "model_providers.lab.request_max_retries=0",
        "model_providers.lab.stream_max_retries=0",
    ]


def test_a_built_in_provider_of_codex_is_left_alone():
    # Codex 0.166 does not start if one of them is overridden, or described in part.
    for command in (("codex", "exec", "x"), ("codex", "-c", "model_provider=openai", "exec", "x")):
        assert "max_retries" not in " ".join(recognise(command).start(command, WISH).argv)


def test_the_provider_of_codex_is_found_in_its_own_files(tmp_path):
    (tmp_path / "config.toml").write_text(
        'model_provider = "lab"\n[model_providers.lab]\nname = "Lab"\nstream_max_retries = 9\n'
        '[model_providers.other]\nname = "Other"\n'
    )
    (tmp_path / "night.config.toml").write_text('model_provider = "other"\n')
    wish = LaunchRequest(environ={"CODEX_HOME": str(tmp_path)})
    plain, night = ("codex", "exec", "x"), ("codex", "exec", "-p", "night", "x")
    adapter = recognise(plain)
    assert settings(adapter.start(plain, wish).argv) == [
        "model_providers.lab.request_max_retries=2"
    ]
    assert settings(adapter.start(night, wish).argv) == [
        "model_providers.other.request_max_retries=2",
        "model_providers.other.stream_max_retries=1",
    ]
    ignoring = ("codex", "exec", "--ignore-user-config", "x")
    assert settings(adapter.start(ignoring, wish).argv) == []
    (tmp_path / "config.toml").write_text("this is = not [toml")
    assert settings(adapter.start(plain, wish).argv) == []


def test_a_session_that_is_not_saved_cannot_go_on():
    for command in (
        "claude -p x --no-session-persistence",
        "codex exec --ephemeral x",
        "codex exec review --base main",
        "pi -p x --no-session",
        "qwen x --no-chat-recording",
        "claude -p x --worktree",
        "codex exec --worktree x",
    ):
        assert not recognise(split(command)).can_resume, command
    assert recognise(split("claude -p x --worktree night")).can_resume


def test_silence_may_last_longer_where_the_program_prints_when_it_is_done():
    for command in (
        "claude -p x --output-format json",
        "gemini -p x -o text",
        "gemini -p x -o json",
        "qwen x",
        "pi -p x --mode text",
        "cn -p x",
        "agy x",
    ):
        assert recognise(split(command)).idle == 1800, command
    assert recognise(("sleep", "9999")).idle is None
    for command in ("claude -p x", "claude -p x --output-format stream-json", "codex exec x"):
        assert recognise(split(command)).idle == 600


def test_the_structured_form_is_known_whoever_chose_it():
    for command in (
        "claude -p x",
        "claude -p x --output-format stream-json --verbose",
        "codex exec --json x",
        "opencode run --format=json x",
        "cline --json x",
    ):
        assert recognise(split(command)).start(split(command), LaunchRequest()).is_structured, (
            command
        )
    for command in (
        "claude -p x --output-format json",
        "opencode run --format default x",
        "qwen x",
    ):
        assert not recognise(split(command)).start(split(command), LaunchRequest()).is_structured, (
            command
        )


def test_the_prompt_to_go_on_names_the_tool_calls_that_were_under_way():
    claude = recognise(("claude", "-p", "x"))
    wish = LaunchRequest(pending="Bash: make deploy")
    (prompt,) = [
        word
        for word in claude.resume(("claude", "-p", "x"), "0d934841-1941", wish).argv
        if " " in word
    ]
    assert "Bash: make deploy" in prompt
    assert "Find out whether it did" in prompt


@pytest.mark.parametrize(
    "session", ["", "short", "--help-me-out", "a b c d e f", "x" * 65, "ü" * 9]
)
def test_a_session_that_does_not_look_like_one_is_refused(session):
    with pytest.raises(SettingError, match="a session of claude to go on with is needed"):
        recognise(("claude", "-p", "x")).resume(("claude", "-p", "x"), session, WISH)


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
PERMISSIONS = {
    "claude": ("--permission-mode", "plan"),
    "codex": ("--sandbox", "read-only"),
    "gemini": ("--approval-mode", "plan"),
    "qwen": ("--approval-mode", "plan"),
    "copilot": ("--deny-tool", "shell"),
}


@given(st.sampled_from(sorted(PERMISSIONS)), WORDS)
def test_resuming_repeats_permissions_and_never_the_prompt(name, prompt):
    flags = PERMISSIONS[name]
    ask = {"codex": ("exec",), "qwen": ()}.get(name, ("-p",))
    words = () if prompt.startswith("-") and name not in {"gemini", "copilot"} else (prompt,)
    command = (name, *ask, *words, *flags)
    argv = recognise(command, name).resume(command, OLD, WISH).argv
    at = argv.index(flags[0])
    assert argv[at : at + 2] == flags
    assert len(argv) == len(set(argv)), "nothing stands twice"
    assert CONTINUE in argv
    if words and prompt not in {*argv[:1], "exec", "resume", *flags}:
        assert prompt not in argv


@given(st.sampled_from(known()), st.lists(WORDS, max_size=8).map(tuple))
def test_starting_refuses_or_keeps_every_word(name, args):
    command = (name, *args)
    adapter = recognise(command, name)
    try:
        argv = adapter.start(command, WISH).argv
    except CommandRefused:
        return
    kept = iter("".join(argv))
    assert all(letter in kept for letter in "".join(args).replace("-", ""))


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode", "qwen", "copilot", "pi"])
def test_a_session_can_be_told_something_else_than_to_go_on(name):
    command = {"codex": ("codex", "exec", "x"), "opencode": ("opencode", "run", "x")}
    argv = command.get(name, (name, "-p", "x"))
    wish = LaunchRequest(prompt="The tests fail: mend them")
    launched = recognise(argv).resume(argv, "0d934841-1941-40fe-9930-4689fa253369", wish)
    assert launched.argv.count("The tests fail: mend them") == 1
    assert not any("interrupted" in word for word in launched.argv)
