"""Stdout and stderr of this process, with the cursor's position tracked.

The program's bytes pass through as they are, and the terminal behind them is put back as it was
after every attempt. A reader that blocks cannot delay a stop.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..agents.adapter import Stream
    from ..process.stop import Stop
    from .terminal import Terminal

__all__ = ("PatientWriter", "StandardStreams", "can_draw")


# A writable pipe or terminal takes this much without blocking (PIPE_BUF).
_PIECE = 4096
# How long a reader may take for a piece once we are asked to end.
_LAST_CALL = 0.2


class StandardStreams:
    """Where a run is shown.

    Once `stop` is set, a reader that does not read is not waited for.
    """

    def __init__(self, stop: Stop, out: int = 1, err: int = 2) -> None:
        self.descriptors: dict[Stream, int] = {"stdout": out, "stderr": err}
        self._outlets: dict[Stream, PatientWriter] = {}
        for stream, descriptor in self.descriptors.items():
            with contextlib.suppress(OSError):  # closed: then nothing is shown there
                self._outlets[stream] = PatientWriter(descriptor, stop)
        #: Whether stdout and stderr end up in the same place.
        self.is_one_place = _is_same(out, err)
        #: What the program may change, to be restored after each attempt; None if there is none.
        self.terminal: Terminal | None = None
        if os.isatty(out) or os.isatty(err):
            from .terminal import Terminal

            self.terminal = Terminal(out, err)
        self._told: set[Stream] = set()
        #: Whether a line of ours would begin in the middle of the program's.
        self.is_mid_line = False
        #: Whether something that belongs on stdout could not be written.
        self.is_unread = False

    def is_ours(self, stream: Stream) -> bool:
        """Whether `stream` ends up where our lines do."""
        return stream == "stderr" or self.is_one_place

    def pass_on(self, stream: Stream, chunk: bytes) -> None:
        """The program's bytes, as they are.

        Raises:
            BrokenPipeError: They are not read any more, or cannot be written.
        """
        outlet = self._outlets.get(stream)
        if outlet is None or not chunk:
            return
        try:
            outlet.write(chunk)
        except OSError as trouble:
            self.is_unread = self.is_unread or stream == "stdout"
            # EIO is a terminal that was closed.
            is_gone = trouble.errno in {errno.EIO, errno.EPIPE}
            if not is_gone and stream not in self._told:
                self._told.add(stream)
                self.say(f"mulligan: {stream} cannot be written: {trouble.strerror}")
            raise BrokenPipeError from trouble
        if self.terminal is not None:
            self.terminal.passed(self.descriptors[stream], chunk)
        if self.is_ours(stream):
            self.is_mid_line = not chunk.endswith(b"\n")

    def say(self, text: str) -> None:
        """Write a line of ours; a reader that is gone is not an error."""
        start = "\n" if self.is_mid_line else ""
        self.is_mid_line = False
        self.draw(f"{start}{text}\n")

    def draw(self, text: str) -> None:
        """Characters of ours, which leave the cursor where a line begins."""
        outlet = self._outlets.get("stderr")
        if outlet is not None:
            with contextlib.suppress(OSError):
                outlet.write(text.encode("utf-8", "replace"))


def can_draw(descriptor: int, environ: Mapping[str, str]) -> bool:
    """Whether a line can be drawn and taken back there."""
    return os.isatty(descriptor) and environ.get("TERM", "dumb") not in {"", "dumb"}


def _is_same(one: int, other: int) -> bool:
    try:
        here, there = os.fstat(one), os.fstat(other)
    except OSError:  # closed
        return False
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


class PatientWriter:
    """A descriptor to write to, without holding up a stop.

    A reader that pauses (a pager, Ctrl-S) blocks a plain write for as long as it likes, and Ctrl-C
    would wait with it. So the descriptor is polled together with the stop, and once that is set a
    reader that does not read is not waited for.
    """

    __slots__ = ("_descriptor", "_is_given_up", "_piece", "_stop")

    def __init__(self, descriptor: int, stop: Stop) -> None:
        self._descriptor, self._stop = descriptor, stop
        self._is_given_up = False
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._piece = 1024 * 1024 if is_file else _PIECE

    def write(self, data: bytes) -> bool:
        """Write all of `data`; False if some was dropped because it was not read and we must end.

        Raises:
            BrokenPipeError: The reader is gone.
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
        waiter.register(self._stop.descriptor, select.POLLIN)
        return self._descriptor in dict(waiter.poll())
