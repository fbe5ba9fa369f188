"""One SQLite file that many write, one at a time.

SQLite lets writers wait by polling: whoever asks at the wrong moment can starve for seconds while
others come and go. So writers queue at a gate before they begin: a lock between the threads of a
process, then a file lock between processes. `BEGIN IMMEDIATE` behind it never has to wait.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import sys
import threading
from contextlib import contextmanager
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple

from ..errors import StoreDown, StoreError
from .forks import made_anew
from .places import claimed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

__all__ = ("SqliteFile",)

# Never closed: closing what was opened before a fork could disturb the parent's file.
_inherited: list[object] = []


# How often a waiting process looks at the gate, and how long one that leaves it steps aside.
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


class SqliteFile:
    """One SQLite file.

    Args:
        path: The file; created with its folder if it does not exist.
        url: The store, for errors.
        synchronous: ``NORMAL`` survives the death of processes, ``FULL`` that of the machine too.
        patience: Seconds to wait for other writers.
        migrations: One script a version; those that the file has not seen are run on first use.
    """

    def __init__(
        self,
        path: Path,
        *,
        url: str,
        synchronous: str,
        patience: float,
        migrations: Sequence[str],
    ) -> None:
        self.path, self.url = path, url
        self._synchronous, self._patience, self._migrations = synchronous, patience, migrations
        self._handles: dict[int, _Handle] = {}
        self._turn = threading.Lock()
        self._is_ready = False
        self._left_at = 0.0
        made_anew(self)

    def after_fork(self) -> None:
        _inherited.append(self._handles)
        for handle in self._handles.values():
            # Copies held open here would keep the gate shut should the parent die inside.
            os.close(handle.gate)
            os.close(handle.bell)
        self._handles = {}
        self._turn = threading.Lock()

    @property
    def reader(self) -> sqlite3.Connection:
        """This thread's connection, to read from. In WAL mode a reader waits for nobody."""
        handle = self._handles.get(threading.get_ident())
        return (handle or self._open()).connection

    @contextmanager
    def writing(self, *, is_synced: bool = True) -> Iterator[sqlite3.Connection]:
        """This thread's connection, inside a transaction that nobody else can write in.

        Args:
            is_synced: Whether it survives the death of the machine from now on, where the file
                does; if not, then from the next transaction on.

        Raises:
            StoreDown: Other writers did not make room in time.
        """
        handle = self._handles.get(threading.get_ident()) or self._open()
        with self._gate(handle):
            connection = handle.connection
            if not is_synced:
                connection.execute("PRAGMA synchronous=NORMAL")
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
            except sqlite3.Error as trouble:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise StoreDown(
                    self.url, f"{self.path.name} cannot be written: {trouble}"
                ) from None
            finally:
                if not is_synced:
                    connection.execute(f"PRAGMA synchronous={self._synchronous}")

    @contextmanager
    def _gate(self, handle: _Handle) -> Iterator[None]:
        patience = self._patience
        if not self._turn.acquire(timeout=patience):
            raise StoreDown(self.url, f"other threads have been writing for {patience:g}s")
        try:
            self._enter(handle, patience)
            try:
                yield
            finally:
                fcntl.flock(handle.gate, fcntl.LOCK_UN)
                self._left_at = monotonic()
                if not _locks(handle.bell, fcntl.LOCK_EX):
                    # Somebody waits. Whoever has just left is always the first to come back, so
                    # it steps aside for as long as the others need to notice.
                    sleep(_ASIDE)
                else:
                    fcntl.flock(handle.bell, fcntl.LOCK_UN)
        finally:
            self._turn.release()

    def _enter(self, handle: _Handle, patience: float) -> None:
        if _locks(handle.gate, fcntl.LOCK_EX):
            return
        now = monotonic()
        gives_up_at = now + patience
        # Who has been inside a moment ago looks less often than who has waited for long.
        glance = _GLANCE if now - self._left_at > _BUSY else _SLOW_GLANCE
        fcntl.flock(handle.bell, fcntl.LOCK_SH)
        try:
            while not _locks(handle.gate, fcntl.LOCK_EX):
                if monotonic() >= gives_up_at:
                    raise StoreDown(self.url, f"another process has been writing for {patience:g}s")
                sleep(glance)
        finally:
            fcntl.flock(handle.bell, fcntl.LOCK_UN)

    # Opening

    def _open(self) -> _Handle:
        gate, bell = (self.path.with_name(f"{self.path.name}.{it}") for it in ("gate", "bell"))
        if not self._is_ready:
            for path in (self.path, gate, bell):
                claimed(path, self.url)
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = _Handle(self._connected(), os.open(gate, flags), os.open(bell, flags))
        except (sqlite3.Error, OSError) as trouble:
            raise self._no_store(trouble) from None
        if not self._is_ready:
            try:
                self._prepare(handle)
            except (sqlite3.Error, OSError) as trouble:
                _close(handle)
                raise self._no_store(trouble) from None
            except BaseException:
                _close(handle)
                raise
        self._tidy()
        self._handles[threading.get_ident()] = handle
        return handle

    def _no_store(self, trouble: Exception) -> StoreError:
        return StoreError(self.url, f"{self.path} is no store: {trouble}")

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=self._patience,
            isolation_level=None,  # transactions begin where we say so
            check_same_thread=False,  # each thread has its own; `close` closes them all
        )
        try:
            connection.execute(f"PRAGMA synchronous={self._synchronous}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, handle: _Handle) -> None:
        """Bring the schema up to date, alone."""
        with self._gate(handle):
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
        self._is_ready = True

    def _tidy(self) -> None:
        """Close what threads that have ended left open."""
        alive = {thread.ident for thread in threading.enumerate()}
        for ident in [ident for ident in list(self._handles) if ident not in alive]:
            handle = self._handles.pop(ident, None)
            if handle is not None:
                _close(handle)

    def close(self) -> None:
        """Close every connection of this process."""
        handles, self._handles = self._handles, {}
        for handle in handles.values():
            _close(handle)

    def __del__(self, _is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # Whoever forgets to close leaves neither descriptors nor connections behind. While the
        # interpreter goes down, names of this module are gone, and so will be what they close.
        if hasattr(self, "_handles") and not _is_ending():
            self.close()


def _is_ours(connection: sqlite3.Connection, version: int) -> bool:
    """Whether the file is empty or a store: another program's database is not ours to change."""
    if not version:
        return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    columns = connection.execute("SELECT name FROM pragma_table_info('state')").fetchall()
    return {"target", "scope", "part", "machine", "body"} <= {name for (name,) in columns}


def _close(handle: _Handle) -> None:
    handle.connection.close()
    os.close(handle.gate)
    os.close(handle.bell)
