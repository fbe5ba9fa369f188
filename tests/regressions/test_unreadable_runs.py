"""One row that ended everything.

An entry of a step that this version does not know, or one that was damaged, was a `KeyError` in
``runs``, ``show``, ``resume``, ``cancel`` and ``worker``: for all runs. Now that run is shown as
unreadable, with the reason, and the others go on.
"""

from __future__ import annotations

import json
import sqlite3

import pytest

from mulligan.cli import main
from mulligan.run.journal.store import RunStore, UnreadableRun
from mulligan.run.process.stop import Stop
from mulligan.stores.sqlite.journal import journal_file
from tests.run.scripted import Stage
from tests.run.test_worker import look, parked, worker

FUTURE = '{"step":"forked","at":1,"into":["a","b"]}'
BODIES = [FUTURE, "", "{", "[]", '{"step":"made"}', b"\xff\xfe\x00", '{"step":"over","at":"x"}']


@pytest.fixture
def stage(tmp_path, monkeypatch):
    stage = Stage(tmp_path)
    monkeypatch.setenv("MULLIGAN_HOME", str(stage.runs.folder))
    yield stage
    stage.runs.close()


@pytest.fixture
def mulligan(capfd):
    def mulligan(*argv):
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(list(argv))
        said = capfd.readouterr()
        return caught.value.code, said.out, said.err

    return mulligan


def damage(stage, id_, body, epoch=1):
    """Put `body` behind what the run has."""
    file = sqlite3.connect(stage.runs.folder / "state.journal.db")
    with file:
        (place,) = file.execute(
            "SELECT MAX(place) FROM journal WHERE stream = ?", (f"run/{id_}",)
        ).fetchone()
        text = sqlite3.Binary(body) if isinstance(body, bytes) else body
        file.execute(
            "INSERT INTO journal VALUES (?, ?, ?, ?, CAST(? AS TEXT))",
            (f"run/{id_}", place + 1, f"damage-{place}", epoch, text),
        )
    file.close()


@pytest.mark.parametrize("body", BODIES)
def test_a_run_that_cannot_be_read_is_shown_as_such_and_no_other_suffers(stage, mulligan, body):
    bad, good = parked(stage, 2, script="ok")
    damage(stage, bad, body)
    code, out, err = mulligan("runs")
    rows = {row.split()[0]: row for row in out.splitlines()}
    assert (code, err) == (0, "")
    assert " unreadable" in rows[bad]
    assert " waiting " in rows[good]
    found = {row["run"]: row for row in map(json.loads, mulligan("runs", "--json")[1].splitlines())}
    assert found[bad]["status"] == "unreadable"
    assert found[bad]["because"].startswith("entry 3: ")
    code, out, _ = mulligan("show", bad)
    assert code == 1
    assert "status    unreadable\nbecause   entry 3: " in out
    for command in ("resume", "cancel"):
        code, _, err = mulligan(command, bad)
        assert code == 1
        assert f"error: run {bad} cannot be read: entry 3: " in err
        assert "mulligan doctor" in err
    assert mulligan("cancel", good)[0] == 0


def test_what_a_newer_version_wrote_says_so(stage):
    (id_,) = parked(stage, 1, script="ok")
    damage(stage, id_, FUTURE)
    with pytest.raises(UnreadableRun, match=r"a newer mulligan wrote it .*: upgrade to read it"):
        stage.runs.look(id_)


@pytest.mark.real
def test_a_run_that_a_newer_version_has_taken_over_is_stopped(stage):
    """The thread that looks after the lease died of what it could not read, and nobody stopped."""
    claimed, stop = stage.claimed(("tool",)), Stop()
    with stage.context(stop=stop).holding(claimed) as held:
        damage(stage, claimed.id, FUTURE, epoch=claimed.epoch + 1)
        assert held.stop.wait(20)
        assert held.stop.reason == "fenced"
    stop.close()


@pytest.mark.real
def test_a_worker_wakes_the_others(stage):
    bad, good = parked(stage, 2, script="ok")
    damage(stage, bad, FUTURE)
    woken = worker(stage, "ok", "--once")
    _, err = woken.communicate(timeout=60)
    assert (woken.returncode, look(stage.runs, good).status) == (0, "done"), err
    assert f"{bad}: cannot be resumed: run {bad} cannot be read: entry 3: " in err
    assert "Traceback" not in err


def test_a_journal_of_before_is_read_and_brought_up_to_date(tmp_path):
    """Schema 2 had no leases, and runs that know their host alone."""
    stage = Stage(tmp_path)
    (id_,) = parked(stage, 1, script="ok")
    stage.runs.close()
    file = sqlite3.connect(stage.runs.folder / "state.journal.db")
    with file:
        file.execute("DROP TABLE lease")
        file.execute("DELETE FROM meta WHERE name = 'made_at'")
        for place, body in file.execute("SELECT place, body FROM journal").fetchall():
            old = json.loads(body)
            for name in ("machine", "path"):
                old.pop(name, None)
            if "holder" in old:
                old["holder"] = "host 12@99.ab 01020304"
            file.execute("UPDATE journal SET body = ? WHERE place = ?", (json.dumps(old), place))
        file.execute("PRAGMA user_version = 2")
    file.close()
    runs = RunStore(stage.runs.folder)
    state = look(runs, id_)
    assert (state.status, runs.is_held(id_), runs.is_here(state.made)) == ("waiting", False, True)
    runs.claim(id_, 1.0)
    assert runs.is_held(id_)
    runs.close()


def test_a_journal_of_a_newer_schema_is_refused_as_a_whole(stage, mulligan):
    parked(stage, 1, script="ok")
    stage.runs.close()
    known = len(journal_file(stage.runs.folder / "state.db")._migrations)
    file = sqlite3.connect(stage.runs.folder / "state.journal.db")
    file.execute(f"PRAGMA user_version = {known + 1}")
    file.close()
    for argv in (["runs"], ["run", "--", "true"], ["worker", "--once"]):
        code, _, err = mulligan(*argv)
        assert code == 1
        assert f"has schema {known + 1}, this mulligan knows {known}; upgrade it" in err
