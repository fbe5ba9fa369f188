"""Starts every child process of a run: agents, verification, notification, git.

A child inherits the signals that its parent ignores, and the parent's signal mask. A script that
says ``mulligan run … &`` makes us ignore SIGINT, and an agent would then ignore the interrupt that
lets it save its session. So children start with the default action for the signals that we end
them with, with an empty mask, and in a session of their own: a terminal reaches them through us.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

__all__ = ("no_ignored_signals", "spawn")

# SIGPIPE, which Python ignores, is restored by subprocess itself.
_ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


def spawn(
    argv: Sequence[str],
    *,
    executable: Path | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    bufsize: int = -1,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start `argv` with default signals, in a session of its own; arguments as for `Popen`.

    A thread other than the main one cannot change what the process ignores; there the main thread
    holds `no_ignored_signals`, as `stop.signals` does.
    """
    with no_ignored_signals(), _empty_mask():
        return subprocess.Popen(  # noqa: S603 -- no shell
            argv,
            executable=executable,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            bufsize=bufsize,
            pass_fds=pass_fds,
            start_new_session=True,
        )


@contextmanager
def no_ignored_signals() -> Iterator[None]:
    """Let children start with default signals; this process goes on ignoring what it ignored.

    An ignored signal is inherited through exec, a handler is not. So a signal that is ignored gets
    a handler that does nothing. In another thread than the main one this changes nothing.
    """
    ignored = []
    if threading.current_thread() is threading.main_thread():
        ignored = [each for each in _ENDING if signal.getsignal(each) is signal.SIG_IGN]
    try:
        for each in ignored:
            signal.signal(each, _do_nothing)
        yield
    finally:
        for each in ignored:
            signal.signal(each, signal.SIG_IGN)


@contextmanager
def _empty_mask() -> Iterator[None]:
    """Block no signal in this thread, but those that are waiting: they would reach us here."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    if not blocked:
        yield
        return
    signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked - signal.sigpending())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _do_nothing(_number: int, _frame: FrameType | None) -> None: ...
