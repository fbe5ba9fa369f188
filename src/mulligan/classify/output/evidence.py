"""One piece of evidence that a program gave about how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

__all__ = ("Evidence", "Role")


class Role(Enum):
    """What a piece of evidence says about the run.

    A run is read as a sequence. FAILED stands until WORK or DONE follows it: then it was
    survived. ENDED stands whatever follows but DONE. PROGRESS is the program helping itself.
    """

    FAILED = "failed"
    ENDED = "ended"
    PROGRESS = "progress"
    WORK = "work"
    DONE = "done"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one event, body or line says.

    Args:
        role: What it says about the run.
        text: The message, as it was printed.
        aside: What stands beside it and is matched but not shown: codes, reasons.
        source: Where it stood, for people: ``claude result event``.
        agent: The program it gives away, if it does.
        status: An HTTP status.
        code: The vendor's word: ``insufficient_quota``.
        fields: The parsed JSON around it, where reset times may stand under known keys.
        is_limit: Whether the event itself says that a plan's limit was met.
        is_event: Whether the program reported it as an event of its own run; False for a body or
            a line, which it may merely have shown.
        is_doubtful: Whether code and answers look like this as often as errors do.
        is_introduced: Whether a heading announced it: "Upstream error:".
        is_fenced: Whether it stands in a block of code.
        line: How many lines stand above it.
    """

    role: Role
    text: str = ""
    aside: str = ""
    source: str = ""
    agent: str = ""
    status: int | None = None
    code: str = ""
    fields: object = field(default=None, repr=False)
    is_limit: bool = False
    is_event: bool = True
    is_doubtful: bool = False
    is_introduced: bool = False
    is_fenced: bool = False
    line: int = 0
