"""Whether a process group that prints nothing is at work: its processor time, its network.

Two looks are compared. Processor time is that of the group and of everything it started, also in
groups of their own, as far as the parents still run. Network is what arrived on their TCP sockets,
by the kernel's own count (`sock_diag`, Linux only, no privilege needed). What this cannot see: UDP,
and on macOS any network at all. Nothing here raises.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from .table import open_files, processes

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("Activity", "activity_of", "received_by")

# A program that only waits wakes for its timers; one that works uses more than this of a core.
_BUSY = 0.05


class Activity(NamedTuple):
    """What a process group did so far: processor time, bytes received by inode of the socket."""

    cpu: float
    received: Mapping[int, int]

    def has_worked(self, before: Activity, seconds: float) -> bool:
        """Whether it computed in the `seconds` since `before`."""
        return self.cpu - before.cpu > _BUSY * seconds

    def has_heard(self, before: Activity) -> bool:
        """Whether anything arrived on a connection since `before`."""
        return any(
            size > before.received.get(inode, 0) for inode, size in self.received.items() if size
        )


def activity_of(group: int) -> Activity:
    """What the process group `group` and its descendants have done so far."""
    try:
        listed = list(processes())
    except (OSError, ValueError, subprocess.SubprocessError):
        return Activity(0.0, {})
    parents = {each.pid: each.parent for each in listed}
    leaders = {each.pid for each in listed if each.group == group}
    members = {pid for pid in parents if _descends(pid, leaders, parents)}
    cpu = sum(each.cpu for each in listed if each.pid in members)
    return Activity(cpu, {} if sys.platform == "darwin" else received_by(members))


def _descends(pid: int, leaders: set[int], parents: Mapping[int, int]) -> bool:
    looked: set[int] = set()
    while pid not in leaders:
        if pid in looked or pid not in parents:
            return False
        looked.add(pid)
        pid = parents[pid]
    return True


# From linux/sock_diag.h, linux/inet_diag.h, linux/tcp.h.
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
_ERROR, _DONE = 2, 3
_INFO = 2  # the attribute with a tcp_info
_ANY_STATE = 0xFFFFFFFF
_INODE_AT, _ATTRIBUTES_AT, _RECEIVED_AT = 68, 72, 128
_HEAD, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")


def received_by(pids: set[int]) -> dict[int, int]:
    """Bytes that arrived on each TCP socket of `pids`, by its inode (Linux)."""
    files = (name for pid in pids for name in open_files(pid))
    wanted = {int(name[8:-1]) for name in files if name.startswith("socket:[")}
    if not wanted:
        return {}
    found: dict[int, int] = {}
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as link:
            link.settimeout(1.0)
            for family in (socket.AF_INET, socket.AF_INET6):
                asked = struct.pack(
                    "=BBBBI", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _ANY_STATE
                )
                asked += bytes(48)  # any address
                size = _HEAD.size + len(asked)
                link.send(_HEAD.pack(size, _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0) + asked)
                while _take(link.recv(1 << 18), found):
                    pass
    except (OSError, struct.error):  # a sandbox without netlink; a reply of another shape
        pass
    return {inode: size for inode, size in found.items() if inode in wanted}


def _take(reply: bytes, found: dict[int, int]) -> bool:
    """Add what `reply` says to `found`; whether more follows."""
    at = 0
    while at + _HEAD.size <= len(reply):
        size, kind, *_ = _HEAD.unpack_from(reply, at)
        if kind in (_ERROR, _DONE) or size < _HEAD.size:
            return False
        body = reply[at + _HEAD.size : at + size]
        (inode,) = struct.unpack_from("=I", body, _INODE_AT)
        found[inode] = _received(body)
        at += (size + 3) & ~3
    return True


def _received(body: bytes) -> int:
    at = _ATTRIBUTES_AT
    while at + _ATTRIBUTE.size <= len(body):
        size, kind = _ATTRIBUTE.unpack_from(body, at)
        if kind == _INFO and size >= _ATTRIBUTE.size + _RECEIVED_AT + 8:
            (count,) = struct.unpack_from("=Q", body, at + _ATTRIBUTE.size + _RECEIVED_AT)
            return int(count)
        at += (max(size, _ATTRIBUTE.size) + 3) & ~3
    return 0
