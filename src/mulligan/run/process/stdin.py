"""How a program gets its input while that is still arriving.

What was kept is replayed from its start, then what arrives is passed on. A program that reads
slowly slows whoever writes, and one that does not read at all holds nobody up.
"""

from __future__ import annotations

import os
import selectors
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stdin_spool import StdinSpool

__all__ = ("StdinFeed",)


class StdinFeed:
    """One program's way through the spool.

    Args:
        spool: What arrives.
        pipe: The program's stdin.
        selector: Where to wait for both.
        on_progress: Told when the program took something, or what is wrong with keeping it.
    """

    def __init__(
        self,
        spool: StdinSpool,
        pipe: IO[bytes],
        selector: selectors.BaseSelector,
        on_progress: Callable[[OSError | None], None],
    ) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._spool, self._selector, self._on_progress = spool, selector, on_progress
        self._pipe: IO[bytes] | None = pipe
        self._offset = 0
        self._source: int | None = None
        self._is_pushing = self._is_broken = False
        self.adjust()

    def adjust(self) -> None:
        """Wait for what matters now: other threads may have pulled, too."""
        is_hungry = not self._is_broken and self._spool.is_hungry(self._offset)
        if is_hungry and self._source is None:
            self._source = self._spool.source
            if self._source is not None:
                self._selector.register(self._source, selectors.EVENT_READ, self._pull)
        elif not is_hungry and self._source is not None:
            self._selector.unregister(self._source)
            self._source = None
        if self._pipe is not None:
            is_behind = self._offset < self._spool.size
            if is_behind and not self._is_pushing:
                self._selector.register(self._pipe, selectors.EVENT_WRITE, self._push)
            elif not is_behind and self._is_pushing:
                self._selector.unregister(self._pipe)
            self._is_pushing = is_behind
            # Never at a gap: the program would take what it has for all there is.
            if not is_behind and self._spool.source is None and not self._is_broken:
                self._close()

    def _pull(self) -> None:
        try:
            self._spool.pull()
        except OSError as trouble:
            self._is_broken = True
            self._on_progress(trouble)
        self.adjust()

    def _push(self) -> None:
        if self._pipe is None:
            return
        try:
            self._offset += os.write(self._pipe.fileno(), self._spool.read(self._offset))
        except BlockingIOError:
            return
        except OSError:  # it closed its stdin, as it may; the rest is kept for the next attempt
            self._close()
        else:
            self._on_progress(None)
        self.adjust()

    def _close(self) -> None:
        if self._pipe is not None:
            if self._is_pushing:
                self._selector.unregister(self._pipe)
            self._pipe.close()
            self._pipe = None
