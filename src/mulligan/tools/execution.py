"""Execution of one tool call: its attempts under a guard, its key, and the mark of an unsafe call.

A `read` or `idempotent` tool is called under its guard; a `keyed` one under a key as well, which it
sends along; an `unsafe` one under a key and a mark. A mark that an earlier call of the same
operation has left behind means that the earlier one may have been applied: verify, or stop.
"""

from __future__ import annotations

import inspect
import os
from contextlib import suppress
from contextvars import copy_context
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

from ..api.judge import judge_response
from ..calls.async_time import on_trio
from ..calls.callables import ASYNC, function_kind
from ..calls.clock import world
from ..calls.settings import APPLIED, NOT_APPLIED
from ..core.failure import Effects, Reach
from ..errors import FailedAnswer, MulliganError
from ..once.claims import Busy, Drop, Mine, Take
from ..once.fingerprint import digest
from ..stores.state_machine import Key

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..api.guard import Guard
    from ..classify.classifier import Classifier
    from ..core.failure import Failure
    from ..core.ports import Store
    from ..once.api import Once
    from .definition import ToolDefinition

__all__ = ("LeftInDoubt", "ToolAttempts", "Unfinished", "execute", "verified", "verifier")

# Marks are kept as long as results of operations.
_DAY = 86_400.0


class Unfinished:
    """The mark of an unsafe call that has begun: what a crash leaves behind.

    It is written before the tool is called and removed when its end is known. A later call of the
    same operation that finds one must not be made: the earlier one may have been applied. Access
    to one operation is exclusive here, because its key is held around it (`guard.aonce`).
    """

    def __init__(self, store: Store, target: str, key: str) -> None:
        self._keys, self._place = store.keys, Key(target, f"unfinished/{digest([key])}")
        self._holder, self._epoch = os.urandom(8).hex(), 0

    async def begin(self) -> bool:
        """Write the mark; False if an earlier call has left one.

        Raises:
            StoreDown: It could not be written, so the tool must not be called.
        """
        take = Take(holder=self._holder, fingerprint="tool", lease=_DAY)
        answer = await self._keys.atransact(self._place, take)
        if isinstance(answer, Busy):
            # Only `end` uses these: the earlier call is ended in its own name.
            self._holder, self._epoch = answer.holder, answer.epoch
            return False
        if isinstance(answer, Mine):
            self._epoch = answer.epoch
        return True

    async def begin_again(self) -> None:
        """Replace the mark of an earlier call, which is known not to have been applied."""
        await self._keys.atransact(self._place, Drop(holder=self._holder, epoch=self._epoch))
        self._holder = os.urandom(8).hex()
        await self.begin()

    async def end(self) -> None:
        """Remove the mark: it is known what became of the call."""
        with suppress(Exception):  # a mark that stays is read as doubt, which is the safe side
            await self._keys.atransact(self._place, Drop(holder=self._holder, epoch=self._epoch))


class LeftInDoubt(MulliganError):
    """An earlier call of the same operation may have been applied; the tool was not called."""


class _NotApplied(Exception):
    """The call failed and was not applied.

    The key is given back without the doubt that the story of a guard inside would leave on it.
    """


class ToolAttempts:
    """The attempts of one call, as the guard makes them; it remembers how they ended.

    Args:
        tool: What is called.
        invoke: Calls it once; the tool's own function, or a framework's handler around it.
        classifier: Reads what it raises.
        is_inline: Whether a plain function is called in this thread, because it has a loop of its
            own; else it is called in another one, so that the loop does not stand still.

    Attributes:
        count: Attempts made.
        is_in_doubt: Whether one of them may have been applied.
        first_took: Seconds that the first one took; retries are what costs a budget.
        book: Called before each attempt, to book what was waited for it.
    """

    def __init__(
        self,
        tool: ToolDefinition,
        invoke: Callable[..., Any],
        classifier: Classifier,
        *,
        is_inline: bool,
    ) -> None:
        self.count, self.is_in_doubt, self.first_took = 0, False, 0.0
        self.book: Callable[[], None] = lambda: None
        self._tool, self._invoke, self._classifier = tool, invoke, classifier
        self._is_inline = is_inline

    def function(self) -> Callable[..., Any]:
        """What the guard calls; in stories and fingerprints it passes for the tool's function."""

        async def attempt(**arguments: Any) -> Any:
            return await self._attempt(arguments)

        update_wrapper(attempt, self._tool.function)
        attempt.__name__ = attempt.__qualname__ = self._tool.name
        return attempt

    def read(self, error: Exception) -> Failure:
        """What `error` says that went wrong."""
        return self._classifier.classify(error, now=world().clock.wall())

    async def _attempt(self, arguments: dict[str, Any]) -> Any:
        self.book()
        self.count += 1
        if self._tool.effects is Effects.UNSAFE:
            self.is_in_doubt = False  # it is repeated only if the last one was not applied
        clock = world().clock
        began = clock.now()
        try:
            answer = await called(self._invoke, arguments, is_inline=self._is_inline)
            failure = judge_response(answer)
            if failure is not None:
                raise FailedAnswer(failure, answer)  # noqa: TRY301 -- read below, like all others
        except Exception as error:
            if self.read(error).reach is Reach.MAYBE_APPLIED:
                self.is_in_doubt = True
            raise
        except BaseException:
            self.is_in_doubt = True  # cut or cancelled: what was sent may arrive
            raise
        finally:
            if self.count == 1:
                self.first_took = clock.now() - began
        return answer


async def execute(
    attempts: ToolAttempts,
    arguments: dict[str, Any],
    *,
    guard: Guard,
    holder: Guard,
    way: Once | None,
    mark: Unfinished | None,
    verify: Callable[..., Any] | None,
    is_resolved: bool,
) -> Any:
    """Call a tool, as often as it takes and is allowed.

    Args:
        attempts: The call.
        arguments: What the tool is called with.
        guard: The tool's.
        holder: Holds the key of an unsafe call, and repeats nothing.
        way: The key; None for calls that need none.
        mark: The mark of an unsafe call; None for others.
        verify: Finds out whether a call that has left its mark was applied.
        is_resolved: Whether the model has read since, and knows that it was not.

    Raises:
        LeftInDoubt: An earlier call of the same operation may have been applied.
    """
    function = attempts.function()
    if way is None:
        return await guard.acall(function, **arguments)
    if mark is None:
        return await guard.aonce(way, function, **arguments)
    failed: list[Exception] = []

    async def marked(**_: Any) -> Any:
        if not await mark.begin():
            found = await verified(verify, arguments)
            found = NOT_APPLIED if found is None and is_resolved else found
            if found is not NOT_APPLIED:
                return _applied(found)
            await mark.begin_again()
        try:
            return await guard.acall(function, **arguments)
        except Exception as error:
            if attempts.is_in_doubt:
                raise
            failed.append(error)
        await mark.end()
        raise _NotApplied

    update_wrapper(marked, function)
    try:
        answer = await holder.aonce(way, marked, **arguments)
    except _NotApplied:
        pass
    else:
        await mark.end()
        return answer
    raise failed.pop()  # not while the other is handled: it would become its context


def _applied(found: Any) -> Any:
    """The result of a call that verify has found applied; None is what it could not find out."""
    if found is None:
        raise LeftInDoubt("an earlier call may have been applied")
    return None if found is APPLIED else found


async def called(
    function: Callable[..., Any], arguments: dict[str, Any], *, is_inline: bool
) -> Any:
    """What `function` returns: awaited if it must be, in a thread if it would block the loop."""
    if function_kind(function) == ASYNC:
        answer = function(**arguments)
    elif is_inline:
        answer = _without_loop(function, arguments)
    else:
        answer = await _in_worker(partial(_guarded, function, arguments))
    return await answer if hasattr(answer, "__await__") else answer


def _without_loop(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """What `function` returns, which may use ``asyncio.run``: its caller has no loop, either."""
    import asyncio

    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)  # noqa: SLF001 -- the only way; exported for event loops
    try:
        return function(**arguments)
    finally:
        asyncio._set_running_loop(loop)  # noqa: SLF001 -- the same


def _guarded(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    try:
        return function(**arguments)
    except StopIteration as error:
        # A future cannot hold StopIteration: the waiting task would never continue.
        raise RuntimeError("the tool raised StopIteration") from error


async def _in_worker(work: Callable[[], Any]) -> Any:
    """What `work` returns, called in a thread of its own.

    A tool may take minutes: in a pool of few threads others would wait for it unseen.
    """
    if on_trio():
        import trio

        alone = trio.CapacityLimiter(1)
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=alone)
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(1, "mulligan-tool")
    try:
        running = asyncio.get_running_loop().run_in_executor(pool, copy_context().run, work)
        return await running
    finally:
        pool.shutdown(wait=False)


async def verified(verify: Callable[..., Any] | None, arguments: dict[str, Any]) -> Any:
    """What `verify` finds: the result, APPLIED, NOT_APPLIED; None if it does not know."""
    if verify is None:
        return None
    try:
        return await verify(**arguments)
    except Exception:  # noqa: BLE001 -- it could not find out
        return None


def verifier(tool: ToolDefinition, *, is_inline: bool) -> Callable[..., Any] | None:
    """The tool's `verify` as a coroutine function; it is given the arguments that it takes."""
    verify = tool.verify
    if verify is None:
        return None
    parameters = inspect.signature(verify).parameters.values()
    names = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)

    async def ask(**arguments: Any) -> Any:
        known = tool.with_defaults(arguments)
        given = {each: known[each] for each in known if takes_all or each in names}
        return await called(verify, given, is_inline=is_inline)

    return ask
