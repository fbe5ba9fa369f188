"""Logs on a disk that is full."""

from __future__ import annotations

import resource
from contextlib import contextmanager

import pytest

from mulligan.errors import StoreError
from mulligan.run.attempt.options import RunOptions
from mulligan.run.attempt.output import AttemptLog
from mulligan.run.drive import make_run

from ..scripted import Stage


@contextmanager
def room_for(size: int):
    """No file may grow beyond `size`: as near as a test comes to a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_log_with_room_has_everything_and_no_trouble(tmp_path):
    log = AttemptLog(tmp_path / "a.out")
    for word in (b"one ", b"two ", b"three"):
        log.write(word)
    log.close()
    assert ((tmp_path / "a.out").read_bytes(), log.trouble) == (b"one two three", "")


def test_a_log_without_room_keeps_its_end_and_says_so(tmp_path):
    log = AttemptLog(tmp_path / "a.out")
    with room_for(4096):
        for number in range(1000):
            log.write(b"line %04d\n" % number)
        log.close()
    kept = (tmp_path / "a.out").read_bytes()
    assert kept.endswith(b"line 0998\nline 0999\n")
    assert len(kept) <= 2048  # half of the room is left to others
    assert log.trouble == "File too large"


@pytest.mark.parametrize("size", [1, 7, 5000, 100_000])
def test_no_size_of_a_chunk_is_too_much_for_a_full_disk(tmp_path, size):
    log = AttemptLog(tmp_path / "a.out")
    with room_for(4096):
        for _ in range(3):
            log.write(b"x" * size)
        log.close()
    assert (tmp_path / "a.out").stat().st_size <= 4096


def test_a_log_that_cannot_be_made_is_no_reason_to_fail(tmp_path):
    log = AttemptLog(tmp_path / "nowhere" / "a.out")
    log.write(b"words")
    log.close()
    assert log.trouble == "No such file or directory"


def test_a_run_for_which_there_is_no_room_is_refused_in_our_words(tmp_path):
    stage = Stage(tmp_path)
    (stage.runs.folder / "runs" / "bcd" / "stdin").mkdir(parents=True)
    command, context = ("claude", "-p", "x"), stage.context()
    with pytest.raises(StoreError, match="no run can be kept here: Is a directory; make room, or"):
        make_run(context, command, RunOptions(), cwd="/", stdin=b"words", id_="bcd")
    assert stage.runs.ids() == ()


@pytest.mark.real
def test_a_program_outlives_its_log_and_its_user_is_told(tmp_path):
    stage = Stage(tmp_path)
    claimed = stage.claimed(("sh", "-c", "echo out; echo err >&2"), "ok")
    (stage.runs.files(claimed.id) / "attempt-1.err").mkdir()
    run = stage.drive(claimed, "ok")
    assert (run.code, run.view.shown) == (0, {"stdout": b"out\n", "stderr": b"err\n"})
    assert [each.text for each in run.state.remarks] == [
        "its log has not all that it printed: Is a directory"
    ]


def test_a_log_that_grows_without_end_keeps_its_head_and_its_tail(tmp_path, monkeypatch):
    """Logs had no cap: a program in a loop filled the disk, and no other run could write."""
    monkeypatch.setattr("mulligan.run.attempt.output.HEAD", 1000)
    monkeypatch.setattr("mulligan.run.attempt.output.REST", 1000)
    log, file, size, largest = AttemptLog(tmp_path / "a.out"), tmp_path / "a.out", 0, 0
    for number in range(2000):
        line = b"line %05d\n" % number
        log.write(line)
        size += len(line)
        largest = max(largest, file.stat().st_size)
    log.close()
    kept = file.read_bytes()
    assert largest <= 3000 + 100
    assert kept.startswith(b"line 00000\nline 00001\n")
    assert kept.endswith(b"line 01998\nline 01999\n")
    (mark,) = [line for line in kept.splitlines() if line.startswith(b"[mulligan: ")]
    assert mark == b"[mulligan: %d bytes were left out here]" % log.left_out
    assert len(kept) - len(mark) - 1 + log.left_out == size  # every byte is accounted for
    lines = [line for line in kept.splitlines() if line != mark]
    assert all(len(line) == 10 for line in lines)  # none is half a line
    assert len(lines) >= 180  # a head, and a tail at least as long
    assert log.trouble == ""


def test_a_line_without_end_is_cut_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("mulligan.run.attempt.output.HEAD", 1000)
    monkeypatch.setattr("mulligan.run.attempt.output.REST", 1000)
    log = AttemptLog(tmp_path / "a.out")
    for _ in range(100):
        log.write(b"x" * 500)
    log.close()
    kept = (tmp_path / "a.out").read_bytes()
    assert len(kept) <= 3100
    assert kept.count(b"x") + log.left_out == 50_000
