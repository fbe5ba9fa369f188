"""Surroundings that nobody tested: each ended in a traceback, or disturbed other threads.

A folder of the PATH that may not be entered ended in `PermissionError` though the program lay in
the next one. A folder or a variable whose name is not UTF-8 could not be written to the journal.
The umask was read by setting it, for all threads. A `Stop` could write to a descriptor that had
been closed and given to another file. `run_plan` from Python swallowed SIGTERM.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mulligan.run.process.spawn import CannotStart, find
from mulligan.run.process.stop import Stop
from mulligan.run.process.table import umask
from tests.run.killing import until


def test_a_folder_of_the_path_that_cannot_be_looked_into_is_passed_over(tmp_path):
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    # Longer than a name may be: as a folder that may not be entered, it cannot be looked into.
    environ = {"PATH": f"{'x' * 300}:{tmp_path}"}
    assert find("tool", cwd=tmp_path, environ=environ) == program
    with pytest.raises(CannotStart, match="not found on the PATH"):
        find("other", cwd=tmp_path, environ=environ)


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_of_the_path_that_may_not_be_entered_is_passed_over(tmp_path):
    shut, open_ = tmp_path / "shut", tmp_path / "open"
    for folder in (shut, open_):
        folder.mkdir()
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    program = open_ / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    shut.chmod(0o700)
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.setuid(65534)
            found = find("tool", cwd=open_, environ={"PATH": f"{shut}:{open_}"})
            code = 0 if found == program else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.real
def test_names_that_are_not_utf_8_are_run_shown_and_listed(tmp_path):
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    Path(os.fsdecode(folder)).mkdir()
    environ = {
        **os.environb,
        b"MULLIGAN_HOME": os.fsencode(tmp_path / "home"),
        b"N\xff": b"v\xff",
        b"PATH": os.environb[b"PATH"] + b":" + folder,
        b"LC_ALL": b"C.UTF-8",
    }

    def mulligan(*words):
        return subprocess.run(
            [sys.executable, "-m", "mulligan", *words],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )

    done = mulligan("run", "--", "sh", "-c", "pwd; exit 3")
    assert (done.returncode, done.stdout) == (3, folder + b"\n"), done.stderr
    for words in (("runs",), ("show",), ("show", "--json"), ("runs", "--json"), ("doctor",)):
        shown = mulligan(*words)
        assert (shown.returncode, b"Traceback" in shown.stderr) == (0, False), shown.stderr
    again = mulligan("resume")
    assert b"Traceback" not in again.stderr
    assert again.returncode == 3


def test_the_umask_is_read_without_being_set(monkeypatch):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda _mask: pytest.fail("the umask was set"))
        assert umask() == 0o027
    finally:
        monkeypatch.undo()
        os.umask(before)


@pytest.mark.real
def test_a_stop_that_is_closed_while_it_is_set_writes_to_no_other_file(tmp_path):
    """One thread sets, another closes, a third opens files: none of them may get the byte."""
    is_over = threading.Event()
    files: list[int] = []

    def open_files():
        while not is_over.is_set():
            number = os.open(tmp_path / f"f{len(files)}", os.O_CREAT | os.O_RDWR)
            files.append(os.fstat(number).st_ino)
            if os.fstat(number).st_size:
                break
            os.close(number)

    opener = threading.Thread(target=open_files)
    opener.start()
    try:
        for _ in range(300):
            outer = Stop()
            inner = [Stop(outer) for _ in range(4)]
            closer = threading.Thread(target=lambda inner=inner: [each.close() for each in inner])
            closer.start()
            outer.set("terminate")
            closer.join()
            outer.close()
    finally:
        is_over.set()
        opener.join()
    assert [each for each in tmp_path.iterdir() if each.stat().st_size] == []


PLAN = """
from mulligan.run import Agent, Phase, Plan, run_plan
agent = Agent(name="a", command=("sleep", "60"))
run_plan(Plan(name="night", phases=(Phase(name="one", agents=(agent,)),)), is_shown=False)
print("went on", flush=True)
"""


@pytest.mark.real
def test_a_plan_in_python_ends_its_agents_and_then_passes_sigterm_on(tmp_path):
    home = tmp_path / "home"
    child = subprocess.Popen(
        [sys.executable, "-c", PLAN],
        cwd=tmp_path,
        env={**os.environ, "MULLIGAN_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: list(home.glob("runs/*.one.a/attempt-1.out")), seconds=30)
    began = time.monotonic()
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (-signal.SIGTERM, ""), err
    assert time.monotonic() - began < 25
    assert Path(home / "state.journal.db").exists()
