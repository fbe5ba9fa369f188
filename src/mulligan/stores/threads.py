"""The way from a coroutine to code that blocks.

A store's round trip is short, but it may last 250 ms, and an event loop must not stand still so
long. The work goes to a thread, on asyncio as on trio. Work whose waiter is cancelled runs to its
end: operations carry ids, so a lost answer can be asked for again.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("in_thread",)

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """What `function` returns, called in a thread."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        answer: T = await trio.to_thread.run_sync(function, *args, abandon_on_cancel=True)
        return answer
    import asyncio

    return await asyncio.to_thread(function, *args)
