"""Workers on a host with another name, in another pid namespace, and beside other versions.

Two workers share one state folder, one of them under another host name and in another pid
namespace, as in a container; one is killed at any moment. And journals of an older schema are
opened by several workers at once, with runs in them that a newer version has written to.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from mulligan.run.journal.lease import LEASE
from mulligan.stores.sqlite.journal import journal_file

from .killing import until
from .scripted import Stage
from .test_worker import look, parked, worker

pytestmark = pytest.mark.real

# One of each here; `make soak` asks for more. A life may last as long as a lease.
LONG = int(os.environ.get("MULLIGAN_SOAK", "0"))
SCRIPT = "effect work overloaded work ok"
FUTURE = json.dumps({"step": "teleported", "at": 1.0, "version": 99})


def elsewhere() -> list[str]:
    """What starts a program in a pid namespace and under a host name of its own, or skips."""
    for rights in ([], ["-r"]):
        words = ["unshare", *rights, "-p", "-f", "-u", "--mount-proc", "--kill-child"]
        named = [*words, "sh", "-c", 'hostname "another-$$-$(date +%s)" && exec "$0" "$@"']
        try:
            tried = subprocess.run([*named, "true"], capture_output=True, check=False, timeout=30)
        except FileNotFoundError:
            break
        if not tried.returncode:
            return named
    pytest.skip("PID NAMESPACES ARE FORBIDDEN HERE: unshare -p -u does not work")


def worker_at(
    place: list[str], stage: Stage, script: str, *options: str
) -> subprocess.Popen[bytes]:
    environ = {**stage.environ(script), "MULLIGAN_HOME": str(stage.runs.folder)}
    del environ["NOW"]
    return subprocess.Popen(
        [*place, sys.executable, "-m", "mulligan", "worker", *options],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def finished(stage: Stage, id_: str) -> int:
    """How often the program of a run has reported that it was done."""
    logs = stage.runs.files(id_).glob("attempt-*.out")
    return sum(b'"terminal_reason": "completed"' in log.read_bytes() for log in logs)


@pytest.mark.parametrize("seed", range(max(1, LONG // 4)))
def test_workers_on_two_hosts_do_each_run_once_though_one_is_killed(tmp_path, seed):
    place, stage, dice = elsewhere(), Stage(tmp_path), random.Random(seed)
    (id_,) = parked(stage, 1, script=SCRIPT)
    here = worker(stage, SCRIPT, "--poll", "50ms")
    there = worker_at(place, stage, SCRIPT, "--poll", "50ms")
    try:
        time.sleep(dice.uniform(0.3, 1.0))
        (here if seed % 2 == 0 else there).kill()
        # What a worker elsewhere held is free once its lease is over, which nobody renews.
        until(lambda: not look(stage.runs, id_).is_open, seconds=2 * LEASE + 60)
    finally:
        here.send_signal(signal.SIGTERM)
        _, err = here.communicate(timeout=60)
        there.kill()
        there.wait(60)
    assert look(stage.runs, id_).status == "done", err
    assert finished(stage, id_) == 1
    assert stage.effects == 1
    stage.runs.close()


def aged(stage: Stage) -> None:
    """Make the journal one of schema 2, which had no leases, and runs that know their host only."""
    stage.runs.close()
    file = sqlite3.connect(stage.runs.folder / "state.journal.db")
    with file:
        file.execute("DROP TABLE lease")
        file.execute("DELETE FROM meta WHERE name = 'made_at'")
        entries = file.execute("SELECT stream, place, body FROM journal").fetchall()
        for stream, place, body in entries:
            old = json.loads(body)
            for name in ("machine", "path"):
                old.pop(name, None)
            if "holder" in old:
                old["holder"] = "host 12@99.ab 01020304"
            file.execute(
                "UPDATE journal SET body = ? WHERE stream = ? AND place = ?",
                (json.dumps(old), stream, place),
            )
        file.execute("PRAGMA user_version = 2")
    file.close()


def touched_by_newer(stage: Stage, id_: str) -> None:
    """Put an entry of a newer version behind what the run has."""
    file = sqlite3.connect(stage.runs.folder / "state.journal.db")
    with file:
        file.execute(
            "INSERT INTO journal SELECT stream, MAX(place) + 1, 'newer', 1, ? FROM journal "
            "WHERE stream = ?",
            (FUTURE, f"run/{id_}"),
        )
    file.close()


@pytest.mark.parametrize("seed", range(max(1, LONG // 4)))
def test_workers_migrate_an_old_journal_once_and_leave_newer_runs_alone(tmp_path, seed):
    stage, dice = Stage(tmp_path), random.Random(seed)
    ids = parked(stage, 5, script="ok")
    aged(stage)
    newer = set(dice.sample(ids, 2))
    for id_ in newer:
        touched_by_newer(stage, id_)
    workers = [worker(stage, "ok", "--once") for _ in range(3)]
    ends = [each.communicate(timeout=120) for each in workers]
    assert [each.returncode for each in workers] == [0, 0, 0], ends
    assert set(stage.runs.unreadable()) == newer
    for id_ in set(ids) - newer:
        state = look(stage.runs, id_)
        assert (state.status, state.attempts, finished(stage, id_)) == ("done", 1, 1), ends
    for id_ in newer:
        assert finished(stage, id_) == 0
    stage.runs.close()
    file = sqlite3.connect(stage.runs.folder / "state.journal.db")
    (version,) = file.execute("PRAGMA user_version").fetchone()
    file.close()
    assert version == journal_file(stage.runs.folder / "state.db").version
