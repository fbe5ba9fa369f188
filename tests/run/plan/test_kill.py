"""kill -9 at any moment of a plan, then resume: it ends, nothing is done twice, nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.run.git import Tree, load_all
from mulligan.run.journal.store import RunStore

from ..scripted import AGENT

# A handful here, one for each mode; `make soak` asks for two hundred.
LIVES = max(5, int(os.environ.get("MULLIGAN_SOAK", "5")))
MODES = ("stash", "worktree", "commit", "snapshot", "off")

PLAN = """\
name = "night"
cwd = "work"
concurrency = 2
git = "{git}"

[[phases]]
name = "first"
parallel = false
{policy}
{first}
[[phases]]
name = "second"
{policy}
parallel = {parallel}
on_failure = "require_minimum"
minimum = 2
{second}
[[phases]]
name = "third"
{policy}
{third}
"""
# Nobody waits for minutes here.
POLICY = """\
policy = { preset = "default", rules = { server = { backoff = { first = 0.1 } } } }"""
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
    who = (["config", "user.name", "Ada"], ["config", "user.email", "ada@example.com"])
    for line in (["init", "-q"], *who, ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *line], cwd=tree, check=True, timeout=30)  # noqa: S607 -- the one on the PATH
    (tree / "kept.txt").write_text("changed by its user\n")
    (tree / "untracked.bin").write_bytes(bytes(range(256)))
    plan = PLAN.format(
        git=git,
        policy=POLICY,
        parallel="true" if git in {"off", "worktree"} else "false",
        first=agents(folder, {"a": "write:a.txt crash ok", "b": "effect ok"}),
        second=agents(
            folder, {"c": "write:c.txt ok", "d": "login " * 9, "e": "work write:e.txt limit:0.1 ok"}
        ),
        third=agents(folder, {"f": "write:f.txt crash ok"}),
    )
    (folder / "night.toml").write_text(plan)
    programs = folder / "bin"
    programs.mkdir()
    claude = programs / "claude"
    claude.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n')
    claude.chmod(0o755)
    return tree


def contents(tree, path, mode):
    """Every content of a file that can be found: in the tree, or set aside where it stays so."""
    found = {(tree / path).read_text()} if (tree / path).exists() else set()
    for aside in load_all(Tree.find(tree)) if mode == "snapshot" else ():
        if any(each.path == path for each in aside.moves):
            show = ["git", "show", f"{aside.commit}:{path}"]
            found.add(subprocess.check_output(show, cwd=tree, text=True, timeout=30))
    return found


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
    mode = MODES[seed % len(MODES)]
    tree = prepared(tmp_path, mode)
    moments = [dice.uniform(0.2, 4.0) for _ in range(dice.randint(1, 3))]
    words, code, said = ("run", str(tmp_path / "night.toml")), None, b""
    runs = RunStore(tmp_path / "home")
    for moment in [*moments, 120]:  # the last one may end, on a busy machine too
        code, said = mulligan(tmp_path, *words, timeout=moment)
        words = next((("resume", id_) for id_, _ in runs.all()), words)
        if code is not None:
            break
    assert code == 0, said.decode()
    id_ = words[1]
    states = {each.partition(".")[2]: state for each, state in runs.all(id_)}
    expected = {"first.a": "done", "first.b": "done", "second.c": "done"}
    expected |= {"second.d": "failed", "second.e": "done", "third.f": "done"}
    assert {key: state.status for key, state in states.items()} == expected
    for each, state in runs.all(id_):
        finished = [
            log
            for log in Path(runs.files(each)).glob("attempt-*.out")
            if b'"terminal_reason": "completed"' in log.read_bytes()
        ]
        assert len(finished) == (state.status == "done"), (
            each
        )  # nothing that had finished ran again
    assert (tree / "kept.txt").read_text() == "changed by its user\n"
    assert (tree / "untracked.bin").read_bytes() == bytes(range(256))
    for name in "acef":
        assert contents(tree, f"{name}.txt", mode) == {f"written by {name}\n"}
    aside = load_all(Tree.find(tree))
    assert not [each for each in aside if each.state in {"prepared", "returning"}]
    trees = sorted(each.name for each in (tmp_path / "home" / "worktrees").glob("*/*"))
    assert trees == (["2-2-second-d"] if mode == "worktree" else [])  # of the one that failed
    effects = tree / "effects.txt"  # a tool that was cut off before its effect has none
    assert not effects.exists() or len(effects.read_text().splitlines()) == 1
