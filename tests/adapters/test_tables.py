"""Every client, SDK and framework against every fault, with the inner retries left on."""

from __future__ import annotations

import json
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest

import mulligan
from mulligan.testing import FaultServer

from . import tables

pytestmark = [
    pytest.mark.real,
    # Clients of the SDKs that are collected late close what a loop that is gone had opened.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cells() -> list[tables.Cell]:
    return tables.measured()


def test_there_are_as_many_requests_as_attempts_in_every_line(cells):
    assert [cell for cell in cells if cell.requests != cell.attempts] == []
    assert all(cell.requests <= 3 for cell in cells)
    assert len(cells) == 15 * 9 + 6 * 3


def test_whoever_calls_the_waits_and_the_reasons_are_the_same(cells):
    by_fault = defaultdict(set)
    for cell in cells:
        by_fault[cell.fault].add((cell.waits, tables.general(cell.because)))
    assert {fault: len(found) for fault, found in by_fault.items()} == dict.fromkeys(
        tables.FAULTS, 1
    ), by_fault


def test_the_tables_on_the_page_are_the_ones_that_were_measured(cells):
    page = tables.PAGE.read_text(encoding="utf-8")
    assert page == tables.page_with(tables.rendered(cells)), "run python tests/adapters/tables.py"


def test_the_page_shows_what_the_bench_has_measured():
    place = tables.ROOT / "bench" / "results" / "layers.json"
    clients = json.loads(place.read_text(encoding="utf-8"))["clients"]
    page = (tables.ROOT / "docs" / "which-layer-retries.md").read_text(encoding="utf-8")
    for name, faults in clients.items():
        counts = [faults[fault][how] for fault in faults for how in ("alone", "guarded")]
        assert f"| {name} | {' | '.join(map(str, counts))} |\n" in page


def test_no_request_comes_before_the_time_that_the_server_named():
    """In real time: the server knows when it said what."""

    def asked(ask) -> tuple[int, int]:
        with FaultServer("429(retry-after=1), ok") as server:
            ask(server.url, mulligan.Guard("timely", attempts=3, store="memory:"))
            return server.totals.requests, server.totals.early

    known = tables.clients().PLAIN
    with ThreadPoolExecutor(len(known)) as pool:
        found = dict(zip(known, pool.map(asked, known.values()), strict=True))
    assert found == dict.fromkeys(known, (2, 0))
