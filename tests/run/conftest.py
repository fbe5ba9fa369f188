"""What the tests of supervised programs share: a sink that keeps, and one call with short waits."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mulligan.run.process.stop import Stop
from mulligan.run.process.supervise import ProcessExit, supervise


class Kept:
    """A sink that keeps everything, and may act on it."""

    def __init__(self, on_chunk=None, quiet_until: float = 0.0) -> None:
        self.out, self.err = bytearray(), bytearray()
        self.on_chunk, self.quiet = on_chunk, quiet_until

    def ending(self) -> None: ...

    def take(self, stream, chunk: bytes) -> None:
        (self.out if stream == "stdout" else self.err).extend(chunk)
        if self.on_chunk is not None:
            self.on_chunk(stream, chunk)

    def quiet_until(self) -> float:
        return self.quiet


class Supervised:
    """Runs one program; `.sink` and `.stop` are what it was run with."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stop, self.sink = folder, Stop(), Kept()

    def __call__(
        self, *argv: str, sink=None, on_chunk=None, quiet_until=0.0, **options
    ) -> ProcessExit:
        self.sink = Kept(on_chunk, quiet_until) if sink is None else sink
        settings = {
            "cwd": self.folder,
            "environ": dict(os.environ),
            "stdin": None,
            "idle": None,
            "timeout": 30,  # so that a broken test ends
            "stop": self.stop,
            "grace": (0.3, 0.3),
        }
        return supervise(argv, sink=self.sink, **{**settings, **options})

    def python(self, script: str, *args: str, **options) -> ProcessExit:
        return self(sys.executable, "-c", script, *args, **options)

    def sh(self, script: str, *args: str, **options) -> ProcessExit:
        return self("sh", "-c", script, *args, **options)

    @property
    def out(self) -> str:
        return self.sink.out.decode()

    @property
    def err(self) -> str:
        return self.sink.err.decode()


@pytest.fixture
def supervised(tmp_path):
    runner = Supervised(tmp_path)
    yield runner
    runner.stop.close()


@pytest.fixture
def is_running():
    """Whether a process runs; one that has ended and was not reaped does not."""

    def look(pid: int) -> bool:
        listed = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)],  # noqa: S607
            capture_output=True,
            check=False,
            timeout=30,
        )
        return listed.stdout.strip()[:1] not in {b"", b"Z"}

    return look


@pytest.fixture
def eventually():
    """Whether something becomes true, with a few looks."""

    def look(is_true, seconds: float = 5.0) -> bool:
        ends_at = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > ends_at:
                return False
            time.sleep(0.01)
        return True

    return look


@pytest.fixture
def ended_after():
    """Ends a process when the test is over."""
    pids = []

    def remember(pid: int) -> int:
        pids.append(pid)
        return pid

    yield remember
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
