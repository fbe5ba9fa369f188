"""What `mulligan run` refuses, before anything is recorded that could be started later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real


@pytest.fixture
def environ(tmp_path):
    """A folder with a claude that does well, and a run store of its own."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho started >&2\n")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    home = {"MULLIGAN_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    return {**os.environ, "PATH": path, **home}


@pytest.fixture
def run(environ, tmp_path):
    def run(*argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mulligan", *argv],
            cwd=tmp_path,
            env={**environ, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def is_nothing_kept(run) -> bool:
    woken = run("worker", "--once")
    return (woken.returncode, woken.stderr, run("runs", "--json").stdout.strip()) == (0, "", "")


def test_a_run_whose_store_cannot_be_meant_is_not_started_by_a_worker_later(run):
    refused = run("run", "--", "claude", "-p", "x", MULLIGAN_STORE="nonsense://x")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: a store needs an address such as ")
    assert is_nothing_kept(run)


def test_rules_that_do_not_exist_are_refused_before_anything_fails(run):
    for policy in ("nosuch", "nosuch.toml"):
        refused = run("run", "--policy", policy, "--", "true")
        assert refused.returncode == 2, policy
        assert refused.stderr.startswith("error: ")
        assert "nosuch" in refused.stderr
    assert is_nothing_kept(run)


def test_an_agent_that_nobody_knows_is_wrong_usage(run):
    refused = run("run", "--agent", "clade", "--", "true")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: no agent is called 'clade'; did you mean 'claude'?")
    assert is_nothing_kept(run)


def test_a_folder_that_was_removed_is_no_place_to_run_anything(run, environ, tmp_path):
    gone = tmp_path / "gone"
    for argv in ("run -- true", "resume"):
        gone.mkdir()
        command = f"cd {gone} && rmdir {gone} && exec {sys.executable} -m mulligan {argv}"
        refused = subprocess.run(
            ["/bin/sh", "-c", command], env=environ, capture_output=True, timeout=30, check=False
        )
        assert refused.returncode == 2
        assert refused.stderr.startswith(b"error: the folder this was called in cannot be used: ")
    assert is_nothing_kept(run)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("option", "status"), [("", "done"), ("--stream", "paused"), ("--json", "paused")]
)
def test_output_that_cannot_be_written_is_told(run, environ, option, status):
    command = f"exec {sys.executable} -m mulligan run {option} -- sh -c 'echo hi; sleep 0.5'"
    full = subprocess.run(
        ["/bin/sh", "-c", f"{command} > /dev/full"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert full.returncode == 141, full.stderr
    told = "mulligan: stdout cannot be written: No space left on device\n"
    assert full.stderr.count(told) == 1
    assert "Traceback" not in full.stderr
    assert f'"{status}"' in run("runs", "--json").stdout


KEY = "sk-ant-api03-FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"


def test_what_stands_in_place_of_a_program_is_masked_and_cleaned(run, tmp_path):
    missing = run("run", "--name", f"port {KEY}", "--", f"\x1b]0;pwn\a\x1b[31m{KEY}")
    assert missing.returncode == 127
    told = missing.stderr + run("show").stdout + run("show", "--json").stdout + run("runs").stdout
    assert "port [masked]" in told
    for each in ("\x1b", "\\u001b", "pwn", KEY):
        assert each not in told
    for path in (tmp_path / "home").glob("state*"):
        assert KEY.encode() not in path.read_bytes(), path


def test_a_name_that_would_break_a_line_is_refused(run):
    refused = run("run", "--name", "two\nlines", "--", "true")
    assert refused.returncode == 2
    assert "'two\\nlines' has control characters" in refused.stderr
    assert is_nothing_kept(run)


@pytest.mark.parametrize("option", ["--timeout", "--deadline"])
def test_no_time_at_all_is_no_bound_that_can_be_meant(run, option):
    refused = run("run", option, "0", "--", "true")
    assert refused.returncode == 2
    assert "'0' is zero" in refused.stderr


def test_an_empty_name_takes_up_no_run(run):
    assert run("run", "--", "false").returncode == 1
    refused = run("resume", "")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: resume needs the id or the name of a run")


def test_a_folder_is_kept_without_dots(run, tmp_path):
    (tmp_path / "deep").mkdir()
    run("run", "--cwd", "deep/..", "--", "false")
    assert f'"cwd": "{tmp_path.resolve()}"' in run("runs", "--json").stdout
