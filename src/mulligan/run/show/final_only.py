"""Holds output back until it is known to be final (``--final-only``).

It is kept in a file of the run's folder: a program may print more than fits into memory, and the
process that finds out how an attempt ended after its supervisor was killed shows what was held.
Output of an attempt that is repeated stays in its log. Output of an attempt that met a limit beyond
the horizon is shown on stderr: a caller that reads the answer from stdout must not get the limit's
message. stderr is held back only if it goes to the same place as stdout, to keep their order.
"""

from __future__ import annotations

import contextlib
import os
import struct
from io import FileIO
from typing import TYPE_CHECKING

from ..journal.entries import AttemptBegun, AttemptEnd
from ..listeners import RunListener

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..agents.adapter import Stream
    from ..journal.entries import JournalEntry
    from ..journal.state import RunState

__all__ = ("FinalOnlyOutput",)

# Which stream, and how many bytes follow.
_HEAD = struct.Struct("<?I")


class FinalOnlyOutput(RunListener):
    """Shows the output of the last attempt, and nothing of those that are repeated.

    Args:
        show: Shows it: (stream, bytes).
        path: The file to keep it in; removed once it was shown or discarded.
        is_whole: Whether stderr is held back with stdout.
        is_answer_only: Whether stdout has the answer only; not of events, which name their attempt.
    """

    def __init__(
        self,
        show: Callable[[Stream, bytes], None],
        path: Path,
        *,
        is_whole: bool = True,
        is_answer_only: bool = True,
    ) -> None:
        self._show, self._path, self._is_whole = show, path, is_whole
        self._is_answer_only = is_answer_only
        self._file: FileIO | None = None
        self._is_full = False

    def step(self, step: JournalEntry) -> None:
        if isinstance(step, AttemptBegun):
            self._path.unlink(missing_ok=True)  # of an attempt whose end is in the journal
        elif isinstance(step, AttemptEnd):
            if self._file is None:  # a killed supervisor may have held something back
                with contextlib.suppress(FileNotFoundError):
                    old = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
                    self._file = FileIO(os.open(self._path, old), "rb")
            is_limited = step.then == "stop" and step.until is not None
            stdout: Stream = "stderr" if is_limited and self._is_answer_only else "stdout"
            self._let_go(is_shown=step.then != "again", stdout=stdout)

    def output(self, stream: Stream, chunk: bytes) -> None:
        """Hold back what the program printed, as far as there is room."""
        is_held = self._is_whole or stream == "stdout"
        if is_held and not self._is_full:
            try:
                self._hold(_HEAD.pack(stream == "stderr", len(chunk)) + chunk)
            except OSError:  # disk full: show it early rather than lose it
                self._is_full = True
                self._let_go(is_shown=True)
        if not is_held or self._is_full:
            self._show(stream, chunk)

    def _hold(self, record: bytes) -> None:
        if self._file is None:
            new = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            # Unbuffered: a buffer would be lost with this process.
            self._file = FileIO(os.open(self._path, new, 0o600), "w+b")
        rest = memoryview(record)
        while rest:
            rest = rest[self._file.write(rest) :]

    def over(self, state: RunState) -> None:  # noqa: ARG002 -- whatever became of it
        self._let_go(is_shown=True)

    def _let_go(self, *, is_shown: bool, stdout: Stream = "stdout") -> None:
        file, self._file = self._file, None
        if file is None:
            return
        # The attempt's end is in the journal already: a closed stdout does not change it.
        with file, contextlib.suppress(BrokenPipeError):
            file.seek(0)
            # The last record may be cut: the supervisor died, or the disk was full.
            while is_shown and len(head := file.read(_HEAD.size)) == _HEAD.size:
                is_error, size = _HEAD.unpack(head)
                if len(chunk := file.read(size)) == size:
                    self._show("stderr" if is_error else stdout, chunk)
        self._path.unlink(missing_ok=True)
