"""A SQLite file that was deleted split its users, and every key was used twice.

Those who had it open went on with a file that nobody else could find, those who came later made a
new one at the same path. Each of the two groups did what the other had done under its keys, and no
error was raised. A full disk was reported as "cannot rollback - no transaction is active", or that
the file was no store; and a lock held a call up three times as long as a store may.

A process whose threads opened the file together could still be split: a thread that had begun to
open it before any other was done went on with whatever it found at the path by then.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import threading

import pytest

import mulligan
from mulligan.errors import StoreDown, StoreUnwritable
from mulligan.once.claims import Take
from mulligan.shared.breaker import BREAKER, ManualOverride
from mulligan.stores.cache import FailOpen
from mulligan.stores.entries import JournalLine
from mulligan.stores.local_files import claimed
from mulligan.stores.sqlite.store import Sqlite
from mulligan.stores.state_machine import Key

KEY = Key("target", "breaker")
BLOCK = ManualOverride(move="block")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "state.db"


@pytest.fixture
def opened():
    stores: list[Sqlite] = []

    def new(path) -> Sqlite:
        stores.append(Sqlite(path))
        return stores[-1]

    yield new
    for each in stores:
        each.close()


def delete(path) -> None:
    shutil.rmtree(path.parent)


def replace(path) -> None:
    """As an editor, a backup program or a careful copy does it."""
    for each in path.parent.glob("*.db"):
        new = shutil.copy(each, path.with_name("new"))
        new.replace(each)


def rename(path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


@pytest.mark.parametrize("lose", [delete, replace, rename])
def test_what_is_kept_once_fails_closed_until_it_is_back(path, opened, lose):
    store = opened(path)
    bank = mulligan.Guard("bank", store=store)
    done: list[int] = []

    def pay(number: int) -> int:
        done.append(number)
        return number

    bank.once("order-1", pay, 1)
    store.journal.append("run", JournalLine("e", "1"))
    lose(path)
    opened(path).journal.append("run", JournalLine("another", "1"))  # somebody makes a new one
    found: list[BaseException] = []

    def refused() -> None:
        for ask in (
            lambda: bank.once("order-1", pay, 1),
            lambda: bank.once("order-2", pay, 2),
            lambda: store.journal.append("run", JournalLine("f", "1")),
            lambda: store.journal.read("run"),
        ):
            with pytest.raises(StoreDown, match="was deleted or replaced while it was in use, so"):
                ask()
            found.append(StoreDown("", ""))

    refused()
    fresh = threading.Thread(target=refused)  # a thread that had nothing open yet
    fresh.start()
    fresh.join()
    assert len(found) == 8
    assert done == [1]


def test_a_thread_that_opens_it_late_does_not_begin_with_another_file(path, opened, monkeypatch):
    store = opened(path)
    bank = mulligan.Guard("bank", store=store)
    done: list[int] = []

    def pay(number: int) -> int:
        done.append(number)
        return number

    def late_claim(*args):
        """Between the first look at the path and the opening, another thread uses the file."""
        if not late:
            late.append(threading.current_thread())
            first = threading.Thread(target=bank.once, args=("order-1", pay, 1))
            first.start()
            first.join()
            delete(path)
            opened(path).journal.append("run", JournalLine("another", "1"))
        return claimed(*args)

    late: list[threading.Thread] = []
    monkeypatch.setattr("mulligan.stores.sqlite.file.claimed", late_claim)
    with pytest.raises(StoreDown, match="was deleted or replaced while it was in use, so"):
        bank.once("order-1", pay, 1)
    assert done == [1]


def test_a_file_that_is_put_back_is_used_again(path, opened):
    store = opened(path)
    store.journal.append("run", JournalLine("e", "1"))
    away = path.parent.with_name("elsewhere")
    path.parent.rename(away)
    with pytest.raises(StoreDown):
        store.journal.read("run")
    away.rename(path.parent)
    store.journal.append("run", JournalLine("f", "1"))
    assert [each.id for each in store.journal.read("run")] == ["e", "f"]


def test_a_store_that_is_closed_begins_with_what_is_there(path, opened):
    store = opened(path)
    store.journal.append("run", JournalLine("e", "1"))
    store.close()
    delete(path)
    assert store.journal.read("run") == ()


@pytest.mark.parametrize("lose", [delete, replace, rename])
def test_what_makes_calls_better_is_shared_again_in_the_new_file(path, opened, lose):
    one, other = opened(path), opened(path)
    heard: list[object] = []
    state = FailOpen(one.state, heard.append, pause=0)
    scope = one.scoped("account 17")
    for each in (state, other.state):
        each.transact(KEY, BLOCK)
    lose(path)
    state.transact(KEY, ManualOverride(move="reset"))
    assert "deleted or replaced" in str(heard[0])  # with an event, and the call goes on
    state.transact(KEY, BLOCK)
    assert heard[1] is None
    with pytest.raises(StoreDown):
        other.state.peek(KEY, BREAKER)
    assert other.state.peek(KEY, BREAKER)[0].hand == "blocked"
    # An account has the same name for those who knew the old file and those who did not.
    assert opened(path).scoped("account 17") == scope


def test_the_threads_of_a_process_are_told_once_in_all(path, opened, monkeypatch):
    monkeypatch.setattr(
        "mulligan.stores.sqlite.store._STATE_PATIENCE", 60.0
    )  # on a busy machine as well
    store = opened(path)
    together, told = threading.Barrier(5, timeout=60), []

    def use() -> None:
        store.state.transact(KEY, BLOCK)
        together.wait()
        if together.wait() == 0:
            delete(path)
        together.wait()
        try:
            store.state.peek(KEY, BREAKER)
        except StoreDown as trouble:
            told.append(trouble)
        together.wait()
        store.state.transact(KEY, BLOCK)

    users = [threading.Thread(target=use) for _ in range(5)]
    for each in users:
        each.start()
    for each in users:
        each.join()
    assert len(told) == 1


def test_a_full_disk_is_called_by_its_name(path, opened):
    store = opened(path)
    heard: list[object] = []
    state = FailOpen(store.state, heard.append, pause=0)
    state.transact(KEY, BLOCK)
    store.journal.append("run", JournalLine("e", "1"))
    for file in (store.state, store.keys):
        # SQLite's own limit: it answers as it does where the disk has no page left.
        file.reader.execute("PRAGMA max_page_count=1")
    full = "x" * 100_000
    with pytest.raises(StoreUnwritable, match=r"state.journal.db cannot be written: .* full$"):
        store.journal.append("run", JournalLine("f", full))
    with pytest.raises(StoreUnwritable, match=r"full$"):
        store.keys.transact(KEY, Take(holder="a", fingerprint=full, lease=60))
    state.transact(KEY, ManualOverride(move="block", because=full))
    assert state.peek(KEY, BREAKER)[0].because == full  # in the copy
    assert [type(each) for each in heard] == [StoreUnwritable]
    assert [each.id for each in store.journal.read("run")] == ["e"]
    for file in (store.state, store.keys):
        file.reader.execute("PRAGMA max_page_count=1000000")
    store.journal.append("run", JournalLine("f", full))


@pytest.mark.real
@pytest.mark.parametrize("how", ["by its gate", "by another program", "by both"])
def test_a_file_that_is_locked_for_long_holds_a_call_up_for_250_ms(path, opened, within, how):
    store = opened(path)
    store.state.transact(KEY, BLOCK)
    other = sqlite3.connect(path, isolation_level=None)
    gate = os.open(f"{path}.gate", os.O_RDWR)
    if how != "by its gate":
        other.execute("BEGIN IMMEDIATE")
    if how != "by another program":
        fcntl.flock(gate, fcntl.LOCK_EX)
    with within(0.25), pytest.raises(StoreDown):
        store.state.transact(KEY, ManualOverride(move="reset"))
    assert store.state.peek(KEY, BREAKER)[0].hand == "blocked"  # and can be read meanwhile
    os.close(gate)
    other.close()
    store.state.transact(KEY, ManualOverride(move="reset"))


@pytest.mark.real
def test_a_file_that_is_locked_when_it_is_first_opened_is_down_not_wrong(path, opened):
    first = Sqlite(path)
    first.state.transact(KEY, BLOCK)
    first.close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    store = Sqlite(path)
    with pytest.raises(StoreDown, match="locked"):
        store.state.transact(KEY, BLOCK)
    other.close()
    store.close()
