"""kill -9 at any moment of a plan, then resume: it ends, nothing is done twice, nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.run.desk import Desk

from .scripted import AGENT

# A handful here; `make soak` asks for two hundred.
LIVES = int(os.environ.get("MULLIGAN_SOAK", "3"))

PLAN = """\
name = "night"
cwd = "work"
concurrency = 2
git = "{git}"

[[phases]]
name = "first"
parallel = false
policy = {{ preset = "default", rules = {{ server = {{ backoff = {{ first = 0.1 }} }} }} }}
{first}
[[phases]]
name = "second"
git = "off"
on_failure = "require_minimum"
policy = "default"
minimum = 2
{second}
[[phases]]
name = "third"
git = "off"
{third}
"""
AGENT_TEXT = """\
[[phases.agents]]
name = "{name}"
program = "claude"
prompt = "Do it"
env = {{ SCRIPT = "{script}", SESSIONS = "{folder}/sessions-{name}", ANTHROPIC_API_KEY = "{name}" }}
"""


def agents(folder, scripts):
    return "".join(
        AGENT_TEXT.format(name=name, script=script, folder=folder)
        for name, script in scripts.items()
    )


def prepared(folder, git):
    """A repository with a commit, changes of its user, files that git does not know, and a plan."""
    tree = folder / "work"
    tree.mkdir()
    (tree / "kept.txt").write_text("as committed\n")
    run = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    for line in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*run, *line], cwd=tree, check=True, timeout=30)
    (tree / "kept.txt").write_text("changed by its user\n")
    (tree / "untracked.bin").write_bytes(bytes(range(256)))
    plan = PLAN.format(
        git=git,
        first=agents(folder, {"a": "write:a.txt crash ok", "b": "effect ok"}),
        second=agents(folder, {"c": "ok", "d": "login", "e": "work limit:0.1 ok"}),
        third=agents(folder, {"f": "ok"}),
    )
    (folder / "night.toml").write_text(plan)
    programs = folder / "bin"
    programs.mkdir()
    claude = programs / "claude"
    claude.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n')
    claude.chmod(0o755)
    return tree


def mulligan(folder, *words, timeout):
    """Run a command; its exit code, or None if it was killed when its time was over."""
    environ = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder),
        "MULLIGAN_HOME": str(folder / "home"),
        "PYTHONPYCACHEPREFIX": str(folder.parent / "bytecode"),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "mulligan", *words],
        cwd=folder / "work",
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        said, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        return None, b""
    return process.returncode, said


@pytest.mark.real
@pytest.mark.parametrize("seed", range(LIVES))
def test_a_plan_whose_conductor_is_killed_goes_on_where_it_stood(tmp_path, seed):
    dice = random.Random(seed)
    tree = prepared(tmp_path, "stash" if seed % 2 else "off")
    moments = [dice.uniform(0.2, 2.5) for _ in range(dice.randint(1, 3))]
    words, code, said = ("run", str(tmp_path / "night.toml")), None, b""
    desk = Desk(tmp_path / "home")
    for moment in [*moments, 60]:
        code, said = mulligan(tmp_path, *words, timeout=moment)
        words = next((("resume", id_) for id_, _ in desk.all()), words)
        if code is not None:
            break
    assert code == 0, said.decode()
    id_ = words[1]
    states = {each.partition(".")[2]: state for each, state in desk.all(id_)}
    expected = {"first.a": "done", "first.b": "done", "second.c": "done"}
    expected |= {"second.d": "failed", "second.e": "done", "third.f": "done"}
    assert {key: state.status for key, state in states.items()} == expected
    for each, state in desk.all(id_):
        finished = [
            log
            for log in Path(desk.files(each)).glob("attempt-*.out")
            if b'"terminal_reason": "completed"' in log.read_bytes()
        ]
        assert len(finished) == (state.status == "done"), (
            each
        )  # nothing that had finished ran again
    assert (tree / "kept.txt").read_text() == "changed by its user\n"
    assert (tree / "untracked.bin").read_bytes() == bytes(range(256))
    assert (tree / "a.txt").read_text() == "written by a\n"
    effects = tree / "effects.txt"  # a tool that was cut off before its effect has none
    assert not effects.exists() or len(effects.read_text().splitlines()) == 1
