"""Calls a store from a coroutine, in a thread.

If the waiting task is cancelled, the call still runs to its end: operations carry ids, so a caller
can ask for a lost answer again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("in_thread",)

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """What `function` returns, called in a thread."""
    from ..threads import in_thread as in_one_of_ours  # loads logging, which plain calls do without

    return await in_one_of_ours(function, *args, is_awaited=False)
