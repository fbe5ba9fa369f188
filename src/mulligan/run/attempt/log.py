"""What one stream of an attempt printed, kept in a file as far as there is room.

A log that cannot be kept is no reason to end the user's work. Where the disk is full its beginning
is given up for its end: how an attempt ended stands there, and the journal needs room as well.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("TAIL", "AttemptLog")

# How much of a log is read to judge an attempt.
TAIL = 512 << 10


class AttemptLog:
    """A file that grows as long as it can.

    Args:
        path: The file; made if it does not exist.
    """

    __slots__ = ("_descriptor", "_most", "_size", "trouble")

    def __init__(self, path: Path) -> None:
        new = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        #: Why it is not whole, in the system's words; empty if it is.
        self.trouble = ""
        self._descriptor = -1
        self._size, self._most = 0, 0
        try:
            self._descriptor = os.open(path, new, 0o600)
        except OSError as trouble:
            self.trouble = trouble.strerror or str(trouble)

    def write(self, data: bytes) -> None:
        """Add `data`; never raises."""
        if self._descriptor < 0:
            return
        if self.trouble:
            self._squeeze(data)
            return
        try:
            self._write(data)
        except OSError as trouble:
            self.trouble = trouble.strerror or str(trouble)
            # Half of what there was room for: the rest is left to the journal.
            self._most = min(TAIL, self._size // 2)
            self._cut()
            self._squeeze(data)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):  # what it could not write is known by now
                os.close(descriptor)

    def _squeeze(self, data: bytes) -> None:
        if self._size + len(data) > self._most:
            self._cut()
        if self._most:
            with suppress(OSError):
                self._write(data[-self._most :])

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            written = os.write(self._descriptor, rest)
            self._size += written
            rest = rest[written:]

    def _cut(self) -> None:
        with suppress(OSError):
            os.truncate(self._descriptor, 0)
        self._size = 0
