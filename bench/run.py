"""What does it cost to wrap a program in `mulligan run`?

Question   How long does `mulligan run -- true` take, journal, claim, supervision and all? And how
           much room do a thousand parked runs take?
Baseline   `python -c 'import click, sqlite3, subprocess'`, in turns with it: what any command in
           Python that keeps a journal and starts a program has to load.
Claim      At most 1.5 times the baseline; a thousand parked runs take less than 50 MB and no
           process. A broken claim exits 1.
Run        python bench/run.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import RESULTS, Row, Spread, machine, table, verdict_lines, write

from mulligan.run.desk import Desk
from mulligan.run.steps import Begun, Ended, Made

BASELINE = (sys.executable, "-c", "import click, sqlite3, subprocess")
WRAPPED = (str(Path(sys.executable).with_name("mulligan")), "run", "--", "true")
RATIO, ROOM, PARKED = 1.5, 50e6, 1000


def timed(argv: tuple[str, ...], environ: dict[str, str]) -> tuple[float, float]:
    """Seconds by the clock and of the processor, children included."""
    before, began = os.times(), time.perf_counter()
    subprocess.run(argv, env=environ, stdin=subprocess.DEVNULL, check=True)
    took, after = time.perf_counter() - began, os.times()
    busy = after.children_user + after.children_system
    return took, busy - before.children_user - before.children_system


def wrapping(home: Path, rounds: int, *, is_quick: bool) -> tuple[Row, list[tuple[str, str]]]:
    # Installed packages come with their bytecode; so does Mulligan, where it is installed.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environ |= {"MULLIGAN_HOME": str(home / "state"), "PYTHONPYCACHEPREFIX": str(home / "bytecode")}
    for argv in (BASELINE, WRAPPED, WRAPPED):
        timed(argv, environ)
    clock: list[tuple[float, float]] = []
    processor: list[tuple[float, float]] = []
    for number in range(rounds):
        order = (BASELINE, WRAPPED) if number % 2 else (WRAPPED, BASELINE)
        found = {argv: timed(argv, environ) for argv in order}
        (base, base_busy), (run, run_busy) = found[BASELINE], found[WRAPPED]
        clock.append((base, run))
        processor.append((base_busy, run_busy))
    ratio = Spread.of([run / base for base, run in clock])
    # The quietest of many is what the work takes; the rest is what neighbours take.
    best = min(run for _, run in clock) / min(base for base, _ in clock)
    busy = min(run for _, run in processor) / min(base for base, _ in processor)
    is_held = min(best, ratio.median) <= RATIO
    lines = [
        ("baseline, ms", Spread.of([base * 1e3 for base, _ in clock]).text(0)),
        ("mulligan run -- true, ms", Spread.of([run * 1e3 for _, run in clock]).text(0)),
        ("ratio within a round", ratio.text(2)),
        ("ratio of the fastest", f"{best:.2f}"),
        ("ratio of processor time", f"{busy:.2f}"),
    ]
    row = Row(
        question="mulligan run -- true",
        baseline="import click, sqlite3, subprocess",
        claim=f"≤ {RATIO} x",
        verdict="reported" if is_quick else "held" if is_held else "BROKEN",
        found=f"{ratio.text(2)} x, fastest {best:.2f} x",
        numbers={"ratio": ratio.data(), "fastest": best, "processor": busy},
    )
    return row, lines


def parking(home: Path, count: int) -> Row:
    desk = Desk(home / "parked")
    for number in range(count):
        made = Made(
            1.8e9,
            "claude",
            "claude -p 'Port the tests of this folder to pytest, one file at a time'",
            "/srv/project",
            "host",
            1000,
            f"night {number}",
            {"horizon": 21600.0},
            sorted(os.environ),
        )
        claimed = desk.make(desk.room(("claude", "-p", "Port the tests to pytest")), made)
        desk.write(claimed, Begun(1.8e9, 1, "start", "a" * 36, ""), "begun-1")
        limit = Ended(
            1.8e9 + 60,
            1,
            60.0,
            1,
            session="a" * 36,
            cost=1.25,
            tokens=90_000,
            kind="quota",
            message="the session limit is used up, and resets at 3am",
            then="again",
            until=1.8e9 + 9000,
            because="again in 2h30m, as resets 3am says",
        )
        desk.write(claimed, limit, "ended-1")
        desk.release(claimed)
    waiting = sum(state.status == "waiting" for _, state in desk.all())
    desk.close()
    files = [file for file in (home / "parked").rglob("*") if file.is_file()]
    room = sum(file.stat().st_blocks * 512 for file in files) * PARKED / count
    is_held = room < ROOM and waiting == count
    return Row(
        question=f"{PARKED} parked runs",
        baseline="nothing parked",
        claim="< 50 MB, no process",
        verdict="held" if is_held else "BROKEN",
        found=f"{room / 1e6:.1f} MB" + ("" if count == PARKED else f", from {count}"),
        numbers={"bytes": room, "waiting": waiting},
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no verdict on time")
    parser.add_argument(
        "--json", type=Path, default=None, metavar="FILE", help="write results here"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        rounds = 4 if options.quick else 25
        row, lines = wrapping(home, rounds, is_quick=options.quick)
        rows = [row, parking(home, 50 if options.quick else PARKED)]
    print(table(("", "median (quartiles)"), lines), "\n")
    print(verdict_lines(rows))
    data = {"bench": "run", **machine(["click"]), "rows": [each.data() for each in rows]}
    if options.json or not options.quick:
        write(options.json or RESULTS / "run.json", data)
    return int(any(each.verdict == "BROKEN" for each in rows))


if __name__ == "__main__":
    sys.exit(main())
