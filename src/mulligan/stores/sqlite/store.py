"""Shared state of one machine, in two SQLite files.

Breakers, gates and tokens are in one file, which may lose its last second in a power failure; keys
and journal are in the other, which must lose nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..state_machine import scoped
from .file import BY_TWO_CLOCKS, STATES, SqliteFile, boot_moment
from .journal import SqliteJournal, journal_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.moment import Moment

__all__ = ("Sqlite", "hot_file")

# How long a guarded call may be held up.
_STATE_PATIENCE = 0.2


def hot_file(hot: Path, moments: Callable[[], Moment] = boot_moment) -> SqliteFile:
    """The file in which breakers, gates and tokens are kept."""
    return SqliteFile(
        hot,
        url=f"sqlite:{hot}",
        synchronous="NORMAL",
        patience=_STATE_PATIENCE,
        migrations=(STATES, BY_TWO_CLOCKS),
        is_replaceable=True,
        moments=moments,
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
        self.state = hot_file(hot, moments)
        self.keys = journal_file(hot, moments)
        self.journal = SqliteJournal(self.keys)
        self._salt = ""

    def scoped(self, scope: str) -> str:
        if scope and not self._salt:
            with self.state.writing() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO meta VALUES ('salt', ?)", (os.urandom(16).hex(),)
                )
                row = connection.execute("SELECT value FROM meta WHERE name = 'salt'").fetchone()
                # If the file is deleted, a new one gets the same salt, so accounts keep their
                # hashes.
                self._salt = self.state.meta["salt"] = row[0]
        return scoped(scope, self._salt)

    def close(self) -> None:
        self.state.close()
        self.keys.close()

    def __repr__(self) -> str:
        return f"Sqlite({str(self.state.path)!r})"
