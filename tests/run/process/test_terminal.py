"""At a real terminal: Ctrl-C, Ctrl-Z, a closed window, a reader that goes away."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time

import pytest

pytestmark = pytest.mark.real

# What `mulligan run` does with the pieces, and no more.
PROGRAM = """
import os, sys, time
from pathlib import Path
from mulligan.run.show.standard_streams import PatientWriter
from mulligan.run.process.supervise import supervise
from mulligan.run.process.stop import Stop, signals
from mulligan.run.show.terminal import Terminal

class Sink:
    def take(self, stream, chunk):
        fd = 1 if stream == "stdout" else 2
        terminal.passed(fd, chunk)
        PatientWriter(fd, stop).write(chunk)
    def ending(self): pass
    def quiet_until(self):
        return 0.0

stop, terminal = Stop(), Terminal(1, 2)
idle = float(sys.argv[1]) or None
with signals(stop):
    ended = supervise(
        sys.argv[2:], cwd=Path("/"), environ=dict(os.environ), stdin=None, sink=Sink(),
        idle=idle, timeout=20, stop=stop, grace=(0.5, 0.5),
    )
terminal.restore()
os.write(2, f"[{ended.code} {ended.signal} {ended.stopped}]".encode())
"""


FOR_EVER = "echo go; while :; do sleep 0.02; done"

# A shell that does job control: what stops is brought back when the user says so.
SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if not job:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
while os.WIFSTOPPED(os.waitpid(job, os.WUNTRACED)[1]):
    os.tcsetpgrp(0, os.getpgrp())
    os.write(1, b"[stopped]")
    os.read(0, 100)
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
"""


class Window:
    """A terminal with our program in its foreground."""

    def __init__(self, *argv: str, idle: float, is_in_shell: bool) -> None:
        self.screen = b""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            shell = [SHELL] if is_in_shell else []
            words = [sys.executable, "-c", *shell, PROGRAM, str(idle), *argv]
            os.execv(sys.executable, words)  # noqa: S606

    def see(self, words: str) -> str:
        """Wait until `words` (a pattern) are on the screen; everything on it."""
        ends_at = time.monotonic() + 20
        while not re.search(words, self.screen.decode(errors="replace")):
            assert time.monotonic() < ends_at, f"never saw {words!r} in {self.screen!r}"
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.screen += os.read(self.fd, 4096)
                except OSError:
                    break
        return self.screen.decode(errors="replace")

    def type(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.fixture
def window():
    windows = []

    def open_window(*argv: str, idle: float = 0, is_in_shell: bool = False) -> Window:
        windows.append(Window(*argv, idle=idle, is_in_shell=is_in_shell))
        return windows[-1]

    yield open_window
    for opened in windows:
        opened.close()


def test_ctrl_c_reaches_the_program_through_us_well_within_a_second(window, within):
    at = window(
        "sh", "-c", "trap 'echo cleaned; exit 9' INT; echo go; while :; do sleep 0.02; done"
    )
    at.see("go")
    with within(1):
        at.type(b"\x03")
        assert "cleaned" in at.see(r"\[9 None interrupt\]")


def test_a_second_ctrl_c_is_faster(window):
    at = window(
        "sh",
        "-c",
        "trap 'echo no' INT; trap 'echo never' TERM; echo go; while :; do sleep 0.02; done",
    )
    at.see("go")
    at.type(b"\x03")
    at.see("no")
    at.type(b"\x03")
    at.see("never")
    at.type(b"\x03")
    at.see(r"\[None 9 interrupt\]")


def test_ctrl_z_stops_the_program_with_us_and_it_goes_on_with_us(window, tmp_path):
    ticks = tmp_path / "ticks"
    script = f"for i in 1 2 3 4 5 6 7 8; do echo go$i; echo >> {ticks}; sleep 0.1; done"
    at = window("sh", "-c", script, idle=0.6, is_in_shell=True)
    at.see("go2")
    at.type(b"\x1a")
    at.see("stopped")
    before = ticks.stat().st_size
    time.sleep(0.8)  # E-B7: longer than idle, and not the program's silence
    assert ticks.stat().st_size == before < 8
    at.type(b"\n")
    assert "go8" in at.see(r"\[0 None \]")


def test_ctrl_c_works_after_ctrl_z(window):
    at = window("sh", "-c", "echo go; exec sleep 60", is_in_shell=True)
    at.see("go")
    for _ in range(2):
        at.screen = b""
        at.type(b"\x1a")
        at.see("stopped")
        at.type(b"\n")
        time.sleep(0.1)
    at.type(b"\x03")
    at.see(r"\[None 2 interrupt\]")


def test_a_killed_program_leaves_a_usable_terminal(window):
    script = r"printf '\033[?1049h\033[?25l\033[31mgo'; exec sleep 60"
    at = window("sh", "-c", script)
    before = termios.tcgetattr(at.fd)
    at.see("go")
    at.type(b"\x03")
    assert at.see(r"\[None 2 interrupt\]").endswith("\x1b[?25h\x1b[0m\x1b[?1049l[None 2 interrupt]")
    assert termios.tcgetattr(at.fd) == before


def test_a_tidy_program_is_followed_by_nothing_of_ours(window):
    assert window("echo", "hello").see(r"\]") == "hello\r\n[0 None ]"


def test_the_program_cannot_reach_the_terminal_behind_our_back(window):
    # A prompt for a password would wait for ever for somebody who is not there.
    at = window("sh", "-c", "echo secret? > /dev/tty || echo refused; [ -t 0 ] || echo no input")
    seen = at.see(r"\[\d+ None \]")
    assert "refused" in seen
    assert "no input" in seen
    assert "secret?" not in seen


def test_a_closed_window_ends_the_program(window, tmp_path, eventually):
    at = window(
        "sh",
        "-c",
        f"trap 'echo bye > {tmp_path}/bye; exit' INT; echo go; while :; do sleep 0.02; done",
    )
    at.see("go")
    os.kill(at.pid, signal.SIGHUP)
    assert eventually((tmp_path / "bye").exists)


def test_a_reader_that_goes_away_ends_the_program():
    # mulligan run -- agent | head -1
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "0", "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.read(2) == b"y\n"
        running.stdout.close()
        assert running.stderr.read() == b"[None 13 pipe]"
    assert running.returncode == 0


def test_a_stop_is_not_held_up_by_a_reader_that_pauses():
    # mulligan run -- agent | less
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "0", "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.read(2) == b"y\n"
        time.sleep(0.2)  # by now the pipe is full
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == b"[None 2 interrupt]"
        assert time.monotonic() - began < 10  # or for ever
