"""The journal of one machine, in a SQLite file that never loses an acknowledged entry."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from ...errors import Fenced, StoreDown
from ..entries import JournalLine, StreamLease
from .file import BY_TWO_CLOCKS, STATES, SqliteFile, boot_moment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ...core.moment import Moment

__all__ = ("SqliteJournal", "journal_file")

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

# The epoch and the place of the last entry of a stream. Epochs never fall along a stream, so the
# last entry has the newest.
_LAST = "SELECT epoch, place FROM journal WHERE stream = ? ORDER BY place DESC LIMIT 1"
_APPEND = "INSERT INTO journal (stream, place, id, body, epoch) VALUES (?, ?, ?, ?, ?)"
_LEASE = "SELECT holder, boot, seen FROM lease WHERE stream = ?"
_SET_LEASE = "INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?)"

# How long work that must be recorded waits for other writers.
_PATIENCE = 5.0


def journal_file(hot: Path, moments: Callable[[], Moment] = boot_moment) -> SqliteFile:
    """The file beside `hot` in which keys and journal are kept."""
    return SqliteFile(
        hot.with_name(f"{hot.stem}.journal{hot.suffix}"),
        url=f"sqlite:{hot}",
        synchronous="FULL",
        patience=_PATIENCE,
        migrations=(f"{STATES};{_JOURNAL}", BY_TWO_CLOCKS, _LEASES),
        is_replaceable=False,
        moments=moments,
    )


class SqliteJournal:
    """Entries by stream, in one table, and the lease of each stream's holder in another."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def append(
        self,
        stream: str,
        entry: JournalLine,
        *,
        lease: StreamLease | None = None,
        is_synced: bool = True,
    ) -> int:
        """Write `entry` at the end of `stream`, in one step with the lease of its holder, if given.

        An entry that is there already is not written again.

        Raises:
            Fenced: The stream has an entry of a later epoch.
        """
        with self._file.writing(is_synced=is_synced) as connection:
            known = connection.execute(
                "SELECT place FROM journal WHERE stream = ? AND id = ?", (stream, entry.id)
            ).fetchone()
            epoch, place = connection.execute(_LAST, (stream,)).fetchone() or (0, 0)
            if known is None:
                if entry.epoch < epoch:
                    raise Fenced(self._file.url, f"{stream} is written by epoch {epoch} now")
                connection.execute(_APPEND, (stream, place + 1, *entry))
            if lease is not None:
                connection.execute(_SET_LEASE, (stream, *lease))
            return int(place + 1 if known is None else known[0])

    def read(self, stream: str, after: int = 0) -> tuple[JournalLine, ...]:
        # As bytes: one entry that is not text must not hide the others.
        found = []
        for id_, body, epoch in self._rows(
            "SELECT id, CAST(body AS BLOB), epoch FROM journal "
            "WHERE stream = ? AND place > ? ORDER BY place",
            (stream, after),
        ):
            found.append(JournalLine(id_, body.decode("utf-8", "replace"), epoch))
        return tuple(found)

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._file.reader.execute(query, values).fetchall()
        except sqlite3.Error as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None

    def streams(self, prefix: str) -> tuple[str, ...]:
        # LIKE would read wildcards into the prefix.
        query = "SELECT DISTINCT stream FROM journal WHERE stream >= ? ORDER BY stream"
        return tuple([name for (name,) in self._rows(query, (prefix,)) if name.startswith(prefix)])

    def lengths(self, prefix: str) -> dict[str, int]:
        """The number of entries of each stream with this prefix, to see which have changed."""
        return dict(
            self._rows(
                "SELECT stream, MAX(place) FROM journal WHERE stream >= ? AND stream < ? "
                "GROUP BY stream",
                (prefix, f"{prefix}\U0010ffff"),
            )
        )

    def newest(self, stream: str) -> tuple[int, int]:
        """The epoch and the place of the last entry of `stream`; zeros if there is none."""
        [(epoch, place)] = self._rows(_LAST, (stream,)) or [(0, 0)]
        return epoch, place

    # Leases

    def take(
        self,
        stream: str,
        choose: Callable[[int, StreamLease | None], tuple[JournalLine, StreamLease | None]],
    ) -> JournalLine:
        """Begin a new epoch of `stream`, in one step with the lease of its new holder.

        `choose`: (epoch of the last entry, present lease) → the entry, and the new lease; None
        leaves the lease as it is. What it raises is raised, and nothing is written.
        """
        with self._file.writing() as connection:
            epoch, place = connection.execute(_LAST, (stream,)).fetchone() or (0, 0)
            row = connection.execute(_LEASE, (stream,)).fetchone()
            entry, lease = choose(epoch, None if row is None else StreamLease(*row))
            connection.execute(_APPEND, (stream, place + 1, *entry))
            if lease is not None:
                connection.execute(_SET_LEASE, (stream, *lease))
            return entry

    def renew(self, stream: str, lease: StreamLease, epoch: int) -> bool:
        """Write the lease again, unless the stream has an entry of a later epoch: then False."""
        with self._file.writing(is_synced=False) as connection:
            row = connection.execute(_LAST, (stream,)).fetchone()
            if row is None or row[0] != epoch:
                return False
            connection.execute(_SET_LEASE, (stream, *lease))
            return True

    def release(self, stream: str, holder: str) -> None:
        """Remove the lease, if `holder` has it."""
        with self._file.writing(is_synced=False) as connection:
            connection.execute(
                "DELETE FROM lease WHERE stream = ? AND holder = ?", (stream, holder)
            )

    def lease(self, stream: str) -> StreamLease | None:
        """The lease of `stream`, if there is one."""
        found = self._rows(_LEASE, (stream,))
        return StreamLease(*found[0]) if found else None

    def leased(self, prefix: str) -> tuple[str, ...]:
        """Every stream that has a lease and whose name begins with `prefix`."""
        query = "SELECT stream FROM lease WHERE stream >= ? AND stream < ?"
        return tuple([name for (name,) in self._rows(query, (prefix, f"{prefix}\U0010ffff"))])

    def forget(self, stream: str) -> None:
        self.forget_if(stream, lambda _place, _lease: True)

    def forget_if(
        self, stream: str, is_permitted: Callable[[int, StreamLease | None], bool]
    ) -> bool:
        """Remove `stream` with its entries and its lease, if that is permitted; whether it was.

        `is_permitted`: (place of the last entry, present lease), asked in the same step.
        """
        with self._file.writing() as connection:
            _, place = connection.execute(_LAST, (stream,)).fetchone() or (0, 0)
            row = connection.execute(_LEASE, (stream,)).fetchone()
            if not is_permitted(place, None if row is None else StreamLease(*row)):
                return False
            connection.execute("DELETE FROM journal WHERE stream = ?", (stream,))
            connection.execute("DELETE FROM lease WHERE stream = ?", (stream,))
            return True

    def made_at(self) -> float:
        """When this journal was made, in epoch seconds."""
        found = self._rows("SELECT value FROM meta WHERE name = 'made_at'")
        try:
            return float(found[0][0]) if found else float("inf")
        except ValueError as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None
