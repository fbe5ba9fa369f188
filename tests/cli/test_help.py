"""The help of every command is kept as a file: a change of wording is seen where it is made.

After a change that is meant: ``MULLIGAN_WRITE_HELP=1 make pytest`` writes the files again; read the
difference before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from mulligan.cli import _group

KEPT = Path(__file__).parent / "help"


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    context = click.Context(group)
    found = [path]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = (*path, name)
        found += commands(command, inner) if isinstance(command, click.Group) else [inner]
    return found


COMMANDS = commands(_group)


@pytest.fixture
def no_help_option_is_remembered(path, monkeypatch):
    """click keeps the option of a command's first call; other tests call commands alone."""
    command: click.Command = _group
    for name in path:
        assert isinstance(command, click.Group)
        monkeypatch.setattr(command, "_help_option", None, raising=False)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    monkeypatch.setattr(command, "_help_option", None, raising=False)


def help_of(path: tuple[str, ...]) -> str:
    result = CliRunner().invoke(
        _group, [*path, "--help"], prog_name="mulligan", terminal_width=100, color=False
    )
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("no_help_option_is_remembered")
@pytest.mark.parametrize("path", COMMANDS, ids="-".join)
def test_the_help_is_the_one_that_was_read(path):
    kept = KEPT / f"{'-'.join(('mulligan', *path))}.txt"
    shown = help_of(path)
    if os.environ.get("MULLIGAN_WRITE_HELP"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(shown, encoding="utf-8")
    assert shown == kept.read_text(encoding="utf-8"), "see the top of tests/cli/test_help.py"


@pytest.mark.usefixtures("no_help_option_is_remembered")
@pytest.mark.parametrize("path", COMMANDS, ids="-".join)
def test_no_help_shows_marks_that_were_meant_for_the_formatter(path):
    shown = help_of(path)
    assert "\b" not in shown
    assert "\\b" not in shown
    assert not re.search(r"\bExamples?: {2,}\S", shown), "examples run into each other"
    assert max(map(len, shown.splitlines())) <= 100


def test_no_help_is_kept_of_a_command_that_is_gone():
    names = {f"{'-'.join(('mulligan', *path))}.txt" for path in COMMANDS}
    assert {file.name for file in KEPT.iterdir()} == names
