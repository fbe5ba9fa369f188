"""Our own output, which must not hold up a stop.

A reader that pauses (a pager, Ctrl-S) blocks a plain write for as long as it likes, and Ctrl-C
would wait with it. So the descriptor is asked first, together with the stop.
"""

from __future__ import annotations

import os
import select
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..process.stop import Stop

__all__ = ("PatientWriter",)

# A pipe or a terminal that can take anything can take this much without blocking (PIPE_BUF).
_PIECE = 4096
# How long a reader may take for a piece once we are asked to end.
_LAST_CALL = 0.2


class PatientWriter:
    """A descriptor to write to.

    Args:
        descriptor: Where the bytes go.
        stop: Once set, a reader that does not read is not waited for.
    """

    __slots__ = ("_descriptor", "_is_given_up", "_piece", "_stop")

    def __init__(self, descriptor: int, stop: Stop) -> None:
        self._descriptor, self._stop = descriptor, stop
        self._is_given_up = False
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._piece = 1024 * 1024 if is_file else _PIECE

    def write(self, data: bytes) -> bool:
        """Write all of `data`; False if some was dropped because nobody read and we must end.

        Raises:
            BrokenPipeError: Nobody reads.
        """
        left = memoryview(data)
        while left and not self._is_given_up:
            if self._is_ready():
                try:
                    left = left[os.write(self._descriptor, left[: self._piece]) :]
                except BlockingIOError:
                    continue
            elif self._stop.is_set:
                self._is_given_up = True
        return not left

    def _is_ready(self) -> bool:
        waiter = select.poll()
        waiter.register(self._descriptor, select.POLLOUT)
        if self._stop.is_set:
            return bool(waiter.poll(_LAST_CALL * 1000))
        waiter.register(self._stop, select.POLLIN)
        return any(descriptor == self._descriptor for descriptor, _ in waiter.poll())
