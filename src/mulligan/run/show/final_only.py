"""Output that is held back until it is known to be final.

It is kept in a file of the run's folder: a program may print more than fits into memory, and
whoever finds out how an attempt ended after its supervisor was killed shows what that one held.
What an attempt that is repeated has printed stays in its log. What an attempt has printed that
ends our part without an answer, because its limit lies beyond the horizon, is shown on stderr:
whoever takes stdout for the answer must not get the words of a limit. stderr is held back only
where it ends up in the same place as stdout, so that their order stays.
"""

from __future__ import annotations

import contextlib
import os
import struct
from io import FileIO
from typing import TYPE_CHECKING

from ..journal.entries import AttemptBegun, AttemptEnd

if TYPE_CHECKING:
    from pathlib import Path

    from ..agents.adapter import OutputNote, Stream
    from ..attempt.output import AttemptFacts
    from ..journal.entries import JournalEntry
    from ..journal.state import RunState
    from .views import RunView

__all__ = ("FinalOnlyView",)

# Which stream, and how many bytes follow.
_HEAD = struct.Struct("<?I")


class FinalOnlyView:
    """Shows another view everything but the output of attempts that are repeated.

    Args:
        view: Who shows it.
        path: The file to keep it in; removed as soon as it is shown or given up.
        is_whole: Whether stderr is held back with stdout.
        is_answer_only: Whether stdout is the answer and nothing else; not so for events, which
            say what they belong to.
    """

    def __init__(
        self, view: RunView, path: Path, *, is_whole: bool = True, is_answer_only: bool = True
    ) -> None:
        self._view, self._path, self._is_whole = view, path, is_whole
        self._is_answer_only = is_answer_only
        self._file: FileIO | None = None
        self._is_full = False

    def step(self, step: JournalEntry) -> None:
        if isinstance(step, AttemptBegun):
            self._path.unlink(missing_ok=True)  # of an attempt whose end is written down
        elif isinstance(step, AttemptEnd):
            if self._file is None:
                self._file = _left_behind(self._path)
            is_limited = step.then == "stop" and step.until is not None
            stdout: Stream = "stderr" if is_limited and self._is_answer_only else "stdout"
            self._let_go(is_shown=step.then != "again", stdout=stdout)
        self._view.step(step)

    def output(self, stream: Stream, chunk: bytes) -> None:
        is_held = self._is_whole or stream == "stdout"
        if is_held and not self._is_full:
            try:
                self._hold(_HEAD.pack(stream == "stderr", len(chunk)) + chunk)
            except OSError:  # no room: shown too early is better than lost
                self._is_full = True
                self._let_go(is_shown=True)
        if not is_held or self._is_full:
            self._view.output(stream, chunk)

    def _hold(self, record: bytes) -> None:
        if self._file is None:
            new = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            # Unbuffered: what is in a buffer dies with us.
            self._file = FileIO(os.open(self._path, new, 0o600), "w+b")
        rest = memoryview(record)
        while rest:
            rest = rest[self._file.write(rest) :]

    def noted(self, note: OutputNote, facts: AttemptFacts) -> None:
        self._view.noted(note, facts)

    def waiting(self, until: float, left: float) -> None:
        self._view.waiting(until, left)

    def notified(self, error: str) -> None:
        self._view.notified(error)

    def over(self, state: RunState) -> None:
        self._let_go(is_shown=True)
        self._view.over(state)

    def _let_go(self, *, is_shown: bool, stdout: Stream = "stdout") -> None:
        file, self._file = self._file, None
        if file is None:
            return
        # The attempt has ended, and what came of it is written down: that nobody reads what it
        # printed changes nothing.
        with file, contextlib.suppress(BrokenPipeError):
            file.seek(0)
            # What is not whole was being written when its supervisor died, or the disk was full.
            while is_shown and len(head := file.read(_HEAD.size)) == _HEAD.size:
                is_error, size = _HEAD.unpack(head)
                if len(chunk := file.read(size)) == size:
                    self._view.output("stderr" if is_error else stdout, chunk)
        self._path.unlink(missing_ok=True)


def _left_behind(path: Path) -> FileIO | None:
    """What a supervisor that was killed held back."""
    try:
        return FileIO(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
    except FileNotFoundError:
        return None
