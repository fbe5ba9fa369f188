"""Guards on stores that cannot even be opened: they go on alone, and say so once."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan import Guard
from mulligan.calls.admissions import Admissions
from mulligan.core.decide import Call
from mulligan.core.failure import Failure, Kind, Reach
from mulligan.testing import Scripted, VirtualClock, status_error


def garbage(folder: Path) -> str:
    (folder / "s.db").write_bytes(b"no database" * 1000)
    (folder / "s.db").chmod(0o600)
    return f"sqlite:{folder}/s.db"


def nowhere(folder: Path) -> str:
    (folder / "file").touch()
    return f"sqlite:{folder}/file/s.db"


def newer(folder: Path) -> str:
    connection = sqlite3.connect(folder / "s.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    (folder / "s.db").chmod(0o600)
    return f"sqlite:{folder}/s.db"


@pytest.mark.parametrize("trouble", [garbage, nowhere, newer])
@pytest.mark.parametrize("scope", ["", "account"])
@pytest.mark.parametrize("way", ["sync", "asyncio"])
def test_a_store_that_cannot_be_opened_costs_no_retry_and_is_said_once(
    tmp_path, caplog, trouble: Callable[[Path], str], scope, way
):
    heard: list[Any] = []
    guard = Guard(
        "api",
        store=trouble(tmp_path),
        scope=scope,
        effects="read",
        clock=VirtualClock(),
        listeners=[heard.append],
    )
    flaky = Scripted(status_error(503), status_error(503), "well")
    if way == "sync":
        assert guard.call(flaky) == "well"
    else:
        assert asyncio.run(guard.acall(flaky.acall)) == "well"
    names = [type(event).__name__ for event in heard]
    assert names.count("StoreLost") == 1
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_a_store_that_cannot_be_opened_replaces_nobodys_error(tmp_path):
    guard = Guard("api", store=garbage(tmp_path), effects="read", clock=VirtualClock(), attempts=2)
    with pytest.raises(Exception, match="status 503") as caught:
        guard.call(Scripted(status_error(503), status_error(503)))
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.attempts == 2


@pytest.mark.real
def test_a_store_whose_folder_goes_away_is_done_without_in_every_thread(tmp_path):
    guard = Guard("api", store=f"sqlite:{tmp_path}/a/s.db", effects="read", clock=VirtualClock())
    (tmp_path / "a").mkdir(mode=0o700)
    assert guard.call(Scripted("well")) == "well"
    shutil.rmtree(tmp_path / "a")
    answers: list[object] = []
    flaky = Scripted(status_error(503), "well")
    thread = threading.Thread(target=lambda: answers.append(guard.call(flaky)))
    thread.start()
    thread.join()
    assert answers == ["well"]


class Broken:
    """A target whose breaker and tokens raise."""

    is_remote = owes_tokens = True

    def fund(self, *, now, wall):
        raise RuntimeError("not funded")

    def enter(self, attempt, *, now, wall):
        raise RuntimeError("no breaker")

    def reserve(self, failure, delay, *, now, wall):
        raise RuntimeError("no tokens")

    def is_near(self, now):
        return True

    def must_write(self, stated):
        return True

    def ended(self, outcome, failure, stated, took, *, now, wall, was_cut):
        raise RuntimeError("not ended")


def test_what_is_shared_never_stands_in_the_way_even_where_it_raises(caplog):
    target: Any = Broken()
    settings = Guard("api")._engine.settings
    call = Call(settings.policy, settings.effects)
    admissions = Admissions(settings, call, VirtualClock(), None, target)
    failure = Failure(kind=Kind.SERVER, reach=Reach.MAYBE_APPLIED)
    assert admissions.ask() is None
    admissions.leave("failed", failure, (0.0, 0.0))
    assert admissions.reserve(failure, 1.0, 0.0, 0.0) == ""
    assert "no breaker" in caplog.text
    assert "no tokens" in caplog.text
