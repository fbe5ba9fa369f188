"""The journal of one machine, in a SQLite file that never loses an acknowledged entry."""

from __future__ import annotations

import sqlite3
from itertools import takewhile
from typing import TYPE_CHECKING

from ...errors import Fenced, StoreDown
from ..async_calls import in_thread
from ..entries import JournalLine, StreamLease
from .file import SqliteFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ("BY_TWO_CLOCKS", "STATES", "SqliteJournal", "journal_file")

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
_JOURNAL = """
CREATE TABLE journal (
    stream TEXT NOT NULL,
    place INTEGER NOT NULL,
    id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (stream, place),
    UNIQUE (stream, id)
) WITHOUT ROWID
"""
_LEASES = """
CREATE TABLE lease (
    stream TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    boot TEXT NOT NULL,
    seen REAL NOT NULL
) WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES ('made_at', strftime('%s', 'now'))
"""

# How long work that must be recorded waits for other writers.
_PATIENCE = 5.0


def journal_file(hot: Path) -> SqliteFile:
    """The file beside `hot` in which keys and journal are kept."""
    return SqliteFile(
        hot.with_name(f"{hot.stem}.journal{hot.suffix}"),
        url=f"sqlite:{hot}",
        synchronous="FULL",
        patience=_PATIENCE,
        migrations=(f"{STATES};{_JOURNAL}", BY_TWO_CLOCKS, _LEASES),
        is_replaceable=False,
    )


class SqliteJournal:
    """Entries by stream, in one table."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def append(self, stream: str, entry: JournalLine, *, is_synced: bool = True) -> int:
        with self._file.writing(is_synced=is_synced) as connection:
            return self._append(connection, stream, entry)

    def _append(self, connection: sqlite3.Connection, stream: str, entry: JournalLine) -> int:
        row = connection.execute(
            "SELECT place FROM journal WHERE stream = ? AND id = ?", (stream, entry.id)
        ).fetchone()
        if row is not None:
            return int(row[0])
        newest, last = _newest(connection, stream)
        if entry.epoch < newest:
            raise Fenced(self._file.url, f"{stream} is written by epoch {newest} now")
        connection.execute(
            "INSERT INTO journal VALUES (?, ?, ?, ?, ?)",
            (stream, last + 1, entry.id, entry.epoch, entry.body),
        )
        return last + 1

    def read(self, stream: str, after: int = 0) -> tuple[JournalLine, ...]:
        # As bytes: one entry that is not text must not hide the others.
        try:
            rows = self._file.reader.execute(
                "SELECT id, CAST(body AS BLOB), epoch FROM journal "
                "WHERE stream = ? AND place > ? ORDER BY place",
                (stream, after),
            )
            return tuple(
                [JournalLine(id_, body.decode("utf-8", "replace"), e) for id_, body, e in rows]
            )
        except sqlite3.Error as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None

    def streams(self, prefix: str) -> tuple[str, ...]:
        try:
            rows = self._file.reader.execute(
                "SELECT DISTINCT stream FROM journal WHERE stream >= ? ORDER BY stream", (prefix,)
            )
            # Names with one prefix stand together; LIKE would read more, and wildcards into it.
            return tuple(takewhile(lambda name: name.startswith(prefix), (row[0] for row in rows)))
        except sqlite3.Error as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None

    def lengths(self, prefix: str) -> dict[str, int]:
        """The number of entries of each stream with this prefix, to see which have changed."""
        try:
            rows = self._file.reader.execute(
                "SELECT stream, MAX(place) FROM journal WHERE stream >= ? AND stream < ? "
                "GROUP BY stream",
                (prefix, f"{prefix}\U0010ffff"),
            )
            return dict(rows.fetchall())
        except sqlite3.Error as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None

    def newest(self, stream: str) -> tuple[int, int]:
        """The epoch and the place of the last entry of `stream`; zeros if there is none."""
        try:
            return _newest(self._file.reader, stream)
        except sqlite3.Error as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None

    # Leases

    def take(
        self,
        stream: str,
        choose: Callable[[int, StreamLease | None], tuple[JournalLine, StreamLease | None]],
        *,
        is_synced: bool = True,
    ) -> JournalLine:
        """Begin a new epoch of `stream`, in one step with the lease of its new holder.

        Args:
            stream: The stream.
            choose: (epoch of the last entry, present lease) → the entry, and the new lease; None
                leaves the lease as it is. What it raises is raised, and nothing is written.
            is_synced: As of `append`.
        """
        with self._file.writing(is_synced=is_synced) as connection:
            newest, _ = _newest(connection, stream)
            entry, lease = choose(newest, _lease(connection, stream))
            self._append(connection, stream, entry)
            if lease is not None:
                _set_lease(connection, stream, lease)
            return entry

    def renew(self, stream: str, lease: StreamLease, epoch: int) -> bool:
        """Write the lease again, unless the stream has an entry of a later epoch: then False."""
        with self._file.writing(is_synced=False) as connection:
            if _newest(connection, stream)[0] != epoch:
                return False
            _set_lease(connection, stream, lease)
            return True

    def release(self, stream: str, holder: str) -> None:
        """Remove the lease, if `holder` has it."""
        with self._file.writing(is_synced=False) as connection:
            connection.execute(
                "DELETE FROM lease WHERE stream = ? AND holder = ?", (stream, holder)
            )

    def lease(self, stream: str) -> StreamLease | None:
        """The lease of `stream`, if there is one."""
        try:
            return _lease(self._file.reader, stream)
        except sqlite3.Error as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None

    def leased(self, prefix: str) -> tuple[str, ...]:
        """Every stream that has a lease and whose name begins with `prefix`."""
        try:
            rows = self._file.reader.execute(
                "SELECT stream FROM lease WHERE stream >= ? AND stream < ?",
                (prefix, f"{prefix}\U0010ffff"),
            )
            return tuple([row[0] for row in rows])
        except sqlite3.Error as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None

    def forget(self, stream: str) -> None:
        self.forget_if(stream, lambda _place, _lease: True)

    def forget_if(
        self, stream: str, is_permitted: Callable[[int, StreamLease | None], bool]
    ) -> bool:
        """Remove `stream` with its entries and its lease, if that is permitted; whether it was.

        Args:
            stream: The stream.
            is_permitted: (place of the last entry, present lease), asked in the same step.
        """
        with self._file.writing() as connection:
            if not is_permitted(_newest(connection, stream)[1], _lease(connection, stream)):
                return False
            connection.execute("DELETE FROM journal WHERE stream = ?", (stream,))
            connection.execute("DELETE FROM lease WHERE stream = ?", (stream,))
            return True

    def made_at(self) -> float:
        """When this journal was made, in epoch seconds."""
        try:
            row = self._file.reader.execute("SELECT value FROM meta WHERE name = 'made_at'")
            return float((row.fetchone() or ("inf",))[0])
        except (sqlite3.Error, ValueError) as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None

    async def aappend(self, stream: str, entry: JournalLine) -> int:
        return await in_thread(self.append, stream, entry)

    async def aread(self, stream: str, after: int = 0) -> tuple[JournalLine, ...]:
        return await in_thread(self.read, stream, after)


def _newest(connection: sqlite3.Connection, stream: str) -> tuple[int, int]:
    # Epochs never fall along a stream, so the last entry has the newest.
    row = connection.execute(
        "SELECT epoch, place FROM journal WHERE stream = ? ORDER BY place DESC LIMIT 1", (stream,)
    ).fetchone()
    return (0, 0) if row is None else (int(row[0]), int(row[1]))


def _lease(connection: sqlite3.Connection, stream: str) -> StreamLease | None:
    row = connection.execute(
        "SELECT holder, boot, seen FROM lease WHERE stream = ?", (stream,)
    ).fetchone()
    return None if row is None else StreamLease(*row)


def _set_lease(connection: sqlite3.Connection, stream: str, lease: StreamLease) -> None:
    connection.execute("INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?)", (stream, *lease))
