"""The driver for coroutines, on asyncio as on trio: try, ask, wait, repeat.

Its twin is `sync`. A difference between the two that is not about awaiting is a bug.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from ..core.decisions import GiveUp, Park, RetryAfter, Verify
from ..errors import NotAdmitted
from .async_time import being_cancelled, cut, in_thread
from .emit import report
from .exhausted import abury
from .judging import judge
from .notes import caused
from .outcomes import APPLIED, NOT_APPLIED, Answered, FailedCall, FallbackItems, OpenedStream
from .queue_wait import await_turn
from .unstarted import is_manager, refuse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from ..core.admission import Hold
    from .outcomes import CallOutcome
    from .session import Session

__all__ = ("run", "stream", "wait")

T = TypeVar("T")


async def run(
    session: Session,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception | None = None,
    *,
    pending: Awaitable[Any] | None = None,
) -> Any:
    """Call `function` until it succeeds or the call is over.

    Args:
        session: The call so far.
        function: What to call.
        args: Its arguments.
        kwargs: Its keyword arguments.
        error: What the attempt that has already been made ended with, if one has.
        pending: The attempt that has begun and waits to be driven, if one has.
    """
    session.work = function, args, kwargs
    over: CallOutcome | None = None
    try:
        while True:
            if pending is None:
                over = await wait(session, error, args, kwargs)
                if over is not None:
                    return await _conclude(session, over)
                session.begin()
            else:
                session.rejoin()
            try:
                answer = await _limited(session, function, args, kwargs, pending)
                refuse(answer, session.call.name)
                if session.settings.judge is not None:
                    judge(session.settings.judge, answer)
            except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
                error, pending = caught, None
            except BaseException:
                session.cancelled()
                raise
            else:
                session.returned(answer)
                if session.settings.observe is not None:
                    session.observe(answer)
                await _succeeded(session)
                return answer
    finally:
        # A frame that holds the error it raises is a cycle; only the collector could free it.
        error = over = None


async def wait(
    session: Session, error: Exception | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> CallOutcome | None:
    """Decide about `error`, wait as decided, and be admitted; or say how the call is over."""
    try:
        if error is not None:
            decided = await _decided(session, error, args, kwargs)
            if not isinstance(decided, RetryAfter):
                if session.breath:
                    await session.clock.asleep(session.breath)
                return decided
            if not decided.is_queued:
                await session.clock.asleep(decided.delay)
        if session.is_bounded:
            session.weigh(args, kwargs)
            while (hold := session.held(await _asked(session))) is not None:
                await await_turn(session.clock, hold, session.still)
    except NotAdmitted as refusal:
        return FailedCall(*session.refused(refusal))
    except BaseException:
        session.cancelled()
        raise
    else:
        return None
    finally:
        error = None


async def _decided(
    session: Session, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> CallOutcome | RetryAfter:
    """What happens after `error`: another attempt, or the end."""
    if being_cancelled():
        return FailedCall(error, session.abandoned(error))
    session.read(error, args, kwargs)
    await _aside(session, session.tell)
    decision = session.announced(await _aside(session, session.book, session.judged(error)))
    if isinstance(decision, Verify):
        found = await _verify(session, error, args, kwargs)
        if isinstance(found, Answered | FailedCall):
            return found
        decision = found
    match decision:
        case RetryAfter():
            return decision
        case Park() | GiveUp():
            return FailedCall(error, decision)
        case _:
            assert_never(decision)


async def _asked(session: Session) -> Hold | None:
    """The answer to `ask`; in a thread where it could take a round trip to a store."""
    return await in_thread(session.ask) if session.may_wait else session.ask()


async def _aside(session: Session, work: Callable[..., T], *args: Any) -> T:
    """What `work` returns; in a thread where what calls share lives outside of the process."""
    return await in_thread(work, *args) if session.is_remote else work(*args)


async def _succeeded(session: Session) -> None:
    try:
        if session.may_tell:
            await in_thread(session.leave)
    finally:
        session.succeeded()  # also if the caller is cancelled meanwhile: it has succeeded


async def _verify(
    session: Session, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> CallOutcome | Park | RetryAfter | GiveUp:
    """The result of an attempt that was applied; for one that was not, what happens next."""
    try:
        answer = await _within(session, session.settings.verify(*args, **kwargs))  # type: ignore[misc]
    except Exception as trouble:  # noqa: BLE001 -- the caller's error is the one that counts
        return FailedCall(error, session.unverified(f"verify= raised {type(trouble).__name__}"))
    else:
        if answer is None:
            return FailedCall(error, session.unverified("verify= could not find out"))
    finally:
        error = None  # type: ignore[assignment]
    if answer is NOT_APPLIED:
        return session.verified(await _aside(session, session.book, session.not_applied()))
    result = None if answer is APPLIED else answer
    session.returned(result)
    session.applied()
    return Answered(result)


async def _conclude(session: Session, over: CallOutcome) -> Any:
    """The answer, the fallback, or the error itself."""
    match over:
        case Answered():
            return over.answer
        case FailedCall():
            error = session.real(over.error)
            try:
                is_answered = session.end(error, over.decision)
                await abury(session, error, over.decision)
                if not is_answered:
                    raise error
                fallback = session.settings.fallback
                if not callable(fallback):
                    return fallback
                try:
                    return await _awaited(fallback(error))
                except Exception as second:
                    caused(second, error)
                    raise
            finally:
                del error, over


async def _limited(
    session: Session,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    pending: Awaitable[Any] | None,
) -> Any:
    """One attempt, cut where it passes its limit."""
    limit, is_deadline = session.limit()
    work: Any = pending
    if work is None:
        parameter = session.settings.timeout_to
        if parameter and limit < inf:
            kwargs = {**kwargs, parameter: limit}
        work = function(*args, **kwargs)
    if limit == inf or not hasattr(work, "__await__"):
        return await _awaited(work)
    return await cut(work, limit, lambda: session.overtime(limit, is_deadline=is_deadline))


async def _within(session: Session, value: Any) -> Any:
    """`value`, awaited if it must be, for no longer than the deadline leaves."""
    left = session.call.deadline_at - session.clock.now()
    if left == inf or not hasattr(value, "__await__"):
        return await _awaited(value)
    return await cut(value, left, lambda: TimeoutError("verify= passed the deadline"))


async def _awaited(value: Any) -> Any:
    return await value if hasattr(value, "__await__") else value


async def stream(  # noqa: C901 -- the generator protocol, in one place
    session: Session,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> AsyncGenerator[Any, Any]:
    """The items of a stream, restarted unseen until the first one, committed from then on."""
    opening = await _open(session, function, args, kwargs)
    if isinstance(opening, FallbackItems):
        async for each in _each(opening.items):
            yield each
        return
    if isinstance(opening, Answered):
        return
    items, item, source = opening
    while True:
        session.delivered += 1
        try:
            sent = yield item
        except GeneratorExit:
            session.cancelled()
            await _close(source, items)
            raise
        except BaseException as thrown:
            if not hasattr(items, "athrow"):
                session.cancelled()
                await _close(source, items)
                raise
            step = items.athrow(thrown)
        else:
            step = anext(items) if sent is None else items.asend(sent)
        try:
            item = await step
        except StopAsyncIteration:
            await _succeeded(session)
            return
        except Exception as caught:
            decision = session.broken(caught)
            await _aside(session, session.tell)
            session.end(caught, decision)
            await _close(source)
            raise
        except BaseException:
            session.cancelled()
            await _close(source)
            raise


async def _each(items: Any) -> AsyncGenerator[Any, None]:
    """The items of an iterable of either world: a fallback may be a plain list."""
    if hasattr(items, "__aiter__"):
        async for each in items:
            yield each
    else:
        for each in items:
            yield each


async def _open(
    session: Session,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> OpenedStream | Answered | FallbackItems:
    """The stream with its first item; what an empty one returned; or the fallback's items."""
    session.work, session.delivers = (function, args, kwargs), True
    error: Exception | None = None
    over: CallOutcome | None = None
    try:
        while True:
            over = await wait(session, error, args, kwargs)
            if over is not None:
                return FallbackItems(await _conclude(session, over))
            session.begin()
            try:
                opened = await _limited(session, _first, (session, function, args), kwargs, None)
            except StopAsyncIteration:
                await _succeeded(session)
                return Answered(None)
            except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
                error = caught
            except BaseException:
                session.cancelled()
                raise
            else:
                session.part()
                return opened  # type: ignore[no-any-return]
    finally:
        error = over = None


async def _first(
    session: Session, function: Callable[..., Any], args: tuple[Any, ...], /, **kwargs: Any
) -> OpenedStream:
    """A stream and its first item. SDKs hand streams out behind a coroutine."""
    source: Any = await _awaited(function(*args, **kwargs))
    items: Any = None
    try:
        if is_manager(source):
            refuse(source, session.call.name)
        items = aiter(source)
        return OpenedStream(items, await anext(items), source)
    except BaseException:
        await _close(source, items)
        raise


async def _close(source: object, items: object = None) -> None:
    """Close the iterator of a stream, then the stream itself, which has the connection.

    What that raises must not take the place of what is on its way.
    """
    for stream in (items,) if items is source else (items, source):
        close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
        if close is not None:
            try:
                await _awaited(close())
            except Exception as trouble:  # noqa: BLE001 -- reported
                report("stream", stream, trouble)
