"""`mulligan doctor` finds every kind of damage, and says what to do about it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from mulligan.cli import main
from mulligan.run.journal.entries import AttemptBegun, AttemptEnd, RunMade, RunRescheduled
from mulligan.run.journal.store import RunStore

NOW = time.time()
PAGE = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("MULLIGAN_HOME", str(home))
    return home


@pytest.fixture
def doctor(home, capfd):
    def doctor(*argv):
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(["doctor", *argv])
        said = capfd.readouterr()
        return caught.value.code, said.out

    return doctor


def add(home, *steps):
    runs = RunStore(home)
    made = RunMade(NOW, "generic", "true", "/", "host", os.geteuid(), "", {}, [])
    claimed, _ = runs.make(runs.new_folder(("true",)), made)
    for number, step in enumerate(steps):
        runs.write(claimed, step, f"step-{number}")
    runs.release(claimed)
    runs.close()
    return claimed.id


PARKED = RunRescheduled(NOW, NOW + 60, "later")


def journal(home, *statements):
    file = sqlite3.connect(home / "state.journal.db", isolation_level=None)
    for each in statements:
        file.execute(*each) if isinstance(each, tuple) else file.execute(each)
    file.close()


def test_where_nothing_was_kept_nothing_is_wrong_and_nothing_is_made(doctor, home):
    code, out = doctor()
    assert (code, home.exists()) == (0, False)
    assert "nothing was kept here yet" in out


def test_a_healthy_home_is_told_of_and_check_is_silent(doctor, home):
    add(home, PARKED)
    code, out = doctor()
    assert code == 0
    assert "wrong" not in out
    assert "1 run can be read, 1 can be resumed" in out
    assert doctor("--check") == (0, "")


def test_a_limited_run_can_go_on(doctor, home):
    limited = AttemptEnd(NOW, 1, 1.0, code=1, then="stop", until=NOW + 3600, exit=75)
    gone = add(home, AttemptBegun(NOW, 1, "start", "", ""), limited)
    assert "1 run can be read, 1 can be resumed" in doctor()[1]
    shutil.rmtree(home / "runs" / gone)
    (home / "runs" / "other").mkdir(mode=0o700)
    assert f"run {gone} can be resumed, but its folder is gone" in doctor()[1]


def test_a_lost_journal(doctor, home):
    add(home, PARKED)
    for each in home.glob("state.journal.db*"):
        each.unlink()
    code, out = doctor("--check")
    assert code == 1
    assert "does not exist, though 1 folder of runs lie" in out
    assert f"mv {home}/runs {home}/runs.lost" in out
    (home / "state.journal.db").touch(mode=0o600)
    assert "is empty, though" in doctor("--check")[1]
    (home / "runs").rename(home / "runs.lost")  # as it said
    (home / "state.journal.db").unlink()
    assert doctor("--check") == (0, "")
    assert add(home, PARKED)


def test_a_damaged_file(doctor, home):
    add(home, PARKED)
    (home / "state.journal.db").write_bytes(b"this is no database" * 400)
    code, out = doctor("--check")
    assert code == 1
    assert "cannot be read: file is not a database" in out
    assert "docs/doctor.md" in out


def test_a_schema_of_a_newer_version(doctor, home):
    add(home, PARKED)
    journal(home, "PRAGMA user_version = 99")
    code, out = doctor("--check")
    assert code == 1
    assert "has schema 99" in out
    assert "upgrade mulligan: a newer one wrote it" in out


def test_runs_that_cannot_be_read_and_how_to_be_rid_of_them(doctor, home):
    bad, good = add(home, PARKED), add(home, PARKED)
    body = '{"step":"forked","at":1}'
    journal(home, ("INSERT INTO journal VALUES (?, 3, 'x', 1, ?)", (f"run/{bad}", body)))
    code, out = doctor("--check")
    assert code == 1
    assert f"run {bad} cannot be read: entry 3: a newer mulligan wrote it" in out
    (home / "runs" / bad / "attempt-1.out").write_text("what it printed")
    assert doctor("--forget", good)[0] == 1
    assert doctor("--forget", bad)[0] == 0
    assert doctor("--check") == (0, "")
    assert (home / "lost" / bad / "attempt-1.out").read_text() == "what it printed"
    runs = RunStore(home)
    assert runs.ids() == (good,)
    runs.close()


def test_epochs_that_fall(doctor, home):
    bad = add(home, PARKED)
    journal(home, ("UPDATE journal SET epoch = 9 WHERE stream = ? AND place = 1", (f"run/{bad}",)))
    assert f"run {bad} cannot be read: its epochs fall" in doctor("--check")[1]


def test_folders_without_runs_and_runs_without_folders(doctor, home):
    gone, ended = (
        add(home, PARKED),
        add(home, AttemptBegun(NOW, 1, "start", "", ""), AttemptEnd(NOW, 1, 1.0)),
    )
    for id_ in (gone, ended):
        shutil.rmtree(home / "runs" / id_)
    (home / "runs" / "older").mkdir(mode=0o700)
    os.utime(home / "runs" / "older", (1.0, 1.0))
    code, out = doctor("--check")
    assert code == 1
    assert f"run {gone} can be resumed, but its folder is gone" in out
    assert f"mulligan cancel {gone} ends it" in out
    assert "1 folder in" in out
    assert "belongs to an earlier journal: older" in out
    assert ended not in out


def test_permissions(doctor, home):
    id_ = add(home, PARKED)
    (home / "state.journal.db").chmod(0o644)
    (home / "runs" / id_).chmod(0o755)
    code, out = doctor("--check")
    assert code == 1
    assert f"chmod go-rwx {home}/state.journal.db" in out
    assert f"chmod go-rwx {home}/runs/{id_}" in out
    home.chmod(0o777)
    assert f"chmod go-w {home}" in doctor("--check")[1]


def test_runs_that_are_driven(doctor, home):
    id_ = add(home, PARKED)
    runs = RunStore(home)
    claimed = runs.claim(id_, NOW)
    assert "1 run is driven now" in doctor()[1]
    journal(home, "UPDATE lease SET seen = seen - 3600")
    code, out = doctor("--check")
    assert code == 1
    assert f"the process that runs run {id_} is alive but does not renew its lease" in out
    runs.release(claimed)
    runs.close()


def test_findings_for_programs(doctor, home):
    add(home, PARKED)
    found = [json.loads(line) for line in doctor("--json")[1].splitlines()]
    assert {each["about"] for each in found} == {"home", "state", "journal", "runs", "leases"}
    assert not any(each["is_wrong"] for each in found)


@pytest.mark.real
def test_a_damaged_journal_is_recovered_as_the_page_says(doctor, home):
    if shutil.which("sqlite3") is None:
        pytest.skip("THERE IS NO sqlite3 HERE to recover a journal with")
    ids = {add(home, PARKED) for _ in range(40)}
    journal(home, "PRAGMA wal_checkpoint(TRUNCATE)")
    file = home / "state.journal.db"
    with file.open("r+b") as opened:  # the last page: some of the runs
        opened.seek(file.stat().st_size - 4096)
        opened.write(b"\xff" * 4096)
    code, out = doctor("--check")
    assert code == 1, out
    script = PAGE.split("<!-- recover -->")[1].split("```sh\n")[1].split("```")[0]
    done = subprocess.run(
        ["sh", "-ec", script],  # noqa: S607 -- the one on the PATH
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in doctor("--json")[1].splitlines()]
    assert [each["is_wrong"] for each in found if each["about"] == "journal"] == [False]
    runs = RunStore(home)
    assert set(runs.ids()) <= ids
    assert runs.ids()
    runs.close()
