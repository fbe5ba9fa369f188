"""One SQLite file with many writers, one at a time, and the table of states in it.

SQLite lets writers wait by polling: a writer that asks at the wrong moment can starve for
seconds while others come and go. So writers queue at a gate before they begin: a lock between
the threads of a process, then a file lock between processes. `BEGIN IMMEDIATE` behind it never
has to wait.

Processes that have a deleted file open keep using it, while others create a new one: two separate
stores. So before each use the file at the path is compared with the one that was opened.

Each thread has a connection of its own. When a thread ends, the next one that begins takes it over;
one is kept for that, the others are closed.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import sys
import threading
import time
from contextlib import contextmanager, suppress
from errno import ENOENT
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from ...core.moment import Moment
from ...errors import StoreDown, StoreError, StoreUnwritable
from ..base import StatesByKey
from ..boot_clock import BOOT_CLOCK, boot_id
from ..forks import reset_after_fork
from ..local_files import claimed
from ..state_machine import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ..state_machine import Machine, Operation

__all__ = ("BY_TWO_CLOCKS", "STATES", "SqliteFile", "boot_moment")

S = TypeVar("S")

STATES = """
CREATE TABLE state (
    target TEXT NOT NULL,
    scope TEXT NOT NULL,
    part TEXT NOT NULL,
    machine TEXT NOT NULL,
    body TEXT NOT NULL,
    forget_at REAL NOT NULL,
    PRIMARY KEY (target, scope, part)
) WITHOUT ROWID;
CREATE INDEX state_forget_at ON state (forget_at);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID
"""
# `forget_on` is the expiry on the steady clock of `era`: the wall clock may be set forward.
BY_TWO_CLOCKS = """
ALTER TABLE state ADD COLUMN forget_on REAL NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN era TEXT NOT NULL DEFAULT ''
"""
_SELECT = "SELECT body FROM state WHERE target = ? AND scope = ? AND part = ?"
_DELETE = "DELETE FROM state WHERE target = ? AND scope = ? AND part = ?"
_INSERT = "INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

# States that may be forgotten are looked for at the first write of a process, which may be its last
# for long, and once in so many. Each sweep removes as many, so no call waits long for it, and the
# file grows no faster than it is swept.
_SWEEP = 256

# States that are kept parsed.
_MOST_PARSED = 1024

# Seconds after a reboot before the wall clock may expire a state: a machine may boot with a wrong
# clock that is corrected soon.
_SETTLED = 3_600.0


def boot_moment() -> Moment:
    """Now, by the clocks of this machine."""
    return Moment(time.clock_gettime(BOOT_CLOCK), time.time(), boot_id())


# Never closed: closing what was opened before a fork could disturb the parent's file.
_inherited: list[dict[int, _Handle]] = []


# How often a waiting process tries the lock, and how long one that releases it pauses.
_GLANCE = 2e-5
_SLOW_GLANCE = 4e-4
_BUSY = 2e-3
_ASIDE = 1.5e-4


def _locks(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Handle(NamedTuple):
    """What one thread holds open."""

    connection: sqlite3.Connection
    gate: int
    bell: int
    identity: _Identity


# The identity of a file, whatever its name: device and inode.
_Identity: TypeAlias = tuple[int, int]

# Where the handle of a thread that has ended is kept for the next one; no thread has this number.
# Without it, programs with a thread per request would open the file for each of them, and where the
# last one closes it, SQLite moves the whole WAL into the file.
_SPARE = 0


class _ThreadEnd:
    """Releases a thread's handle when the thread ends; stored in its `threading.local`.

    A child of a fork drops the locals of its parent's threads before `after_fork` is called; their
    handles are not its own to close.
    """

    __slots__ = ("_handles", "_ident", "_pid")

    def __init__(self, handles: dict[int, _Handle]) -> None:
        self._handles, self._ident, self._pid = handles, threading.get_ident(), os.getpid()

    def __del__(self, _is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if _is_ending() or os.getpid() != self._pid:
            return
        handle = self._handles.pop(self._ident, None)
        if handle is not None and self._handles.setdefault(_SPARE, handle) is not handle:
            _close(handle)


class SqliteFile(StatesByKey):
    """One SQLite file, with states by key in one table.

    Args:
        path: The file; created with its folder if it does not exist.
        url: The store, for errors.
        synchronous: ``NORMAL`` survives the death of processes, ``FULL`` that of the machine too.
        patience: Seconds to wait for other writers.
        migrations: One script per version; those that the file has not seen are run on first use.
        moments: Says what time it is.
        is_replaceable: Whether to go on with a new file if this one is deleted or replaced while it
            is in use: the first caller that notices gets an error, then the new file is opened. If
            not, every caller gets an error until the file is back, or the process has been
            restarted. A state that cannot be read then starts empty; if not, it is an error.

    Attributes:
        meta: Rows of the table ``meta`` that this process knows, for a file that replaces this one.
    """

    def __init__(
        self,
        path: Path,
        *,
        url: str,
        synchronous: str,
        patience: float,
        migrations: Sequence[str],
        is_replaceable: bool,
        moments: Callable[[], Moment] = boot_moment,
    ) -> None:
        self.path, self.url = path, url
        self.meta: dict[str, str] = {}
        self._is_replaceable = is_replaceable
        self._identity: _Identity | None = None  # of the file that this process uses
        self._synchronous, self._patience, self._migrations = synchronous, patience, migrations
        self._handles: dict[int, _Handle] = {}
        self._local = threading.local()
        self._turn = threading.Lock()
        self._left_at = 0.0
        self._moments, self._writes = moments, 0
        # What was read last, by key: an unchanged state is not parsed again.
        self._parsed: dict[Key, tuple[str, Any]] = {}
        reset_after_fork(self)

    @property
    def version(self) -> int:
        """The newest schema that this version of Mulligan knows."""
        return len(self._migrations)

    def after_fork(self) -> None:
        _inherited.append(self._handles)
        for handle in self._handles.values():
            # Inherited descriptors would keep the file lock if the parent died while holding it.
            os.close(handle.gate)
            os.close(handle.bell)
        self._handles = {}
        self._turn = threading.Lock()

    @property
    def reader(self) -> sqlite3.Connection:
        """This thread's connection, to read from. In WAL mode a reader does not wait.

        Raises:
            StoreError: The file cannot be opened, or is not the one that was opened before.
        """
        return self._handle().connection

    # States

    def transact_all(self, steps: Sequence[tuple[Key, Operation[Any, Any]]]) -> list[Any]:
        with self.writing() as connection:
            moment = self._moments()
            machines = {key: operation.machine for key, operation in steps}
            rows = {key: self._read(connection, key, machines[key]) for key in machines}
            states = {key: state for key, (_, state) in rows.items()}
            results = []
            for key, operation in steps:
                states[key], result = operation(states[key], moment)
                results.append(result)
            for key, (body, before) in rows.items():
                machine, after = machines[key], states[key]
                packed = body if after is before else machine.pack(after)
                if packed == body:
                    continue
                if packed is None:
                    connection.execute(_DELETE, (key.target, key.scope, key.part))
                else:
                    keep = machine.keep(after, moment)
                    times = moment.wall + keep, moment.now + keep, moment.era
                    row = key.target, key.scope, key.part, machine.name, packed, *times
                    connection.execute(_INSERT, row)
                    self._parsed[key] = packed, after
                if self._writes % _SWEEP == 0:
                    _sweep(connection, moment)
                self._writes += 1
        return results

    def peek_all(self, wanted: Sequence[tuple[Key, Machine[Any]]]) -> tuple[list[Any], Moment]:
        try:
            reader = self.reader
            states = [self._read(reader, key, machine)[1] for key, machine in wanted]
        except sqlite3.Error as trouble:
            raise StoreDown(self.url, f"cannot be read: {trouble}") from None
        return states, self._moments()

    def _read(
        self, connection: sqlite3.Connection, key: Key, machine: Machine[S]
    ) -> tuple[str | None, S]:
        """The row of `key` as it is stored, and the state that it stands for."""
        row = connection.execute(_SELECT, (key.target, key.scope, key.part)).fetchone()
        if row is None:
            return None, machine.start
        body: str = row[0]
        if len(self._parsed) >= _MOST_PARSED:
            self._parsed.clear()
        known = self._parsed.get(key)
        if known is not None and known[0] == body:
            return known
        try:
            state = machine.unpack(body)
        except ValueError as trouble:
            if not self._is_replaceable:
                raise StoreError(
                    self.url,
                    f"the {machine.name} of {key.target} cannot be read ({trouble}); "
                    f"another version wrote it: upgrade, or use another file",
                ) from None
            return body, machine.start
        self._parsed[key] = body, state
        return body, state

    def known(self, machine: Machine[S]) -> tuple[Key, ...]:
        try:
            rows = self.reader.execute(
                "SELECT target, part, scope FROM state WHERE machine = ? ORDER BY 1, 2, 3",
                (machine.name,),
            )
            return tuple([Key(*row) for row in rows])
        except sqlite3.Error as trouble:
            raise StoreDown(self.url, f"cannot be read: {trouble}") from None

    # Writing

    @contextmanager
    def writing(self, *, is_synced: bool = True) -> Iterator[sqlite3.Connection]:
        """This thread's connection, inside a transaction, exclusive for writing.

        Args:
            is_synced: Whether it survives the death of the machine from now on, where the file
                does; if not, then from the next transaction on.

        Raises:
            StoreDown: Other writers did not make room in time.
        """
        handle = self._handle()
        connection = handle.connection
        try:
            with self._gate(handle):
                yield from self._transaction(connection, is_synced=is_synced)
        except sqlite3.Error as trouble:
            raise self._unwritten(trouble) from None
        finally:
            if connection.in_transaction:  # it cannot be undone: closing it does
                _close(self._handles.pop(threading.get_ident()))
        if not self._is_replaceable and _identity_of(self.path) != handle.identity:
            raise self._lost()  # what was written may be in a file that no other process can see

    def _transaction(
        self, connection: sqlite3.Connection, *, is_synced: bool
    ) -> Iterator[sqlite3.Connection]:
        if not is_synced:
            connection.execute("PRAGMA synchronous=NORMAL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        finally:
            with suppress(sqlite3.Error):  # report the first error
                if connection.in_transaction:  # an error of SQLite's may have ended it
                    connection.execute("ROLLBACK")
                if not is_synced:
                    connection.execute(f"PRAGMA synchronous={self._synchronous}")

    def _unwritten(self, trouble: sqlite3.Error) -> StoreDown:
        kind = StoreUnwritable if _is_about_writing(trouble) else StoreDown
        return kind(self.url, f"{self.path.name} cannot be written: {trouble}")

    @contextmanager
    def _gate(self, handle: _Handle) -> Iterator[None]:
        gives_up_at = monotonic() + self._patience
        if not self._turn.acquire(timeout=self._patience):
            because = f"other threads have been writing for {self._patience:g}s"
            raise StoreDown(self.url, because)
        try:
            self._enter(handle, gives_up_at)
            try:
                yield
            finally:
                fcntl.flock(handle.gate, fcntl.LOCK_UN)
                self._left_at = monotonic()
                if not _locks(handle.bell, fcntl.LOCK_EX):
                    # Another thread waits. The thread that has just released the lock would usually
                    # get it again first, so it pauses until the others have noticed.
                    sleep(_ASIDE)
                else:
                    fcntl.flock(handle.bell, fcntl.LOCK_UN)
        finally:
            self._turn.release()

    def _enter(self, handle: _Handle, gives_up_at: float) -> None:
        if _locks(handle.gate, fcntl.LOCK_EX):
            return
        # A process that just held the lock tries less often than one that has waited for long.
        glance = _GLANCE if monotonic() - self._left_at > _BUSY else _SLOW_GLANCE
        fcntl.flock(handle.bell, fcntl.LOCK_SH)
        try:
            while not _locks(handle.gate, fcntl.LOCK_EX):
                if monotonic() >= gives_up_at:
                    because = f"another process has been writing for {self._patience:g}s"
                    raise StoreDown(self.url, because)
                sleep(glance)
        finally:
            fcntl.flock(handle.bell, fcntl.LOCK_UN)

    # Opening

    def _handle(self) -> _Handle:
        """This thread's handle, if it still is the file at the path."""
        handle = self._handles.get(threading.get_ident())
        if handle is None:
            handle = self._handles.pop(_SPARE, None)
            if handle is None:
                return self._open()
            self._hold(handle)
        if _identity_of(self.path) == handle.identity:
            return handle
        if not self._is_replaceable:
            raise self._lost()
        _close(self._handles.pop(threading.get_ident()))
        if self._identity == handle.identity:
            self._identity = None
            raise self._lost()
        return self._open()  # another thread has reported it

    def _lost(self) -> StoreDown:
        was = f"{self.path} was deleted or replaced while it was in use"
        if self._is_replaceable:
            return StoreDown(self.url, f"{was}; what was shared in it is lost")
        return StoreDown(
            self.url,
            f"{was}, so what has been done is unknown; put it back, or restart this process to "
            f"begin with the file that is there now",
        )

    def _open(self) -> _Handle:
        if self._identity is not None and _identity_of(self.path) != self._identity:
            if not self._is_replaceable:
                raise self._lost()
            self._identity = None
        gate, bell = (self.path.with_name(f"{self.path.name}.{it}") for it in ("gate", "bell"))
        if self._identity is None:
            for path in (self.path, gate, bell):
                claimed(path, self.url)
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            connection, identity = self._connected()
            handle = _Handle(connection, os.open(gate, flags), os.open(bell, flags), identity)
        except OSError as trouble:
            because = f"cannot open {self.path}: {trouble.strerror or trouble}"
            raise StoreDown(self.url, because) from None
        except sqlite3.Error as trouble:
            raise self._no_store(trouble) from None
        try:
            self._adopt(handle)
            # Not before: it reads the file, and a reader outside of the gate makes the switch to
            # WAL of the thread inside fail at once with "database is locked".
            connection.execute(f"PRAGMA synchronous={self._synchronous}")
        except sqlite3.Error as trouble:
            _close(handle)
            raise self._no_store(trouble) from None
        except BaseException:
            _close(handle)
            raise
        self._hold(handle)
        return handle

    def _hold(self, handle: _Handle) -> None:
        """Make `handle` the one of this thread until the thread ends."""
        self._local.end = _ThreadEnd(self._handles)  # first: an earlier one releases what it finds
        self._handles[threading.get_ident()] = handle

    def _no_store(self, trouble: sqlite3.Error) -> StoreError:
        if _code(trouble) in _BUSY_CODES or _is_about_writing(trouble):
            return self._unwritten(trouble)
        return StoreError(self.url, f"{self.path} is not a store: {trouble}")

    def _connected(self) -> tuple[sqlite3.Connection, _Identity]:
        """A connection to the file at the path, which must exist, and which file that is."""
        before = _identity_of(self.path)
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw",
            uri=True,
            # Behind the gate only another program can be in the way.
            timeout=self._patience / 5,
            isolation_level=None,  # we begin transactions explicitly
            check_same_thread=False,  # each thread has its own; `close` closes them all
        )
        if before is None or _identity_of(self.path) != before:
            connection.close()
            raise FileNotFoundError(ENOENT, "it was deleted meanwhile")
        return connection, before

    def _adopt(self, handle: _Handle) -> None:
        """Use the file of `handle`, unless this process uses another one by now."""
        if self._identity is None:
            self._prepare(handle)
        if self._identity != handle.identity:
            raise self._lost()  # another thread was first, with a file that has gone since

    def _prepare(self, handle: _Handle) -> None:
        """Bring the schema up to date, alone, and make this the file that the process uses."""
        with self._gate(handle):
            if self._identity is not None:
                return  # another thread was first
            connection = handle.connection
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if not _is_ours(connection, version):
                raise StoreError(
                    self.url, f"{self.path} is another program's database; use another path"
                )
            if connection.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
                raise StoreError(
                    self.url, f"{self.path.parent} cannot hold a WAL; use another disk"
                )
            known = len(self._migrations)
            if version > known:
                raise StoreError(
                    self.url,
                    f"{self.path} has schema {version}, this mulligan knows {known}; upgrade it",
                )
            for number in range(version, known):
                connection.executescript(
                    f"BEGIN IMMEDIATE; {self._migrations[number]};"
                    f"PRAGMA user_version={number + 1}; COMMIT"
                )
            if self.meta:
                connection.executemany(
                    "INSERT OR IGNORE INTO meta VALUES (?, ?)", self.meta.items()
                )
            self._identity = handle.identity

    def close(self) -> None:
        """Close every connection of this process; the next use begins with what is at the path.

        It waits for the transaction of another thread: a connection that is closed while it commits
        is a segmentation fault. One that takes longer than others would wait for it stays open.
        """
        self._identity = None
        if not self._turn.acquire(timeout=self._patience):
            return
        try:
            for ident in list(self._handles):
                handle = self._handles.pop(ident, None)
                if handle is not None:  # else its thread has ended in this moment
                    _close(handle)
        finally:
            self._turn.release()

    def __del__(self, _is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # A store that is not closed leaves neither descriptors nor connections behind. During
        # interpreter shutdown the names of this module may be gone already.
        if hasattr(self, "_handles") and not _is_ending():
            self.close()


def _is_ours(connection: sqlite3.Connection, version: int) -> bool:
    """Whether the file is empty or a store: another program's database is not changed."""
    if not version:
        return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    columns = connection.execute("SELECT name FROM pragma_table_info('state')").fetchall()
    return {"target", "scope", "part", "machine", "body"} <= {name for (name,) in columns}


def _identity_of(path: Path) -> _Identity | None:
    """Which file is at `path`; None if there is none, or it is unknown."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


def _code(trouble: sqlite3.Error) -> int:
    """SQLite's code for it, without the details in its upper bits; 0 for an error of Python's."""
    return getattr(trouble, "sqlite_errorcode", 0) & 0xFF


def _is_about_writing(trouble: sqlite3.Error) -> bool:
    """Whether the file may be readable all the same: the disk is full, broken or read-only."""
    codes = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR)
    return _code(trouble) in codes


def _close(handle: _Handle) -> None:
    handle.connection.close()
    os.close(handle.gate)
    os.close(handle.bell)


def _sweep(connection: sqlite3.Connection, moment: Moment) -> None:
    """Delete states that have expired by both clocks, so setting the wall clock deletes nothing."""
    wall, now, era = moment.wall, moment.now, moment.era
    some = "(target, scope, part) IN (SELECT target, scope, part FROM state WHERE forget_at < ?"
    connection.execute(
        f"DELETE FROM state WHERE {some} AND era = ? AND forget_on < ? LIMIT ?)",  # noqa: S608 -- our own words
        (wall, era, now, _SWEEP),
    )
    # States from an earlier boot have no valid steady time; give them one on this boot's clock.
    connection.execute(
        f"UPDATE state SET era = ?, forget_on = ? WHERE {some} AND era <> ? LIMIT ?)",  # noqa: S608 -- our own words
        (era, now + _SETTLED, wall, era, _SWEEP),
    )
