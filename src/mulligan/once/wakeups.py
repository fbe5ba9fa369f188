"""Wakes callers of this process that wait for a key.

The holder of a key wakes them when it ends, and they look at the store at once. A wakeup that is
missed costs a moment: waiters look now and then in any case, because the holder may be in another
process.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..calls.wakeups import TaskWakeup, ThreadWakeup
    from ..stores.state_machine import Key

__all__ = ("listening", "wake")

_waiting: dict[Key, list[Callable[[], object]]] = {}


def wake(place: Key) -> None:
    """Wake the callers that wait for `place` in this process."""
    for wakeup in tuple(_waiting.get(place, ())):
        wakeup()


@contextmanager
def listening(place: Key, wakeup: ThreadWakeup | TaskWakeup) -> Iterator[None]:
    """Have `wakeup` woken with the waiters for `place`."""
    waiters = _waiting.setdefault(place, [])
    waiters.append(wakeup.wake)
    try:
        yield
    finally:
        waiters.remove(wakeup.wake)
        if not waiters:
            _waiting.pop(place, None)
