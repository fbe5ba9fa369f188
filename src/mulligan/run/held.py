"""Output that is held back until it is known to be final.

It is kept in a file of the run's folder: a program may print more than fits into memory. What an
attempt that is repeated has printed stays in its log.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, BinaryIO

from .steps import Ended

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
        self._file: BinaryIO | None = None

    def step(self, step: Step) -> None:
        if isinstance(step, Ended):
            self._let_go(is_shown=step.then != "again")
        self._view.step(step)

    def output(self, stream: Stream, chunk: bytes) -> None:
        if self._file is None:
            new = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.fdopen(os.open(self._path, new, 0o600), "w+b")
        self._file.write(_HEAD.pack(stream == "stderr", len(chunk)))
        self._file.write(chunk)

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
            while is_shown and (head := file.read(_HEAD.size)):
                is_error, size = _HEAD.unpack(head)
                self._view.output("stderr" if is_error else "stdout", file.read(size))
        self._path.unlink(missing_ok=True)
