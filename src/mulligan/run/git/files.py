"""Reads and writes files of a work tree as raw bytes, without git's filters.

Git's own ways to write a file pass it through filters (line endings, keywords, large files), and
what comes back need not be what was there. Here a file is its bytes and its mode, the id of its
content is computed as git computes it, and nothing is written through a symbolic link.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import GitError

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ("FILE", "LINK", "PROGRAM", "TreeEntry", "TreeFiles")

FILE, PROGRAM, LINK = "100644", "100755", "120000"

# The mode of a path that git cannot store: a socket, a device.
OTHER = "other"

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """What stands at a path, as git names it."""

    mode: str  # 100644, 100755, 120000 for a symbolic link, 160000 for a submodule
    oid: str  # the id of the content

    @property
    def is_file(self) -> bool:
        return self.mode in {FILE, PROGRAM}


@dataclass(frozen=True, slots=True)
class TreeFiles:
    """The files under one folder.

    Files are written into the private folder `scratch`, on the same disk if possible, and moved
    into place. In a tree lent to an agent nothing must outlive a power cut (`is_durable`): what the
    agent writes there is not synced either.
    """

    root: str
    scratch: str
    algorithm: str = "sha1"  # or sha256, as the repository has it
    is_durable: bool = True

    def place(self, path: str) -> str:
        return os.path.join(self.root, path)

    def entry(self, path: str) -> TreeEntry | None:
        """What stands at `path` now; nothing if it is missing, or behind a symbolic link."""
        if self._blocker(path):
            return None
        place = self.place(path)
        try:
            found = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(found.st_mode):
            return TreeEntry(LINK, self.oid_of(os.readlink(os.fsencode(place))))
        if stat.S_ISDIR(found.st_mode):
            return None  # a folder: its files are entries of their own
        if not stat.S_ISREG(found.st_mode):
            return TreeEntry(OTHER, "")
        return TreeEntry(PROGRAM if found.st_mode & stat.S_IXUSR else FILE, self._file_oid(place))

    def oid_of(self, content: bytes) -> str:
        """The id git gives to `content`."""
        digest = hashlib.new(self.algorithm, b"blob %d\0" % len(content), usedforsecurity=False)
        digest.update(content)
        return digest.hexdigest()

    def permissions(self, path: str) -> int | None:
        """The permissions of a file where git could not give them back (0600, 0444)."""
        with suppress(OSError):
            found = os.lstat(self.place(path))
            if stat.S_ISREG(found.st_mode):
                bits = stat.S_IMODE(found.st_mode)
                return None if bits == _usual(bits & stat.S_IXUSR != 0) else bits
        return None

    def remove(self, path: str, keep: Collection[str] = ()) -> None:
        """Remove a file, and the folders that become empty, except those in `keep`."""
        if self._blocker(path):
            return
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(self.place(path))
        folder = os.path.dirname(path)
        while folder and folder not in keep:
            try:
                os.rmdir(self.place(folder))
            except OSError:
                break
            folder = os.path.dirname(folder)

    def make_folder(self, path: str) -> None:
        """Make a folder that is missing, unless something is in its way."""
        if not self._blocker(f"{path}/") and not os.path.lexists(self.place(path)):
            os.makedirs(self.place(path), exist_ok=True)

    def put(
        self, path: str, entry: TreeEntry, content: bytes, permissions: int | None = None
    ) -> None:
        """Replace `path` atomically: a reader sees the old content or the new one."""
        place = self.place(path)
        if blocker := self._blocker(path):
            raise GitError(f"{path}: {blocker} is in the way; move it and try again")
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.isdir(place) and not os.path.islink(place):
            try:
                os.rmdir(place)
            except OSError:
                raise GitError(f"{path}: a folder with files is in the way") from None
        self._write(self.scratch, place, entry, content, permissions)

    def _write(
        self, scratch: str, place: str, entry: TreeEntry, content: bytes, permissions: int | None
    ) -> None:
        new = os.path.join(scratch, f".mulligan-{os.getpid()}-{threading.get_ident()}")
        with suppress(FileNotFoundError):
            os.unlink(new)
        if entry.mode == LINK:
            os.symlink(content, os.fsencode(new))
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(new, flags, 0o600), "wb") as file:
                file.write(content)
                bits = _usual(entry.mode == PROGRAM) if permissions is None else permissions
                os.fchmod(file.fileno(), bits)
                file.flush()
                if self.is_durable:
                    os.fsync(file.fileno())
        try:
            os.replace(new, place)
        except OSError:
            os.unlink(new)
            if scratch == os.path.dirname(place):
                raise
            # Another disk: the repository of a linked work tree may be anywhere.
            self._write(os.path.dirname(place), place, entry, content, permissions)

    def _blocker(self, path: str) -> str:
        """The first parent of the path that is not a folder."""
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count])
            try:
                found = os.lstat(self.place(folder))
            except (FileNotFoundError, NotADirectoryError):
                return ""
            if not stat.S_ISDIR(found.st_mode):
                return folder
        return ""

    def _file_oid(self, place: str) -> str:
        with Path(place).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.new(self.algorithm, b"blob %d\0" % size, usedforsecurity=False)
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        return digest.hexdigest()


def _usual(is_program: bool) -> int:  # noqa: FBT001 -- one private question
    from ..process.table import umask

    return (0o777 if is_program else 0o666) & ~umask()
