"""What an agent of a plan answered, kept for whoever reads it later.

Its last attempt's text counts: what an attempt that failed had to say is in its log.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .steps import Begun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .agents.adapter import Note, Stream
    from .state import RunState
    from .steps import Step
    from .tap import Facts

__all__ = ("Keeper",)


class Keeper:
    """A view that keeps what the program prints on stdout, and tells of each step.

    Args:
        file: Where it is kept.
        told: Told of each step, after it was written down.
    """

    def __init__(self, file: Path, told: Callable[[], None]) -> None:
        self._file, self._told = file, told

    def step(self, step: Step) -> None:
        if isinstance(step, Begun):
            self._file.unlink(missing_ok=True)
        self._told()

    def output(self, stream: Stream, chunk: bytes) -> None:
        if stream != "stdout":
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(self._file, flags, 0o600), "ab") as file:
            file.write(chunk)

    def noted(self, note: Note, facts: Facts) -> None: ...

    def waiting(self, until: float, left: float) -> None: ...

    def notified(self, error: str) -> None: ...

    def over(self, state: RunState) -> None: ...
