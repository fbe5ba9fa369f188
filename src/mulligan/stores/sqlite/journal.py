"""The journal of one machine, in a SQLite file that loses nothing it has acknowledged."""

from __future__ import annotations

import sqlite3
from itertools import takewhile
from typing import TYPE_CHECKING

from ..core.entry import Entry
from ..errors import Fenced, StoreDown
from .sqlite_file import SqliteFile
from .threads import in_thread

if TYPE_CHECKING:
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
# A calendar alone forgets too early once somebody has set it: `forget_on` is the same time on the
# steady clock of `era`.
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

# How long work that must be recorded waits for other writers.
_PATIENCE = 5.0


def journal_file(hot: Path) -> SqliteFile:
    """The file beside `hot` in which keys and journal are kept."""
    return SqliteFile(
        hot.with_name(f"{hot.stem}.journal{hot.suffix}"),
        url=f"sqlite:{hot}",
        synchronous="FULL",
        patience=_PATIENCE,
        migrations=(f"{STATES};{_JOURNAL}", BY_TWO_CLOCKS),
    )


class SqliteJournal:
    """Entries by stream, in one table."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def append(self, stream: str, entry: Entry, *, is_synced: bool = True) -> int:
        with self._file.writing(is_synced=is_synced) as connection:
            row = connection.execute(
                "SELECT place FROM journal WHERE stream = ? AND id = ?", (stream, entry.id)
            ).fetchone()
            if row is not None:
                return int(row[0])
            # Epochs never fall along a stream, so the last entry has the newest.
            newest, last = connection.execute(
                "SELECT epoch, place FROM journal WHERE stream = ? ORDER BY place DESC LIMIT 1",
                (stream,),
            ).fetchone() or (0, 0)
            if entry.epoch < newest:
                raise Fenced(self._file.url, f"{stream} is written by epoch {newest} now")
            place: int = last + 1
            connection.execute(
                "INSERT INTO journal VALUES (?, ?, ?, ?, ?)",
                (stream, place, entry.id, entry.epoch, entry.body),
            )
            return place

    def read(self, stream: str, after: int = 0) -> tuple[Entry, ...]:
        try:
            rows = self._file.reader.execute(
                "SELECT id, body, epoch FROM journal WHERE stream = ? AND place > ? ORDER BY place",
                (stream, after),
            )
            return tuple([Entry(*row) for row in rows])
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
        """How many entries each stream has whose name begins so: what has changed, in one look."""
        try:
            rows = self._file.reader.execute(
                "SELECT stream, MAX(place) FROM journal WHERE stream >= ? AND stream < ? "
                "GROUP BY stream",
                (prefix, f"{prefix}\U0010ffff"),
            )
            return dict(rows.fetchall())
        except sqlite3.Error as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None

    def forget(self, stream: str) -> None:
        with self._file.writing() as connection:
            connection.execute("DELETE FROM journal WHERE stream = ?", (stream,))

    async def aappend(self, stream: str, entry: Entry) -> int:
        return await in_thread(self.append, stream, entry)

    async def aread(self, stream: str, after: int = 0) -> tuple[Entry, ...]:
        return await in_thread(self.read, stream, after)
