"""Marks of unsafe tool calls that have begun: what a crash leaves behind.

The mark is written before the tool is called and removed when its end is known. A later call of
the same operation that finds one must not be made: the earlier one may have been applied. Access
to one operation is exclusive here, because the operation's key is held around it (`guard.aonce`).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ..once.claims import Busy, Drop, Mine, Take
from ..once.fingerprint import digest
from ..stores.state_machine import Key

if TYPE_CHECKING:
    from ..core.ports import Store

__all__ = ("Unfinished",)

# As long as results of operations are kept.
_DAY = 86_400.0


class Unfinished:
    """The mark of one operation, `key`, that calls `target`."""

    def __init__(self, store: Store, target: str, key: str) -> None:
        self._keys, self._place = store.keys, Key(target, f"unfinished/{digest([key])}")
        self._holder, self._epoch = os.urandom(8).hex(), 0

    async def begin(self) -> bool:
        """Write the mark; False if an earlier call has left one.

        Raises:
            StoreDown: It could not be written, so the tool must not be called.
        """
        take = Take(holder=self._holder, fingerprint="tool", lease=_DAY)
        answer = await self._keys.atransact(self._place, take)
        if isinstance(answer, Busy):
            # Only `end` uses these: the earlier call is ended in its own name.
            self._holder, self._epoch = answer.holder, answer.epoch
            return False
        if isinstance(answer, Mine):
            self._epoch = answer.epoch
        return True

    async def begin_again(self) -> None:
        """Replace the mark of an earlier call, which is known not to have been applied."""
        await self._keys.atransact(self._place, Drop(holder=self._holder, epoch=self._epoch))
        self._holder = os.urandom(8).hex()
        await self.begin()

    async def end(self) -> None:
        """Remove the mark: it is known what became of the call."""
        with suppress(Exception):  # a mark that stays is read as doubt, which is the safe side
            await self._keys.atransact(self._place, Drop(holder=self._holder, epoch=self._epoch))
