"""Workers that did not last.

A worker opened a SQLite store and a stdin spool for every wake and closed neither: 62 wakes, 62
descriptors. At a limit of 256 it met EMFILE after 312 runs, and every other run was declared
hopeless. Two workers and one run that could not be driven wrote two entries a second for ever, each
taking the other's ``taken`` for a change. Now a `RunStore` has one store, `drive_run` closes
what a run uses, troubles that pass are tried again later, and a taking is no change.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from threading import enumerate as enumerate_threads
from uuid import uuid4

import pytest

from mulligan.errors import MulliganError, SettingError, StoreDown
from mulligan.run.attempt.options import DriveOptions
from mulligan.run.drive import drive_run
from mulligan.run.journal.entries import RunRescheduled
from mulligan.run.process.stop import Stop
from mulligan.run.process.supervise import ProcessExit as Exited
from mulligan.run.worker import Worker, is_passing
from tests.run.scripted import Stage
from tests.run.test_worker import look


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    yield stage
    stage.runs.close()


def parked(stage, number):
    """Runs that were parked until a time that has come."""
    found = []
    for _ in range(number):
        now = stage.clock.wall()
        claimed = stage.claimed(script="ok")
        stage.runs.write(claimed, RunRescheduled(now, now - 1, "parked"), "parked", is_synced=False)
        stage.runs.release(claimed)
        found.append(claimed.id)
    return found


def worker(stage, drive, *, glances=1, jobs=4, **more):
    """A worker that is stopped after so many glances, and what it told."""
    stop, told, left = Stop(), [], [glances]

    def wait(stop, seconds):
        for thread in enumerate_threads():
            if thread.name.startswith("run "):
                thread.join()
        stage.clock.sleep(seconds)
        left[0] -= 1
        if left[0] <= 0:
            stop.set("terminate")
        return stop.is_set

    found = Worker(
        stage.context("ok", stop=stop, wait=wait),
        drive=drive,
        jobs=jobs,
        failed=lambda id_, error: told.append((id_, str(error))),
        **more,
    )
    return found, stop, told


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
@pytest.mark.parametrize("wakes", [300])
def test_three_hundred_wakes_use_the_descriptors_of_one(stage, wakes):
    (warm, *ids) = parked(stage, wakes + 1)
    (stage.runs.files(ids[0]) / "stdin").write_bytes(b"some input")
    counts = []

    def supervise(argv, **options):
        counts.append(descriptors())
        said = {"type": "result", "subtype": "success", "is_error": False, "result": "ok"}
        said |= {"terminal_reason": "completed", "num_turns": 1, "session_id": str(uuid4())}
        options["sink"].take("stdout", json.dumps(said).encode() + b"\n")
        return Exited(code=0)

    def drive(claimed, state):
        with closing(Stop()) as stop:
            context = stage.context("ok", stop=stop, supervise=supervise)
            drive_run(context, claimed, how=DriveOptions(park="exit"))

    def once():
        found, stop, told = worker(stage, drive, glances=10**6, jobs=1)
        with closing(stop):
            woken = found.work(is_once=True, glance=0.05)
        assert told == []
        return woken

    stage.runs.claim(warm, 1.0)  # what is opened once is open
    before = descriptors()
    assert once() == wakes
    assert {look(stage.runs, id_).status for id_ in ids} == {"done"}
    # Each thread has a connection of its own; those of the last ones may not be closed yet.
    assert max(counts) - before < 40, (before, max(counts))
    assert max(counts[-10:]) <= max(counts[:20]) + 10, counts
    assert descriptors() - before < 25


def test_a_trouble_that_passes_is_tried_again_later_with_growing_waits(stage):
    (id_,) = parked(stage, 1)
    tries = []

    def drive(claimed, state):
        tries.append(stage.clock.now())
        if len(tries) < 5:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        stage.runs.release(claimed)

    found, stop, told = worker(stage, drive, glances=400, jobs=1)
    with closing(stop):
        found.work(is_once=False, glance=0.5)
    waits = [round(later - earlier) for earlier, later in pairwise(tries[:5])]
    assert waits == [5, 10, 20, 40]
    assert told == [(id_, "[Errno 24] Too many open files")]  # once, not each time


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EMFILE, "x"), True),
        (OSError(errno.ENOSPC, "x"), True),
        (OSError(errno.EAGAIN, "x"), True),
        (StoreDown("sqlite:x", "busy"), True),
        (RuntimeError("can't start new thread"), True),
        (IsADirectoryError(errno.EISDIR, "x"), False),
        (SettingError("no such preset"), False),
        (KeyError("step"), False),
    ],
)
def test_which_troubles_pass(error, expected):
    assert is_passing(error) is expected


def test_two_workers_and_a_run_that_cannot_be_driven_write_no_entries_for_ever(stage):
    (id_,) = parked(stage, 1)

    def drive(claimed, state):
        raise SettingError("its policy file is gone")

    stops, workers, told = [], [], []
    for _ in range(2):
        found, stop, said = worker(stage, drive, glances=10**6, jobs=1)
        workers.append(found)
        stops.append(stop)
        told.append(said)
    before = look(stage.runs, id_).steps
    for _ in range(50):  # in turn, as two processes would
        for each in workers:
            each.work(is_once=True, glance=0.05)
    for stop in stops:
        stop.close()
    assert look(stage.runs, id_).steps - before == 2  # each has tried once
    assert told == [[(id_, "its policy file is gone")]] * 2


def test_a_run_that_the_worker_lacks_something_for_stays_parked_and_says_so(stage):
    (id_,) = parked(stage, 1)
    here = {"lacking": "ANTHROPIC_API_KEY was set when the run was created; give it to the worker"}
    driven = []

    def drive(claimed, state):
        driven.append(claimed.id)
        stage.runs.release(claimed)
        raise MulliganError("enough")

    found, stop, told = worker(
        stage, drive, glances=200, jobs=1, lacking=lambda _id, _state: here["lacking"]
    )
    with closing(stop):
        found.work(is_once=True, glance=0.05)
        found.work(is_once=False, glance=1.0)
    state = look(stage.runs, id_)
    assert (state.status, state.attempts, driven) == ("waiting", 0, [])
    assert [each.text for each in state.remarks] == [f"a worker did not wake it: {here['lacking']}"]
    assert told == [(id_, f"it stays parked: {here['lacking']}")]
    here["lacking"] = ""
    again, stop, _ = worker(stage, drive, glances=10**6, jobs=1)
    with closing(stop):
        again.work(is_once=True, glance=0.05)
    assert driven == [id_]
