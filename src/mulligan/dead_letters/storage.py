"""Dead letters in a store's journal, one stream per letter.

A letter whose store is down goes to the spool of this machine, and from there to the store as soon
as a command uses it. It may be in both for a moment; the id identifies the duplicate. Its caller is
held up for a quarter of a second at most, so a store that takes longer may have it as well.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.dead_letter import Letter, Mark, Record
from ..core.redaction import clean
from ..errors import MulliganError, StoreDown, StoreError
from ..stores.entries import JournalLine
from ..threads import awithin, within
from .spool import LetterSpool

if TYPE_CHECKING:
    from ..core.ports import Store

__all__ = ("Letters", "new_id", "put_aside")

_STREAM = "dead/"
_FIRST = "letter"

# Seconds for which a call that has failed waits for its letter to be written.
_PATIENCE = 0.25


def new_id() -> str:
    """An id that sorts by time, and is like no other."""
    return f"{time.time_ns() // 1000:013x}{os.urandom(3).hex()}"


def put_aside(letter: Letter, trouble: MulliganError, spool: LetterSpool) -> None:
    """Keep `letter` in a spool file, because its store is down; log an error if that fails."""
    import logging

    log = logging.getLogger("mulligan")
    what = clean(f"{letter.target or letter.function}: {letter.because}")
    try:
        path = spool.put(letter.id, letter.pack())
    except FileExistsError:
        return  # spooled, and logged
    except (OSError, StoreError) as second:
        log.error(  # noqa: TRY400 -- the traceback of a full disk does not help
            "dead letter %s (%s) could be written neither to the store (%s) nor to a file (%s)",
            letter.id,
            what,
            trouble,
            second,
        )
    else:
        log.warning("dead letter %s (%s) waits in %s: %s", letter.id, what, path, trouble)


class Letters:
    """The dead letters of a store.

    Args:
        store: The store.
        spool: Where letters go while the store is down.
    """

    def __init__(self, store: Store, spool: LetterSpool | None = None) -> None:
        self.store, self.spool = store, spool or LetterSpool()

    def write(self, letter: Letter) -> StoreError | None:
        """Write `letter` to the store, else to the spool, else to the log.

        Returns:
            Why it is not in the store, if it is not.
        """
        letter = replace(letter, home=self.store.url)
        try:
            return within(_PATIENCE, self._append, letter)
        except TimeoutError:
            return self._late(letter)
        except BaseException:  # an interrupt, or no thread left to the machine
            self._late(letter)
            raise

    async def awrite(self, letter: Letter) -> StoreError | None:
        """Like `write`, without holding up the loop for a store that does not answer."""
        letter = replace(letter, home=self.store.url)
        try:
            return await awithin(_PATIENCE, self._append, letter)
        except TimeoutError:
            return self._late(letter)
        except BaseException:
            self._late(letter)
            raise

    def _append(self, letter: Letter) -> StoreError | None:
        try:
            self.store.journal.append(f"{_STREAM}{letter.id}", JournalLine(_FIRST, letter.pack()))
        except StoreError as trouble:
            return self._aside(letter, trouble)
        except Exception as error:  # noqa: BLE001 -- a store that is being closed raises anything
            what = f"no answer ({type(error).__name__})"
            return self._aside(letter, StoreDown(self.store.url, what))
        return None

    def _late(self, letter: Letter) -> StoreError:
        return self._aside(
            letter, StoreDown(self.store.url, f"no answer within {_PATIENCE * 1000:g} ms")
        )

    def _aside(self, letter: Letter, trouble: StoreError) -> StoreError:
        put_aside(letter, trouble, self.spool)
        return trouble

    def all(self) -> tuple[Record, ...]:
        """Every letter, oldest first; one that cannot be read is left out.

        Raises:
            StoreDown: The store cannot be read.
        """
        found = {record.letter.id: record for record in self.spooled()}
        for stream in self.store.journal.streams(_STREAM):
            record = self._read(stream)
            if record is not None:
                found[record.letter.id] = record
        return tuple(sorted(found.values(), key=lambda record: record.letter.id))

    def spooled(self) -> tuple[Record, ...]:
        """The letters that wait for the store on this machine."""
        found = []
        for text in self.spool.all().values():
            try:
                found.append(Record(letter=Letter.unpack(text), spooled=True))
            except ValueError:
                continue
        return tuple(found)

    def get(self, id: str) -> Record | None:  # noqa: A002 -- what it is called everywhere
        """The letter with this id."""
        record = self._read(f"{_STREAM}{id}")
        if record is None:
            record = next((each for each in self.spooled() if each.letter.id == id), None)
        return record

    def _read(self, stream: str) -> Record | None:
        entries = self.store.journal.read(stream)
        try:
            letter = Letter.unpack(next(each.body for each in entries if each.id == _FIRST))
            marks = tuple(Mark.unpack(each.body) for each in entries if each.id != _FIRST)
        except (StopIteration, ValueError):
            return None
        return Record(letter=letter, marks=marks)

    def collect(self) -> int:
        """Move spooled letters of this store to it; returns how many.

        Raises:
            StoreError: The store does not take them yet.
        """
        brought = 0
        for record in self.spooled():
            letter = record.letter
            if letter.home not in {"", self.store.url}:
                continue
            self.store.journal.append(f"{_STREAM}{letter.id}", JournalLine(_FIRST, letter.pack()))
            self.spool.remove(letter.id)
            brought += 1
        return brought

    def mark(self, letter: Letter, mark: Mark) -> None:
        """Add a mark to `letter`: what was done about it."""
        entry = JournalLine(f"mark {os.urandom(6).hex()}", mark.pack())
        self.store.journal.append(f"{_STREAM}{letter.id}", entry)

    def forget(self, letter: Letter) -> None:
        """Remove `letter` with everything that was done about it."""
        self.store.journal.forget(f"{_STREAM}{letter.id}")
        self.spool.remove(letter.id)
