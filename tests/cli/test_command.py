"""The command line itself: help, version, typos, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

EXPLAIN_HINT = "mulligan explain --help lists its options"
PRESET_HINT = (
    "presets are default, skill, tools, pattern, surface, pipeline, subagent; "
    "a file is given by its path"
)


def test_the_version_is_one_line(mulligan):
    assert mulligan("--version") == (0, "mulligan 0.1.0\n", "")


def test_help_names_every_command_in_one_line_each(mulligan):
    code, out, err = mulligan("--help")
    assert (code, err) == (0, "")
    assert out.startswith("Usage: mulligan [OPTIONS] COMMAND [ARGS]...\n")
    assert "\n  explain     Print a policy: what is retried, how often, how long it waits.\n" in out
    assert "Exit codes: 0 done, 1 failed, 2 wrong usage" in out


def test_a_bare_command_shows_the_help_and_fails(mulligan):
    code, out, err = mulligan()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: mulligan")


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        ("nonsense", "no such command 'nonsense'\n\nhint: mulligan --help lists the commands"),
        ("explian", "no such command 'explian'\n\nhint: did you mean mulligan explain?"),
        (
            "--nope",
            "no such option '--nope'\n\nhint: mulligan --help lists its options",
        ),
        ("explain a b", f"got unexpected extra argument (b)\n\nhint: {EXPLAIN_HINT}"),
        ("explain skil", "no preset and no file 'skil'\n\nhint: did you mean 'skill'?"),
        ("explain zzz", f"no preset and no file 'zzz'\n\nhint: {PRESET_HINT}"),
        ("explain gone.toml", "gone.toml: no such file"),
        ("explain --json --toml", "--json and --toml exclude each other\n\nhint: keep one"),
    ],
)
def test_an_error_says_what_was_asked_and_what_to_do(mulligan, argv, error):
    assert mulligan(*argv.split()) == (2, "", f"error: {error}\n")


def test_a_mistake_in_a_file_has_its_place_and_a_hint(mulligan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text('preset = "skill"\ndeadlin = 3\n')
    assert mulligan("explain", "policy.toml") == (
        2,
        "",
        "error: policy.toml:2: deadlin: unknown key\n\nhint: did you mean 'deadline'?\n",
    )


@pytest.mark.real
def test_the_installed_command_works_in_a_pipe_without_colour(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mulligan", "explain", "pipeline"],
        capture_output=True,
        check=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "200", "PYTHONUTF8": "1"},
    )
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "pipeline"
    assert max(map(len, lines)) <= 80
    assert not any("\x1b" in line or line != line.rstrip() for line in lines)
    assert done.stderr == b""


@pytest.mark.real
def test_a_reader_that_goes_away_is_no_traceback(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", "mulligan", "explain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1
