"""Files that only their owner can read, on disks that can lock.

A store's file is created by this user, not through a link, and readable by this user only. A
network file system is refused: two machines would not see each other's locks.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from errno import ELOOP
from pathlib import Path
from threading import Lock

from ..errors import StoreError

__all__ = ("claimed", "file_system", "remote_file_system")

_REMOTE = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs", "gfs2", "glusterfs", "gpfs"),
        *("lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "smb2", "smb3", "smbfs"),
    }
)
_REMOTE_FUSE = ("ceph", "gluster", "gcs", "goofys", "rclone", "s3", "ssh")


def claimed(path: Path, url: str) -> Path:
    """`path` as a file of the current user, created if it does not exist.

    Raises:
        StoreError: It cannot be used safely.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if kind := remote_file_system(path.parent):
            raise StoreError(
                url,
                f"{path.parent} is on a network file system ({kind}), where locks cannot be "
                f"trusted; choose a local folder, or a redis:// store",
            )
        found = _created(path)
        if found.st_uid != os.geteuid() or not stat.S_ISREG(found.st_mode):
            raise StoreError(
                url, f"{path} belongs to user {found.st_uid}; it must belong to the current user"
            )
        if found.st_mode & 0o077:
            path.chmod(0o600)
    except OSError as trouble:
        raise StoreError(url, f"cannot open {path}: {trouble.strerror or trouble}") from trouble
    return path


# Held while a file is created and closed: see `_created`.
_creating = Lock()


def _after_fork() -> None:
    global _creating  # noqa: PLW0603 -- one for each process
    _creating = Lock()  # a thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)


def _created(path: Path) -> os.stat_result:
    """What is at `path`, after an empty file has been created there if nothing was.

    A file that exists is not opened. To close any descriptor of a file releases all locks that
    the process has on it: those that SQLite holds on a database which other threads use ("How To
    Corrupt An SQLite Database File", 2.2), seen as "disk I/O error" of the first callers.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL
    with _creating, suppress(FileExistsError):
        os.close(os.open(path, flags, 0o600))
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise OSError(ELOOP, os.strerror(ELOOP))
    return found


def remote_file_system(folder: Path) -> str:
    """The type of the network file system that holds `folder`; empty if it is a local one."""
    kind = file_system(folder)
    is_remote = kind in _REMOTE or any(kind.startswith(f"fuse.{name}") for name in _REMOTE_FUSE)
    return kind if is_remote else ""


def file_system(folder: Path, mounts: str | None = None) -> str:
    """The type of the file system that holds `folder`; empty if unknown.

    Args:
        folder: An existing folder.
        mounts: The text of /proc/self/mountinfo, for tests.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
    where, best, kind = str(folder.resolve()), -1, ""
    for line in mounts.splitlines():
        # 36 35 98:0 / /mnt/point options shared:1 - ext4 /dev/sda rw
        fields, dash, rest = line.partition(" - ")
        columns = fields.split(" ")
        if not dash or len(columns) < 5:
            continue
        point = columns[4].replace("\\040", " ").rstrip("/") or "/"
        inside = f"{where}/".startswith(point.rstrip("/") + "/")
        # Later mounts hide earlier ones at the same place.
        if inside and len(point) >= best:
            best, kind = len(point), rest.split(" ", 1)[0]
    return kind
