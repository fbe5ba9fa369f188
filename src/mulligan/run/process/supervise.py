"""Runs one child program until its whole process group is gone.

    Running ──exits by itself────────────▶ Lingering ──▶ Sweeping (SIGTERM, SIGKILL) ──▶ Over
       └─stop, idle, timeout, the sink ──▶ Ending (SIGINT, SIGTERM, SIGKILL) ────────────┘

It ends when the program has exited, no process of its group runs, and its streams are read to the
end, unless a process that left the group keeps them open. All of it is done in the thread of the
caller. Output goes to the sink unbuffered, so a slow sink slows the program, as a slow terminal
would.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import subprocess
import sys
import time
from functools import partial
from typing import IO, TYPE_CHECKING, Literal, NamedTuple, Protocol

from .spawn import CannotStart, cannot_start, start
from .stdin import StdinFeed
from .table import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from .activity import Activity
    from .stdin import StdinSpool
    from .stop import Stop

__all__ = (
    "OutputSink",
    "ProcessExit",
    "StopProgram",
    "Stream",
    "has_members",
    "supervise",
)

Stream = Literal["stdout", "stderr"]

# How long a process may take to vanish after SIGKILL.
_VANISH = 2.0

_CHUNK = 65536
# The longest wait of the selector. If one takes much longer, this process was paused (a debugger, a
# sleeping machine); pauses by Ctrl-Z are counted by `Stop`.
_SLICE = 1.0
_LATE = 0.5
# The longest wait while stopping: not every event wakes a selector.
_BRISK = 0.02
# What `> >(tee log)` needs to write its last lines after the shell has ended.
_SILENCE = 0.25
_LINGER = 2.0
# How much is read at the end from a stream that another process keeps open: more than a pipe holds.
_LAST_BYTES = 2 * 1024 * 1024
_NEVER = float("inf")
# Processor time and network count as signs of life for this many times the idle limit: a hung
# program can get heartbeats, or spin.
_LONGEST_UNPRINTED = 12

_END = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
# Commands that a shell put into the background ignore SIGINT.
_SWEEP = (signal.SIGTERM, signal.SIGKILL)
# The signal that the program would get for writing to a closed pipe itself.
_UNREAD = (signal.SIGPIPE, signal.SIGTERM, signal.SIGKILL)


class ProcessExit(NamedTuple):
    """How a program ended.

    Args:
        code: Its exit code, or what a shell would say of one that cannot be started; None if it
            was ended by a signal.
        signal: The number of the signal that ended it.
        stopped: Why we ended it: ``idle``, ``timeout``, ``pipe`` (our output is not read any
            more), ``input`` (it could not be kept), the reason of the sink's `StopProgram` or of
            the `Stop`; empty if it ended by itself.
        took: Seconds from its start.
        error: Why it could not be started, or watched to its end, in words.
        is_unstarted: Whether the machine could not start it for the moment: nothing was done, and
            the same may work later.
    """

    code: int | None = None
    signal: int | None = None
    stopped: str = ""
    took: float = 0.0
    error: str = ""
    is_unstarted: bool = False


class OutputSink(Protocol):
    """Where output goes."""

    def take(self, stream: Stream, chunk: bytes, /) -> None:
        """Take what was written; not cut at lines, nor at characters.

        Raises:
            BrokenPipeError: What this writes is not read any more; the program is ended.
            StopProgram: The program shall be stopped.
        """
        ...

    def ending(self) -> None:
        """The program is about to be signalled; `take` got all that it wrote until now."""
        ...

    def quiet_until(self) -> float:
        """The monotonic time until which silence was announced; 0 if it was not."""
        ...


class StopProgram(Exception):
    """Raised by a sink to stop the program because of its output, with the reason."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


def supervise(
    argv: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    stdin: StdinSpool | None,
    sink: OutputSink,
    idle: float | None,
    timeout: float | None,
    stop: Stop,
    grace: tuple[float, float] = (2.0, 2.0),
    counts_cpu: bool = True,
    on_start: Callable[[int], None] | None = None,
) -> ProcessExit:
    """Run a program until it exits, or stop it.

    On return no process of its group runs, also if `sink` raises. Processes that left the group
    were detached on purpose, and stay; see `leftovers`.

    Args:
        argv: The program, looked for on the PATH of `environ`, then its arguments.
        cwd: The folder it runs in.
        environ: Its whole environment.
        stdin: Its input; None for none.
        sink: Where its output goes.
        idle: Seconds without a sign of life (output, processor time, something from the network),
            and beyond an announced silence, after which it hangs.
        timeout: Seconds after which it is ended in any case.
        stop: Ends it when set, faster when set again.
        grace: Seconds after SIGINT, and after SIGTERM.
        counts_cpu: Whether processor time is a sign of life; not of a program that prints each
            step, for Copilot spins while it hangs.
        on_start: Told the process id, which is also the id of its group.
    """
    began = time.monotonic()
    if stop.is_set:
        return ProcessExit(stopped=stop.reason)
    try:
        child = _started(argv, cwd=cwd, environ=environ, stdin=stdin)
    except CannotStart as trouble:
        return ProcessExit(
            code=trouble.code,
            error=str(trouble),
            took=time.monotonic() - began,
            is_unstarted=trouble.is_transient,
        )
    stop.groups.add(child.pid)
    watch = _Watchdog(
        child,
        sink=sink,
        idle=idle,
        timeout=timeout,
        stop=stop,
        grace=grace,
        counts_cpu=counts_cpu,
    )
    try:
        if on_start is not None:
            on_start(child.pid)
        watch.run(stdin)
    except BaseException:
        if not watch.is_gone:
            _close(child)  # further output is discarded
            signal_group(child.pid, signal.SIGTERM)
            _wait(child, grace[1])
        raise
    finally:
        _close(child)
        if not watch.is_gone:
            signal_group(child.pid, signal.SIGKILL)
            _wait(child, _VANISH)
        stop.groups.discard(child.pid)
    if stdin is not None and not stdin.is_complete:
        with contextlib.suppress(OSError):  # then the spool stays marked as incomplete
            stdin.fill()
    code = child.poll()
    return ProcessExit(
        code=None if code is None or code < 0 else code,
        signal=-code if code is not None and code < 0 else None,
        stopped=watch.why,
        took=time.monotonic() - began,
        error=f"process {child.pid} survives SIGKILL" if code is None else watch.error,
    )


def _started(
    argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str], stdin: StdinSpool | None
) -> subprocess.Popen[bytes]:
    try:
        if stdin is None:
            descriptor: int | None = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        else:
            descriptor = stdin.descriptor()
    except OSError as trouble:
        lost = f"cannot start {argv[0]}: its input cannot be opened: {trouble}"
        raise cannot_start(lost, trouble) from trouble
    try:
        return start(argv, cwd=cwd, environ=environ, stdin=descriptor)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _close(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def _wait(child: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(seconds)


class _Watchdog:
    """The state of one supervision; its arguments are those of `supervise`."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        *,
        sink: OutputSink,
        idle: float | None,
        timeout: float | None,
        stop: Stop,
        grace: tuple[float, float],
        counts_cpu: bool = True,
    ) -> None:
        now = time.monotonic()
        #: Why the program was ended; empty if it ended by itself.
        self.why = ""
        #: What went wrong on the way, in words.
        self.error = ""
        #: Whether no process of the group runs any more.
        self.is_gone = False
        self._child, self._sink, self._stop, self._grace = child, sink, stop, grace
        self._counts_cpu = counts_cpu
        self._idle = _NEVER if idle is None else idle
        self._heard_at = self._printed_at = now
        # The group's activity at `_looked_at`, during a silence; None otherwise.
        self._activity: Activity | None = None
        self._looked_at = now
        self._times_out_at = _NEVER if timeout is None else now + timeout
        self._exited_at: float | None = None
        self._steps: list[signal.Signals] = []
        self._next_step_at = _NEVER
        self._asked = 0
        self._pauses = len(stop.pauses)
        self._is_over = False
        self._feed: StdinFeed | None = None
        self._ending: int | None = None
        self._selector: selectors.BaseSelector
        self._streams: dict[IO[bytes], Stream] = {}

    def run(self, spool: StdinSpool | None) -> None:
        """Watch until the program and its group have ended; feeds `spool` to a piped stdin."""
        # Opened here, not above: if no descriptor is left, the child must still be stopped.
        with selectors.DefaultSelector() as self._selector, contextlib.ExitStack() as opened:
            self._open(spool, opened)
            while not self._is_over:
                began = time.monotonic()
                patience = self._patience(began)
                events = self._selector.select(patience)
                for key, _ in events:
                    self._handle(key)
                if self._feed is not None:
                    self._feed.adjust()
                now = time.monotonic()
                self._forgive(0.0 if events else now - began - patience, now)
                self._judge(now)

    def _open(self, spool: StdinSpool | None, opened: contextlib.ExitStack) -> None:
        child = self._child
        if child.stdout is not None and child.stderr is not None:
            self._streams = {child.stdout: "stdout", child.stderr: "stderr"}
        for pipe in self._streams:
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, partial(self._hear, pipe))
        self._selector.register(self._stop.descriptor, selectors.EVENT_READ)
        self._ending = ending(child.pid, opened)
        if self._ending is not None:
            self._selector.register(self._ending, selectors.EVENT_READ)
        if spool is not None and child.stdin is not None:
            self._feed = StdinFeed(spool, child.stdin, self._selector, self._fed)

    def _forgive(self, late: float, now: float) -> None:
        """Do not count time during which this process was paused."""
        pauses = self._stop.pauses[self._pauses :]
        self._pauses += len(pauses)
        lost = max(sum(pauses), late - _LATE)
        if lost > 0:
            self._heard(now)
            self._times_out_at += lost
            self._next_step_at += lost

    def _patience(self, now: float) -> float:
        if self._exited_at is not None or self.why or self._ending is None:
            return _BRISK
        soonest = min(self._times_out_at, self._look_at(now))
        return min(max(soonest - now, 0.0), _SLICE)

    def _heard(self, now: float) -> None:
        """Restart the idle limit: the program showed a sign of life, or this process was paused."""
        self._heard_at = self._printed_at = now
        self._activity = None

    def _look_at(self, now: float) -> float:
        """When to measure activity next: in the middle of a silence, then at its end."""
        if self._idle == _NEVER:
            return _NEVER
        return self._idle_at(now) - (self._idle / 2 if self._activity is None else 0.0)

    def _is_hung(self, now: float) -> bool:
        """Whether it gave no sign of life for too long; measures activity if it printed nothing."""
        if now < self._look_at(now):
            return False
        from .activity import activity_of  # most programs are never silent for so long

        before, seconds = self._activity, now - self._looked_at
        self._activity, self._looked_at = activity_of(self._child.pid), now
        if before is None:
            return False
        is_at_work = self._activity.has_heard(before) or (
            self._counts_cpu and self._activity.has_worked(before, seconds)
        )
        is_at_work = is_at_work and now - self._printed_at < _LONGEST_UNPRINTED * self._idle
        if is_at_work:
            self._heard_at = now - self._idle / 2  # measured again after half of the idle limit
        return not is_at_work

    def _idle_at(self, now: float) -> float:
        """When the idle limit is reached; announced silence does not count."""
        idle_at = self._heard_at + self._idle
        return idle_at if idle_at > now else max(idle_at, self._sink.quiet_until() + self._idle)

    def _handle(self, key: selectors.SelectorKey) -> None:
        if callable(key.data):
            key.data()
        else:  # the stop, or the end of the program: seen once is enough
            self._selector.unregister(key.fileobj)
            if key.fileobj == self._ending:
                # macOS tells a moment before the child can be reaped: from here on, look often.
                self._ending = None

    def _hear(self, pipe: IO[bytes]) -> int:
        """Pass on what the program wrote; how much it was."""
        if pipe not in self._streams:
            return 0
        try:
            chunk = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return 0
        stream = self._streams[pipe]
        if not chunk:
            self._close(pipe)
            return 0
        try:
            self._sink.take(stream, chunk)
        except BrokenPipeError:
            self._close(pipe)
            if self._exited_at is None:
                self._end("pipe", _UNREAD)
        except StopProgram as stop:
            if self._exited_at is None:
                self._end(stop.why, _END)
        # Time that the sink took is not silence of the program.
        self._heard(time.monotonic())
        return len(chunk)

    def _close(self, pipe: IO[bytes]) -> None:
        del self._streams[pipe]
        self._selector.unregister(pipe)
        pipe.close()

    def _fed(self, trouble: OSError | None) -> None:
        self._heard(time.monotonic())
        if trouble is not None:
            self.error = f"cannot keep the input: {trouble.strerror or trouble}"
            self._end("input", _END)

    def _judge(self, now: float) -> None:
        if self._exited_at is None and self._ending is None and self._child.poll() is not None:
            self._exited_at = now
        if self._exited_at is not None:
            self._clear(now, self._exited_at)
        elif self.why:
            self._escalate(now)
        elif self._stop.is_set:
            self._end(self._stop.reason, _END)
        elif now >= self._times_out_at:
            self._end("timeout", _END)
        elif self._is_hung(now):
            self._end("idle", _END)

    def _clear(self, now: float, exited_at: float) -> None:
        """The program itself has ended: end its group, read what is left."""
        if has_members(self._child.pid):
            silent_at = max(exited_at, self._heard_at) + _SILENCE
            is_finishing = self._streams and now < min(silent_at, exited_at + _LINGER)
            if self._next_step_at != _NEVER:
                if signal.SIGTERM in self._steps:
                    # Processes that survive the program ignore SIGINT, as background commands of a
                    # shell do.
                    self._next_step_at = min(self._next_step_at, exited_at + _SILENCE)
                self._escalate(now)
            elif not is_finishing or self._stop.is_set:
                self._climb(_SWEEP, now)
            return
        self.is_gone = self._is_over = True
        self._stop.groups.discard(self._child.pid)  # its pid may be reused now
        self._hear_all()

    def _hear_all(self) -> None:
        """Pass on what lies in the pipes."""
        for pipe in tuple(self._streams):
            left = _LAST_BYTES
            while left > 0 and pipe in self._streams and (heard := self._hear(pipe)):
                left -= heard

    def _end(self, why: str, steps: Sequence[signal.Signals]) -> None:
        if self.why:
            return
        self.why = why
        self._hear_all()  # read first what it wrote before our signal
        self._sink.ending()
        self._climb(steps, time.monotonic())

    def _climb(self, steps: Sequence[signal.Signals], now: float) -> None:
        self._steps = list(steps)
        self._asked = self._stop.count
        self._step(now)

    def _escalate(self, now: float) -> None:
        is_hurried = self._stop.count > self._asked
        if self._steps and (is_hurried or now >= self._next_step_at):
            self._asked = self._stop.count
            self._step(now)
        elif now >= self._next_step_at:
            self._is_over = True  # it survives SIGKILL: give up

    def _step(self, now: float) -> None:
        number = self._steps.pop(0)
        signal_group(self._child.pid, number)
        first, second = self._grace
        waits = {signal.SIGTERM: second, signal.SIGKILL: _VANISH}
        self._next_step_at = now + waits.get(number, first)


def signal_group(group: int, number: int) -> bool:
    """Send a signal to the whole group; False if no process gets it."""
    try:
        os.killpg(group, number)
        if number not in {0, signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT}:
            os.killpg(group, signal.SIGCONT)  # a stopped process does not handle signals
    except (ProcessLookupError, PermissionError):  # macOS: a group of zombies is not permitted
        return False
    return True


def has_members(group: int) -> bool:
    """Whether a process of the group still runs after its leader was reaped."""
    if not signal_group(group, 0):
        return False
    if sys.platform == "darwin":
        return True
    # In a container whose first process does not reap, zombies stay members for ever.
    try:
        return any(process.group == group and not process.is_dead for process in processes())
    except OSError:  # no /proc here
        return True


def ending(pid: int, opened: contextlib.ExitStack) -> int | None:
    """A descriptor that is readable once the child `pid` has ended; None where there is none.

    It says so without reaping the child, and is closed with `opened`.
    """
    try:
        if sys.platform == "darwin":
            queue = select.kqueue()
            opened.callback(queue.close)
            exits = select.kevent(pid, select.KQ_FILTER_PROC, fflags=select.KQ_NOTE_EXIT)
            queue.control([exits], 0)
            return queue.fileno()
        descriptor = os.pidfd_open(pid)
        opened.callback(os.close, descriptor)
    except OSError:  # an old kernel, a sandbox; or it has ended already
        return None
    return descriptor
