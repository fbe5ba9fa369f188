"""Batches operations that threads of one process want on the same state.

A transaction on a server takes two round trips, and two hundred threads that each make their own on
one state wait for each other longer than a call may be held up. Operations are pure functions of
the state, so any number of them can be applied one after another between one read and one write.
The first thread is the leader: it applies all queued operations, its own included. The others wait;
if it leaves before theirs was applied, one of them becomes the leader.
"""

from __future__ import annotations

from copy import copy
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..core.moment import Moment
    from .state_machine import Operation

__all__ = ("BatchedOperation", "Batches")

S = TypeVar("S")


class BatchedOperation:
    """One thread's operation, and its result.

    Args:
        operation: The operation to apply.
        until: When its caller gives up, on the process's clock.
    """

    __slots__ = ("_woken", "error", "is_answered", "is_leading", "operation", "result", "until")

    def __init__(self, operation: Operation[Any, Any], until: float) -> None:
        self.operation, self.until = operation, until
        self.is_leading = self.is_answered = False
        self.result: Any = None
        self.error: Exception | None = None
        self._woken = Lock()
        self._woken.acquire()

    def apply(self, state: S, moment: Moment) -> S:
        """The state after the operation; one that raises leaves the state as it was."""
        self.error = None
        try:
            state, self.result = self.operation(state, moment)
        except Exception as error:  # noqa: BLE001 -- raised where the operation was asked for
            self.error = error
        return state

    def wait(self) -> None:
        """Return when it is answered, when this thread is to lead, or when its time has passed."""
        self._woken.acquire(timeout=max(0.0, self.until - monotonic()))

    def wake(self) -> None:
        if self._woken.locked():  # else it was made the leader before, and is awake
            self._woken.release()


# Requests for one state in order of arrival, the leader's included.
_Queue: TypeAlias = dict[BatchedOperation, None]


class Batches:
    """Operations that wait to be applied, by the state they are for.

    Args:
        too_late: The error for an operation that was not applied in time.
    """

    def __init__(self, too_late: Callable[[], StoreError]) -> None:
        self._too_late = too_late
        self.after_fork()

    def after_fork(self) -> None:
        """Start with empty queues: the waiting threads exist only in the parent."""
        self._lock = Lock()
        self._queues: dict[object, _Queue] = {}

    def __len__(self) -> int:
        return len(self._queues)

    def do(
        self,
        name: object,
        operation: Operation[Any, Any],
        until: float,
        lead: Callable[[Callable[[], Iterable[BatchedOperation]]], bool],
    ) -> Any:
        """What `operation` returns, applied to the state `name` before `until`.

        `lead` applies what is queued, in one transaction, and returns whether that landed. It is
        handed a function that returns the requests to apply, and asks it before each try. If it
        returns False, nothing was applied and the other requests wait for another leader. If it
        raises, all requests of the last try have failed with that error.
        """
        mine = BatchedOperation(operation, until)
        with self._lock:
            queue = self._queues.get(name)
            if queue is None:
                queue = self._queues[name] = {}
                mine.is_leading = True
            queue[mine] = None
        try:
            if not mine.is_leading:
                mine.wait()
            if mine.is_leading:
                self._lead(queue, lead)
        finally:
            self._leave(name, queue, mine)
        if not mine.is_answered:
            raise self._too_late()
        if mine.error is not None:
            raise mine.error
        return mine.result

    def _lead(
        self, queue: _Queue, lead: Callable[[Callable[[], Iterable[BatchedOperation]]], bool]
    ) -> None:
        batch: list[BatchedOperation] = []

        def queued() -> list[BatchedOperation]:
            with self._lock:
                batch[:] = queue
            return batch

        try:
            if not lead(queued):
                return
        except BaseException as trouble:
            for each in batch:
                each.error = _for_another(trouble) or self._too_late()
            self._answered(queue, batch)
            raise
        self._answered(queue, batch)

    def _answered(self, queue: _Queue, batch: list[BatchedOperation]) -> None:
        with self._lock:
            for each in batch:
                each.is_answered = True
                queue.pop(each, None)
                each.wake()

    def _leave(self, name: object, queue: _Queue, mine: BatchedOperation) -> None:
        """Leave the queue; if this thread led it, the one with the most time left takes over."""
        with self._lock:
            queue.pop(mine, None)
            if not mine.is_leading:
                return
            if not queue:
                del self._queues[name]
                return
            heir = next(reversed(queue))
            heir.is_leading = True
            heir.wake()


def _for_another(trouble: BaseException) -> Exception | None:
    """`trouble` for another thread to raise; None if it concerns one thread alone."""
    if isinstance(trouble, StoreError):
        return copy(trouble)
    return trouble if isinstance(trouble, Exception) else None
