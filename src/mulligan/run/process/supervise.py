"""Runs one child program until its whole process group is gone.

Runs in the thread of the caller. The program's output goes to the sink unbuffered, so a slow sink
slows the program, as a slow terminal would.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from .spawn import CannotStart, cannot_start, start
from .watchdog import VANISH, Watchdog, signal_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from .stdin import StdinSpool
    from .stop import Stop

__all__ = ("OutputSink", "ProcessExit", "Stream", "supervise")

Stream = Literal["stdout", "stderr"]


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
    watch = Watchdog(
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
            _wait(child, VANISH)
        stop.groups.discard(child.pid)
    if stdin is not None:
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
        descriptor = _nowhere() if stdin is None else stdin.descriptor()
    except OSError as trouble:
        lost = f"cannot start {argv[0]}: its input cannot be opened: {trouble}"
        raise cannot_start(lost, trouble) from trouble
    try:
        return start(argv, cwd=cwd, environ=environ, stdin=descriptor)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _nowhere() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _close(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def _wait(child: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(seconds)
