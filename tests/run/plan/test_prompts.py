"""Prompts: filled in once, and never more than words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.errors import SettingError
from mulligan.run.agents.adapter import LaunchRequest
from mulligan.run.agents.catalogue import askable, asking, find, program, recognise
from mulligan.run.agents.program import words
from mulligan.run.plan.model import Agent, Phase, Plan
from mulligan.run.plan.prompts import (
    LONGEST_ARGUMENT,
    LONGEST_OUTPUT,
    command_for,
    fill_prompt,
    read_output,
    variables_of,
)

HERE = Path()
ASKING = askable()

hostile = st.text(max_size=40) | st.sampled_from(
    [
        "--dangerously-skip-permissions",
        "-rf /",
        "!rm -rf ~",
        "/clear",
        "exec",
        "resume",
        "{{secret}}",
        "{{outputs.a.x}}",
        "\\{{x}}",
        "$(id) `id` ; id | id && id",
        "a\0b\x1b[2Jc\u202ed",
        "-",
        "--",
        "",
    ]
)


def asked(prompt: str, outputs=None, **agent) -> tuple[tuple[str, ...], bytes | None]:
    settings = {"program": "claude", **agent}
    return command_for(
        Agent(prompt=prompt, **settings), folder=HERE, variables={}, outputs=outputs or {}
    )


def test_an_agent_s_variables_win_over_the_phase_s_and_those_over_the_plan_s():
    agent = Agent(command=("x",), variables={"c": "agent"})
    phase = Phase(name="p", agents=(agent,), variables={"b": "phase", "c": "phase"})
    plan = Plan(phases=(phase,), variables={"a": "plan", "b": "plan", "c": "plan"})
    assert variables_of(plan, phase, agent) == {"a": "plan", "b": "phase", "c": "agent"}


def test_names_are_filled_in_wherever_they_stand():
    outputs = {"review": {"claude": "Fine.\n", "codex": "Bad."}}
    prompt = "On {{branch}}: {{ outputs.review.codex }}\n{{outputs.review}}\nEnd \\{{x}}"
    assert fill_prompt(prompt, {"branch": "main"}, outputs) == (
        "On main: Bad.\n## claude\n\nFine.\n\n## codex\n\nBad.\nEnd {{x}}"
    )


def test_an_unknown_name_is_an_error_that_lists_what_is_known():
    with pytest.raises(SettingError) as caught:
        fill_prompt("Do {{it}}", {"that": "x"}, {"a": {"one": ""}})
    assert str(caught.value) == (
        "the prompt names {{it}}; known here are that, outputs.a, outputs.a.one"
    )


@given(text=hostile, variable=hostile)
def test_what_was_filled_in_is_never_filled_in_again(text, variable):
    found = fill_prompt(
        "A {{v}} B {{outputs.a.x}} C",
        {"v": variable, "secret": "s3cret"},
        {"a": {"x": text, "y": "s3cret"}},
    )
    assert "s3cret" not in found.replace(variable, "").replace(text, "")
    assert found.startswith(f"A {variable} B ")


@given(text=hostile, name=st.sampled_from(sorted(ASKING)))
def test_an_output_is_one_argument_and_no_other_argument_depends_on_it(text, name):
    prompt, args = "{{outputs.a.x}}", ("--model", "m")
    plain, _ = asked(prompt, {"a": {"x": "calm words"}}, program=name, args=args)
    found, stdin = asked(prompt, {"a": {"x": text}}, program=name, args=args)
    assert stdin is None
    assert len(found) == len(plain)
    assert sum(one != other for one, other in zip(found, plain, strict=True)) <= 1


@given(text=hostile, name=st.sampled_from(sorted(ASKING)))
def test_no_prompt_begins_as_an_order_to_the_program(text, name):
    argv, _ = asked("{{outputs.a.x}}", {"a": {"x": text}}, program=name)
    prompt = max(argv, key=len)
    assert prompt.startswith("Output of another agent:\n")


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize("prompt", ["--yolo now", "-x", "-", "exec", "resume", "review", "auth"])
def test_a_prompt_is_no_flag_and_no_subcommand_of_its_program(name, prompt):
    command, _ = asked(prompt, program=name, args=("--verbose",))
    known = program(find(command)[0])
    _, parts = known._read(command)
    assert f" {prompt}" in [word for part in parts for word in (*part.values, *part.tokens)]
    assert recognise(command).name == known.name  # agent's work, no aside
    assert recognise(command).start(command, LaunchRequest()).argv.count(f" {prompt}") == 1


@pytest.mark.parametrize("name", ASKING)
def test_options_that_take_many_words_do_not_swallow_the_prompt(name):
    known = program(find(asked("Do it", program=name)[0])[0])
    for option in sorted(known.grammar.lists):
        command, _ = asked("Do it", program=name, args=(option, "one"))
        _, parts = known._read(command)
        swallowed = [part for part in parts if part.name == option and "Do it" in part.values]
        assert swallowed == []


@pytest.mark.parametrize("name", [name for name in ASKING if ASKING[name].asked_on_stdin])
def test_a_prompt_on_stdin_leaves_the_arguments_alone(name):
    argv, stdin = asked("--do\n{{outputs.a}}", {"a": {"x": "it"}}, program=name, input="stdin")
    assert stdin == b"--do\n## x\n\nit"
    assert not any("it" in word and "x" in word for word in argv)
    assert recognise(argv).start(argv, LaunchRequest())  # not refused


def test_each_program_is_asked_as_its_manual_says():
    found = {name: " ".join(how.command_for("Do it", ("ARGS",))) for name, how in ASKING.items()}
    assert found == {
        "aider": "aider --message Do it ARGS",
        "claude": "claude -p Do it ARGS",
        "cline": "cline Do it ARGS",
        "codex": "codex exec ARGS -- Do it",
        "continue": "cn -p Do it ARGS",
        "copilot": "copilot -p Do it ARGS",
        "gemini": "gemini -p Do it ARGS",
        "opencode": "opencode run Do it ARGS",
        "pi": "pi -p Do it ARGS",
        "qwen": "qwen -p Do it ARGS",
    }


def test_an_unknown_program_is_refused_with_the_nearest():
    with pytest.raises(SettingError, match=r"^program 'codx' is not known; did you mean 'codex'?"):
        asking("codx")


def test_a_command_gets_its_prompt_as_the_last_argument_or_on_stdin():
    command = ("./agent", "--fast")
    assert asked("Do it", program="", command=command) == ((*command, "Do it"), None)
    assert asked("Do it", program="", command=command, input="stdin") == (command, b"Do it")
    assert asked("", program="", command=command) == (command, None)


def test_nothing_in_a_command_is_filled_in():
    command = ("./agent", "{{outputs.a.x}}")
    assert asked("", {"a": {"x": "rm"}}, program="", command=command) == (command, None)


@given(text=st.text(max_size=60))
def test_no_control_character_of_an_output_reaches_a_prompt(text):
    found = fill_prompt("x {{outputs.a.x}}", {}, {"a": {"x": text}})
    assert all(char in "\n\t" or char.isprintable() or ord(char) > 0x9F for char in found)


def test_a_long_output_loses_its_middle_and_says_so():
    text = "a" * LONGEST_OUTPUT + "b" * 10 + "c" * 100
    found = fill_prompt("x {{outputs.a.x}}", {}, {"a": {"x": text}})
    assert "\n\n[110 characters are left out here]\n\n" in found
    assert found.endswith("b" * 10 + "c" * 100)
    assert len(found) < LONGEST_OUTPUT + 100


def test_an_agent_that_printed_nothing_leaves_a_note():
    assert fill_prompt("x {{outputs.a.x}}", {}, {"a": {"x": " \n"}}) == "x (no output)"


def test_an_argument_that_the_system_would_not_take_is_an_error_with_a_way_out():
    long = "Do " + "é" * 70_000
    with pytest.raises(SettingError) as caught:
        asked(long)
    assert str(caught.value) == (
        f"the prompt of claude has 140003 bytes, and an argument may have {LONGEST_ARGUMENT}; "
        'write input = "stdin"'
    )
    assert asked(long, input="stdin")[1] == long.encode()
    with pytest.raises(
        SettingError, match=r"; name fewer outputs, aider reads no prompt from stdin$"
    ):
        asked(long, program="aider")


def test_a_prompt_that_is_empty_once_filled_in_is_refused():
    agent = Agent(program="claude", prompt="{{x}}")
    with pytest.raises(SettingError, match=r"^the prompt of claude is empty once"):
        command_for(agent, folder=HERE, variables={"x": " "}, outputs={})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "prompt_file 'p.md' is empty"),
        (b"\xff\xfe", "prompt_file 'p.md' is not UTF-8 text"),
        (b"a\0b", "prompt_file 'p.md' contains a null character, which arguments cannot contain"),
        (
            b"x" * (1024 * 1024 + 1),
            "prompt_file 'p.md' has 1048577 bytes; at most 1048576 are read",
        ),
    ],
)
def test_a_file_that_is_no_prompt_is_refused(tmp_path, content, message):
    (tmp_path / "p.md").write_bytes(content)
    agent = Agent(program="claude", prompt_file="p.md")
    with pytest.raises(SettingError) as caught:
        command_for(agent, folder=tmp_path, variables={}, outputs={})
    assert str(caught.value) == message


def test_words_that_an_option_takes_are_told_from_prompts():  # what the tests above rely on
    claude = program("claude")
    _, parts = claude._read(("claude", "-p", "--allowedTools", "Bash", "Do it"))
    assert words(parts) == ()


def test_of_a_book_the_first_and_the_last_pages_are_read(tmp_path):
    book = tmp_path / "answer"
    book.write_bytes(b"first" + "é".encode() * 3_000_000 + b"last")
    text = read_output(book)
    assert len(text) <= LONGEST_OUTPUT
    assert (text[:5], text[-4:], text.count("é")) == ("first", "last", LONGEST_OUTPUT - 109)
    left_out = book.stat().st_size - 9 - 2 * text.count("é")
    assert f"\n\n[{left_out} bytes are left out here]\n\n" in text
    assert fill_prompt("{{outputs.a.x}}", {}, {"a": {"x": text}}).endswith(text)


def test_what_is_short_or_not_there_is_read_as_it_is(tmp_path):
    (tmp_path / "answer").write_bytes(b"a \xff page")
    assert read_output(tmp_path / "answer") == "a \ufffd page"
    assert read_output(tmp_path / "gone") == ""
