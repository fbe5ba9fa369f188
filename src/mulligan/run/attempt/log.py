"""What one stream of an attempt printed, kept in a file as far as there is room.

A log that cannot be kept is no reason to end the user's work. Past `HEAD` and twice `REST` the
middle is left out: the beginning says what the attempt was, the end how it ended. Where the disk is
full the beginning is given up as well, for the journal needs room.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("HEAD", "REST", "TAIL", "AttemptLog")

# How much of a log is read to judge an attempt.
TAIL = 512 << 10
# How much of its beginning and, at least, of its end is kept: 64 MiB at most in all.
HEAD, REST = 16 << 20, 24 << 20


class AttemptLog:
    """A file that grows as long as it can.

    Args:
        path: The file; made if it does not exist.
    """

    __slots__ = ("_begins", "_descriptor", "_mark", "_most", "_size", "left_out", "trouble")

    def __init__(self, path: Path) -> None:
        new = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        #: Why it is not whole, in the system's words; empty if it is.
        self.trouble = ""
        #: Bytes of its middle that were left out.
        self.left_out = 0
        self._descriptor = -1
        self._size, self._most = 0, 0
        # Where the middle was left out: the place of the line that says so, and its length.
        self._begins, self._mark = 0, 0
        try:
            self._descriptor = os.open(path, new, 0o600)
            self._size = os.fstat(self._descriptor).st_size
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
            if self._size > HEAD + 2 * REST:
                self._leave_out()
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

    def _leave_out(self) -> None:
        """Remove the middle: whole lines, where lines are not endless.

        The end is copied before anything is cut off: whoever is killed in between leaves a log in
        which something stands twice, and nothing is missing.
        """
        rest = os.pread(self._descriptor, REST, self._size - REST)
        rest = rest[rest.find(b"\n") + 1 :]
        if not self._begins:
            self._begins = os.pread(self._descriptor, HEAD, 0).rfind(b"\n") + 1 or HEAD
        self.left_out += self._size - self._begins - self._mark - len(rest)
        mark = b"[mulligan: %d bytes were left out here]\n" % self.left_out
        self._mark, self._size = len(mark), self._begins
        self._write(mark + rest)
        os.truncate(self._descriptor, self._size)

    def _squeeze(self, data: bytes) -> None:
        if self._size + len(data) > self._most:
            self._cut()
        if self._most:
            with suppress(OSError):
                self._write(data[-self._most :])

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._descriptor, rest, self._size)
            self._size += written
            rest = rest[written:]

    def _cut(self) -> None:
        with suppress(OSError):
            os.truncate(self._descriptor, 0)
        self._size = 0
