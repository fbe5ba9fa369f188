"""What a run shows of itself.

stdout carries the program's text. Everything of ours goes to stderr: plain lines here, a status
line on terminals in `status`, events in `events`. Whatever we print of others' words has been
cleaned before it became a step.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .agents.adapter import Note, Stream
    from .state import RunState
    from .steps import Step
    from .tap import Facts

__all__ = ("Lines", "View")


class View(Protocol):
    """Whoever shows a run."""

    def step(self, step: Step, /) -> None:
        """A step was written down, and is about to be taken."""
        ...

    def output(self, stream: Stream, chunk: bytes, /) -> None:
        """The program printed something that the user is to see."""
        ...

    def noted(self, note: Note, facts: Facts, /) -> None:
        """The program told something about itself."""
        ...

    def waiting(self, until: float, left: float, /) -> None:
        """Still waiting: told about once a second."""
        ...

    def over(self, state: RunState, /) -> None:
        """Nothing more happens here: it has ended, is parked, or was interrupted."""
        ...


class Lines:
    """A run told in plain lines on stderr, and nothing told where nothing happened."""

    def __init__(self, id_: str, program: str) -> None:
        self._id, self._program = id_, program

    def step(self, step: Step) -> None:
        from .words import told

        for line in told(step, self._program):
            self._say(line)

    def output(self, stream: Stream, chunk: bytes) -> None:
        out = 1 if stream == "stdout" else 2
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(out, rest) :]

    def noted(self, note: Note, facts: Facts) -> None: ...

    def waiting(self, until: float, left: float) -> None: ...

    def over(self, state: RunState) -> None:
        from .words import summed_up

        for line in summed_up(self._id, state):
            self._say(line)

    @staticmethod
    def _say(line: str) -> None:
        sys.stderr.write(f"mulligan: {line}\n")
        sys.stderr.flush()
