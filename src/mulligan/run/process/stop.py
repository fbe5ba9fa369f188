"""`Stop`: a stop request, made by a signal or another thread.

Code that waits or watches a program polls it. Its lock is reentrant and never held during a wait,
so a signal handler may set it at any moment.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from threading import RLock
from typing import TYPE_CHECKING

from .spawn import ENDING, do_nothing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ("Stop", "WorkerStop", "signals")

# Signals of a user at the keyboard, a service manager, or a closing terminal.
_REASONS = {
    signal.SIGINT: "interrupt",
    signal.SIGTERM: "terminate",
    signal.SIGHUP: "hangup",
    signal.SIGQUIT: "quit",
}
# poll() takes milliseconds in a C int; one turn of a loop an hour costs nothing.
_LONGEST_POLL = 3600.0


class Stop:
    """Whether a stop was requested, why, and how often.

    The first reason is kept. Each further request shortens the grace.

    Args:
        outer: A stop that also sets this one; setting this one does not set it.
    """

    __slots__ = (
        *("_asked", "_closing", "_inlet", "_outer"),
        *("count", "descriptor", "groups", "inner", "is_set", "pauses", "reason"),
    )

    def __init__(self, outer: Stop | None = None) -> None:
        self._asked: list[str] = []
        #: How often the stop was requested.
        self.count = 0
        #: Whether the stop was requested.
        self.is_set = False
        #: The first reason; empty before a request.
        self.reason = ""
        #: Stops that are set with this one.
        self.inner: list[Stop] = []
        self._outer = outer
        # Held while the pipe is written to or closed: the number of a descriptor that was closed in
        # between belongs to another file.
        self._closing = RLock()
        #: Readable once this is set, and stays so: it is never read; -1 once this is closed.
        self.descriptor, self._inlet = os.pipe()
        os.set_blocking(self._inlet, False)
        #: Process groups that Ctrl-Z must stop with us; kept by `supervise`.
        self.groups: set[int] = set() if outer is None else outer.groups
        #: How often and how long Ctrl-Z has held this process.
        self.pauses: list[float] = [] if outer is None else outer.pauses
        if outer is not None:
            outer.inner.append(self)  # before it is read, so that no request is missed
            if outer.is_set:
                self.set(outer.reason)

    def set(self, reason: str = "interrupt") -> None:
        """Request the stop; a further call shortens the grace."""
        self._asked.append(reason)
        self.reason = self._asked[0]
        self.is_set, self.count = True, len(self._asked)
        with self._closing:
            if self._inlet >= 0:
                # A full pipe is readable already.
                with contextlib.suppress(BlockingIOError):
                    os.write(self._inlet, b"!")
        for each in tuple(self.inner):
            each.set(reason)

    @property
    def signal(self) -> int:
        """The signal that requested it first; 0 if none did."""
        return next((number for number, why in _REASONS.items() if why == self.reason), 0)

    def wait(self, seconds: float) -> bool:
        """Wait until this is set, at most `seconds`; whether it is."""
        ends_at = time.monotonic() + seconds
        waiter = select.poll()
        waiter.register(self.descriptor, select.POLLIN)
        while not self.is_set:
            left = ends_at - time.monotonic()
            if left <= 0:
                return False
            waiter.poll(min(left, _LONGEST_POLL) * 1000)
        return True

    def close(self) -> None:
        """Close the descriptors; the request stays known."""
        if self._outer is not None and self in self._outer.inner:
            self._outer.inner.remove(self)
        with self._closing:
            # Reset before closing: a signal in between must not write to a reused descriptor.
            inlet, self._inlet = self._inlet, -1
            outlet, self.descriptor = self.descriptor, -1
            for descriptor in (inlet, outlet):
                if descriptor >= 0:
                    os.close(descriptor)


class WorkerStop(Stop):
    """Stops a run because its worker ends, not because its user interrupts it.

    The run is not paused by that: the next worker continues it.
    """

    __slots__ = ()

    def set(self, reason: str = "terminate") -> None:
        super().set(reason if reason not in {"interrupt", "quit"} else "terminate")


@contextlib.contextmanager
def signals(stop: Stop) -> Iterator[Stop]:
    """Let the signals that end a program set `stop` instead, and Ctrl-Z stop its groups with us.

    Works in the main thread only, as Python's signals do. A signal that our caller ignores stays
    ignored: that is what nohup means. Children start with the default all the same.
    """
    olds = {}

    def ask(number: int, _frame: FrameType | None) -> None:
        stop.set(_REASONS[signal.Signals(number)])

    def pause(number: int, _frame: FrameType | None) -> None:
        # SIGSTOP, for the group of a session leader is orphaned, and such a group ignores SIGTSTP.
        paused = tuple(stop.groups)
        _tell(paused, signal.SIGSTOP)
        began = time.monotonic()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # stopped here until SIGCONT
        signal.signal(number, pause)
        stop.pauses.append(time.monotonic() - began)
        _tell(paused, signal.SIGCONT)

    try:
        for number in _REASONS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                olds[number] = signal.signal(number, ask)
            elif number in ENDING:  # children would inherit that it is ignored, but no handler
                olds[number] = signal.signal(number, do_nothing)
        if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
            olds[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, pause)
        # An inherited SIG_IGN would make the kernel discard every exit code.
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            olds[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        yield stop
    finally:
        for number, old in olds.items():
            # None is a handler that C code installed: Python cannot put it back.
            signal.signal(number, signal.SIG_DFL if old is None else old)


def _tell(groups: tuple[int, ...], number: int) -> None:
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
