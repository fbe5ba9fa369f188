"""Whether a group that prints nothing is at work."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from mulligan.run.process.activity import Activity, activity_of, received_by

pytestmark = pytest.mark.real

IS_LINUX = sys.platform == "linux"


@pytest.fixture
def started():
    """Starts a program in a group of its own, and ends it."""
    programs: list[subprocess.Popen[bytes]] = []

    def start(script: str) -> subprocess.Popen[bytes]:
        program = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        programs.append(program)
        assert program.stdout is not None
        program.stdout.readline()  # it is there
        return program

    yield start
    for program in programs:
        program.kill()
        program.communicate()


def test_a_program_that_waits_shows_nothing(started):
    program = started("print(flush=True); import time; time.sleep(30)")
    before = activity_of(program.pid)
    time.sleep(0.3)
    after = activity_of(program.pid)
    assert not after.has_worked(before, 0.3)
    assert not after.has_heard(before)


BUSY = "import time\nends = time.monotonic() + 30\nwhile time.monotonic() < ends: pass"


def test_what_a_grandchild_in_a_group_of_its_own_computes_counts(started):
    script = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {BUSY!r}], start_new_session=True)\n"
        "print(child.pid, flush=True)\nsys.stdin.read()\nchild.kill()\n"
    )
    program = started(script)
    before = activity_of(program.pid)
    ends_at = time.monotonic() + 10
    while not activity_of(program.pid).has_worked(before, 0.5):  # it may have to wait for its turn
        assert time.monotonic() < ends_at
        time.sleep(0.1)
    program.communicate(b"")


@pytest.mark.skipif(not IS_LINUX, reason="the kernel's count of bytes is Linux's")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_arrives_on_a_connection_counts(host):
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        door = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"nothing listens on {host} here")
    with door, socket.create_connection(door.getsockname()[:2]) as near:
        far, _ = door.accept()
        with far:
            me, inode = {os.getpid()}, os.fstat(near.fileno()).st_ino
            before = Activity(0.0, received_by(me))
            far.sendall(b"ping")
            ends_at = time.monotonic() + 5
            while not Activity(0.0, received_by(me)).has_heard(before):
                assert time.monotonic() < ends_at
            assert received_by(me)[inode] == 4


def test_a_group_that_is_gone_shows_nothing(started):
    program = started("print(flush=True)")
    program.communicate()
    assert activity_of(program.pid) == Activity(0.0, {})


def test_a_connection_that_was_closed_is_no_sign_of_life():
    assert not Activity(1.0, {}).has_heard(Activity(1.0, {7: 100}))
    assert not Activity(1.0, {7: 100, 8: 0}).has_heard(Activity(1.0, {7: 100}))
    assert Activity(1.0, {8: 1}).has_heard(Activity(1.0, {7: 100}))
    assert not Activity(0.5, {}).has_worked(Activity(1.0, {}), 10.0)  # a member has gone
