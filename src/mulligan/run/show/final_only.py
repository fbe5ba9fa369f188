"""Output that is held back until it is known to be final.

It is kept in a file of the run's folder: a program may print more than fits into memory, and
whoever finds out how an attempt ended after its supervisor was killed shows what that one held.
What an attempt that is repeated has printed stays in its log.
"""

from __future__ import annotations

import os
import struct
from io import FileIO
from typing import TYPE_CHECKING

from .steps import Begun, Ended

if TYPE_CHECKING:
    from pathlib import Path

    from .agents.adapter import Note, Stream
    from .state import RunState
    from .steps import Step
    from .tap import Facts
    from .view import View

__all__ = ("Held",)

# Which stream, and how many bytes follow.
_HEAD = struct.Struct("<?I")


class Held:
    """Shows another view everything but the output of attempts that are repeated.

    Args:
        view: Who shows it.
        path: The file to keep it in; removed as soon as it is shown or given up.
    """

    def __init__(self, view: View, path: Path) -> None:
        self._view, self._path = view, path
        self._file: FileIO | None = None
        self._is_full = False

    def step(self, step: Step) -> None:
        if isinstance(step, Begun):
            self._path.unlink(missing_ok=True)  # of an attempt whose end is written down
        elif isinstance(step, Ended):
            if self._file is None:
                self._file = _left_behind(self._path)
            self._let_go(is_shown=step.then != "again")
        self._view.step(step)

    def output(self, stream: Stream, chunk: bytes) -> None:
        if not self._is_full:
            try:
                self._hold(_HEAD.pack(stream == "stderr", len(chunk)) + chunk)
            except OSError:  # no room: shown too early is better than lost
                self._is_full = True
                self._let_go(is_shown=True)
        if self._is_full:
            self._view.output(stream, chunk)

    def _hold(self, record: bytes) -> None:
        if self._file is None:
            new = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            # Unbuffered: what is in a buffer dies with us.
            self._file = FileIO(os.open(self._path, new, 0o600), "w+b")
        rest = memoryview(record)
        while rest:
            rest = rest[self._file.write(rest) :]

    def noted(self, note: Note, facts: Facts) -> None:
        self._view.noted(note, facts)

    def waiting(self, until: float, left: float) -> None:
        self._view.waiting(until, left)

    def notified(self, error: str) -> None:
        self._view.notified(error)

    def over(self, state: RunState) -> None:
        self._let_go(is_shown=True)
        self._view.over(state)

    def _let_go(self, *, is_shown: bool) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        with file:
            file.seek(0)
            # What is not whole was being written when its supervisor died, or the disk was full.
            while is_shown and len(head := file.read(_HEAD.size)) == _HEAD.size:
                is_error, size = _HEAD.unpack(head)
                if len(chunk := file.read(size)) == size:
                    self._view.output("stderr" if is_error else "stdout", chunk)
        self._path.unlink(missing_ok=True)


def _left_behind(path: Path) -> FileIO | None:
    """What a supervisor that was killed held back."""
    try:
        return FileIO(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
    except FileNotFoundError:
        return None
