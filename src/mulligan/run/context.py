"""What driving one run uses, opened and closed together: its lease, its stop, its input."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Event, Thread
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from ..errors import StoreError
from ..stores.boot_clock import boot_time
from .journal.lease import LEASE
from .journal.store import UnreadableRun
from .process.stop import Stop

if TYPE_CHECKING:
    from types import TracebackType

    from .journal.store import ClaimedRun, RunStore

__all__ = ("RunContext",)

# How often a holder looks whether its run is still its own, and renews its lease, in seconds.
_LOOK, _RENEW = 1.0, LEASE / 6


class _Closeable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=_Closeable)


class RunContext:
    """A run while this process drives it. It is let go of when the context ends.

    Args:
        runs: Where runs are kept.
        claimed: The run.
        stop: Set to interrupt it.
    """

    def __init__(self, runs: RunStore, claimed: ClaimedRun, stop: Stop) -> None:
        self._runs, self._claimed, self._outer = runs, claimed, stop
        self._stack, self._done = ExitStack(), Event()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self._runs.release, self._claimed)
            #: Set when it is interrupted, cancelled, or taken over by another process.
            self.stop = Stop(self._outer)
            stack.callback(self.stop.close)
            holder = Thread(target=self._hold, name=f"hold {self._claimed.id}", daemon=True)
            holder.start()
            stack.callback(holder.join)
            stack.callback(self._done.set)
            self._stack = stack.pop_all()
        return self

    def own(self, thing: T) -> T:
        """`thing`, which is closed with the context."""
        self._stack.callback(thing.close)
        return thing

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _hold(self) -> None:
        """Keep the lease; stop the run once it was taken or cancelled."""
        runs, claimed, renewed = self._runs, self._claimed, boot_time()
        while not self._done.wait(_LOOK):
            try:
                is_ours = runs.is_ours(claimed)
                if is_ours and boot_time() - renewed >= _RENEW:
                    is_ours = runs.renew(claimed)
                    renewed = boot_time()
                if is_ours:
                    continue
                is_cancelled = self._is_cancelled()
            except (StoreError, OSError):  # busy or full: the lease outlives a few of these
                continue
            self.stop.set("cancelled" if is_cancelled else "fenced")
            return

    def _is_cancelled(self) -> bool:
        """Whether the run was cancelled, and not taken over."""
        try:
            state = self._runs.look(self._claimed.id)
        except UnreadableRun:  # a newer version wrote something there
            return False
        return state is None or state.status == "cancelled"
