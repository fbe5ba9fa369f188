"""kill -9 of `mulligan run` and of the programs, beside one worker that lives on.

The worker goes on with what they leave. Its descriptors are counted before and after.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from mulligan.cli import main

from .killing import until
from .scripted import AGENT, Stage
from .test_worker import look, worker

# Lives with a kill or two each. A handful here; `make soak` asks for more than a hundred.
LIVES = int(os.environ.get("MULLIGAN_SOAK", "6"))
JOBS = 3
SCRIPT = "effect work overloaded work crash ok"


def children(pid: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)],  # noqa: S607 -- the one on the PATH
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return [int(each) for each in listed.stdout.split()]


class House:
    """One worker, and the runs that others begin beside it; each works in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage(folder)
        claude = folder / "bin" / "claude"
        claude.write_text(
            f'#!/bin/sh\nSESSIONS="$PWD/sessions" exec {sys.executable} {AGENT} "$@"\n'
        )
        # Not a pipe: nobody reads it meanwhile, and after seventy runs it is full.
        self.log = folder / "worker.log"
        with self.log.open("wb") as log:
            options = ("--poll", "100ms", "--jobs", str(JOBS))
            self.worker = worker(self.stage, SCRIPT, *options, stderr=log)
        self.kills = 0

    def run_in(self, folder: Path) -> str | None:
        """The run that was begun in `folder`, if it came to that."""
        runs = self.stage.runs
        return next((id_ for id_ in runs.ids() if look(runs, id_).made.cwd == str(folder)), None)

    def begin(self, folder: Path) -> subprocess.Popen[bytes]:
        environ = {
            **self.stage.environ(SCRIPT),
            "MULLIGAN_HOME": str(self.stage.runs.folder),
            "PYTHONPYCACHEPREFIX": str(self.stage.folder / "bytecode"),
        }
        del environ["NOW"]
        return subprocess.Popen(
            [sys.executable, "-m", "mulligan", "run", "--", "claude", "-p", "Port the tests"],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def descriptors(self) -> Counter[str]:
        """What the worker has open while it drives nothing, by the name of the file."""
        until(lambda: not children(self.worker.pid), seconds=30)
        time.sleep(0.5)
        found = [each.readlink().name for each in Path(f"/proc/{self.worker.pid}/fd").iterdir()]
        return Counter(each.partition(":")[0] for each in found)

    def kill(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills += 1

    def live(self, seed: int) -> None:
        """Begin a run; kill its wrapper or program, or one of the worker's; wait for its end."""
        dice, folder = random.Random(seed), self.stage.folder / f"life-{seed}"
        folder.mkdir()
        wrapper = self.begin(folder)
        time.sleep(dice.uniform(0.2, 1.0))
        programs = children(wrapper.pid)
        self.kill(dice.choice(programs) if programs and seed % 2 else wrapper.pid)
        if seed % 3 == 0:
            time.sleep(dice.uniform(0, 0.5))
            for program in children(self.worker.pid)[:1]:
                self.kill(program)
        wrapper.wait(120)
        if self.run_in(folder) is None:  # killed before there was a run
            self.begin(folder).wait(120)
        id_ = self.run_in(folder)
        assert id_ is not None
        until(lambda: not look(self.stage.runs, id_).is_open, seconds=120)

    def check(self, seed: int) -> None:
        folder, runs = self.stage.folder / f"life-{seed}", self.stage.runs
        id_ = self.run_in(folder)
        assert id_ is not None
        state = look(runs, id_)
        assert state.status == "done", state
        effects = folder / "effects.txt"
        assert not effects.exists() or len(effects.read_text().splitlines()) == 1
        logs = runs.files(id_).glob("attempt-*.out")
        assert sum(b'"terminal_reason": "completed"' in log.read_bytes() for log in logs) == 1
        assert not runs.is_held(id_)


@pytest.mark.real
def test_killed_wrappers_and_programs_lose_nothing_and_the_worker_keeps_no_descriptors(
    tmp_path, monkeypatch
):
    house = House(tmp_path)
    try:
        with ThreadPoolExecutor(JOBS) as pool:
            list(pool.map(house.live, range(JOBS)))
            before = house.descriptors()
            list(pool.map(house.live, range(JOBS, LIVES)))
        after = house.descriptors()
    finally:
        house.worker.send_signal(signal.SIGTERM)
        house.worker.communicate(timeout=60)
    for seed in range(LIVES):
        house.check(seed)
    assert house.worker.returncode == 0, house.log.read_text()
    assert house.kills > LIVES // 2  # a program may end before its kill reaches it
    # Of the store's files the main thread has one open, and one is kept for the next thread that
    # begins. SQLite keeps those of its database for its next connections: a run has two threads.
    databases = {"state.db", "state.journal.db"}
    assert all(after[each] <= 2 + 2 * JOBS for each in databases)
    others = {each: number for each, number in after.items() if each not in databases}
    assert all(number <= max(before[each], 2) for each, number in others.items()), (before, after)
    house.stage.runs.close()
    monkeypatch.setenv("MULLIGAN_HOME", str(house.stage.runs.folder))
    with pytest.raises(SystemExit) as caught:
        main(["doctor", "--check"])
    assert caught.value.code == 0
