"""Shared state of one machine, in two SQLite files.

What makes calls better lives in one file and may lose its last second to a power cut; what must
not be forgotten, keys and journal, lives in the other and may not.
"""

from __future__ import annotations

import secrets
import sqlite3
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.machine import Key
from ..core.ports import Entry
from ..errors import Fenced, StoreDown, StoreError
from .boot import boot_moment
from .scopes import scoped
from .sqlite_file import SqliteFile
from .threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.machine import Machine, Operation
    from ..core.moment import Moment

__all__ = ("Sqlite",)

S = TypeVar("S")
R = TypeVar("R")

_STATES = """
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

# How long a guarded call may be held up, and how long work that must be recorded may.
_STATE_PATIENCE = 0.2
_JOURNAL_PATIENCE = 5.0

# States that may be forgotten are looked for once in so many writes.
_SWEEP = 1024


class Sqlite:
    """Shared state of one machine.

    Args:
        path: The file for hot state; keys and journal go to a second file beside it.
        moments: Says what time it is; the machine's boot clock by default.

    Raises:
        StoreError: The path cannot be used safely.
    """

    def __init__(self, path: str | Path, moments: Callable[[], Moment] = boot_moment) -> None:
        hot = Path(path).expanduser().absolute()
        self.url = f"sqlite:{hot}"
        cold = hot.with_name(f"{hot.stem}.journal{hot.suffix}")
        self._hot = SqliteFile(
            hot,
            url=self.url,
            synchronous="NORMAL",
            patience=_STATE_PATIENCE,
            migrations=(_STATES,),
        )
        self._cold = SqliteFile(
            cold,
            url=self.url,
            synchronous="FULL",
            patience=_JOURNAL_PATIENCE,
            migrations=(f"{_STATES};{_JOURNAL}",),
        )
        self.state = SqliteState(self._hot, moments)
        self.keys = SqliteState(self._cold, moments, is_strict=True)
        self.journal = SqliteJournal(self._cold)
        self._salt = ""

    def scoped(self, scope: str) -> str:
        if scope and not self._salt:
            with self._hot.writing() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO meta VALUES ('salt', ?)", (secrets.token_hex(16),)
                )
                row = connection.execute("SELECT value FROM meta WHERE name = 'salt'").fetchone()
                self._salt = row[0]
        return scoped(scope, self._salt)

    def close(self) -> None:
        self._hot.close()
        self._cold.close()

    def __repr__(self) -> str:
        return f"Sqlite({str(self._hot.path)!r})"


class SqliteState:
    """States by key, in one table.

    Args:
        file: The file.
        moments: Says what time it is.
        is_strict: Whether a state that cannot be read is an error; else it is begun anew.
    """

    def __init__(
        self, file: SqliteFile, moments: Callable[[], Moment], *, is_strict: bool = False
    ) -> None:
        self._file, self._moments, self._is_strict = file, moments, is_strict
        self._writes = 0
        # What was read last, by key: a state that nobody changed is not parsed again.
        self._parsed: dict[Key, tuple[str, Any]] = {}

    def transact(self, key: Key, operation: Operation[S, R]) -> R:
        machine = operation.machine
        with self._file.writing() as connection:
            moment = self._moments()
            body = _body(connection, key)
            before = self._unpacked(key, machine, body)
            after, result = operation(before, moment)
            if after is not before:
                packed = machine.pack(after)
                if packed != body:
                    self._write(connection, key, machine, after, packed, moment)
        return result

    def _write(  # noqa: PLR0917 -- one call, one place
        self,
        connection: sqlite3.Connection,
        key: Key,
        machine: Machine[S],
        state: S,
        packed: str | None,
        moment: Moment,
    ) -> None:
        if packed is None:
            connection.execute(
                "DELETE FROM state WHERE target = ? AND scope = ? AND part = ?",
                (key.target, key.scope, key.part),
            )
        else:
            connection.execute(
                "INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?, ?, ?)",
                (
                    key.target,
                    key.scope,
                    key.part,
                    machine.name,
                    packed,
                    moment.wall + machine.keep(state, moment),
                ),
            )
            self._remember(key, packed, state)
        self._writes += 1
        if self._writes % _SWEEP == 0:
            connection.execute("DELETE FROM state WHERE forget_at < ?", (moment.wall,))

    def peek(self, key: Key, machine: Machine[S]) -> tuple[S, Moment]:
        try:
            body = _body(self._file.reader, key)
        except sqlite3.Error as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None
        return self._unpacked(key, machine, body), self._moments()

    def _unpacked(self, key: Key, machine: Machine[S], body: str | None) -> S:
        if body is None:
            return machine.start
        known = self._parsed.get(key)
        if known is not None and known[0] == body:
            state: S = known[1]
            return state
        try:
            state = machine.unpack(body)
        except ValueError as trouble:
            if self._is_strict:
                raise StoreError(
                    self._file.url,
                    f"the {machine.name} of {key.target} cannot be read ({trouble}); "
                    f"another version wrote it: upgrade, or use another file",
                ) from None
            return machine.start
        self._remember(key, body, state)
        return state

    def _remember(self, key: Key, body: str, state: Any) -> None:
        if len(self._parsed) >= 1024:
            self._parsed.clear()
        self._parsed[key] = body, state

    def known(self, machine: Machine[S]) -> tuple[Key, ...]:
        rows = self._file.reader.execute(
            "SELECT target, part, scope FROM state WHERE machine = ? ORDER BY 1, 2, 3",
            (machine.name,),
        )
        return tuple([Key(*row) for row in rows])

    async def atransact(self, key: Key, operation: Operation[S, R]) -> R:
        return await in_thread(self.transact, key, operation)

    async def apeek(self, key: Key, machine: Machine[S]) -> tuple[S, Moment]:
        return await in_thread(self.peek, key, machine)


def _body(connection: sqlite3.Connection, key: Key) -> str | None:
    row = connection.execute(
        "SELECT body FROM state WHERE target = ? AND scope = ? AND part = ?",
        (key.target, key.scope, key.part),
    ).fetchone()
    return None if row is None else row[0]


class SqliteJournal:
    """Entries by stream, in one table."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def append(self, stream: str, entry: Entry) -> int:
        with self._file.writing() as connection:
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

    def forget(self, stream: str) -> None:
        with self._file.writing() as connection:
            connection.execute("DELETE FROM journal WHERE stream = ?", (stream,))

    async def aappend(self, stream: str, entry: Entry) -> int:
        return await in_thread(self.append, stream, entry)

    async def aread(self, stream: str, after: int = 0) -> tuple[Entry, ...]:
        return await in_thread(self.read, stream, after)
