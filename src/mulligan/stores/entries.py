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
    """The holder of a stream of the journal, and when it last renewed the lease.

    Args:
        holder: The holder.
        boot: The boot to which `seen` refers.
        seen: Seconds since that boot.
    """

    holder: str
    boot: str
    seen: float
