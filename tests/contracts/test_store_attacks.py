"""Stores that hang, die, vanish, fill up and are locked while processes do orders once in them.

Every effect is a line of a file, so that an order done twice, or not at all, is seen. A few seconds
in `make test`; `make soak` sets MULLIGAN_SOAK and multiplies the troubles.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from mulligan import Guard
from mulligan.errors import StoreDown, StoreUnwritable
from mulligan.stores.redis.store import Redis
from mulligan.stores.sqlite.store import Sqlite

from .conftest import Worker

pytestmark = pytest.mark.real

LONG = int(os.environ.get("MULLIGAN_SOAK", "0"))
LEASE = 0.6
PROCESSES = 4


class Ledger:
    """What was done, and how often."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    @property
    def done(self) -> Counter[int]:
        return Counter(int(line.split()[0]) for line in self.path.read_text().splitlines())

    @property
    def twice(self) -> dict[int, int]:
        return {number: times for number, times in self.done.items() if times > 1}


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "ledger")


def begin(workers, url: str, ledger: Ledger, orders: int, *more: float) -> list[Worker]:
    """Processes that all do the same orders, and are under way."""
    started = [
        workers("orders", url, f"w{number}", ledger.path, orders, LEASE, *more)
        for number in range(PROCESSES)
    ]
    for each in started:
        each.hear()
    return started


def pause(seconds: float) -> None:
    """Wait in real time; a wait of a test is a second at most."""
    while seconds > 0:
        time.sleep(min(seconds, 0.5))
        seconds -= 0.5


def finish(started: list[Worker]) -> None:
    for each in started:
        while (line := each.hear()) != "done":
            assert line, "a process ended before its orders were done"


def check(ledger: Ledger, orders: int) -> None:
    assert ledger.twice == {}
    assert set(ledger.done) == set(range(orders))


def test_three_hundred_threads_do_each_order_once_on_one_server(server):
    # With the default patience: 0.25 s for the gate, which then goes on by itself, and 5 s for
    # keys, where a caller that was not answered in time is told so, did nothing, and may ask again.
    threads, orders = 300, 60 * max(1, LONG // 10)
    store = Redis(server.url, f"attack-{os.getpid()}")
    done: list[int] = []
    failed: list[BaseException] = []
    bank = Guard("bank", store=store)

    def pay(number: int) -> int:
        done.append(number)
        return number

    def paid(number: int) -> int:
        while True:
            try:
                return bank.once(f"order-{number}", pay, number)
            except StoreDown as busy:
                assert "it was too busy: gave up after 5s" in str(busy)  # noqa: PT017

    def work(seed: int) -> None:
        dice = random.Random(seed)
        try:
            for number in dice.sample(range(orders), min(orders, 12 * max(1, LONG // 10))):
                assert paid(number) == number
        except BaseException as error:  # noqa: BLE001 -- looked at below
            failed.append(error)

    started = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for each in started:
        each.start()
    for each in started:
        each.join(120 + 10 * LONG)
    assert not any(each.is_alive() for each in started)
    assert failed == []
    assert sorted(done) == list(range(orders))
    store.close()


# None: seconds of it are longer than these outages last.
@pytest.mark.parametrize(
    "patience",
    [None, pytest.param(LEASE / 2, marks=pytest.mark.skipif(not LONG, reason="make soak"))],
)
def test_a_server_that_hangs_for_longer_than_the_lease_lets_nothing_be_done_twice(
    new_server, workers, ledger, patience
):
    server, dice = new_server(), random.Random(1)
    orders = 150 * max(1, LONG // 4)
    started = begin(workers, server.url, ledger, orders, *([patience] if patience else []))
    for _ in range(max(2, LONG)):
        pause(dice.uniform(0.1, 0.4))
        server.process.send_signal(signal.SIGSTOP)
        pause(dice.uniform(0.1, 3 * LEASE))
        server.process.send_signal(signal.SIGCONT)
    finish(started)
    check(ledger, orders)


def test_an_order_done_while_its_server_hung_for_longer_than_lease_and_patience_is_done_once(
    new_server, workers
):
    server, patience = new_server(), 0.3
    holder = workers("once", server.url, "holder", LEASE, "stay", patience)
    assert holder.hear() == "running"
    server.process.send_signal(signal.SIGSTOP)
    holder.go()
    assert holder.hear() == "holder"  # done, and not recorded
    heir = workers("once", server.url, "heir", LEASE)
    pause(4 * LEASE)  # it asks meanwhile, and is the first that the server answers
    server.process.send_signal(signal.SIGCONT)
    assert heir.hear() == "holder"  # what was done, and not "running"


def test_a_server_that_is_killed_and_started_again_lets_nothing_be_done_twice(
    new_server, workers, ledger
):
    server, dice = new_server(), random.Random(2)
    orders = 150 * max(1, LONG // 4)
    started = begin(workers, server.url, ledger, orders)
    for _ in range(max(2, LONG)):
        pause(dice.uniform(0.1, 0.4))
        server.end(signal.SIGKILL)
        pause(dice.uniform(0, 3 * LEASE))
        server.start()
    finish(started)
    check(ledger, orders)


def test_a_server_that_forgets_everything_lets_nothing_be_done_twice(new_server, workers, ledger):
    server, orders = new_server("--appendonly", "no"), 1000
    started = begin(workers, server.url, ledger, orders)
    pause(0.3)
    server.end(signal.SIGKILL)
    done = sum(ledger.done.values())
    server.start()
    pause(0.5)
    assert [each.process.poll() for each in started] == [None] * PROCESSES  # they keep asking
    assert ledger.twice == {}
    assert sum(ledger.done.values()) <= done + PROCESSES


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_file_that_vanishes_and_is_put_back_lets_nothing_be_done_twice(
    tmp_path, workers, ledger, how
):
    dice, orders = random.Random(3), 60 * max(1, LONG // 4)
    folder = tmp_path / "store"
    started = begin(workers, f"sqlite:{folder / 'state.db'}", ledger, orders)
    for _ in range(max(2, LONG)):
        pause(dice.uniform(0.05, 0.3))
        aside = folder.rename(tmp_path / "aside")
        if how == "replaced":
            folder.mkdir(mode=0o700)
            with Sqlite(folder / "state.db").keys.writing() as connection:
                connection.execute("SELECT 1")
        pause(dice.uniform(0, 2 * LEASE))
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
    finish(started)
    check(ledger, orders)


def test_a_file_that_another_program_locks_lets_nothing_be_done_twice(tmp_path, workers, ledger):
    dice, orders = random.Random(4), 60 * max(1, LONG // 4)
    path = tmp_path / "store" / "state.db"
    started = begin(workers, f"sqlite:{path}", ledger, orders)
    with sqlite3.connect(path.with_name("state.journal.db"), isolation_level=None) as other:
        for _ in range(max(2, LONG)):
            pause(dice.uniform(0.05, 0.3))
            other.execute("PRAGMA busy_timeout=5000")
            other.execute("BEGIN IMMEDIATE")
            pause(dice.uniform(0.1, 3 * LEASE))
            other.execute("ROLLBACK")
    other.close()
    finish(started)
    check(ledger, orders)


def test_a_full_store_does_nothing_and_goes_on_once_there_is_room(tmp_path):
    store = Sqlite(tmp_path / "store" / "state.db")
    bank, done = Guard("bank", store=store), []

    def pay(number: int) -> str:
        done.append(number)
        return "x" * 300

    def do_all() -> int:
        refused = 0
        for number in range(orders):
            try:
                bank.once(f"order-{number}", pay, number)
            except StoreUnwritable:
                refused += 1
        return refused

    orders = 150 * max(1, LONG // 4)
    bank.once("order-0", pay, 0)
    connection = store.keys.reader
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages + 3}")
    assert do_all() > 0
    before = len(done)
    do_all()  # what was done and not recorded is known here
    connection.execute("PRAGMA max_page_count=1000000")
    assert do_all() == 0
    assert before < orders
    assert Counter(done) == Counter(range(orders))
    store.close()


def test_a_server_without_memory_does_nothing_and_goes_on_once_there_is_room(new_server):
    server = new_server("--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
    store = Redis(server.url)
    bank, done, refused = Guard("bank", store=store), [], 0

    def pay(number: int) -> str:
        done.append(number)
        return "x" * 50_000

    for number in range(100):
        try:
            bank.once(f"order-{number}", pay, number)
        except StoreUnwritable:
            refused += 1
    assert refused
    store._cold.command("CONFIG", "SET", "maxmemory", "100mb")
    for number in range(100):
        bank.once(f"order-{number}", pay, number)
    assert Counter(done) == Counter(range(100))
    store.close()
