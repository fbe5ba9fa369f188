"""What a killed supervisor or a detaching program left is found by its mark, and only that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid

import pytest

from mulligan.run.process import orphans as module
from mulligan.run.process import table
from mulligan.run.process.orphans import end_leftovers, leftovers, marked
from mulligan.run.process.table import ProcessInfo

pytestmark = pytest.mark.real

# A daemon: two forks, a session of its own, nothing of its parents left but the environment.
DAEMON = """
import os, signal, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for name in sys.argv[2:]:
    signal.signal(getattr(signal, name), signal.SIG_IGN)
null = os.open("/dev/null", os.O_RDWR)
for number in (0, 1, 2):
    os.dup2(null, number)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(60)
"""


@pytest.fixture
def token():
    return uuid.uuid4().hex


@pytest.fixture
def daemon(supervised, tmp_path, token, eventually, ended_after):
    def start(*ignored, environ=None):
        path = tmp_path / uuid.uuid4().hex
        environ = marked(os.environ, token) if environ is None else environ
        assert supervised.python(DAEMON, str(path), *ignored, environ=environ).code == 0
        assert eventually(path.exists)
        return ended_after(int(path.read_text(encoding="ascii")))

    return start


def test_a_daemon_is_found_by_the_mark_of_its_run(daemon, token):
    pid = daemon()
    assert leftovers(token) == [pid]
    assert leftovers(uuid.uuid4().hex) == []


def test_a_mark_that_only_begins_alike_is_another_run(daemon, token):
    daemon()
    assert leftovers(token[:-1]) == []
    assert leftovers(f"{token}0") == []


def test_it_is_ended_gently_at_first(daemon, token, is_running):
    pid = daemon()
    assert end_leftovers(token, (5, 5)) == []
    assert not is_running(pid)
    assert leftovers(token) == []


def test_it_is_killed_if_it_ignores_everything_else(daemon, token, is_running):
    stubborn, other = daemon("SIGINT", "SIGTERM"), daemon("SIGINT")
    began = time.monotonic()
    assert end_leftovers(token, (0.2, 0.2)) == []
    assert time.monotonic() - began >= 0.4
    assert not is_running(stubborn)
    assert not is_running(other)


def test_a_stop_leaves_no_grace(daemon, token, supervised):
    daemon("SIGINT", "SIGTERM")
    supervised.stop.set()
    began = time.monotonic()
    assert end_leftovers(token, (60, 60), supervised.stop) == []
    assert time.monotonic() - began < 5


def test_nobody_else_is_touched(daemon, token, is_running):
    other = daemon(environ=marked(os.environ, uuid.uuid4().hex))
    mine = daemon()
    end_leftovers(token, (1, 1))
    assert is_running(other)
    assert not is_running(mine)


def test_a_run_inside_a_run_belongs_to_both(daemon, token):
    inner = uuid.uuid4().hex
    pid = daemon(environ=marked(marked(os.environ, token), inner))
    assert leftovers(token) == leftovers(inner) == [pid]


def test_who_asks_is_never_among_them(token):
    # An agent that resumes the very run it is part of must not end itself, nor its parents.
    script = (
        "import sys; from mulligan.run.process.orphans import leftovers; "
        "print(leftovers(sys.argv[1]))"
    )
    answer = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" "$2"; true', sys.executable, script, token],  # noqa: S607
        env=marked(os.environ, token),
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert answer.stdout == b"[]\n"


def test_a_supervisor_that_is_killed_leaves_a_program_that_is_found(
    token, eventually, ended_after, tmp_path
):
    script = f"""
import os, sys
from pathlib import Path
from mulligan.run.process.orphans import marked
from mulligan.run.process.supervise import supervise
from mulligan.run.process.stop import Stop
class Sink:
    def take(self, stream, chunk): pass
    def quiet_until(self): return 0.0
supervise([sys.executable, "-c", "import time; time.sleep(60)"], cwd=Path("/"),
          environ=marked(os.environ, {token!r}), stdin=None, sink=Sink(), idle=None, timeout=None,
          stop=Stop())
"""
    supervisor = subprocess.Popen([sys.executable, "-c", script])
    assert eventually(lambda: leftovers(token))
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    (left,) = leftovers(token)
    ended_after(left)
    assert end_leftovers(token, (1, 1)) == []
    assert leftovers(token) == []


def test_a_number_that_was_given_to_another_process_is_not_signalled():
    with subprocess.Popen(["sleep", "60"]) as innocent:  # noqa: S607
        found = ProcessInfo(innocent.pid, "S", os.getpid(), 0, "12345")
        module._tell(found, signal.SIGKILL)
        assert innocent.poll() is None
        innocent.kill()


@pytest.mark.parametrize("word", ["", "a:b", "a\0b"])
def test_a_mark_that_could_mean_everybody_is_refused(word):
    with pytest.raises(ValueError, match=r"^a run's mark is a word without colons; got "):
        leftovers(word)
    with pytest.raises(ValueError, match=r"^a run's mark is a word without colons; got "):
        marked({}, word)


def test_the_lists_that_macos_prints_are_read():
    listed = (
        "  512     1   512 Ss   0:03.50 Sun Nov 15 08:35:26 2026\n"
        "  513   512   512 Z+   0:00.00 Sun Nov 15 08:35:27 2026\n"
        "not a process\n"
    )
    assert list(table._listed(listed)) == [
        ProcessInfo(512, "S", 1, 512, "Sun-Nov-15-08:35:26-2026", 3.5),
        ProcessInfo(513, "Z", 512, 512, "Sun-Nov-15-08:35:27-2026", 0.0),
    ]
    words = table._environments("  512 /bin/agent -p hi A=b MULLIGAN_RUN=a:b X=1\nnot a process\n")
    assert module._runs_of(words[512]) == ["a", "b"]
