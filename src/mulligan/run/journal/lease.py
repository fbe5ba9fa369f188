"""Decides whether a lease on a run still holds. Pure.

A holder renews the lease of its run in the store. Process ids are valid only within one boot, one
pid namespace and one view of /proc: there another process sees at once that a holder is dead, or
alive but stopped (Ctrl-Z, SIGSTOP). From anywhere else only the age of the lease counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...stores.entries import StreamLease

__all__ = ("LEASE", "Holder", "Standing", "holder_of", "standing")

# Seconds after its last renewal for which a lease holds.
LEASE = 30.0

# held: the holder drives the run. silent: the holder is alive but has not renewed the lease in
# time; only a user may claim the run. free: any process may claim it.
Standing = Literal["held", "silent", "free"]


class Holder(NamedTuple):
    """One process that holds a run.

    Args:
        token: Random, per claim: one process may claim a run twice.
        pid: Its process id, as its /proc shows it.
        began: When the process began, as the system reports it; with `pid` it identifies the
            process.
        pids: Where `pid` means this process: its pid namespace and its view of /proc.
        boot: The boot that it runs in.
        machine: The id kept in the state folder that it works on.
        host: The host's name, for people.
    """

    token: str
    pid: str = ""
    began: str = ""
    pids: str = ""
    boot: str = ""
    machine: str = ""
    host: str = ""

    @property
    def text(self) -> str:
        """As the journal has it."""
        return " ".join(each or "-" for each in self)


def holder_of(text: str) -> Holder:
    """The holder that `text` describes; what it does not say is empty."""
    words = ["" if word == "-" else word for word in text.split(" ")]
    return Holder(*words[: len(Holder._fields)])


def standing(
    lease: StreamLease | None, me: Holder, now: float, is_alive: Callable[[str, str], bool]
) -> Standing:
    """How a lease stands, as seen by `me` at `now` seconds since this machine booted.

    `lease` is None if no process holds the run; `is_alive` says whether the process with this id,
    begun at this time, exists.
    """
    if lease is None or lease.boot != me.boot:
        return "free"  # no process survives a reboot
    is_fresh = now - lease.seen < LEASE
    holder = holder_of(lease.holder)
    if holder.pids != me.pids:
        return "held" if is_fresh else "free"
    if not is_alive(holder.pid, holder.began):
        return "free"
    return "held" if is_fresh else "silent"
