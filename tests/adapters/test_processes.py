"""Guarded SDK clients of several processes that share one account."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from mulligan.faults.limits import ClientLimits
from mulligan.testing import FaultServer

pytestmark = pytest.mark.real

WORKER = Path(__file__).with_name("sdk_worker.py")


def start(server: FaultServer, store: str, calls: int, at_once: int = 1) -> subprocess.Popen[str]:
    arguments = [server.url, store, str(calls), str(at_once)]
    return subprocess.Popen(
        [sys.executable, str(WORKER), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(worker: subprocess.Popen[str]) -> tuple[list[str], bool]:
    """What a worker said, and whether its store answered in time; a busy machine may not."""
    said, complaints = worker.communicate(timeout=60)
    assert worker.returncode == 0, complaints
    return said.split(), "does not answer" not in complaints


def test_the_second_process_stays_out_of_the_window_that_the_first_was_told_of(tmp_path):
    store = f"sqlite:{tmp_path / 'shared.db'}"
    told = Event()
    with FaultServer("429(retry-after=5), ok", hears=lambda _entry: told.set()) as server:
        first = start(server, store, 1)
        assert told.wait(30)
        second = start(server, store, 1)
        assert ended(second)[0] == ["assistant"]
        assert ended(first)[0] == ["assistant"]
        assert (server.totals.requests, server.totals.early) == (3, 0)


def test_twenty_calls_of_two_processes_under_a_stated_limit_meet_no_refusal(tmp_path):
    for number in range(5):
        store = f"sqlite:{tmp_path / f'shared-{number}.db'}"
        with FaultServer(limits=ClientLimits.parse(requests="8/1s")) as server:
            workers = [start(server, store, 10, at_once=10) for _ in range(2)]
            found = [ended(worker) for worker in workers]
            totals = server.totals
        assert [said for said, _ in found] == [["assistant"] * 10] * 2
        if all(is_shared for _, is_shared in found):
            assert totals.requests == 20
            assert totals.outcomes == {"ok": 20}
            return
    pytest.fail("the store answered too late in each of five tries")
