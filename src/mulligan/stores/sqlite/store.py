"""Shared state of one machine, in two SQLite files.

Breakers, gates and tokens are in one file, which may lose its last second in a power failure; keys
and journal are in the other, which must lose nothing.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.moment import Moment
from ...errors import StoreDown, StoreError
from ..async_calls import in_thread
from ..boot_clock import BOOT_CLOCK, boot_id
from ..state_machine import Key, scoped
from .file import SqliteFile
from .journal import BY_TWO_CLOCKS, STATES, SqliteJournal, journal_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..state_machine import Machine, Operation

__all__ = ("Sqlite", "boot_moment", "hot_file")

S = TypeVar("S")
R = TypeVar("R")


# How long a guarded call may be held up.
_STATE_PATIENCE = 0.2

# States that may be forgotten are looked for at the first write of a process, which may be its last
# for long, and once in so many. Each sweep removes as many, so no call waits long for it, and the
# file grows no faster than it is swept.
_SWEEP = 256

# States that are kept parsed.
_MOST_PARSED = 1024

_SELECT = "SELECT body FROM state WHERE target = ? AND scope = ? AND part = ?"
_DELETE = "DELETE FROM state WHERE target = ? AND scope = ? AND part = ?"
_INSERT = "INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

# Seconds after a reboot before the wall clock may expire a state: a machine may boot with a wrong
# clock that is corrected soon.
_SETTLED = 3_600.0


def boot_moment() -> Moment:
    """Now, by the clocks of this machine."""
    return Moment(time.clock_gettime(BOOT_CLOCK), time.time(), boot_id())


def hot_file(hot: Path) -> SqliteFile:
    """The file in which breakers, gates and tokens are kept."""
    return SqliteFile(
        hot,
        url=f"sqlite:{hot}",
        synchronous="NORMAL",
        patience=_STATE_PATIENCE,
        migrations=(STATES, BY_TWO_CLOCKS),
        is_replaceable=True,
    )


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
        self._hot = hot_file(hot)
        self._cold = journal_file(hot)
        self.state = SqliteState(self._hot, moments)
        self.keys = SqliteState(self._cold, moments, is_strict=True)
        self.journal = SqliteJournal(self._cold)
        self._salt = ""

    def scoped(self, scope: str) -> str:
        if scope and not self._salt:
            with self._hot.writing() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO meta VALUES ('salt', ?)", (os.urandom(16).hex(),)
                )
                row = connection.execute("SELECT value FROM meta WHERE name = 'salt'").fetchone()
                # If the file is deleted, a new one gets the same salt, so accounts keep their
                # hashes.
                self._salt = self._hot.meta["salt"] = row[0]
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
        is_strict: Whether a state that cannot be read is an error; else it starts empty.
    """

    def __init__(
        self, file: SqliteFile, moments: Callable[[], Moment], *, is_strict: bool = False
    ) -> None:
        self._file, self._moments, self._is_strict = file, moments, is_strict
        self._writes = 0
        # What was read last, by key: an unchanged state is not parsed again.
        self._parsed: dict[Key, tuple[str, Any]] = {}

    def transact(self, key: Key, operation: Operation[S, R]) -> R:
        result: R = self.transact_all(((key, operation),))[0]
        return result

    def transact_all(self, steps: Sequence[tuple[Key, Operation[Any, Any]]]) -> list[Any]:
        with self._file.writing() as connection:
            moment = self._moments()
            found = {key: self._read(connection, key, each.machine) for key, each in steps}
            states = {key: state for key, (_, state) in found.items()}
            results = []
            for key, operation in steps:
                states[key], result = operation(states[key], moment)
                results.append(result)
            for key, machine in {key: each.machine for key, each in steps}.items():
                (body, before), after = found[key], states[key]
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

    def peek(self, key: Key, machine: Machine[S]) -> tuple[S, Moment]:
        (state,), moment = self.peek_all(((key, machine),))
        return state, moment

    def peek_all(self, wanted: Sequence[tuple[Key, Machine[Any]]]) -> tuple[list[Any], Moment]:
        try:
            reader = self._file.reader
            states = [self._read(reader, key, machine)[1] for key, machine in wanted]
        except sqlite3.Error as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None
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
            if self._is_strict:
                raise StoreError(
                    self._file.url,
                    f"the {machine.name} of {key.target} cannot be read ({trouble}); "
                    f"another version wrote it: upgrade, or use another file",
                ) from None
            return body, machine.start
        self._parsed[key] = body, state
        return body, state

    def known(self, machine: Machine[S]) -> tuple[Key, ...]:
        try:
            rows = self._file.reader.execute(
                "SELECT target, part, scope FROM state WHERE machine = ? ORDER BY 1, 2, 3",
                (machine.name,),
            )
            return tuple([Key(*row) for row in rows])
        except sqlite3.Error as trouble:
            raise StoreDown(self._file.url, f"cannot be read: {trouble}") from None

    async def atransact(self, key: Key, operation: Operation[S, R]) -> R:
        return await in_thread(self.transact, key, operation)

    async def apeek(self, key: Key, machine: Machine[S]) -> tuple[S, Moment]:
        return await in_thread(self.peek, key, machine)


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
