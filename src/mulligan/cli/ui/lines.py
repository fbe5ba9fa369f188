"""Prints lines from another thread, dropping them if the reader is too slow.

A program that starts the server may not read its output. A full pipe blocks the writer, so
printing has a thread of its own; lines beyond its queue are dropped and counted.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("PrinterThread",)

# A burst of a thousand clients fits many times; a pipe without a reader costs a few megabytes.
_MOST = 10_000


class PrinterThread:
    """A thread that prints.

    Args:
        most: How many lines may wait to be printed.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._waiting: queue.Queue[Callable[[], object] | None] = queue.Queue(most)
        self._thread = threading.Thread(target=self._print, name="mulligan-lines", daemon=True)
        self._thread.start()
        self.dropped = 0

    def add(self, show: Callable[[], object]) -> None:
        """Queue a line; never blocks."""
        try:
            self._waiting.put_nowait(show)
        except queue.Full:
            self.dropped += 1

    def close(self, seconds: float = 1.0) -> bool:
        """Print what is queued; returns whether that took at most `seconds`."""
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=seconds)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _print(self) -> None:
        while (show := self._waiting.get()) is not None:
            # The reader may have closed the pipe; the server goes on.
            with contextlib.suppress(BrokenPipeError):
                show()
