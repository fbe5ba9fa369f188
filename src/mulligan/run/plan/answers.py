"""What an agent of a plan answered, kept for whoever reads it later.

Its last attempt's text counts: what an attempt that failed had to say is in its log.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..journal.entries import AttemptBegun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..agents.adapter import OutputNote, Stream
    from ..attempt.output import AttemptFacts
    from ..journal.entries import JournalEntry
    from ..journal.state import RunState

__all__ = ("AnswerKeeper",)


class AnswerKeeper:
    """A view that keeps what the program prints on stdout, and tells of each step.

    Args:
        file: Where it is kept.
        told: Told of each step, after it was written down.
    """

    def __init__(self, file: Path, told: Callable[[], None]) -> None:
        self._file, self._told = file, told

    def step(self, step: JournalEntry) -> None:
        if isinstance(step, AttemptBegun):
            self._file.unlink(missing_ok=True)
        self._told()

    def output(self, stream: Stream, chunk: bytes) -> None:
        if stream != "stdout":
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(self._file, flags, 0o600), "ab") as file:
            file.write(chunk)

    def noted(self, note: OutputNote, facts: AttemptFacts) -> None: ...

    def waiting(self, until: float, left: float) -> None: ...

    def notified(self, error: str) -> None: ...

    def over(self, state: RunState) -> None: ...
