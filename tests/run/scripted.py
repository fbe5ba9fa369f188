"""Runs of the scripted agent, with real processes in virtual time."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mulligan.core.moment import Moment
from mulligan.run.begin import Asked, go, machine, make
from mulligan.run.desk import Desk
from mulligan.run.stop import Stop
from mulligan.testing import VirtualClock

AGENT = Path(__file__).parents[2] / "examples" / "scripted_agent.py"


class Recorder:
    """A view that keeps everything."""

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

    def notified(self, error): ...

    def over(self, state):
        self.ends.append(state)


class Stage:
    """A folder with the scripted agent on the PATH, a desk, and a clock that jumps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        for name in ("claude", "tool"):
            program = folder / "bin" / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n')
            program.chmod(0o755)
        (folder / "work").mkdir()
        self.clock = clock = VirtualClock()
        self.desk = Desk(folder / "home", lambda: Moment(clock.now(), clock.wall(), "virtual"))

    def environ(self, script: str) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "SCRIPT": script,
            "SESSIONS": str(self.folder / "sessions"),
            "NOW": str(self.clock.wall()),
        }

    def world(self, *, interrupted_after: float | None = None):
        """Processes are real, waits are not."""
        began = self.clock.wall()

        def wait(stop: Stop, seconds: float) -> bool:
            self.clock.sleep(seconds)
            if interrupted_after is not None and self.clock.wall() - began >= interrupted_after:
                stop.set("interrupt")
            return stop.is_set

        return machine()._replace(clock=self.clock, wait=wait, roll=lambda: 0.5)

    def run(self, script: str, *, command=("claude", "-p", "Port the tests"), **asked: Any):
        claimed, _ = make(
            self.desk,
            command,
            Asked(**asked),
            cwd=str(self.folder / "work"),
            environ=self.environ(script),
            now=self.clock.wall(),
        )
        return self.drive(claimed, script)

    def drive(self, claimed, script: str, *, interrupted_after=None, **options: Any):
        view, stop = Recorder(), Stop()
        world = self.world(interrupted_after=interrupted_after)

        def supervise(argv, *, environ, **more):
            now = {"NOW": str(self.clock.wall())}  # the program lives in our time
            return machine().supervise(argv, environ={**environ, **now}, **more)

        try:
            code = go(
                self.desk,
                claimed,
                environ=self.environ(script),
                view=view,
                stop=stop,
                world=world._replace(supervise=supervise),
                **options,
            )
        finally:
            stop.close()
        return SimpleNamespace(
            code=code, view=view, id=claimed.id, state=self.desk.look(claimed.id)
        )

    @property
    def effects(self) -> int:
        file = self.folder / "work" / "effects.txt"
        return len(file.read_text().splitlines()) if file.exists() else 0
