"""Runs that two processes drove, and runs that nobody did.

A holder was known by the name of its host and its process id. A worker in another pid namespace (a
container with the same host name) did not find that id, took the holder for dead and the run from
it: both worked at once. And a laptop that got another name with another network had no runs any
more. Now a lease in the store decides where process ids mean nothing, the machine is known by an id
kept with the state, and ``resume --here`` adopts what was made elsewhere. Leases leave no files:
171 ``alive-*`` files were found after a night.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from mulligan.cli import main
from mulligan.run.journal.entries import RunRescheduled
from mulligan.run.journal.store import RunStore
from tests.run.killing import until
from tests.run.scripted import Stage
from tests.run.test_worker import look, parked, worker


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    yield stage
    stage.runs.close()


def _namespace() -> list[str]:
    """What starts a program in a pid namespace of its own; nothing where that is forbidden."""
    for words in (
        ["unshare", "-p", "-f", "--mount-proc"],
        ["unshare", "-r", "-p", "-f", "--mount-proc"],
    ):
        if (
            shutil.which("unshare")
            and not subprocess.run([*words, "true"], capture_output=True, check=False).returncode
        ):
            return words
    return []


@pytest.mark.real
def test_a_worker_in_another_pid_namespace_does_not_take_a_run_that_is_driven(stage):
    words = _namespace()
    if not words:
        pytest.skip("PID NAMESPACES ARE FORBIDDEN HERE: unshare -p does not work")
    (id_,) = parked(stage, 1, script="work stall:60 ok")
    holder = worker(stage, "work stall:60 ok", "--poll", "50ms")
    try:
        log = stage.runs.files(id_) / "attempt-1.out"
        until(lambda: log.exists() and b"One step done" in log.read_bytes(), seconds=30)
        steps = look(stage.runs, id_).steps
        environ = {**stage.environ("ok"), "MULLIGAN_HOME": str(stage.runs.folder)}
        other = subprocess.run(
            [*words, sys.executable, "-m", "mulligan", "worker", "--once"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (other.returncode, other.stderr) == (0, "")
        assert look(stage.runs, id_).steps == steps
        listed = subprocess.run(
            [*words, sys.executable, "-m", "mulligan", "runs"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert " running " in listed.stdout
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate(timeout=10)


@pytest.mark.real
def test_a_host_that_got_another_name_wakes_its_runs(stage):
    now = time.time()
    claimed = stage.claimed(script="ok")
    stage.runs.write(claimed, RunRescheduled(now, now - 1, "parked"), "parked")
    stage.runs.release(claimed)
    state = look(stage.runs, claimed.id)
    assert stage.runs.is_here(state.made._replace(host="the-name-of-yesterday"))
    assert not stage.runs.is_here(state.made._replace(machine="f" * 32))


def resumed(capfd, *argv):
    with pytest.raises(SystemExit) as caught:
        main(["resume", *argv])
    return caught.value.code, capfd.readouterr().err


@pytest.mark.real
def test_a_run_of_another_machine_is_adopted_on_purpose_and_not_otherwise(
    stage, monkeypatch, capfd
):
    (id_,) = parked(stage, 1, script="ok")
    (stage.runs.folder / "machine-id").unlink()  # the journal was brought here, its id was not
    stage.runs.close()
    for name, value in stage.environ("ok").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MULLIGAN_HOME", str(stage.runs.folder))
    code, err = resumed(capfd, id_)
    assert code == 2
    assert f"error: run {id_} was made by user {os.geteuid()} on {os.uname().nodename}" in err
    assert f"mulligan resume {id_} --here adopts it" in err
    runs = RunStore(stage.runs.folder)
    assert not runs.is_here(look(runs, id_).made)
    code, err = resumed(capfd, id_, "--here")
    assert code == 0, err
    state = look(runs, id_)
    assert (state.status, runs.is_here(state.made)) == ("done", True)
    runs.close()


def test_leases_leave_no_files(stage):
    ids = parked(stage, 5, script="ok")
    for id_ in ids:
        claimed = stage.runs.claim(id_, 1.0)
        assert stage.runs.renew(claimed)
        stage.runs.release(claimed)
        assert not stage.runs.is_held(id_)
    names = {each.name for id_ in ids for each in stage.runs.files(id_).iterdir()}
    assert names == {"command.json"}


def test_of_two_who_take_a_run_at_once_one_gets_it(stage):
    from threading import Barrier, Thread

    from mulligan.run.journal.store import RunHeld

    (id_,) = parked(stage, 1, script="ok")
    start, got, refused = Barrier(8), [], []

    def take():
        start.wait()
        try:
            got.append(stage.runs.claim(id_, 1.0))
        except RunHeld as error:
            refused.append(str(error))

    takers = [Thread(target=take) for _ in range(8)]
    for each in takers:
        each.start()
    for each in takers:
        each.join()
    assert (len(got), len(refused)) == (1, 7)
    assert refused[0] == f"run {id_} is being run by process {os.getpid()}"
    assert not stage.runs.renew(got[0]._replace(epoch=got[0].epoch - 1))  # of an older holder
