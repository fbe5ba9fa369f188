"""A program is run to its end, and what it did is told as it was."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from mulligan.run.process.supervise import has_members

pytestmark = pytest.mark.real


def test_a_program_that_ends_by_itself_keeps_its_code_and_its_words(supervised):
    ended = supervised.sh("echo out; echo err >&2; exit 3")
    assert (ended.code, ended.signal, ended.stopped, ended.error) == (3, None, "", "")
    assert (supervised.out, supervised.err) == ("out\n", "err\n")
    assert ended.took > 0


def test_a_program_that_dies_by_a_signal_has_no_code(supervised):
    ended = supervised.sh("kill -SEGV $$")
    assert (ended.code, ended.signal, ended.stopped) == (None, signal.SIGSEGV, "")


def test_it_runs_in_its_folder_with_its_environment_and_no_shell_in_between(supervised):
    ended = supervised(
        "/bin/sh",
        "-c",
        'pwd; echo "$ONLY"; echo "$1"',
        "sh",
        "$(echo no) *",
        environ={"ONLY": "this"},
    )
    assert ended.code == 0
    assert supervised.out.splitlines() == [
        os.path.realpath(supervised.folder),
        "this",
        "$(echo no) *",
    ]


def test_it_leads_a_session_of_its_own_without_a_terminal(supervised):
    pids: list[int] = []
    supervised.python(
        "import os; print(os.getpid(), os.getpgrp(), os.getsid(0))", on_start=pids.append
    )
    assert supervised.out.split() == [str(pids[0])] * 3


def test_it_inherits_no_descriptor_of_ours(supervised):
    inside, outside = os.pipe()
    os.set_inheritable(inside, True)  # noqa: FBT003
    try:
        supervised.python(f"import os; os.fstat({inside})")
    finally:
        os.close(inside)
        os.close(outside)
    assert "Bad file descriptor" in supervised.err


def test_no_descriptor_of_ours_is_left_open_after_it(supervised):
    before = sorted(path.name for path in Path("/dev/fd").iterdir())
    for _ in range(5):
        supervised.sh("echo hello")
    supervised("no-such-program")
    assert sorted(path.name for path in Path("/dev/fd").iterdir()) == before


def test_nothing_is_started_once_a_stop_was_asked_for(supervised):
    supervised.stop.set("terminate")
    started: list[int] = []
    ended = supervised.sh("echo never", on_start=started.append)
    assert (ended.code, ended.stopped, started) == (None, "terminate", [])


def test_an_error_of_ours_at_the_start_leaves_nobody_behind(supervised, is_running):
    pids: list[int] = []

    def fail(pid):
        pids.append(pid)
        raise RuntimeError("the journal is full")

    with pytest.raises(RuntimeError, match=r"^the journal is full$"):
        supervised.sh("sleep 100", on_start=fail)
    assert not is_running(pids[0])
    assert supervised.stop.groups == set()


def test_a_machine_without_one_more_descriptor_leaves_nobody_behind(
    supervised, is_running, monkeypatch
):
    def refuse():
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("selectors.DefaultSelector", refuse)
    pids: list[int] = []
    with pytest.raises(OSError, match="Too many open files"):
        supervised.sh("sleep 100", on_start=pids.append)
    assert not is_running(pids[0])


def test_an_error_of_the_sink_leaves_nobody_behind(supervised, is_running, eventually):
    class Full:
        def take(self, stream, chunk):
            raise OSError(28, "No space left on device")

        def ending(self):
            pass

        def quiet_until(self):
            return 0.0

    pids: list[int] = []
    with pytest.raises(OSError, match="No space left on device"):
        supervised.sh("sleep 100 & echo x; sleep 100", sink=Full(), on_start=pids.append)
    assert not is_running(pids[0])
    assert eventually(lambda: not has_members(pids[0]))


def test_its_end_is_noticed_where_the_kernel_does_not_tell(supervised, monkeypatch):
    def refuse(_pid):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    ended = supervised.sh("echo a; exec >&- 2>&-; sleep 0.1; exit 3")
    assert (ended.code, supervised.out) == (3, "a\n")
