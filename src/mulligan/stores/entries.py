"""Entries of a journal, and the epochs that may write them."""

from typing import NamedTuple

__all__ = ("JournalLine", "StreamLease")


class JournalLine(NamedTuple):
    """One line of a journal.

    Args:
        id: Chosen by the writer; the same id is written once.
        body: What is written, as JSON.
        epoch: The claim under which it is written; an older one is fenced.
    """

    id: str
    body: str
    epoch: int = 0


class StreamLease(NamedTuple):
    """Who holds a stream of the journal, and when it last said so.

    Args:
        holder: Who.
        boot: The boot in which `seen` means something.
        seen: Seconds since that boot.
    """

    holder: str
    boot: str
    seen: float
