"""Why a program cannot be started is said in words that tell what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.real


@pytest.fixture
def script(tmp_path):
    def write(name, text, mode=0o755):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    return write


def test_a_program_that_nobody_installed(supervised):
    ended = supervised("no-such-agent", "-p", "hello")
    assert (ended.code, ended.signal) == (127, None)
    assert ended.error == "cannot start no-such-agent: not found on the PATH"


def test_a_path_that_leads_nowhere(supervised):
    assert supervised("./agent").error == "cannot start ./agent: no such file"


def test_a_command_without_a_name(supervised):
    assert supervised("").error == "cannot start a program without a name"


def test_a_file_that_may_not_be_executed(supervised, script):
    path = script("agent", "#!/bin/sh\n", 0o644)
    expected = f"cannot start ./agent: {path} is not executable; chmod +x makes it so"
    assert supervised("./agent").error == expected


def test_a_folder(supervised, tmp_path):
    (tmp_path / "agent").mkdir()
    assert supervised("./agent").error == f"cannot start ./agent: {tmp_path}/agent is a folder"


def test_a_link_to_a_file_that_was_removed(supervised, tmp_path):
    (tmp_path / "agent").symlink_to(tmp_path / "removed")
    expected = f"cannot start ./agent: {tmp_path}/agent is a link to a file that does not exist"
    assert supervised("./agent").error == expected


def test_a_script_whose_interpreter_is_missing(supervised, script):
    path = script("agent", "#!/opt/none/node --flag\n")
    expected = f"cannot start ./agent: {path} needs /opt/none/node, which does not exist"
    assert supervised("./agent").error == expected


def test_a_script_whose_interpreter_may_not_be_executed(supervised, script):
    interpreter = script("node", "", 0o644)
    path = script("agent", f"#!{interpreter}\n")
    expected = f"cannot start ./agent: {path} needs {interpreter}, which is not executable"
    assert supervised("./agent").error == expected


def test_a_file_that_is_no_program(supervised, script):
    path = script("agent", "hello\n")
    assert supervised("./agent").error == (
        f"cannot start ./agent: {path} is neither a program for this machine "
        f"nor a script that begins with #!"
    )


def test_a_folder_to_run_in_that_does_not_exist(supervised, tmp_path):
    ended = supervised("true", cwd=tmp_path / "gone")
    assert ended.error == f"cannot start true in {tmp_path}/gone: that does not exist"


def test_a_folder_to_run_in_that_is_a_file(supervised, script, tmp_path):
    script("notes", "")
    ended = supervised("true", cwd=tmp_path / "notes")
    assert ended.error == f"cannot start true in {tmp_path}/notes: that is no folder"


def test_a_folder_to_run_in_that_vanishes_at_the_last_moment(supervised, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "is_dir", lambda path: path == tmp_path / "gone")
    ended = supervised("true", cwd=tmp_path / "gone")
    assert ended.error == f"cannot start true in {tmp_path}/gone: No such file or directory"


def test_a_prompt_that_is_too_long_for_an_argument(supervised):
    ended = supervised("true", "x" * 3_000_000)
    assert ended.error == (
        "cannot start true: its arguments and environment are too long for this system "
        "(the longest argument has 3000000 bytes); give a long prompt on stdin"
    )


def test_an_argument_with_a_null_byte(supervised):
    assert supervised("true", "a\0b").error == "cannot start true: embedded null byte"


def test_a_machine_that_has_no_room_for_one_more_process(supervised, monkeypatch):
    def refuse(*args, **options):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr("subprocess.Popen", refuse)
    assert supervised("true").error == "cannot start true: Resource temporarily unavailable"


def test_it_is_looked_for_on_the_path_that_it_gets(supervised, script, tmp_path):
    for name, word in (("first", "one"), ("second", "two")):
        (tmp_path / name).mkdir()
        script(f"{name}/agent", f"#!/bin/sh\necho {word}\n", 0o644 if name == "first" else 0o755)
    ended = supervised("agent", environ={"PATH": f"{tmp_path}/first:{tmp_path}/second"})
    assert (ended.code, supervised.out) == (0, "two\n")


def test_a_name_with_a_slash_is_meant_from_the_folder_it_runs_in(supervised, script):
    script("agent", "#!/bin/sh\necho here\n")
    assert supervised("./agent").code == 0
    assert supervised.out == "here\n"


def test_a_relative_folder_is_entered_once(supervised, script, tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    script("sub/agent", "#!/bin/sh\npwd\n")
    monkeypatch.chdir(tmp_path)
    assert supervised("./agent", cwd=Path("sub")).error == ""
    assert supervised.out == f"{tmp_path.resolve()}/sub\n"
