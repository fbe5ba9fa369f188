"""The stdin of a run: spooled to a file, and fed to each attempt.

A pipe can be read only once, and a program may be started several times. So the input is written to
a private file on its way to the program. While the input goes on, the file is called ``NAME.part``;
when its end was seen it is renamed to ``NAME``. A process that resumes after a crash knows by the
name whether the input is complete. A program that reads slowly slows the writer down; one that
never reads delays nothing.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import stat
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("StdinFeed", "StdinSpool")


_CHUNK = 65536
# How far the file may run ahead of the program: a short prompt is kept whole even if the program
# dies before reading it, and `yes |` does not fill the disk.
_AHEAD = 16 * 1024 * 1024


class StdinSpool:
    """The input of a run.

    Made by `open` when a run begins, and by `saved` when it is resumed by another process.
    """

    __slots__ = ("_as_is", "_file", "_lock", "_path", "is_complete", "is_empty", "size", "source")

    def __init__(self, path: Path, file: int | None, *, is_complete: bool) -> None:
        self._path = path
        self._file = file
        self._lock = threading.Lock()
        self._as_is: int | None = None
        #: Whether there was no input to begin with.
        self.is_empty = file is None and is_complete
        #: Whether the file holds the whole input.
        self.is_complete = is_complete
        #: Bytes that are in the file.
        self.size = 0 if file is None else os.fstat(file).st_size
        #: The descriptor from which more input comes; None if no more will come.
        self.source: int | None = None

    @classmethod
    def open(cls, path: Path, fd: int = 0) -> StdinSpool:
        """The input that `fd` gives, kept at `path`, which must not exist yet.

        A terminal, a closed descriptor and /dev/null are no input and leave no file. A file is
        copied at once, from where it stands, and stands there afterwards.

        Raises:
            OSError: The file cannot be made or filled.
        """
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            return cls(path, None, is_complete=True)
        if os.isatty(fd) or _is_null(fd):
            return cls(path, None, is_complete=True)
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            # /dev/zero and its like: nothing to keep, and each attempt finds it as it is.
            spool = cls(path, None, is_complete=False)
            spool._as_is = fd
            return spool
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        spool = cls(path, os.open(_part(path), flags, 0o600), is_complete=False)
        try:
            if stat.S_ISREG(mode):
                spool._copy(fd)
            else:
                spool.source = fd
                spool.fill()
        except BaseException:
            spool.close()
            raise
        return spool

    @classmethod
    def saved(cls, path: Path) -> StdinSpool:
        """The input that an earlier process kept at `path`; no more will come.

        Raises:
            OSError: There is a file, and it cannot be read.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        for name, is_complete in ((path, True), (_part(path), False)):
            with contextlib.suppress(FileNotFoundError):
                return cls(path, os.open(name, flags), is_complete=is_complete)
        return cls(path, None, is_complete=True)

    @property
    def is_cut(self) -> bool:
        """Whether some of the input was lost with an earlier process, and will not come."""
        return not self.is_complete and self.source is None and self._as_is is None

    def descriptor(self) -> int | None:
        """A descriptor for the program's stdin, the caller's to close; None if it must be fed."""
        if self._as_is is not None:
            return os.dup(self._as_is)
        if self.is_empty:
            return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        with self._lock:  # another thread may see the end, and rename
            if self.source is not None:
                return None
            # Opened again: each attempt reads from the start, at its own pace.
            name = self._path if self.is_complete else _part(self._path)
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def is_hungry(self, offset: int) -> bool:
        """Whether more should be pulled, now that the program has taken `offset` bytes."""
        return self.source is not None and self.size - offset < _AHEAD

    def pull(self) -> bool:
        """Keep what has arrived, if anything has; whether there was something, the end included.

        Raises:
            OSError: It cannot be written.
        """
        with self._lock:
            source = self.source
            if source is None or not _is_readable(source):
                return False  # another thread was quicker
            try:
                data = os.read(source, _CHUNK)
            except BlockingIOError:
                return False
            except OSError:
                self.source = None  # a read error: the spool stays marked as incomplete
                return True
            try:
                if data:
                    self._append(data)
                    return True
                self._complete()
            except OSError:
                self.source = None  # input after a gap must not look complete
                raise
            self.source = None
            return True

    def fill(self) -> None:
        """Pull what can be had without waiting, up to the read-ahead.

        Raises:
            OSError: It cannot be written.
        """
        goal = self.size + _AHEAD
        while self.size < goal and self.pull():
            pass

    def read(self, offset: int) -> bytes:
        """Some of what was kept from `offset` on; empty if that is all there is so far."""
        return b"" if self._file is None else os.pread(self._file, _CHUNK, offset)

    def close(self) -> None:
        """Close the file; the kept input stays."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _copy(self, source: int) -> None:
        offset = os.lseek(source, 0, os.SEEK_CUR)
        while data := os.pread(source, _CHUNK, offset):
            self._append(data)
            offset += len(data)
        self._complete()

    def _append(self, data: bytes) -> None:
        assert self._file is not None  # noqa: S101 -- for the type checker: no source, no file
        left = memoryview(data)
        while left:
            written = os.pwrite(self._file, left, self.size)
            self.size += written
            left = left[written:]

    def _complete(self) -> None:
        assert self._file is not None  # noqa: S101 -- for the type checker: no source, no file
        if self.size:
            os.fsync(self._file)  # the bytes must be on disk before the new name is
        _part(self._path).rename(self._path)
        self.is_complete = True


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _is_null(fd: int) -> bool:
    found = os.fstat(fd)
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == Path(os.devnull).stat().st_rdev


def _is_readable(fd: int) -> bool:
    waiter = select.poll()
    waiter.register(fd, select.POLLIN)
    return bool(waiter.poll(0))


class StdinFeed:
    """Feeds the spool to one program.

    `on_progress` is called when the program read something, and with the error if the spool fails.
    """

    def __init__(
        self,
        spool: StdinSpool,
        pipe: IO[bytes],
        selector: selectors.BaseSelector,
        on_progress: Callable[[OSError | None], None],
    ) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._spool, self._selector, self._on_progress = spool, selector, on_progress
        self._pipe: IO[bytes] | None = pipe
        self._offset = 0
        self._source: int | None = None
        self._is_pushing = self._is_broken = False
        self.adjust()

    def adjust(self) -> None:
        """Update what the selector waits for; other threads may have pulled, too."""
        is_hungry = not self._is_broken and self._spool.is_hungry(self._offset)
        if is_hungry and self._source is None:
            self._source = self._spool.source
            if self._source is not None:
                self._selector.register(self._source, selectors.EVENT_READ, self._pull)
        elif not is_hungry and self._source is not None:
            self._selector.unregister(self._source)
            self._source = None
        if self._pipe is not None:
            is_behind = self._offset < self._spool.size
            if is_behind and not self._is_pushing:
                self._selector.register(self._pipe, selectors.EVENT_WRITE, self._push)
            elif not is_behind and self._is_pushing:
                self._selector.unregister(self._pipe)
            self._is_pushing = is_behind
            # Not closed after a gap: the program would take the input for complete.
            if not is_behind and self._spool.source is None and not self._is_broken:
                self._close()

    def _pull(self) -> None:
        try:
            self._spool.pull()
        except OSError as trouble:
            self._is_broken = True
            self._on_progress(trouble)
        self.adjust()

    def _push(self) -> None:
        if self._pipe is None:
            return
        try:
            self._offset += os.write(self._pipe.fileno(), self._spool.read(self._offset))
        except BlockingIOError:
            return
        except OSError:  # the program closed its stdin; the rest is kept for the next attempt
            self._close()
        else:
            self._on_progress(None)
        self.adjust()

    def _close(self) -> None:
        if self._pipe is not None:
            if self._is_pushing:
                self._selector.unregister(self._pipe)
            self._pipe.close()
            self._pipe = None
