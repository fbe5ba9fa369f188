"""What does it cost to wrap a program in `mulligan run`?

Question   How long does `mulligan run -- true` take, journal, claim, supervision and all? And how
           much room do a thousand parked runs take?
Baseline   The floor, `python -c 'import click, sqlite3, subprocess'`, in turns with it: what any
           command in Python that has options, keeps a journal and starts a program has to load,
           before it does any of that. A bare interpreter is measured beside it, for scale.
Claim      At most 1.5 times the floor, as the median of the ratios within rounds; a thousand parked
           runs take less than 50 MB and no process. A broken claim exits 1.
Run        python bench/run.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import RESULTS, Row, Spread, machine, table, verdict_lines, write

from mulligan.run.journal.entries import AttemptBegun, AttemptEnd, RunMade
from mulligan.run.journal.store import RunStore

BARE: tuple[str, ...] = (sys.executable, "-c", "pass")
FLOOR: tuple[str, ...] = (sys.executable, "-c", "import click, sqlite3, subprocess")
WRAPPED: tuple[str, ...] = (str(Path(sys.executable).with_name("mulligan")), "run", "--", "true")
RATIO, ROOM, PARKED = 1.5, 50e6, 1000


def timed(argv: tuple[str, ...], environ: dict[str, str]) -> tuple[float, float]:
    """Seconds by the clock and of the processor, children included."""
    began = time.perf_counter()
    process = subprocess.Popen(argv, env=environ, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)} exited with {process.returncode}")
    return took, usage.ru_utime + usage.ru_stime


def wrapping(home: Path, rounds: int, *, is_quick: bool) -> tuple[Row, list[tuple[str, str]]]:
    # Installed packages come with their bytecode; so does Mulligan, where it is installed.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environ |= {"MULLIGAN_HOME": str(home / "state"), "PYTHONPYCACHEPREFIX": str(home / "bytecode")}
    for argv in (BARE, FLOOR, WRAPPED, WRAPPED):
        timed(argv, environ)
    found: dict[tuple[str, ...], list[tuple[float, float]]] = {BARE: [], FLOOR: [], WRAPPED: []}
    order, dice = list(found), random.Random(7)
    for _ in range(rounds):
        dice.shuffle(order)
        for argv in order:
            found[argv].append(timed(argv, environ))
    pairs = list(zip(found[WRAPPED], found[FLOOR], strict=True))
    ratio, processor = (Spread.of(run[at] / base[at] for run, base in pairs) for at in (0, 1))
    # The quietest of many is what the work takes; the rest is what neighbours take.
    fastest = min(found[WRAPPED])[0] / min(found[FLOOR])[0]
    names = {BARE: "bare interpreter", FLOOR: "the floor", WRAPPED: "mulligan run -- true"}
    lines = [
        *(
            (f"{names[argv]}, ms", Spread.of(took * 1e3 for took, _ in each).text(0))
            for argv, each in found.items()
        ),
        ("ratio to the floor within a round", ratio.text(2)),
        ("ratio of the fastest", f"{fastest:.2f}"),
        ("ratio of processor time", processor.text(2)),
    ]
    row = Row(
        question="mulligan run -- true",
        baseline="import click, sqlite3, subprocess",
        claim=f"≤ {RATIO} x",
        verdict="reported" if is_quick else "held" if ratio.median <= RATIO else "BROKEN",
        found=f"{ratio.text(2)} x, fastest {fastest:.2f} x",
        numbers={
            "ratio": ratio.data(),
            "fastest": round(fastest, 3),
            "processor": processor.data(),
            "milliseconds": {
                names[argv]: Spread.of(took * 1e3 for took, _ in each).data()
                for argv, each in found.items()
            },
        },
    )
    return row, lines


def parking(home: Path, count: int) -> Row:
    desk = RunStore(home / "parked")
    for number in range(count):
        made = RunMade(
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
        claimed, _ = desk.make(desk.new_folder(("claude", "-p", "Port the tests to pytest")), made)
        desk.write(claimed, AttemptBegun(1.8e9, 1, "start", "a" * 36, ""), "begun-1")
        limit = AttemptEnd(
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
            because="retry in 2h30m, as resets 3am says",
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
        rounds = 4 if options.quick else 41
        row, lines = wrapping(home, rounds, is_quick=options.quick)
        rows = [row, parking(home, 50 if options.quick else PARKED)]
    print(table(("", "median (quartiles)"), lines), "\n")
    print(verdict_lines(rows))
    data = {"bench": "run", **machine(["click"]), "verdicts": [each.data() for each in rows]}
    if options.json or not options.quick:
        write(options.json or RESULTS / "run.json", data)
    return int(any(each.verdict == "BROKEN" for each in rows))


if __name__ == "__main__":
    sys.exit(main())
