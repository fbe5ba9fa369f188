"""`RunContext`: store, clocks, processes and listeners of runs, opened and closed together."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, contextmanager, suppress
from threading import Event, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import StoreError
from ..stores.boot_clock import boot_time
from .attempt.output import discard
from .journal.lease import LEASE
from .journal.store import RunStore, UnreadableRun
from .process.orphans import end_leftovers
from .process.stop import Stop, signals
from .process.supervise import supervise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..core.ports import Listener
    from .journal.store import ClaimedRun
    from .listeners import RunListener
    from .process.supervise import ProcessExit, Stream

__all__ = ("REAL_PLATFORM", "Platform", "PlatformClock", "RunContext", "open_context")

# Seconds between two renewals of a run's lease.
_LOOK, _RENEW = 1.0, LEASE / 6

# The variable that names a file for the events of runs, and seconds that the end of a process waits
# for what was not written to it.
EVENTS, _FLUSH = "MULLIGAN_EVENTS", 2.0


class PlatformClock(Protocol):
    """Monotonic and wall time in seconds, as a `Clock` of the core tells them."""

    def now(self) -> float: ...
    def wall(self) -> float: ...


class Platform(NamedTuple):
    """Clocks, random generator and processes.

    Args:
        clock: Tells the time.
        wait: (stop, seconds) → whether it was stopped; returns after so many seconds.
        roll: A random number in [0, 1).
        supervise: Runs a program to its end.
        end_leftovers: Stops processes that a dead supervisor left running, by the mark of its run.
    """

    clock: PlatformClock
    wait: Callable[[Stop, float], bool]
    roll: Callable[[], float]
    supervise: Callable[..., ProcessExit]
    end_leftovers: Callable[[str], object]


class _Clock:
    """The machine's clocks, with fewer imports than the clock of `calls`."""

    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)


def _roll() -> float:
    from random import random  # loads hashlib; most runs need no jitter

    return random()  # noqa: S311 -- jitter


#: The clocks, random generator and processes of this machine.
REAL_PLATFORM = Platform(_Clock(), Stop.wait, _roll, supervise, end_leftovers)


class RunContext(NamedTuple):
    """Everything that runs of this process use; made by `open_context`.

    Args:
        environ: The environment that programs inherit.
        runs: The store of runs and their journals.
        stop: Set to interrupt what is driven.
        platform: Clocks, random generator and processes.
        listeners: Told what happens to a run: of each step in this order, of its end in reverse.
        output: Called with a program's output: (stream, bytes).
        events: Told the events of every run and every agent, as listeners of guards are.
    """

    environ: Mapping[str, str]
    runs: RunStore
    stop: Stop
    platform: Platform
    listeners: tuple[RunListener, ...] = ()
    output: Callable[[Stream, bytes], None] = discard
    events: tuple[Listener, ...] = ()

    def now(self) -> float:
        """Epoch seconds."""
        return self.platform.clock.wall()

    @contextmanager
    def holding(self, claimed: ClaimedRun) -> Iterator[RunContext]:
        """Keep the lease of a run that this process has claimed, and release it at the end.

        Yields a context whose stop is set as well if the run is cancelled or taken over.
        """
        with ExitStack() as stack:
            stack.callback(self.runs.release, claimed)
            stop, done = stack.enter_context(closing(Stop(self.stop))), Event()
            keeper = Thread(
                target=_keep_lease,
                args=(self.runs, claimed, stop, done),
                name=f"lease of {claimed.id}",
                daemon=True,
            )
            keeper.start()
            stack.callback(keeper.join)
            stack.callback(done.set)
            yield self._replace(stop=stop)


@contextmanager
def open_context(environ: Mapping[str, str], *, ends_process: bool = False) -> Iterator[RunContext]:
    """A context for this process, with the user's store, which is closed at the end.

    In the main thread, signals that would end the process set its stop instead.

    Args:
        environ: The environment that programs inherit.
        ends_process: Whether the process ends with it. Then the store is not closed: SQLite would
            remove the files that the next command creates again.

    Raises:
        SettingError: The file that ``MULLIGAN_EVENTS`` names cannot be written.
    """
    with ExitStack() as stack:
        events: tuple[Listener, ...] = ()
        if path := environ.get(EVENTS):
            from ..telemetry.json_lines import JsonLinesListener

            file = JsonLinesListener(path)
            stack.callback(file.flush, _FLUSH)
            events = (file,)
        runs = RunStore()
        if not ends_process:
            stack.callback(runs.close)
        stop = stack.enter_context(closing(Stop()))
        if current_thread() is main_thread():  # Python handles signals there only
            stack.enter_context(signals(stop))
        yield RunContext(environ, runs, stop, REAL_PLATFORM, events=events)


def _keep_lease(runs: RunStore, claimed: ClaimedRun, stop: Stop, done: Event) -> None:
    """Renew the lease of a run until `done`; stop the run once it was claimed or cancelled."""
    renewed = boot_time()
    while not done.wait(_LOOK):
        try:
            is_ours = runs.is_ours(claimed)
            if is_ours and boot_time() - renewed >= _RENEW:
                is_ours = runs.renew(claimed)
                renewed = boot_time()
            if is_ours:
                continue
            is_cancelled = _is_cancelled(runs, claimed.id)
        except (StoreError, OSError):  # busy or full: the lease outlives a few of these
            continue
        stop.set("cancelled" if is_cancelled else "fenced")
        return


def _is_cancelled(runs: RunStore, id_: str) -> bool:
    """Whether the run was cancelled, and not taken over."""
    with suppress(UnreadableRun):  # a newer version wrote something there
        state = runs.look(id_)
        return state is None or state.status == "cancelled"
    return False
