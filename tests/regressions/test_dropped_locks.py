"""Opening a store released the locks that other threads of the process had on its file.

Several threads that opened a new SQLite store at the same time, in two processes, saw "disk I/O
error": one thread looked at the file by opening and closing it, and closing any descriptor of a
file releases all POSIX locks of the process.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys

import pytest

from mulligan.stores.local_files import claimed

LOOK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("locked")
"""

RACE = """
import sys, threading
from mulligan.once.claims import Take
from mulligan.stores.state_machine import Key
from mulligan.stores.sqlite.store import Sqlite

store, together = Sqlite(sys.argv[1]), threading.Barrier(16)

def work(number):
    together.wait()
    take = Take(holder=str(number), fingerprint="f", lease=30)
    store.keys.transact(Key("http", "once/x"), take)

threads = [threading.Thread(target=work, args=[number]) for number in range(16)]
for each in threads: each.start()
for each in threads: each.join()
"""


@pytest.mark.real
def test_a_file_that_is_looked_at_stays_locked(tmp_path):
    path = claimed(tmp_path / "keys.db", "sqlite:keys.db")
    with path.open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        claimed(path, "sqlite:keys.db")
        seen = subprocess.run(
            [sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True, check=True
        )
    assert seen.stdout == "locked\n"


@pytest.mark.real
def test_threads_of_two_processes_open_a_new_store_at_once(tmp_path):
    for number in range(3):
        path = tmp_path / f"keys-{number}.db"
        two = [
            subprocess.Popen([sys.executable, "-c", RACE, str(path)], stderr=subprocess.PIPE)
            for _ in range(2)
        ]
        assert [each.communicate(timeout=60)[1] for each in two] == [b"", b""]
