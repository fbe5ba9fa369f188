"""Workers wake what is due, each run once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from mulligan.run.journal.entries import AttemptBegun, RunMade, RunRescheduled
from mulligan.run.journal.state import RunState
from mulligan.run.journal.store import RunStore
from mulligan.run.worker import is_due

from .killing import until
from .scripted import Stage


def made(**more):
    fields = {"host": os.uname().nodename, "user": os.geteuid(), **more}
    return RunMade(0.0, "claude", "claude", "/", name="", terms={}, variables=[], **fields)


@pytest.mark.parametrize(
    ("status", "due_at", "is_expected"),
    [
        ("waiting", 99.0, True),
        ("waiting", 101.0, False),
        ("running", None, True),  # its supervisor died: only then can it be claimed
        ("new", None, True),
        ("paused", None, False),  # by hand, so by hand
        ("done", None, False),
        ("failed", None, False),
        ("limited", 99.0, True),  # beyond the horizon of whoever started it, but not for ever
        ("limited", 101.0, False),
        ("cancelled", None, False),
    ],
)
def test_due_is_what_should_go_on_by_itself(status, due_at, is_expected):
    assert is_due(RunState(made(), status, until=due_at), 100.0) is is_expected


def look(runs, id_):
    state = runs.look(id_)
    assert state is not None
    return state


def parked(stage, number, *, script):
    """Runs that were parked until a time that has come."""
    found = []
    for _ in range(number):
        now = time.time()
        claimed = stage.claimed(script=script)
        stage.runs.write(claimed, RunRescheduled(now, now - 1, "parked"), "parked")
        stage.runs.release(claimed)
        found.append(claimed.id)
    return found


def worker(stage, script, *options, stderr=subprocess.PIPE):
    environ = {
        **stage.environ(script),
        "MULLIGAN_HOME": str(stage.runs.folder),
        "PYTHONPYCACHEPREFIX": str(stage.folder / "bytecode"),
    }
    del environ["NOW"]
    return subprocess.Popen(
        [sys.executable, "-m", "mulligan", "worker", *options],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


@pytest.mark.real
def test_two_workers_wake_each_parked_run_once(tmp_path):
    stage = Stage(tmp_path)
    ids = parked(stage, 6, script="ok")
    workers = [worker(stage, "ok", "--once", "--jobs", "3") for _ in range(2)]
    ends = [each.communicate(timeout=60) for each in workers]
    assert [each.returncode for each in workers] == [0, 0], ends
    states = [look(stage.runs, id_) for id_ in ids]
    assert [(state.status, state.attempts) for state in states] == [("done", 1)] * 6, ends


@pytest.mark.real
def test_what_was_held_back_for_a_killed_command_goes_once_its_run_is_over(tmp_path):
    """Left over from issue 12: the file stayed for 30 days, for a worker shows nothing."""
    stage = Stage(tmp_path)
    (id_,) = parked(stage, 1, script="ok")
    held = stage.runs.files(id_) / "held"
    held.write_bytes(b"of an attempt whose supervisor was killed")
    process = worker(stage, "ok", "--once")
    _, err = process.communicate(timeout=60)
    assert (process.returncode, look(stage.runs, id_).status) == (0, "done"), err
    assert not held.exists()


@pytest.mark.real
def test_a_run_whose_folder_was_removed_keeps_no_other_from_being_woken(tmp_path):
    stage = Stage(tmp_path)
    ids = parked(stage, 3, script="ok")
    shutil.rmtree(stage.runs.folder / "runs" / ids[0])
    (stage.runs.folder / "runs" / ids[1] / "command.json").unlink()
    (stage.runs.folder / "runs" / ids[1] / "command.json").mkdir()
    woken = worker(stage, "ok", "--once")
    _, err = woken.communicate(timeout=60)
    assert woken.returncode == 0, err
    assert f"{ids[0]}: cannot be resumed: the folder of run {ids[0]} was removed" in err
    assert f"{ids[1]}: cannot be resumed: IsADirectoryError: " in err
    assert "Traceback" not in err
    assert look(stage.runs, ids[2]).status == "done"


@pytest.mark.real
def test_a_worker_that_is_told_to_stop_leaves_its_runs_to_others(tmp_path):
    stage = Stage(tmp_path)
    (id_,) = parked(stage, 1, script="work stall:60 ok")
    first = worker(stage, "work stall:60 ok", "--poll", "50ms")
    until(lambda: look(stage.runs, id_).is_torn, seconds=30)
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=30)
    assert first.returncode == 0  # a service manager asked for nothing else
    state = look(stage.runs, id_)
    assert (state.status, is_due(state, time.time())) == ("waiting", True)  # for the next worker
    assert not stage.runs.is_held(id_)


@pytest.mark.real
def test_a_stopped_holder_is_fenced_when_it_wakes(tmp_path, monkeypatch):
    """SIGSTOP for longer than its lease: somebody else takes over, the zombie writes nothing."""
    monkeypatch.setattr("mulligan.run.journal.lease.LEASE", 0.3)
    stage = Stage(tmp_path)
    (id_,) = parked(stage, 1, script="work stall:60 ok")
    zombie = worker(stage, "work stall:60 ok", "--poll", "50ms")
    try:
        log = stage.runs.files(id_) / "attempt-1.out"
        until(lambda: log.exists() and b"One step done" in log.read_bytes(), seconds=30)
        zombie.send_signal(signal.SIGSTOP)
        runs = RunStore(stage.runs.folder)
        until(lambda: runs.standing(id_) == "silent")
        taken = runs.claim(id_, time.time(), is_by_hand=True)
        run = stage.drive(taken, "work stall:60 ok")
        assert (run.code, run.state.status) == (0, "done")
        steps = run.state.steps
        zombie.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        assert look(runs, id_).steps == steps
        assert [step.how for step in run.view.steps if isinstance(step, AttemptBegun)] == ["resume"]
    finally:
        zombie.send_signal(signal.SIGCONT)
        zombie.send_signal(signal.SIGKILL)
        zombie.communicate(timeout=10)
