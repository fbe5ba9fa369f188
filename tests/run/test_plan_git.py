"""Plans whose trees are made clean for retries, with real programs and real repositories (R-P5)."""

from __future__ import annotations

import subprocess
import time
from threading import Thread

import pytest

from mulligan.run.plan import Agent, Phase, Plan
from mulligan.run.planning import conduct
from mulligan.run.stop import Stop

from .test_conductor import Table, Theatre

pytestmark = pytest.mark.real


def git(folder, *words):
    done = subprocess.run(
        ["git", *words],  # noqa: S607 -- the one on the PATH
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=30,
    )
    return done.stdout.decode()


def repository(folder):
    """A repository with one commit."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.com")
    (folder / "a.txt").write_text("as committed\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def theatre(tmp_path):
    return Theatre(tmp_path)


@pytest.fixture
def tree(theatre):
    return repository(theatre.folder / "work")


def once(folder, first, later="true"):
    """A command that does the one thing and dies, then the other at its retry."""
    mark = folder / "once"
    script = f"if [ ! -f {mark} ]; then touch {mark}; {first}; kill -9 $$; fi; {later}"
    return ("sh", "-c", script)


def crashing(theatre, name, first, later="true", **more):
    command = once(theatre.folder, first, later)
    return Agent(name=name, command=command, may_restart=True, **more)


def plan_of(*agents, **more):
    phases = tuple(Phase(name=f"p{n}", agents=(each,)) for n, each in enumerate(agents, 1))
    return Plan(phases=phases, **more)


def test_a_hook_that_sleeps_does_not_keep_a_plan_from_being_interrupted(theatre, tree):
    hook = tree / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ntouch asleep\nsleep 60\n")
    hook.chmod(0o755)
    plan = plan_of(crashing(theatre, "x", "echo half > half.txt"), git="commit")
    claimed, stop = theatre.made(plan), Stop()

    def interrupt():
        while not (tree / "asleep").exists():
            time.sleep(0.01)
        stop.set()

    thread = Thread(target=interrupt)
    thread.start()
    environ, world, table = theatre.environ(""), theatre.world(), Table()
    code = conduct(theatre.desk, claimed, environ=environ, world=world, table=table, stop=stop)
    thread.join()
    stop.close()
    assert (code, theatre.desk.look(claimed.id).status) == (130, "paused")
    assert theatre.desk.look(f"{claimed.id}.p1.x").status == "waiting"
    assert (tree / "half.txt").read_text() == "half\n"
    hook.unlink()
    (tree / "asleep").unlink()
    run = theatre.play(plan, claimed=theatre.desk.claim(claimed.id, theatre.clock.wall()))
    assert run.code == 0
    assert git(tree, "log", "--format=%s", "--", "half.txt") == (
        "mulligan: unfinished changes to half.txt\n"
    )


def test_a_commit_says_what_the_agent_said_last(theatre, tree):
    agent = theatre.agent("x", "write:w.txt limit:1 ok")
    assert theatre.play(plan_of(agent, git="commit")).code == 0
    assert git(tree, "log", "-1", "--format=%s") == "mulligan: Wrote a file.\n"
