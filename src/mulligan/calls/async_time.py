"""Sleeping, timeouts and threads for coroutines, on asyncio as on trio.

Neither is imported before a loop of it runs. The cancellation of both is a BaseException, so
nothing here or in the loop of attempts can swallow one by catching Exception.
"""

from __future__ import annotations

import sys
from types import CoroutineType, coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

__all__ = (
    "armed",
    "asleep",
    "being_cancelled",
    "cut",
    "in_thread",
    "kept",
    "lazily",
    "on_trio",
)

T = TypeVar("T")


def on_trio() -> bool:
    """Whether the caller runs inside trio."""
    trio = sys.modules.get("trio")
    lowlevel = getattr(trio, "lowlevel", None)  # not there while another thread imports it
    return lowlevel is not None and lowlevel.in_trio_task()


def being_cancelled() -> bool:
    """Whether the running asyncio task has been cancelled and has not ended yet.

    asyncio raises the cancellation once. If the attempt turned it into an error of its own, it is
    not raised again, and a retry would outlive its caller. Trio raises it at every checkpoint.
    """
    if on_trio():
        return False
    import asyncio

    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def asleep(delay: float) -> None:
    """Return `delay` seconds later, or with the cancellation at once."""
    if on_trio():
        import trio

        await trio.sleep(delay)
    else:
        import asyncio

        await asyncio.sleep(delay)


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    """What `work` returns, called in a thread: a store may take 250 ms, a loop must not.

    It is awaited to its end even if the caller is cancelled meanwhile: a permit that it brings
    must be there to be given back.
    """
    # Here: most calls share nothing that is far away.
    from ..threads import in_thread as in_one_of_ours

    return await in_one_of_ours(work, *args, is_awaited=True)


async def cut(work: Awaitable[Any], limit: float, overtime: Callable[[], TimeoutError]) -> Any:
    """The result of `work`; what `overtime` makes if it took longer than `limit` seconds.

    The work is cancelled, and awaited to its end, before the error is raised: no attempt is left
    running behind the next one. A cancellation from outside passes through untouched.
    """
    if on_trio():
        import trio

        with trio.move_on_after(max(limit, 0.0)):
            return await work
        raise overtime()
    if isinstance(work, CoroutineType):
        return await lazily(work, limit, overtime)
    return await lazily(_coroutine(work), limit, overtime)


async def _coroutine(work: Awaitable[Any]) -> Any:
    return await work


async def lazily(
    work: Coroutine[Any, Any, Any], limit: float, overtime: Callable[[], TimeoutError]
) -> Any:
    """`cut` for asyncio, with the timer set when the work first suspends.

    Setting a timer costs more than a call that never suspends, and such a call needs none.
    """
    import asyncio

    now = asyncio.get_running_loop().time
    began = now()
    box = [None]
    steps: Any = kept(work, box)
    for signal in steps:
        await armed(signal, steps, limit - (now() - began), overtime)
        break
    return box[0]


@coroutine
def kept(work: Coroutine[Any, Any, Any], box: list[Any]) -> Generator[Any, Any, None]:
    """`work`, with its answer put into `box`.

    A `for` over these steps shows the first suspension and ends quietly if there is none;
    `work.send` would make and catch a StopIteration to hand the answer over, at twice the price.
    """
    box[0] = yield from work


async def armed(signal: Any, steps: Any, limit: float, overtime: Callable[[], TimeoutError]) -> Any:
    """What is left of a coroutine that has suspended with `signal`, under asyncio's timer."""
    import asyncio

    scope = asyncio.timeout(limit)
    try:
        async with scope:
            return await _Resumed(signal, steps)
    except TimeoutError:
        # The work may have raised a TimeoutError of its own; ours is the one whose scope expired.
        if scope.expired():
            raise overtime() from None
        raise


class _Resumed:
    """A coroutine that was started elsewhere and has suspended once; awaiting this continues it."""

    __slots__ = ("signal", "steps")

    def __init__(self, signal: Any, steps: Any) -> None:
        self.signal, self.steps = signal, steps

    def __await__(self) -> Generator[Any, Any, Any]:
        signal, steps = self.signal, self.steps
        while True:
            try:
                answer = yield signal
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:  # noqa: BLE001 -- raised where the coroutine waits
                try:
                    signal = steps.throw(error)
                except StopIteration as done:
                    return done.value
            else:
                try:
                    signal = steps.send(answer)
                except StopIteration as done:
                    return done.value
