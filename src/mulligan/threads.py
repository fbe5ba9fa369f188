"""Threads for blocking calls made by coroutines.

A store's round trip may last 250 ms, and must not block an event loop that long. The threads are
Mulligan's own: in a pool shared with the program, its work could wait for a guarded call that is
queued behind that work.
"""

from __future__ import annotations

import atexit
import os
import sys
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("awithin", "in_thread", "inline", "within")

T = TypeVar("T")

# The most threads. Nothing that runs in them waits for a coroutine; stores have time limits.
_MOST = 16

# Seconds that the exit of the program waits for calls that have begun: no store takes longer.
_LAST = 6.0


async def in_thread(work: Callable[..., T], *args: Any, is_awaited: bool) -> T:
    """What `work` returns, called in a thread, on asyncio as on trio.

    A cancelled caller waits until `work` has ended if it `is_awaited`; else `work` goes on alone.
    """
    trio = sys.modules.get("trio")
    lowlevel = getattr(trio, "lowlevel", None)  # not there while another thread imports it
    if lowlevel is not None and lowlevel.in_trio_task():
        return await _in_trio(work, args, is_awaited=is_awaited)
    import asyncio

    future = asyncio.wrap_future(_pool.handed(work, args))
    if not is_awaited:
        return await future
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                continue
        if not future.cancelled():
            future.exception()  # marked as retrieved; the caller gets the cancellation
        raise


def within(limit: float, work: Callable[..., T], *args: Any) -> T:
    """What `work` returns, called in a thread.

    Raises:
        TimeoutError: It takes longer than `limit` seconds; it goes on in its thread.
    """
    return _pool.handed(work, args).result(limit)


async def awithin(limit: float, work: Callable[..., T], *args: Any) -> T:
    """Like `within`, on asyncio as on trio. If its caller is cancelled it goes on as well."""
    trio = sys.modules.get("trio")
    lowlevel = getattr(trio, "lowlevel", None)
    if trio is not None and lowlevel is not None and lowlevel.in_trio_task():
        try:
            with trio.fail_after(limit):
                return await _in_trio(work, args, is_awaited=False)
        except trio.TooSlowError:
            raise TimeoutError from None
    import asyncio

    future = asyncio.wrap_future(_pool.handed(work, args))
    # If the caller has gone or its time has passed, its result is dropped.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait([future], timeout=limit)
    if not future.done():
        raise TimeoutError
    return future.result()


# Trio's own limiter belongs to the program, like asyncio's executor. One for each run of trio.
_limiters: list[Any] = []


async def _in_trio(work: Callable[..., T], args: tuple[Any, ...], *, is_awaited: bool) -> T:
    import trio

    if not _limiters:
        _limiters.append(trio.lowlevel.RunVar("mulligan.threads"))
    variable = _limiters[0]
    limiter = variable.get(None)
    if limiter is None:
        limiter = trio.CapacityLimiter(_MOST)
        variable.set(limiter)
    answer: T = await trio.to_thread.run_sync(
        work, *args, abandon_on_cancel=not is_awaited, limiter=limiter
    )
    if is_awaited:
        await trio.lowlevel.checkpoint_if_cancelled()  # no attempt for a cancelled caller
    return answer


class _Pool:
    """Threads that are started when they are needed, and end with the program."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._idle = Semaphore(0)
        self._places = Semaphore(_MOST)
        self._under_way: set[Future[Any]] = set()

    def handed(self, work: Callable[..., T], args: tuple[Any, ...]) -> Future[T]:
        """Queue `work` for a thread; its future."""
        future: Future[T] = Future()
        context = copy_context()
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        self._jobs.put((future, lambda: context.run(work, *args)))
        is_taken = self._idle.acquire(blocking=False)
        if not is_taken and self._places.acquire(blocking=False):
            try:
                Thread(target=self._work, name="mulligan", daemon=True).start()
            except RuntimeError:  # the machine has no thread left
                self._places.release()
                if future.cancel():
                    raise
        return future

    def _work(self) -> None:
        while True:
            try:
                future, work = self._jobs.get_nowait()
            except Empty:
                self._idle.release()
                future, work = self._jobs.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # noqa: BLE001 -- handed to the waiting caller
                    future.set_exception(error)
            del future, work  # not kept alive while the thread waits

    def drain(self) -> None:
        wait(list(self._under_way), _LAST)


class _Inline(_Pool):
    """Does the work at once, in the caller's thread."""

    def handed(self, work: Callable[..., T], args: tuple[Any, ...]) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(work(*args))
        except BaseException as error:  # noqa: BLE001 -- handed to the waiting caller
            future.set_exception(error)
        return future


_pool = _Pool()


@contextmanager
def inline() -> Iterator[None]:
    """Start no thread inside: the caller does the work itself; for simulations.

    A loop in virtual time would jump ahead while a thread works, and differently each time.
    """
    global _pool  # noqa: PLW0603 -- one for each process
    before, _pool = _pool, _Inline()
    try:
        yield
    finally:
        _pool = before


def _after_fork() -> None:
    # Threads exist only in the parent, which also has their work.
    global _pool  # noqa: PLW0603 -- one for each process
    _pool = _Pool()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _at_the_end() -> None:
    _pool.drain()
