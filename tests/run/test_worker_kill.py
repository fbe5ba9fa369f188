"""kill -9 of workers and of the programs they drive, at any moment: the next worker goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mulligan.cli import main

from .scripted import Stage
from .test_worker import look, parked, worker

# A handful here; `make soak` asks for hundreds.
LIVES = int(os.environ.get("MULLIGAN_SOAK", "3"))
SCRIPT = "effect work overloaded work crash ok"


def victims(process, dice):
    """The worker, or one of the programs that it drives."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)],  # noqa: S607 -- the one on the PATH
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    children = [int(each) for each in listed.stdout.split()]
    return dice.choice([process.pid, *children])


def wait_until_it_listens(process):
    """Until the worker has its handlers: a signal that comes while Python starts just ends it."""
    status, ends_at = Path(f"/proc/{process.pid}/status"), time.monotonic() + 30
    while status.exists() and time.monotonic() < ends_at:
        (caught,) = [each for each in status.read_text().splitlines() if each.startswith("SigCgt")]
        if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.02)


@pytest.mark.real
@pytest.mark.parametrize("seed", range(LIVES))
def test_a_run_whose_worker_or_program_is_killed_goes_on_once(tmp_path, monkeypatch, seed):
    stage, dice = Stage(tmp_path), random.Random(seed)
    (id_,) = parked(stage, 1, script=SCRIPT)
    for _ in range(3):
        process = worker(stage, SCRIPT, "--poll", "50ms")
        time.sleep(dice.uniform(0.3, 1.0))
        with suppress(ProcessLookupError):
            os.kill(victims(process, dice), signal.SIGKILL)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    last = worker(stage, SCRIPT, "--poll", "50ms")
    ends_at = time.monotonic() + 60
    while look(stage.runs, id_).is_open and time.monotonic() < ends_at:
        descriptors = len(os.listdir(f"/proc/{last.pid}/fd")) if os.path.isdir("/proc") else 0  # noqa: PTH112, PTH208
        assert descriptors < 40
        time.sleep(0.1)
    wait_until_it_listens(last)  # one of the workers before it may have ended the run
    last.send_signal(signal.SIGTERM)
    _, err = last.communicate(timeout=30)
    state = look(stage.runs, id_)
    assert (last.returncode, state.status) == (0, "done"), (err, state)
    assert stage.effects <= 1
    assert not stage.runs.is_held(id_)
    stage.runs.close()
    monkeypatch.setenv("MULLIGAN_HOME", str(stage.runs.folder))
    with pytest.raises(SystemExit) as caught:
        main(["doctor", "--check"])
    assert caught.value.code == 0
