"""One process that calls through a guard; started by test_shared_guard_stores with what to do.

Says what it has done on stdout, one line each, and waits for a line on stdin where told to.
"""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import mulligan
from mulligan.testing import status_error


def say(*words):
    print(*words, flush=True)  # noqa: T201 -- how it speaks to the test


def fail():
    raise status_error(503)


def half_open(store, callers, fails):
    """How many of our threads get through a half-open breaker, after `fails` failures here."""
    guard = mulligan.Guard(
        "api",
        effects="read",
        attempts=1,
        store=store,
        breaker=mulligan.Breaker(failures=2, open_for=0.8),
        tokens=False,
        when_open="fail",
    )
    for _ in range(int(fails)):
        try:
            guard.call(fail)
        except Exception as error:  # noqa: BLE001 -- said
            say(type(error).__name__)
    sys.stdin.readline()
    gate = threading.Barrier(int(callers))

    def ask(_):
        gate.wait(20)
        try:
            return guard.call(probe)
        except mulligan.CircuitOpen:
            return 0

    with ThreadPoolExecutor(int(callers)) as pool:
        say(sum(pool.map(ask, range(int(callers)))))


def probe():
    time.sleep(0.7)  # until all others have asked
    return 1


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
