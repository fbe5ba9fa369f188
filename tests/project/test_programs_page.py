"""The tables of docs/programs.md say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mulligan.run.agents.adapter import Launch, LaunchRequest
from mulligan.run.agents.catalogue import known, recognise
from mulligan.run.agents.program import CONTINUE, KnownProgram

PAGE = (Path(__file__).parents[2] / "docs/programs.md").read_text(encoding="utf-8")
COMMANDS = {
    "codex": ("codex", "exec", "x"),
    "opencode": ("opencode", "run", "x"),
    "qwen": ("qwen", "x"),
    "cline": ("cline", "x"),
    "continue": ("cn", "-p", "x"),
    "aider": ("aider", "--message", "x"),
}
SESSION = "5e551011-aaaa-4bbb-8ccc-0123456789ab"


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the first table under a heading, by their first cell."""
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return {name: cells for name, *cells in rows if name != "program"}


def row(name: str) -> list[str]:
    """What the table must say of a program, its own retries aside."""
    command = COMMANDS.get(name, (name, "-p", "x"))
    adapter = recognise(command, name)
    plain = adapter.start(command, LaunchRequest())
    chosen = adapter.start(command, LaunchRequest(session=SESSION))
    added = [word for word in plain.argv if word not in command]
    option = [word for word in chosen.argv if word not in (*plain.argv, SESSION)]
    again = [
        word for word in adapter.resume(command, SESSION, LaunchRequest()).argv if word not in added
    ]
    goes_on = " ".join(again).replace(SESSION, "ID").replace(CONTINUE, "…")
    session = "read" if adapter.can_resume else "none"
    return [
        f"`{' '.join(added)}`" if added else "nothing",
        f"`{option[0]}`" if option else session,
        f"`{goes_on}`" if adapter.can_resume else "cannot",
        "believed" if adapter.is_exit_trusted else "not believed",
        "means nothing" if adapter.idle is None else f"{adapter.idle:.0f} s",
    ]


@pytest.mark.parametrize("name", [*known(), "generic"])
def test_the_table_says_how_a_program_is_started_and_goes_on(name):
    cells = table("Defaults")[name]
    del cells[3]
    assert cells == row(name)


def test_the_table_lists_every_program():
    assert set(table("Defaults")) == {*known(), "generic"}
    assert set(table("What it reports")) <= set(known())


def test_the_table_says_how_own_retries_are_bounded():
    rows = table("Defaults")
    bounds = recognise(("claude", "-p", "x")).start(("claude", "-p", "x"), LaunchRequest()).environ
    assert rows["claude"][3] == "`" + " ".join(f"{key}={bounds[key]}" for key in bounds) + "`"
    provider = ("-c", "model_provider=lab", "-c", "model_providers.lab.name=Lab")
    command = ("codex", *provider, "exec", "x")
    argv = recognise(command).start(command, LaunchRequest()).argv
    found = re.findall(r"model_providers\.lab\.(\w+=\d)", " ".join(argv))
    assert rows["codex"][3] == ", ".join(f"`{each}`" for each in found)


@pytest.mark.parametrize("name", table("What it reports"))
def test_each_sample_of_a_retry_is_read_as_one(name):
    said = table("What it reports")[name][0]
    if said == "nothing":
        return
    reader = recognise((name,), name).reader(Launch(argv=(name,)))
    notes = [reader.line(stream, said.strip("`").encode()) for stream in ("stdout", "stderr")]
    assert any(note is not None and note.is_retry for note in notes)


def test_the_page_says_whose_account_a_program_uses():
    rows = {
        each: cells
        for names, cells in table("Accounts and models").items()
        for each in names.split(", ")
    }
    assert set(rows) == set(known())
    for name, (provider, credentials, _) in rows.items():
        program = recognise(COMMANDS.get(name, (name, "-p", "x")), name)
        assert isinstance(program, KnownProgram)
        if program.provider:
            assert provider.startswith(program.provider)
            found = [key for key in program.keys if f"`{key}`" in credentials]
            assert sorted(found, key=lambda key: credentials.index(f"`{key}`")) == found
