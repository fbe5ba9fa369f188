"""Runs whose supervisor is killed at any moment, and taken up again until they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from mulligan.run.journal.store import RunStore

from .scripted import AGENT

SCRIPT = "effect work limit:0.2 overloaded work effect crash ok"


class Life(NamedTuple):
    """What came of a run that was killed.

    Args:
        status: Where it ended.
        code: The exit code of whoever ended it.
        effects: How often its tool ran.
        finished: How often the program reported that it was done.
        doubled: Steps that the journal has twice.
        kills: How often its supervisor was killed.
    """

    status: str
    code: int
    effects: int
    finished: int
    doubled: list[str]
    kills: int


def live(folder: Path, moments: list[float]) -> Life:
    """Run the scripted agent; kill its supervisor at each of `moments`; take it up again."""
    programs, work = folder / "bin", folder / "work"
    programs.mkdir()
    work.mkdir()
    claude = programs / "claude"
    claude.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n')
    claude.chmod(0o755)
    environ = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(folder),
        "MULLIGAN_HOME": str(folder / "home"),
        "SCRIPT": SCRIPT,
        "SESSIONS": str(folder / "sessions"),
        "PYTHONPYCACHEPREFIX": str(folder.parent / "bytecode"),
    }
    argv = ["run", "--", "claude", "-p", "Port the tests"]
    kills, code = 0, -1
    for moment in [*moments, None]:
        process = subprocess.Popen(
            [sys.executable, "-m", "mulligan", *argv],
            cwd=work,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            process.communicate(timeout=60 if moment is None else moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=30)
            kills += 1
        code = process.returncode
        runs = RunStore(folder / "home")
        ids = runs.ids()
        state = runs.look(ids[0]) if ids else None
        runs.close()
        if state is not None and state.status == "done":
            break
        argv = ["resume", ids[0]] if ids else argv
    return _told(folder, code, kills)


def _told(folder: Path, code: int, kills: int) -> Life:
    runs = RunStore(folder / "home")
    (id_,) = runs.ids()
    state = runs.look(id_)
    assert state is not None
    begun = Counter(step.attempt for step in state.begun)
    ended = Counter(step.attempt for step in state.ended)
    doubled = [
        f"{name} {number}"
        for name, counts in (("begun", begun), ("ended", ended))
        for number, count in counts.items()
        if count > 1
    ]
    logs = sorted(runs.files(id_).glob("attempt-*.out"))
    finished = sum(b'"terminal_reason": "completed"' in log.read_bytes() for log in logs)
    runs.close()
    file = folder / "work" / "effects.txt"
    effects = len(file.read_text().splitlines()) if file.exists() else 0
    return Life(state.status, code, effects, finished, doubled, kills)


def until(condition, *, seconds: float = 10.0) -> None:
    """Wait for `condition`, in glances."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)
