"""One child program, supervised until its whole group is gone.

All of it happens in the thread of the caller. What the program writes goes to the sink as it comes;
nothing is kept, so a slow sink slows the program, as a slow terminal would.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from .group import tell
from .start import CannotStart, start
from .watch import VANISH, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from .spool import Spool
    from .stop import Stop

__all__ = ("Ended", "Sink", "Stream", "supervise")

Stream = Literal["stdout", "stderr"]


class Ended(NamedTuple):
    """How a program ended.

    Args:
        code: Its exit code, or what a shell would say of one that cannot be started; None if it
            was ended by a signal.
        signal: The number of the signal that ended it.
        stopped: Why we ended it: ``idle``, ``timeout``, ``pipe`` (nobody reads our output any
            more), ``input`` (it could not be kept), or the reason of the `Stop`; empty if it
            ended by itself.
        took: Seconds from its start.
        error: Why it could not be started, or watched to its end, in words.
    """

    code: int | None = None
    signal: int | None = None
    stopped: str = ""
    took: float = 0.0
    error: str = ""


class Sink(Protocol):
    """Where output goes."""

    def take(self, stream: Stream, chunk: bytes, /) -> None:
        """Take what was written; not cut at lines, nor at characters.

        Raises:
            BrokenPipeError: Nobody reads what this writes; the program is ended.
            Futile: The program goes on with what leads nowhere; it is ended.
        """
        ...

    def quiet_until(self) -> float:
        """The monotonic time until which silence was announced; 0 if it was not."""
        ...


def _nothing(_pid: int) -> None: ...


def supervise(
    argv: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    stdin: Spool | None,
    sink: Sink,
    idle: float | None,
    timeout: float | None,
    stop: Stop,
    grace: tuple[float, float] = (2.0, 2.0),
    on_start: Callable[[int], None] = _nothing,
) -> Ended:
    """Run a program to its end, or end it.

    Whatever happens, also if `sink` raises, nobody of its process group runs afterwards. Processes
    that left the group were detached on purpose, and stay; see `leftovers`.

    Args:
        argv: The program, looked for on the PATH of `environ`, then its arguments.
        cwd: The folder it runs in.
        environ: Its whole environment.
        stdin: Its input; None for none.
        sink: Where its output goes.
        idle: Seconds without output, and beyond an announced silence, after which it hangs.
        timeout: Seconds after which it is ended in any case.
        stop: Ends it when set, faster when set again.
        grace: Seconds after SIGINT, and after SIGTERM.
        on_start: Told the process id, which is also the id of its group.
    """
    began = time.monotonic()
    if stop.is_set:
        return Ended(stopped=stop.reason)
    try:
        descriptor = _nowhere() if stdin is None else stdin.descriptor()
    except OSError as trouble:
        lost = CannotStart(f"cannot start {argv[0]}: its input is lost: {trouble}")
        return Ended(error=str(lost))
    try:
        child = start(argv, cwd=cwd, environ=environ, stdin=descriptor)
    except CannotStart as trouble:
        took = time.monotonic() - began
        return Ended(code=trouble.code, error=str(trouble), took=took)
    finally:
        if descriptor is not None:
            os.close(descriptor)
    stop.groups.add(child.pid)
    watch = Watch(child, sink=sink, idle=idle, timeout=timeout, stop=stop, grace=grace)
    try:
        on_start(child.pid)
        watch.run(stdin)
    except BaseException:
        if not watch.is_gone:
            _close(child)  # what it still has to say concerns nobody
            tell(child.pid, signal.SIGTERM)
            _wait(child, grace[1])
        raise
    finally:
        _close(child)
        if not watch.is_gone:
            tell(child.pid, signal.SIGKILL)
            _wait(child, VANISH)
        stop.groups.discard(child.pid)
    if stdin is not None:
        with contextlib.suppress(OSError):  # then it stays incomplete, and whoever resumes knows
            stdin.fill()
    code = child.poll()
    return Ended(
        code=None if code is None or code < 0 else code,
        signal=-code if code is not None and code < 0 else None,
        stopped=watch.why,
        took=time.monotonic() - began,
        error=f"process {child.pid} survives SIGKILL" if code is None else watch.error,
    )


def _nowhere() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _close(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def _wait(child: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(seconds)
