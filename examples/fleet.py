"""A fleet of agents that shares one limit.

Four processes call one provider that allows twenty requests a second. They share a gate in
a SQLite file: who reads the headers of an answer reads them for all, so that hardly any request
is sent in vain. Run it: ``python examples/fleet.py``
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import mulligan

AGENTS, JOBS = 4, 10
LIMIT, WINDOW = 20, 1.0


class Rejected(Exception):
    """What an SDK raises for a 429."""

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__("too many requests")
        self.status_code, self.headers = 429, headers


class Answer:
    """An answer with the headers of its response."""

    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers


class Provider:
    """A limit of `LIMIT` requests in every window, counted for all processes together."""

    def __init__(self) -> None:
        self._lock = multiprocessing.Lock()
        self._window: Any = multiprocessing.Value("d", 0.0)
        self._used: Any = multiprocessing.Value("i", 0)
        self.requests: Any = multiprocessing.Value("i", 0)

    def complete(self) -> Answer:
        with self._lock:
            now = time.time()
            if now >= self._window.value + WINDOW:
                self._window.value, self._used.value = now, 0
            self.requests.value += 1
            left = LIMIT - self._used.value
            headers = {
                "x-ratelimit-limit-requests": str(LIMIT),
                "x-ratelimit-remaining-requests": str(max(left - 1, 0)),
                "x-ratelimit-reset-requests": f"{self._window.value + WINDOW - now:.3f}s",
            }
            if left <= 0:
                raise Rejected(headers)
            self._used.value += 1
            return Answer(headers)


def agent(provider: Provider, store: str) -> None:
    guard = mulligan.Guard(
        "provider", effects="idempotent", store=store, observe=mulligan.headers_of
    )
    for _ in range(JOBS):
        guard.call(provider.complete)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        provider, store = Provider(), f"sqlite:{Path(folder) / 'state.db'}"
        began = time.monotonic()
        agents = [
            multiprocessing.Process(target=agent, args=(provider, store)) for _ in range(AGENTS)
        ]
        for each in agents:
            each.start()
        for each in agents:
            each.join()
        took = time.monotonic() - began
    jobs, requests = AGENTS * JOBS, provider.requests.value
    print(f"{jobs} jobs done with {requests} requests, in {took:.1f}s")
    if any(each.exitcode for each in agents) or requests > 1.5 * jobs:
        raise SystemExit("the fleet did not share its limit")


if __name__ == "__main__":
    main()
