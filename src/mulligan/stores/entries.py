"""One line of a journal."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ("Entry",)


class Entry(NamedTuple):
    """One line of a journal.

    Args:
        id: Chosen by whoever writes it; the same id is written once.
        body: What is written, as JSON.
        epoch: The claim under which it is written; an older one is fenced.
    """

    id: str
    body: str
    epoch: int = 0
