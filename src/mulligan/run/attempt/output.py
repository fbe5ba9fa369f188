"""What runs through while a program runs: to the log, to the user, to the reader.

Every byte goes to the attempt's log before anybody else sees it: what was read can be read again
by whoever takes the run up after a crash. Lines are held only as long as they last, and no longer
than `_LONGEST`.
"""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING

from .attempt_log import TAIL, AttemptLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .agents.adapter import Note, Reader, Stream

__all__ = ("Facts", "Tap", "answer_in", "read_again", "tail")

# An event with a whole file in it is one line; what is longer than this is nobody's event.
_LONGEST = 8 << 20

# A tool may be silent much longer than a model: a test suite, a build.
_TOOL_QUIET = 3600.0

# No program sleeps longer by itself; whoever announces more would never be found hanging.
_LONGEST_QUIET = 3600.0


class Facts:
    """What an attempt has told so far."""

    def __init__(self) -> None:
        self.session = ""
        self.retries = 0
        self.is_work = False
        self.is_lost = False
        self.is_futile = False
        self.has_spoken = False
        self.tools = 0
        self.cost: float | None = None
        self.tokens: int | None = None
        self.size = 0

    def add(self, note: Note) -> None:
        self.session = note.session or self.session
        self.retries += note.is_retry
        self.is_work = self.is_work or note.is_work
        self.is_lost = note.is_lost or (self.is_lost and not note.is_work)
        self.is_futile = self.is_futile or note.is_futile
        self.tools = max(0, self.tools + note.tools)
        self.cost = self.cost if note.cost is None else note.cost
        self.tokens = self.tokens if note.tokens is None else note.tokens


class Tap:
    """One attempt's output, on its way.

    Args:
        reader: Reads its lines.
        is_translated: Whether the user sees what the reader shows instead of stdout's bytes.
        log: Where the raw bytes go: this path with ``.out`` and ``.err``.
        show: Told what the user sees: (stream, bytes).
        noted: Told of each note, after it was added to `facts`.
        is_tool_spared: Whether a tool may be silent longer than a model; not where the user said
            how long is too long.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        is_translated: bool,
        log: Path,
        show: Callable[[Stream, bytes], None],
        noted: Callable[[Note], None] = lambda _note: None,
        is_tool_spared: bool = True,
    ) -> None:
        self.facts = Facts()
        self._is_tool_spared = is_tool_spared
        self._reader, self._is_translated, self._show, self._noted = (
            reader,
            is_translated,
            show,
            noted,
        )
        self._logs: dict[Stream, AttemptLog] = {
            "stdout": AttemptLog(log.with_suffix(".out")),
            "stderr": AttemptLog(log.with_suffix(".err")),
        }
        self._parts: dict[Stream, _Lines] = {"stdout": _Lines(), "stderr": _Lines()}
        self._quiet_until = 0.0

    def take(self, stream: Stream, chunk: bytes) -> None:
        self.facts.size += len(chunk)
        self.facts.has_spoken = self.facts.has_spoken or stream == "stdout"
        self._logs[stream].write(chunk)
        if stream == "stderr" or not self._is_translated:
            self._show(stream, chunk)
        for line in self._parts[stream].add(chunk):
            self._read(self._reader.line(stream, line))
        if self.facts.is_futile:
            from .watch import Futile

            raise Futile

    def quiet_until(self) -> float:
        """Until when silence means nothing, on the monotonic clock."""
        if self.facts.tools and self._is_tool_spared:
            return max(self._quiet_until, self._heard_at + _TOOL_QUIET)
        return self._quiet_until

    _heard_at = 0.0

    def _read(self, note: Note | None) -> None:
        if note is None:
            return
        self.facts.add(note)
        self._heard_at = monotonic()
        # The announced time is when it asks again; then it needs a moment to be answered.
        quiet = min(note.quiet, _LONGEST_QUIET)
        self._quiet_until = self._heard_at + quiet if quiet else 0.0
        if self._is_translated:
            for stream, text in note.shown:
                self._show(stream, text.encode("utf-8", "surrogateescape"))
        self._noted(note)

    def close(self) -> None:
        """The output is over: what was held back is read, the logs are closed."""
        for stream, lines in self._parts.items():
            for line in lines.end():
                self._read(self._reader.line(stream, line))
        self._read(self._reader.end())
        for log in self._logs.values():
            log.close()

    def remarks(self) -> list[str]:
        """What its user should know about the logs."""
        trouble = next((log.trouble for log in self._logs.values() if log.trouble), "")
        return [f"its log has not all that it printed: {trouble}"] if trouble else []


class _Lines:
    """Bytes on their way to becoming lines."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> list[bytes]:
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        first, *rest = chunk.split(b"\n")
        self._keep(first)
        lines = [b"".join(self._parts), *rest[:-1]]
        self._parts, self._size = [], 0
        self._keep(rest[-1])
        return lines

    def _keep(self, part: bytes) -> None:
        if part and self._size < _LONGEST:
            self._parts.append(part)
            self._size += len(part)

    def end(self) -> list[bytes]:
        lines = [b"".join(self._parts)] if self._parts else []
        self._parts, self._size = [], 0
        return lines


def tail(log: Path) -> tuple[bytes, bytes]:
    """The ends of what an attempt printed: stdout, stderr."""
    return _tail(log.with_suffix(".out")), _tail(log.with_suffix(".err"))


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            text = file.read()
    except OSError:  # it could not be kept
        return b""
    # The first line is a part of one, unless it is the first.
    return text if size <= TAIL else text.partition(b"\n")[2]


def read_again(log: Path, reader: Reader) -> Facts:
    """The facts of an attempt whose supervisor died, from its log."""
    facts, streams = Facts(), (("stdout", ".out"), ("stderr", ".err"))
    for stream, suffix in streams:
        try:
            with log.with_suffix(suffix).open("rb") as file:
                for line in file:
                    facts.size += len(line)
                    note = reader.line(stream, line.rstrip(b"\n"))  # type: ignore[arg-type]
                    if note is not None:
                        facts.add(note)
        except OSError:  # it could not be kept
            continue
    return facts


def answer_in(log: Path, reader: Reader) -> Iterator[bytes]:
    """What the user has seen on stdout of an attempt whose output was translated."""
    lines = _Lines()
    with log.with_suffix(".out").open("rb") as file:
        while chunk := file.read(1 << 16):
            for line in lines.add(chunk):
                yield from _shown(reader.line("stdout", line))
    for line in lines.end():
        yield from _shown(reader.line("stdout", line))
    yield from _shown(reader.end())


def _shown(note: Note | None) -> Iterator[bytes]:
    for stream, text in () if note is None else note.shown:
        if stream == "stdout":
            yield text.encode("utf-8", "surrogateescape")
