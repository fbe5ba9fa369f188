"""Runs that are limited, taken up, interrupted or finished.

A run that was limited until Thursday was taken up, and said "limited until" six hours from now: the
horizon, not the time that the server had stated. No worker ever woke it. Ctrl-C on a program
without a session advised `mulligan resume`, which then refused. SIGTERM said "parked" and exited
with 130. `resume` of a run that was done was an error.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from mulligan.run.attempt.options import RunOptions
from mulligan.run.context import REAL_PLATFORM, RunContext
from mulligan.run.drive import make_run
from mulligan.run.journal.entries import AttemptBegun, AttemptEnd, RunMade, RunRescheduled
from mulligan.run.journal.state import state_of
from mulligan.run.journal.store import RunStore
from mulligan.run.process.stop import Stop
from mulligan.run.show.messages import summary
from mulligan.run.worker import Worker

from ..run.scripted import AGENT, Stage

THURSDAY = 2 * 86_400.0


@pytest.fixture
def limited(tmp_path):
    """A run that is limited until a time in two days."""
    runs, now = RunStore(), time.time()
    environ = {"PATH": "", "HOME": str(tmp_path)}
    with closing(Stop()) as stop:
        context = RunContext(environ, runs, stop, REAL_PLATFORM)
        claimed, *_ = make_run(context, ("claude", "-p", "x"), RunOptions(), cwd=str(tmp_path))
    runs.write(claimed, AttemptBegun(now, 1, "start", "", ""), "b")
    ended = AttemptEnd(
        now, 1, 1.0, code=1, kind="quota", then="stop", until=now + THURSDAY, exit=75, because="far"
    )
    runs.write(claimed, ended, "e")
    runs.release(claimed)
    yield claimed.id, runs
    runs.close()


def test_a_limited_run_keeps_the_time_that_was_stated(limited, mulligan):
    id_, runs = limited
    before = runs.look(id_)
    code, out, err = mulligan("resume", id_)
    assert (code, out) == (75, "")
    assert f"run {id_} is limited until " in err
    assert "beyond the horizon of 6h" in err
    assert f"mulligan resume {id_} --horizon 2d" in err
    after = runs.look(id_)
    assert (after.status, after.until, after.steps) == ("limited", before.until, before.steps)


def test_a_longer_horizon_waits_for_it_and_is_remembered(limited, mulligan):
    id_, runs = limited
    until = runs.look(id_).until
    assert mulligan("resume", id_, "--horizon", "3d", "--park", "exit")[0] == 75
    after = runs.look(id_)
    assert (after.status, after.until, after.horizon) == ("waiting", until, 3 * 86_400.0)


@pytest.mark.real
def test_a_horizon_that_was_changed_holds_for_what_follows(tmp_path):
    stage = Stage(tmp_path)
    first = stage.run("limit:50000 limit:50000 ok")
    assert first.state.status == "limited"
    now = stage.clock.wall()
    claimed = stage.runs.claim(first.id, now)
    moved = RunRescheduled(now, first.state.until or now, "by hand", horizon=86_400.0)
    stage.runs.write(claimed, moved, "by-hand")
    run = stage.drive(claimed, "limit:50000 limit:50000 ok")
    assert (run.code, run.state.attempts) == (0, 3)
    assert stage.clock.now() > 100_000


@pytest.mark.real
def test_a_worker_wakes_a_limited_run_when_its_time_has_come(tmp_path):
    stage = Stage(tmp_path)
    first = stage.run("limit:50000 ok")
    assert (first.code, first.state.status) == (75, "limited")
    woken = []

    def drive(claimed, state):
        woken.append(stage.drive(claimed, "limit:50000 ok", park="exit").code)

    def worked():
        stop = Stop()
        worker = Worker(
            stage.context(stop=stop),
            drive=drive,
            jobs=1,
            failed=lambda id_, error: pytest.fail(f"{id_}: {error}"),
        )
        worker.work(is_once=True, glance=1.0)
        stop.close()

    worked()
    assert woken == []
    stage.clock.sleep(50_100)
    worked()
    assert woken == [0]
    state = stage.runs.look(first.id)
    assert state is not None
    assert state.status == "done"


def interrupted(*, session="", terms=None):
    made = RunMade(0.0, "claude", "claude", "/", "host", 0, "", terms or {}, [])
    begun = AttemptBegun(1.0, 1, "start", "", "")
    ended = AttemptEnd(2.0, 1, 1.0, signal=2, stopped="interrupt", session=session, then="pause")
    state = state_of([made, begun, ended._replace(exit=130, because="interrupted")])
    assert state is not None
    return [each.text for each in summary("k3fqzz", state)]


def test_ctrl_c_advises_what_will_not_refuse():
    assert interrupted(session="s-1234567")[-1] == "to continue: mulligan resume k3fqzz"
    assert interrupted(terms={"may_restart": True})[-1] == "to continue: mulligan resume k3fqzz"
    assert interrupted()[-1] == (
        "to restart it, which may repeat its work: mulligan resume k3fqzz --restart"
    )


@pytest.mark.real
def test_a_finished_run_is_no_error(tmp_path, mulligan, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mulligan("run", "--name", "quick", "--", "true")[0] == 0
    code, out, err = mulligan("resume", "quick")
    assert (code, out) == (0, "")
    assert "is done; mulligan show " in err


def stopped_by(number: int, tmp_path: Path, command: tuple[str, ...], script: str):
    """The exit code and the words of a run that gets a signal in its first attempt."""
    program = tmp_path / "claude"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n')
    program.chmod(0o755)
    environ = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "MULLIGAN_HOME": str(tmp_path / "home"),
        "SESSIONS": str(tmp_path / "sessions"),
        "SCRIPT": script,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "mulligan", "run", "--", *command],
        cwd=tmp_path,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started = tmp_path / "started"
    ends_at = time.monotonic() + 30
    while not started.exists() and time.monotonic() < ends_at:
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


WORKS = ("claude", "-p", "x")
SLEEPS = ("sh", "-c", "touch started; sleep 60")


@pytest.mark.real
@pytest.mark.parametrize(
    ("number", "command", "code", "words"),
    [
        (signal.SIGTERM, WORKS, 75, "mulligan: parked until"),
        (signal.SIGINT, WORKS, 130, "mulligan: interrupted: 1 attempt"),
        (signal.SIGTERM, SLEEPS, 143, "mulligan: ended by SIGTERM: 1 attempt"),
        (signal.SIGHUP, SLEEPS, 129, "mulligan: ended by SIGHUP: 1 attempt"),
        (signal.SIGINT, SLEEPS, 130, "mulligan: interrupted: 1 attempt"),
    ],
)
def test_what_a_stopped_run_says_and_its_exit_code_agree(tmp_path, number, command, code, words):
    found, err = stopped_by(number, tmp_path, command, "write:started stall:60")
    assert (found, words in err) == (code, True), err
