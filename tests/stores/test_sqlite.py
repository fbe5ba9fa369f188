"""What only a file can do wrong."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from mulligan.core.moment import Moment
from mulligan.errors import StoreDown, StoreError
from mulligan.once.claims import CLAIM, Busy, Done, Finish, Mine, Take
from mulligan.shared.breaker import (
    BREAKER,
    AskBreaker,
    Breaker,
    Circuit,
    ManualOverride,
    OpenBreaker,
    Passed,
    Shut,
)
from mulligan.shared.gate.gate import EnterGate, Gate, GateWait, LeaveGate
from mulligan.stores.entries import JournalLine
from mulligan.stores.local_files import file_system
from mulligan.stores.sqlite.file import _inherited, boot_moment
from mulligan.stores.sqlite.journal import journal_file
from mulligan.stores.sqlite.store import Sqlite
from mulligan.stores.state_machine import Key

KEY = Key("target", "breaker")
FIVE = Breaker()
ASK = AskBreaker(permit="p", settings=FIVE)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "state.db"


@pytest.fixture
def store(path):
    store = Sqlite(path)
    yield store
    store.close()


def used(store):
    store.state.transact(KEY, ManualOverride(move="block"))
    store.journal.append("run", JournalLine("e", "1"))
    return store


def test_folders_and_files_are_for_their_owner_alone(store, path):
    used(store)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    found = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert set(found.values()) == {0o600}
    assert {"state.db", "state.journal.db", "state.db.gate"} <= set(found)


def test_a_file_that_others_could_read_is_closed_to_them(path):
    path.parent.mkdir()
    path.touch(mode=0o644)
    used(Sqlite(path)).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_not_followed(path, tmp_path):
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="cannot open"):
        used(Sqlite(path))


def test_a_file_that_is_no_store_is_refused(path):
    path.parent.mkdir()
    path.write_text("something else entirely, and long enough to be looked at " * 20)
    with pytest.raises(StoreError, match=r"is not a store: file is not a database$"):
        used(Sqlite(path))


def test_hot_state_is_quick_and_the_journal_is_safe(store):
    used(store)
    for file, level in ((store.state, 1), (store.keys, 2)):  # NORMAL, FULL
        assert file.reader.execute("PRAGMA synchronous").fetchone() == (level,)
        assert file.reader.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_schema_from_the_future_is_refused(store, path):
    used(store)
    store.state.reader.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(StoreError, match=r"has schema 99, this mulligan knows 2; upgrade it$"):
        used(Sqlite(path))


def test_an_older_schema_is_migrated_on_first_use(store, path):
    used(store)
    store.close()
    store.state._migrations = (*store.state._migrations, "ALTER TABLE state ADD COLUMN note TEXT")
    store.state._identity = None
    assert store.state.peek(KEY, BREAKER)[0].hand == "blocked"
    assert store.state.reader.execute("PRAGMA user_version").fetchone() == (3,)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/mnt/share/x", "nfs4"), ("/mnt/sharex", "ext4"), ("/mnt/my disk/y", "fuse.sshfs")],
)
def test_the_file_system_is_the_one_mounted_nearest(folder, kind, monkeypatch):
    from pathlib import Path

    mounts = (
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "30 22 0:40 / /mnt/share rw shared:1 - nfs4 server:/export rw\n"
        "31 22 0:41 / /mnt/my\\040disk rw - fuse.sshfs host: rw\n"
        "broken line\n"
    )
    assert file_system(Path(folder), mounts) == kind


def test_a_network_file_system_is_refused(path, monkeypatch):
    monkeypatch.setattr("mulligan.stores.local_files.file_system", lambda folder: "nfs4")
    with pytest.raises(StoreError, match=r"is on a network file system \(nfs4\)"):
        used(Sqlite(path))


def test_a_state_that_cannot_be_read_is_begun_anew_but_a_key_is_not(store):
    used(store)
    store.keys.transact(KEY, ManualOverride(move="block"))
    for file in (store.state, store.keys):
        with file.writing() as connection:
            connection.execute("UPDATE state SET body = '[1,2]'")
    assert store.state.peek(KEY, BREAKER)[0] == Circuit()
    with pytest.raises(StoreError, match="another version wrote it"):
        store.keys.transact(KEY, ASK)


def test_a_child_of_a_fork_opens_its_own_connection(store):
    used(store)
    inside, outside = os.pipe()
    child = os.fork()
    if not child:
        # Nothing of pytest may run in here.
        try:
            answer = store.state.transact(KEY, ASK)
            store.state.transact(Key("child", "breaker"), ManualOverride(move="block"))
            os.write(outside, b"shut" if isinstance(answer, Shut) else b"open")
        finally:
            os._exit(0)
    os.close(outside)
    os.waitpid(child, 0)
    assert os.read(inside, 10) == b"shut"
    os.close(inside)
    assert len(store.state.known(BREAKER)) == 2
    store.state.transact(KEY, ManualOverride(move="reset"))


@pytest.mark.real
def test_a_fork_while_another_thread_writes_does_not_lock_the_child(store):
    used(store)
    begun, done = threading.Event(), threading.Event()

    def hold():
        with store.state.writing():
            begun.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait(10)
    child = os.fork()
    if not child:
        code = 1
        try:
            # The parent's thread holds the gate, so the child is told so, and in time.
            store.state.transact(KEY, ASK)
        except StoreDown:
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    done.set()
    thread.join()
    assert isinstance(store.state.transact(KEY, ASK), Shut)


def descriptors(folder):
    """How often each file in `folder` is open in this process."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing
            found.append(each.readlink())
    return Counter(each.name for each in found if each.parent == folder)


def at_once(number, work, *args):
    """Have so many threads do it at the same time; all of them have ended then."""
    meeting = threading.Barrier(number)

    def one():
        work(*args)
        meeting.wait(10)

    threads = [threading.Thread(target=one) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_that_have_ended_leave_one_connection_for_the_next_one(store):
    used(store)
    (mine,) = store.state._handles.values()
    at_once(8, used, store)
    left = list(store.state._handles.values())
    assert len(left) == 2
    assert mine in left
    at_once(1, used, store)
    assert list(store.state._handles.values()) == left  # it was taken over, and given back


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors in /proc")
def test_threads_that_have_ended_leave_no_descriptors(store, path):
    at_once(1, used, store)
    before = descriptors(path.parent)
    for _ in range(10):
        at_once(8, used, store)
    after = descriptors(path.parent)
    # SQLite itself keeps those of a file that has another connection in this process: closing one
    # would end the locks of all. The next connections use them.
    files = {path.name, "state.journal.db"}
    assert {each: after[each] for each in after if each not in files} == {
        each: before[each] for each in before if each not in files
    }
    assert all(after[each] <= 9 for each in files)


def test_a_connection_that_was_left_is_closed_with_its_store(store, path):
    at_once(2, used, store)
    store.close()
    assert not store.state._handles
    used(store)


def test_a_thread_does_not_take_over_a_connection_to_a_file_that_was_replaced(store, path):
    at_once(1, used, store)
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()
    with pytest.raises(StoreDown, match="deleted or replaced while it was in use"):
        store.state.peek(KEY, BREAKER)
    assert store.state.peek(KEY, BREAKER)[0] == BREAKER.start


def test_the_child_of_a_fork_closes_no_connection_of_the_threads_of_its_parent(store):
    begun, done = threading.Barrier(3), threading.Event()

    def hold():
        used(store)
        begun.wait(10)
        done.wait(10)

    threads = [threading.Thread(target=hold) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun.wait(10)
    child = os.fork()
    if not child:
        code = 1
        try:
            left = [each.connection for handles in _inherited for each in handles.values()]
            told = [each.execute("SELECT 1").fetchone() for each in left]
            code = int(len(told) < 4 or set(told) != {(1,)})  # other tests' stores among them
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    done.set()
    for thread in threads:
        thread.join()


@pytest.mark.real
def test_a_writer_that_does_not_come_back_holds_nobody_up_for_more_than_250_ms(store, path, within):
    used(store)
    other = Sqlite(path)
    other.state.peek(KEY, BREAKER)
    with store.state.writing():
        late = pytest.raises(StoreDown, match=r"another process has been writing for 0.2s$")
        with within(0.25), late:
            other.state.transact(KEY, ManualOverride(move="reset"))
        assert other.state.peek(KEY, BREAKER)[0].hand == "blocked"  # readers wait for nobody
    other.close()


class Time:
    """The machine's clocks, as an operator and a reboot treat them."""

    def __init__(self) -> None:
        self.now, self.wall, self.era = 5000.0, 1.8e9, "first boot"

    def __call__(self) -> Moment:
        return Moment(self.now, self.wall, self.era)


@pytest.mark.parametrize("step", [3600, -3600, 86_400 * 30])
def test_a_stepped_calendar_changes_nothing(path, step):  # E-B7
    clock = Time()
    store = Sqlite(path, clock)
    store.state.transact(KEY, OpenBreaker(stated=600, because="stated"))
    leave = LeaveGate(id="", turn=0, reply="rejected", hint=600, settings=Gate())
    store.state.transact(Key("target", "gate"), leave)
    store.keys.transact(Key("t", "once"), Take(holder="a", fingerprint="f", lease=600))
    clock.wall += step
    clock.now += 100
    assert store.state.transact(KEY, ASK) == Shut(500, "stated")
    enter = EnterGate(id="p", holder="h", settings=Gate())
    answer = store.state.transact(Key("target", "gate"), enter)
    assert isinstance(answer, GateWait)
    assert answer.delay == 500
    take = Take(holder="b", fingerprint="f", lease=600)
    assert store.keys.transact(Key("t", "once"), take).retry_in == 500  # type: ignore[union-attr]
    store.close()


def test_a_reboot_ends_leases_and_keeps_what_was_stated(path):  # E-B14
    clock = Time()
    store = Sqlite(path, clock)
    store.state.transact(KEY, OpenBreaker(stated=600, because="stated"))
    store.keys.transact(Key("t", "once"), Take(holder="a", fingerprint="f", lease=600))
    clock.now, clock.era, clock.wall = 3.0, "second boot", clock.wall + 60
    assert store.state.transact(KEY, ASK) == Shut(540, "stated")
    take = Take(holder="b", fingerprint="f", lease=600)
    assert store.keys.transact(Key("t", "once"), take) == Mine(2)
    store.close()


def test_what_nobody_needs_is_forgotten(path):
    clock = Time()
    store = Sqlite(path, clock)
    tell = OpenBreaker(stated=5, because="stated")
    store.state.transact(Key("old", "breaker"), tell)
    clock.now += 200_000
    clock.wall += 200_000
    for number in range(1024):
        store.state.transact(Key(f"t{number}", "breaker"), tell)
    assert Key("old", "breaker") not in store.state.known(BREAKER)
    store.close()


def test_a_file_that_only_short_processes_write_does_not_grow(path):
    clock, sizes = Time(), []
    take = Take(holder="a", fingerprint="f", lease=60)
    for number in range(60):
        store = Sqlite(path, clock)  # what a process knows of its file begins anew with each
        for each in range(5):
            part = f"{number}/{each}"
            store.keys.transact(Key("t", part), take)
            store.keys.transact(
                Key("t", part), Finish(holder="a", epoch=1, fingerprint="f", value="1", ttl=600)
            )
        assert store.keys.transact(Key("t", f"{number}/0"), take) == Done("1")
        sizes.append(len(store.keys.known(CLAIM)))
        store.close()
        clock.now += 86_400
        clock.wall += 86_400
    assert max(sizes) <= 5 * 10  # seven days of fences, and the day of the results


def test_one_sweep_takes_no_longer_because_much_is_over(path):
    clock = Time()
    store = Sqlite(path, clock)
    for number in range(1000):
        store.keys.transact(Key("t", f"{number}"), Take(holder="a", fingerprint="f", lease=60))
    store.close()
    clock.now += 86_400 * 30
    clock.wall += 86_400 * 30
    store = Sqlite(path, clock)
    store.keys.transact(Key("t", "new"), Take(holder="a", fingerprint="f", lease=60))
    assert len(store.keys.known(CLAIM)) == 1 + 1000 - 256
    store.close()


def swept(states, clock):
    """Write so often that the file is swept."""
    for number in range(1024):
        take = Take(holder="x", fingerprint="f", lease=clock.now)
        states.transact(Key("t", f"{clock.era}/{clock.now}/{number}"), take)


def test_a_calendar_that_was_set_deletes_neither_claims_nor_results(path):  # E-B7
    clock = Time()
    store = Sqlite(path, clock)
    live, done = Key("t", "live"), Key("t", "done")
    take = Take(holder="a", fingerprint="f", lease=600)
    store.keys.transact(live, take)
    store.keys.transact(done, take)
    store.keys.transact(done, Finish(holder="a", epoch=1, fingerprint="f", value="1", ttl=86_400))
    clock.wall += 86_400 * 30
    swept(store.keys, clock)
    clock.wall -= 86_400 * 30
    other = Take(holder="b", fingerprint="f", lease=600)
    assert store.keys.transact(live, other) == Busy(600, "a", 1)
    assert store.keys.transact(done, other) == Done("1")
    store.close()


def test_a_machine_that_boots_with_the_wrong_calendar_has_an_hour_to_set_it(path):  # E-B14
    clock = Time()
    store = Sqlite(path, clock)
    done = Key("t", "done")
    take = Take(holder="a", fingerprint="f", lease=600)
    store.keys.transact(done, take)
    store.keys.transact(done, Finish(holder="a", epoch=1, fingerprint="f", value="1", ttl=86_400))
    clock.now, clock.era, clock.wall = 3.0, "second boot", clock.wall + 86_400 * 30
    swept(store.keys, clock)
    clock.now += 60
    swept(store.keys, clock)
    clock.wall -= 86_400 * 30
    assert store.keys.transact(done, Take(holder="b", fingerprint="f", lease=9)) == Done("1")
    clock.wall += 86_400 * 30
    clock.now += 3_600
    swept(store.keys, clock)
    assert done not in store.keys.known(CLAIM)
    store.close()


def test_boot_time_is_the_same_for_all_processes():
    first, second = boot_moment(), boot_moment()
    assert first.era == second.era != ""
    assert first.now <= second.now


def test_the_state_of_a_target_is_one_row(store):
    used(store)
    other = sqlite3.connect(store.state.path)
    row = other.execute("SELECT * FROM state").fetchone()
    other.close()
    assert row[:4] == ("target", "", "breaker", "breaker")
    assert isinstance(store.state.transact(Key("other", "breaker"), ASK), Passed)


FORGOTTEN = """
import sys
from mulligan.shared.breaker import ManualOverride
from mulligan.stores.state_machine import Key
from mulligan.stores.open import open_store
store = open_store("sqlite:" + sys.argv[1])
store.state.transact(Key("t", "breaker"), ManualOverride(move="block"))
"""


@pytest.mark.real
def test_a_program_that_ends_with_its_store_open_ends_in_silence(path):
    ran = subprocess.run(
        [sys.executable, "-c", FORGOTTEN, str(path)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.real
def test_a_store_is_closed_between_the_transactions_of_other_threads(path):
    # The connection of a renewal thread was closed while it committed: a segmentation fault.
    file = journal_file(path)
    inside, may_end = threading.Event(), threading.Event()
    troubles = []

    def write():
        try:
            with file.writing() as connection:
                connection.execute("INSERT INTO meta VALUES ('written', 'yes')")
                inside.set()
                may_end.wait(5)
        except Exception as trouble:  # noqa: BLE001 -- looked at below
            troubles.append(trouble)

    writer, closer = threading.Thread(target=write), threading.Thread(target=file.close)
    writer.start()
    inside.wait(5)
    closer.start()
    closer.join(0.1)
    may_end.set()
    writer.join(5)
    closer.join(5)
    assert not troubles
    rows = file.reader.execute("SELECT value FROM meta WHERE name = 'written'").fetchall()
    file.close()
    assert rows == [("yes",)]
