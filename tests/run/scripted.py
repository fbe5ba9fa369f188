"""Runs of the scripted agent, with real processes in virtual time."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mulligan.core.moment import Moment
from mulligan.run.attempt.options import DriveOptions, RunOptions
from mulligan.run.context import REAL_PLATFORM, RunContext
from mulligan.run.drive import drive_run, make_run
from mulligan.run.journal.store import RunStore
from mulligan.run.listeners import RunListener
from mulligan.run.process.stop import Stop
from mulligan.testing import VirtualClock

AGENT = Path(__file__).parents[2] / "examples" / "scripted_agent.py"


class Recorder(RunListener):
    """Keeps everything that it is told."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.shown: dict[str, bytes] = {"stdout": b"", "stderr": b""}
        self.waits: list[float] = []
        self.ends: list[Any] = []
        self.notes: list[Any] = []

    def step(self, step):
        self.steps.append(step)

    def output(self, stream, chunk):
        self.shown[stream] += chunk

    def noted(self, note, facts):
        self.notes.append(note)

    def waiting(self, until, left):
        if not self.waits or self.waits[-1] != until:
            self.waits.append(until)

    def over(self, state):
        self.ends.append(state)


class Stage:
    """A folder with the scripted agent on the PATH, a run store, and a clock that jumps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        for name in ("claude", "tool"):
            program = folder / "bin" / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n')
            program.chmod(0o755)
        (folder / "work").mkdir()
        self.clock = clock = VirtualClock()
        self.runs = RunStore(folder / "home", lambda: Moment(clock.now(), clock.wall(), "virtual"))

    def environ(self, script: str) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "SCRIPT": script,
            "SESSIONS": str(self.folder / "sessions"),
            "NOW": str(self.clock.wall()),
        }

    def platform(self, *, interrupted_after: float | None = None):
        """Processes are real, waits are not."""
        began = self.clock.wall()

        def wait(stop: Stop, seconds: float) -> bool:
            self.clock.sleep(seconds)
            if interrupted_after is not None and self.clock.wall() - began >= interrupted_after:
                stop.set("interrupt")
            return stop.is_set

        return REAL_PLATFORM._replace(clock=self.clock, wait=wait, roll=lambda: 0.5)

    def context(self, script: str = "", *, stop: Stop | None = None, **platform: Any) -> RunContext:
        """What drives runs here; `platform` replaces parts of the platform."""
        return RunContext(
            self.environ(script),
            self.runs,
            Stop() if stop is None else stop,
            self.platform()._replace(**platform),
        )

    def claimed(self, command=("claude", "-p", "x"), script: str = "", **asked: Any):
        """A run of `command` in the work folder, claimed and not started."""
        name = asked.pop("name", "")
        context, options = self.context(script), RunOptions(**asked)
        cwd = str(self.folder / "work")
        claimed, _, stdin = make_run(context, command, options, cwd=cwd, name=name)
        stdin.close()
        context.stop.close()
        return claimed

    def run(self, script: str, *, command=("claude", "-p", "Port the tests"), **asked: Any):
        return self.drive(self.claimed(command, script, **asked), script)

    def drive(self, claimed, script: str, *, interrupted_after=None, cleaner=None, **how: Any):
        view, stop = Recorder(), Stop()
        platform = self.platform(interrupted_after=interrupted_after)

        def supervise(argv, *, environ, **more):
            now = {"NOW": str(self.clock.wall())}  # the program lives in our time
            return REAL_PLATFORM.supervise(argv, environ={**environ, **now}, **more)

        context = self.context(script, stop=stop, wait=platform.wait, supervise=supervise)
        context = context._replace(listeners=(view,), output=view.output)
        try:
            code = drive_run(context, claimed, how=DriveOptions(**how), cleaner=cleaner)
        finally:
            stop.close()
        return SimpleNamespace(
            code=code, view=view, id=claimed.id, state=self.runs.look(claimed.id)
        )

    @property
    def effects(self) -> int:
        file = self.folder / "work" / "effects.txt"
        return len(file.read_text().splitlines()) if file.exists() else 0
