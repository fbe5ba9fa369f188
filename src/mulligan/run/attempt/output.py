"""Passes the output of an attempt to its log, the user and the program's reader.

Every byte is written to the attempt's log before it is shown or read, so that after a crash the
next process reads the same. A line is held until it is complete, up to `_LONGEST` bytes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from ..journal.entries import AttemptEnd
from ..listeners import RunListener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from ...classify.output.reader import Outcome
    from ..agents.adapter import Launch, OutputNote, OutputReader, Stream
    from ..process.supervise import ProcessExit

__all__ = (
    "AFTER",
    "HEAD",
    "LOGS",
    "REST",
    "AttemptFacts",
    "AttemptLog",
    "AttemptOutput",
    "answer_in",
    "discard",
    "read_again",
)

# Suffixes of an attempt's log: output before our stop signal, and after it.
LOGS: Mapping[Stream, str] = {"stdout": ".out", "stderr": ".err"}
AFTER: Mapping[Stream, str] = {"stdout": ".after.out", "stderr": ".after.err"}

# How much of a log is kept once the disk is full.
_MOST_ON_FULL_DISK = 512 << 10
# How much of its beginning and, at least, of its end is kept: 64 MiB at most in all.
HEAD, REST = 16 << 20, 24 << 20

# An event with a whole file in it is one line; a longer line is not an event.
_LONGEST = 8 << 20

# A tool may be silent much longer than a model: a test suite, a build.
_TOOL_QUIET = 3600.0

# Longest announced wait that suspends the idle limit, so that a hung program is still found.
_LONGEST_QUIET = 21_600.0


# Most interrupted tool calls named in the prompt of a resumed session.
_MOST_CALLS = 5


class AttemptFacts:
    """What is known about an attempt: how it was started, and what it has printed so far.

    Args:
        number: Its number.
        launch: How it was started.
        chosen: The session chosen for it, or the one that it resumes.

    Attributes:
        session: The session that the program itself named.
        retries: How often it reported a retry of its own.
        row: How many of these since a model answered last.
        is_work: Whether a model answered.
        is_lost: Whether it reported that the session to resume does not exist.
        is_futile: Whether it repeats requests that cannot succeed.
        has_spoken: Whether it printed anything on stdout.
        has_events: Whether it printed an event on stdout.
        pending: The tool calls that are under way, in words.
        cost: US dollars.
        tokens: Tokens, in and out.
        size: Bytes that it printed.
        announced: The silence that it announced, in seconds, if it was stopped for that.
        retried: The failure after which it was about to retry, if it was stopped for that.
    """

    def __init__(self, number: int, launch: Launch, chosen: str = "") -> None:
        self.number, self.launch, self._chosen = number, launch, chosen
        self.announced = 0.0
        self.retried: Outcome | None = None
        self.session = ""
        self.retries = self.row = 0
        self.is_work = self.is_lost = self.is_futile = False
        self.has_spoken = self.has_events = False
        self.pending: tuple[str, ...] = ()
        self.cost: float | None = None
        self.tokens: int | None = None
        self.size = 0

    def add(self, note: OutputNote) -> None:
        self.session = note.session or self.session
        self.retries += note.is_retry
        self.row = 0 if note.is_work else self.row + note.is_retry
        self.is_work = self.is_work or note.is_work
        self.is_lost = note.is_lost or (self.is_lost and not note.is_work)
        self.is_futile = self.is_futile or note.is_futile
        self.has_events = self.has_events or note.is_event
        self.pending = self.pending if note.pending is None else note.pending
        self.cost = self.cost if note.cost is None else note.cost
        self.tokens = self.tokens if note.tokens is None else note.tokens

    def heard(self, stream: Stream, size: int) -> None:
        """The program printed so many bytes."""
        self.size += size
        self.has_spoken = self.has_spoken or stream == "stdout"

    @property
    def is_mute(self) -> bool:
        """Whether it prints each step as an event and printed none, so it has done nothing."""
        return self.launch.is_structured and not self.has_spoken

    def resumable(self, *, is_cut_short: bool) -> str:
        """The session to resume: the one that it named, else the one chosen for it.

        The chosen one is used if the output names none or was cut short before it could. It is not
        used if text came instead of events: then another program has that name.
        """
        if self.session:
            return self.session
        if self.launch.is_structured:
            is_other = self.has_spoken and not self.has_events
            return self._chosen if is_cut_short and not is_other else ""
        return self._chosen if is_cut_short or self.size else ""

    def ended(
        self, at: float, exited: ProcessExit, *, idle: float | None, is_end_reported: bool
    ) -> AttemptEnd:
        """How the attempt ended, not yet judged.

        `idle` is the limit that applied to it; `is_end_reported` says whether the program's
        structured output always ends with a report.
        """
        is_mute, is_report_due = self.is_mute, self.launch.is_structured and is_end_reported
        end = AttemptEnd(
            at,
            self.number,
            exited.took,
            exited.code,
            exited.signal,
            exited.stopped,
            is_unstarted=exited.is_unstarted,
            error=exited.error,
            silent=idle,
            announced=self.announced,
            is_mute=is_mute,
            has_answer=self.has_spoken,
            is_unreported=is_mute or (self.has_events and is_report_due),
            is_session_named=bool(self.session),
        )
        return self._told(end, is_cut_short=bool(exited.stopped) or exited.signal is not None)

    def torn(self, at: float, took: float) -> AttemptEnd:
        """The end of an attempt whose supervisor died, not yet judged."""
        end = AttemptEnd(at, self.number, took, stopped="torn")
        return self._told(end, is_cut_short=True)

    def _told(self, end: AttemptEnd, *, is_cut_short: bool) -> AttemptEnd:
        pending = ""
        if self.pending:
            from ...core.redaction import presentable

            pending = "; ".join([presentable(call) for call in self.pending[:_MOST_CALLS]])
        return end._replace(
            session=self.resumable(is_cut_short=is_cut_short),
            cost=self.cost,
            tokens=self.tokens,
            retries=self.retries,
            is_work=self.is_work,
            pending=pending,
        )


class AttemptOutput:
    """Logs, reads and shows one attempt's output.

    Args:
        facts: What is known about the attempt; added to. If its launch is translated, the user sees
            what the reader shows instead of stdout's bytes.
        reader: Reads its lines.
        log: Where the raw bytes go: this path with ``.out`` and ``.err``.
        show: Told what the user sees: (stream, bytes).
        listeners: Told of each note, after it was added to `facts`.
        answered: Called when a model has answered.
        retrying: Called when the program retries by itself, with its reason and the seconds of
            silence that it announced; returns why to stop the program, empty to let it retry.
        is_tool_spared: Whether a tool may be silent longer than a model; False if the user set the
            idle limit.
    """

    def __init__(
        self,
        facts: AttemptFacts,
        reader: OutputReader,
        *,
        log: Path,
        show: Callable[[Stream, bytes], None],
        listeners: tuple[RunListener, ...] = (),
        answered: Callable[[], None] | None = None,
        retrying: Callable[[str, float], str] = lambda _reason, _quiet: "",
        is_tool_spared: bool = True,
    ) -> None:
        self.facts, self._is_tool_spared = facts, is_tool_spared
        self._log, self._retrying = log, retrying
        self._reader, self._is_translated, self._show = reader, facts.launch.is_translated, show
        # Most listeners are told of steps alone, and a program may print thousands of events.
        self._noted = [
            each.noted for each in listeners if type(each).noted is not RunListener.noted
        ]
        self._answered = answered
        self._logs: dict[Stream, AttemptLog] = {
            stream: AttemptLog(log.with_suffix(suffix)) for stream, suffix in LOGS.items()
        }
        self._parts: dict[Stream, _Lines] = {"stdout": _Lines(), "stderr": _Lines()}
        self._heard_at = self._quiet_until = 0.0
        self._is_retrying = self._is_ending = False
        self._reason, self._announced = "", 0.0

    def take(self, stream: Stream, chunk: bytes) -> None:
        if stream == "stdout" and self.facts.launch.is_structured:
            self._quiet_until = 0.0  # an event: the announced silence is over
        self.facts.heard(stream, len(chunk))
        self._logs[stream].write(chunk)
        if stream == "stderr" or not self._is_translated:
            self._show(stream, chunk)
        for line in self._parts[stream].add(chunk):
            if (note := self._reader.line(stream, line)) is not None:
                self._read(note)
        # Stop the program if it cannot succeed or should not retry by itself.
        is_retrying, self._is_retrying = self._is_retrying, False
        if self._is_ending:
            return
        why = "futile" if self.facts.is_futile else ""
        if not why and is_retrying:
            why = self._retrying(self._reason, self._announced)
        if why:
            from ..process.supervise import StopProgram

            raise StopProgram(why)

    def ending(self) -> None:
        """The supervisor is about to signal the program: log later output to a separate file.

        Only output from before the signal is judged: Copilot answers SIGINT with a report of
        success.
        """
        self._is_ending = True
        for stream, log in self._logs.items():
            log.close()
            self._logs[stream] = AttemptLog(self._log.with_suffix(AFTER[stream]))
            self._logs[stream].trouble = log.trouble

    def quiet_until(self) -> float:
        """The monotonic time until which the idle limit is suspended."""
        if self.facts.pending and self._is_tool_spared:
            return max(self._quiet_until, self._heard_at + _TOOL_QUIET)
        return self._quiet_until

    def _read(self, note: OutputNote) -> None:
        self.facts.add(note)
        self._is_retrying = not note.is_work and (
            self._is_retrying or note.is_retry or note.quiet > 0
        )
        self._reason = note.reason if note.is_retry else self._reason
        self._heard_at = monotonic()
        # The idle limit starts after the announced wait, when the program sends its request.
        quiet, self._announced = min(note.quiet, _LONGEST_QUIET), note.quiet
        self._quiet_until = self._heard_at + quiet if quiet else 0.0
        for stream, text in note.shown if self._is_translated else ():
            if stream == "stderr" or not self._is_ending:  # the answer came before our signal
                self._show(stream, text.encode("utf-8", "surrogateescape"))
        if note.is_work and self._answered is not None:
            self._answered()
        for noted in self._noted:
            noted(note, self.facts)

    def close(self) -> None:
        """Read the last incomplete lines and close the logs.

        If the user's stdout is closed by now, the rest is not shown; that is no error.
        """
        try:
            for stream, lines in self._parts.items():
                for line in lines.end():
                    self._close_with(self._reader.line(stream, line))
            self._close_with(self._reader.end())
        finally:
            for log in self._logs.values():
                log.close()

    def _close_with(self, note: OutputNote | None) -> None:
        try:
            if note is not None:
                self._read(note)
        except BrokenPipeError:
            self._show = discard

    def remarks(self) -> list[str]:
        """What its user should know about the logs."""
        trouble = next((log.trouble for log in self._logs.values() if log.trouble), "")
        left_out = sum(log.left_out for log in self._logs.values())
        if not trouble and left_out:
            trouble = f"{left_out:,} bytes in the middle were left out"
        return [f"its log has not all that it printed: {trouble}"] if trouble else []


def discard(_stream: Stream, _chunk: bytes) -> None:
    """Shows nothing."""


class _Lines:
    """Splits bytes into lines."""

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


def read_again(log: Path, reader: OutputReader, facts: AttemptFacts) -> None:
    """Add to `facts` what the log of an attempt says whose supervisor died."""
    for stream, suffix in LOGS.items():
        try:
            with log.with_suffix(suffix).open("rb") as file:
                for line in file:
                    facts.heard(stream, len(line))
                    note = reader.line(stream, line.rstrip(b"\n"))
                    if note is not None:
                        facts.add(note)
        except OSError:  # it could not be kept
            continue


def answer_in(log: Path, reader: OutputReader) -> Iterator[bytes]:
    """What the user has seen on stdout of an attempt whose output was translated."""
    lines = _Lines()
    with log.with_suffix(LOGS["stdout"]).open("rb") as file:
        while chunk := file.read(1 << 16):
            for line in lines.add(chunk):
                yield from _shown(reader.line("stdout", line))
    for line in lines.end():
        yield from _shown(reader.line("stdout", line))
    yield from _shown(reader.end())


def _shown(note: OutputNote | None) -> Iterator[bytes]:
    for stream, text in () if note is None else note.shown:
        if stream == "stdout":
            yield text.encode("utf-8", "surrogateescape")


class AttemptLog:
    """The log of one stream of an attempt.

    A log that cannot be written does not end the user's work. Past `HEAD` and twice `REST` the
    middle is left out: the beginning says what the attempt was, the end how it ended. If the disk
    is full the beginning is given up as well, because the journal needs room.

    Args:
        path: The file; made if it does not exist.
    """

    __slots__ = ("_begins", "_descriptor", "_mark", "_most", "_size", "left_out", "trouble")

    def __init__(self, path: Path) -> None:
        new = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        #: Why it is not whole, in the system's words; empty if it is.
        self.trouble = ""
        #: Bytes of its middle that were left out.
        self.left_out = 0
        self._descriptor = -1
        self._size, self._most = 0, 0
        # Offset and length of the line that marks the removed middle.
        self._begins, self._mark = 0, 0
        try:
            self._descriptor = os.open(path, new, 0o600)
            self._size = os.fstat(self._descriptor).st_size
        except OSError as trouble:
            self.trouble = trouble.strerror or str(trouble)

    def write(self, data: bytes) -> None:
        """Add `data`; never raises."""
        if self._descriptor < 0:
            return
        if self.trouble:
            self._squeeze(data)
            return
        try:
            self._write(data)
            if self._size > HEAD + 2 * REST:
                self._leave_out()
        except OSError as trouble:
            self.trouble = trouble.strerror or str(trouble)
            # Shrink the log to half its size: the journal needs the space.
            self._most = min(_MOST_ON_FULL_DISK, self._size // 2)
            self._cut()
            self._squeeze(data)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):  # `write` has already recorded the error
                os.close(descriptor)

    def _leave_out(self) -> None:
        """Remove the middle of the log, in whole lines if possible.

        The end is copied before the file is cut: a kill in between leaves some lines twice, and
        loses none.
        """
        rest = os.pread(self._descriptor, REST, self._size - REST)
        rest = rest[rest.find(b"\n") + 1 :]
        if not self._begins:
            self._begins = os.pread(self._descriptor, HEAD, 0).rfind(b"\n") + 1 or HEAD
        self.left_out += self._size - self._begins - self._mark - len(rest)
        mark = b"[mulligan: %d bytes were left out here]\n" % self.left_out
        self._mark, self._size = len(mark), self._begins
        self._write(mark + rest)
        os.truncate(self._descriptor, self._size)

    def _squeeze(self, data: bytes) -> None:
        if self._size + len(data) > self._most:
            self._cut()
        if self._most:
            with suppress(OSError):
                self._write(data[-self._most :])

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._descriptor, rest, self._size)
            self._size += written
            rest = rest[written:]

    def _cut(self) -> None:
        with suppress(OSError):
            os.truncate(self._descriptor, 0)
        self._size = 0
