"""Threads that open a new SQLite store at the same moment.

Each thread set `synchronous` on its connection before it waited at the gate. That reads the file,
and the thread inside, which switches the file to WAL, failed with "database is locked" at once:
agents of a plan that started together failed before they had done anything.
"""

from __future__ import annotations

from threading import Barrier, Thread
from time import sleep

import pytest

from mulligan.stores.sqlite.store import Sqlite

THREADS, STORES = 4, 150


@pytest.mark.real
def test_threads_that_use_a_new_store_together_all_can(tmp_path):
    troubles = []

    def use(store, start, number):
        start.wait()
        sleep(number * 5e-4)  # so that some connect while the first one prepares the file
        try:
            store.scoped("account")
        except Exception as error:  # noqa: BLE001 -- any is one too many
            troubles.append(error)

    for number in range(STORES):
        store, start = Sqlite(tmp_path / f"{number}.db"), Barrier(THREADS)
        threads = [Thread(target=use, args=(store, start, each)) for each in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store.close()
    # On a machine that stands still for seconds, a thread may give up waiting for its turn.
    assert [each for each in troubles if "locked" in str(each)] == []
