"""What does the dashboard cost when there are many runs and many pages?

Question   How much longer do the first rows of the page, and a look for changes, take with 10,000
           runs in the journal than with 100? Does a run take longer while 50 pages are open?
Baseline   The same server, the same journal with 100 runs; the same run with no page open.
Claim      With 10,000 runs the first rows and an update take at most 3 x as long; with 50 open
           pages a run takes at most 1.5 x as long. The start of the server is reported. A broken
           claim exits 1.
Run        python bench/dashboard.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _measure import RESULTS, Row, Spread, machine, verdict_lines, write

from mulligan.dashboard.runs import RunIndex
from mulligan.dashboard.sources import Sources
from mulligan.run.journal.entries import AttemptBegun, AttemptEnd, RunMade, packed
from mulligan.run.journal.store import RunStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mulligan.run.journal.entries import JournalEntry

FEW, PAGES = 100, 50


def filled(folder: Path, count: int) -> RunStore:
    """A journal of so many runs, most of them done, as a busy month leaves it."""
    runs = RunStore(folder)
    now = time.time()
    (folder / "runs").mkdir(exist_ok=True)
    rows = []
    for number in range(count):
        id_ = f"r{number:05d}"
        (folder / "runs" / id_).mkdir(mode=0o700)
        made = RunMade(
            now - number, "claude", f"claude -p 'Task {number} of many'", "/tmp", "host",  # noqa: S108 -- a name
            os.geteuid(), f"task-{number}", {}, [],
        )  # fmt: skip
        end = AttemptEnd(now - number, 1, 1.0, code=0)
        if number % 20 == 0:
            end = end._replace(then="again", until=now + 9_999, kind="quota", because="a limit")
        steps: tuple[JournalEntry, ...] = (
            made,
            AttemptBegun(now - number, 1, "start", "", ""),
            end,
        )
        os.utime(folder / "runs" / id_, (made.at, made.at))
        rows += [
            (f"run/{id_}", place, f"step {place}", 1, packed(step))
            for place, step in enumerate(steps, 1)
        ]
    runs.ids()  # makes the file
    with runs._file.writing() as connection:  # noqa: SLF001 -- thirty thousand synced writes would take minutes
        connection.executemany("INSERT INTO journal VALUES (?, ?, ?, ?, ?)", rows)
    return runs


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, float]]:
    """A dashboard in a process of its own; its port, and the seconds that it took to start."""
    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "mulligan", "dashboard", "--no-open", "--port", "0"],
        env={**os.environ, "MULLIGAN_HOME": str(folder)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stderr is not None
        port = int(child.stderr.readline().split("127.0.0.1:")[1].split("/")[0])
        get(port, "/api/runs?limit=50")
        yield port, time.perf_counter() - began
    finally:
        child.terminate()
        child.wait()


def get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def first_rows(port: int, rounds: int) -> list[float]:
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        get(port, "/api/runs?limit=50")
        found.append(time.perf_counter() - began)
    return found


def updates(folder: Path, rounds: int) -> list[float]:
    """Seconds of a look for changes, one run having changed before each."""
    runs, sources = RunStore(folder), Sources(RunIndex(folder))
    while True:
        sources.refresh()
        if sources.index.is_whole:
            break
    found = []
    for number in range(rounds):
        claimed = runs.claim("r00000", time.time())
        began = time.perf_counter()
        changed = sources.refresh()
        found.append(time.perf_counter() - began)
        assert changed is not None, number
        runs.release(claimed)
    sources.index.close()
    runs.close()
    return found


def a_run(folder: Path) -> float:
    """Seconds of a run that starts, prints for a while and ends."""
    began = time.perf_counter()
    subprocess.run(
        [
            sys.executable,
            "-m",
            "mulligan",
            "run",
            "--",
            "sh",
            "-c",
            "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.05; done",
        ],
        env={**os.environ, "MULLIGAN_HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began


@contextmanager
def open_pages(port: int, count: int) -> Iterator[None]:
    """So many pages that read what they are told."""
    connections = []
    for _ in range(count):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/api/events")
        answer = connection.getresponse()
        answer.fp.readline()
        connections.append((connection, answer))

    def read(answer: Any) -> None:
        try:
            while answer.fp.readline():
                pass
        except (OSError, ValueError, AttributeError):
            return  # closed

    for _, answer in connections:
        threading.Thread(target=read, args=(answer,), daemon=True).start()
    try:
        yield
    finally:
        for connection, _ in connections:
            if connection.sock is not None:
                connection.sock.close()


def judged(question: str, baseline: str, ratios: list[float], limit: float) -> Row:
    ratio = Spread.of(ratios)
    return Row(
        question=question,
        baseline=baseline,
        claim=f"≤ {limit:g} x",
        found=f"{ratio.text(2)} x",
        verdict="held" if ratio.median <= limit else "BROKEN",
        numbers={"ratio": ratio.data(), "limit": limit},
    )


def measured(many: int, rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        few_in, many_in = Path(place) / "few", Path(place) / "many"
        for folder, count in ((few_in, FEW), (many_in, many)):
            folder.mkdir(mode=0o700)
            filled(folder, count).close()
        with serving(few_in) as (few_port, few_start), serving(many_in) as (port, start):
            get(few_port, "/api/runs"), get(port, "/api/runs")
            rows = list(zip(first_rows(few_port, rounds), first_rows(port, rounds), strict=True))
            painted = judged(
                f"first rows, {many:,} runs", f"{FEW} runs", [b / a for a, b in rows], 3.0
            )
        looks = list(zip(updates(few_in, rounds), updates(many_in, rounds), strict=True))
        updated = judged(f"update, {many:,} runs", f"{FEW} runs", [b / a for a, b in looks], 3.0)
        with serving(few_in) as (port, _):
            pairs = []
            for _ in range(max(1, rounds // 10)):
                alone = a_run(few_in)
                with open_pages(port, PAGES):
                    pairs.append((alone, a_run(few_in)))
        slowed = judged(
            f"a run, {PAGES} pages open", "no page open", [b / a for a, b in pairs], 1.5
        )
    started = Row(
        question=f"start, {many:,} runs",
        baseline=f"{FEW} runs: {few_start:.2f} s",
        claim="none",
        found=f"{start:.2f} s",
        verdict="reported",
        numbers={"seconds": round(start, 3), "seconds_of_few": round(few_start, 3)},
    )
    return [painted, updated, slowed, started]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer runs; keeps nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results here")
    options = parser.parse_args()
    rows = measured(500, 20) if options.quick else measured(10_000, 100)
    print(verdict_lines(rows))
    data = {"bench": "dashboard", **machine(("mulligan", "starlette", "uvicorn"))}
    data["verdicts"] = [each.data() for each in rows]
    if options.json or not options.quick:
        write(options.json or RESULTS / "dashboard.json", data)
    return int(any(row.verdict == "BROKEN" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
