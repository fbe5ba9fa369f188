"""The driver for plain functions: try, ask, wait, repeat.

Its twin is `aio`. A difference between the two that is not about awaiting is a bug.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, assert_never

from ..core.decisions import GiveUp, Park, RetryAfter, Verify
from ..errors import NotAdmitted
from .emit import report
from .exhausted import bury
from .judging import judge
from .notes import caused, remark
from .outcomes import APPLIED, NOT_APPLIED, Answered, FailedCall, FallbackItems, OpenedStream
from .queue_wait import wait_for_turn
from .unstarted import COROUTINE, is_manager, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from .outcomes import CallOutcome
    from .session import Session

__all__ = ("run", "stream", "wait")


def run(
    session: Session,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception | None = None,
) -> Any:
    """Call `function` until it succeeds or the call is over.

    Args:
        session: The call so far.
        function: What to call.
        args: Its arguments.
        kwargs: Its keyword arguments.
        error: What the attempt that has already been made ended with, if one has.
    """
    settings = session.settings
    session.work = function, args, kwargs
    over: CallOutcome | None = None
    try:
        while True:
            over = wait(session, error, args, kwargs)
            if over is not None:
                return _conclude(session, over)
            session.begin()
            try:
                if settings.timeout_to:
                    answer = function(*args, **_limited(session, kwargs))
                else:
                    answer = function(*args, **kwargs)
                if answer.__class__ is COROUTINE:
                    from . import run_async as aio

                    session.part()
                    return aio.run(session, function, args, kwargs, pending=answer)
                refuse(answer, session.call.name)
                if settings.judge is not None:
                    judge(settings.judge, answer)
            except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
                error = caught
            except BaseException:
                session.cancelled()
                raise
            else:
                session.returned(answer)
                if settings.observe is not None:
                    session.observe(answer)
                session.succeeded()
                return answer
    finally:
        # A frame that holds the error it raises is a cycle; only the collector could free it.
        error = over = None


def wait(
    session: Session, error: Exception | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> CallOutcome | None:
    """Decide about `error`, wait as decided, and be admitted; or say how the call is over."""
    try:
        if error is not None:
            decided = _decided(session, error, args, kwargs)
            if not isinstance(decided, RetryAfter):
                if session.breath:
                    session.clock.sleep(session.breath)
                return decided
            if not decided.is_queued:
                session.clock.sleep(decided.delay)
        if session.is_bounded:
            session.weigh(args, kwargs)
            while (hold := session.held(session.ask())) is not None:
                wait_for_turn(session.clock, hold, session.still)
    except NotAdmitted as refusal:
        return FailedCall(*session.refused(refusal))
    except BaseException:
        session.cancelled()
        raise
    else:
        return None
    finally:
        error = None


def _decided(
    session: Session, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> CallOutcome | RetryAfter:
    """What happens after `error`: another attempt, or the end."""
    decision = session.failed(error, args, kwargs)
    if isinstance(decision, Verify):
        found = _verify(session, error, args, kwargs)
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


def _verify(
    session: Session, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> CallOutcome | Park | RetryAfter | GiveUp:
    """The result of an attempt that was applied; for one that was not, what happens next."""
    try:
        answer = session.settings.verify(*args, **kwargs)  # type: ignore[misc]
    except Exception as trouble:  # noqa: BLE001 -- the caller's error is the one that counts
        return FailedCall(error, session.unverified(f"verify= raised {type(trouble).__name__}"))
    else:
        if answer.__class__ is COROUTINE:
            answer.close()
            return FailedCall(error, session.unverified("a plain call cannot await verify="))
        if answer is None:
            return FailedCall(error, session.unverified("verify= could not find out"))
    finally:
        error = None  # type: ignore[assignment]
    if answer is NOT_APPLIED:
        return session.verified(session.book(session.not_applied()))
    result = None if answer is APPLIED else answer
    session.returned(result)
    session.applied()
    return Answered(result)


def _conclude(session: Session, over: CallOutcome) -> Any:
    """The answer, the fallback, or the error itself."""
    match over:
        case Answered():
            return over.answer
        case FailedCall():
            error = session.real(over.error)
            try:
                is_answered = session.end(error, over.decision)
                bury(session, error, over.decision)
                if not is_answered:
                    raise error
                fallback = session.settings.fallback
                if not callable(fallback):
                    return fallback
                try:
                    answer: Any = fallback(error)
                except Exception as second:
                    caused(second, error)
                    raise
                if answer.__class__ is COROUTINE:
                    answer.close()
                    remark(error, "mulligan: the fallback is a coroutine, the call is not")
                    raise error
                return answer
            finally:
                del error, over


def _limited(session: Session, kwargs: dict[str, Any]) -> dict[str, Any]:
    """`kwargs`, with the time limit of this attempt if the function takes one."""
    limit, _ = session.limit()
    return kwargs if limit == inf else {**kwargs, session.settings.timeout_to: limit}


def stream(  # noqa: C901 -- the generator protocol, in one place
    session: Session,
    function: Callable[..., Iterable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Generator[Any, Any, Any]:
    """The items of a stream, restarted unseen until the first one, committed from then on."""
    opening = _open(session, function, args, kwargs)
    if isinstance(opening, FallbackItems):
        yield from opening.items
        return None
    if isinstance(opening, Answered):
        return opening.answer
    items, item, source = opening
    while True:
        session.delivered += 1
        try:
            sent = yield item
        except GeneratorExit:
            session.cancelled()
            _close(source, items)
            raise
        except BaseException as thrown:
            if not hasattr(items, "throw"):
                session.cancelled()
                _close(source, items)
                raise
            step: Callable[[Any], Any] = items.throw
            value: Any = thrown
        else:
            step, value = (next, items) if sent is None else (items.send, sent)
        try:
            item = step(value)
        except StopIteration as done:
            session.succeeded()
            return done.value
        except Exception as caught:
            decision = session.broken(caught)
            session.tell()
            session.end(caught, decision)
            _close(source)
            raise
        except BaseException:
            session.cancelled()
            _close(source)
            raise


def _open(
    session: Session,
    function: Callable[..., Iterable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> OpenedStream | Answered | FallbackItems:
    """The stream with its first item; what an empty one returned; or the fallback's items."""
    session.work, session.delivers = (function, args, kwargs), True
    error: Exception | None = None
    over: CallOutcome | None = None
    try:
        while True:
            over = wait(session, error, args, kwargs)
            if over is not None:
                return FallbackItems(_conclude(session, over))
            session.begin()
            source: Any = None
            items: Any = None
            try:
                limited = _limited(session, kwargs) if session.settings.timeout_to else kwargs
                source = function(*args, **limited)
                if is_manager(source):
                    refuse(source, session.call.name)
                items = iter(source)
                opened = _first(items, source)
            except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
                error = caught
                _close(source, items)
            except BaseException:
                session.cancelled()
                _close(source, items)
                raise
            else:
                if isinstance(opened, Answered):
                    session.succeeded()
                else:
                    session.part()
                return opened
    finally:
        error = over = None


def _first(items: Any, source: Any) -> OpenedStream | Answered:
    """A stream with its first item, or what an empty one returned."""
    try:
        return OpenedStream(items, next(items), source)
    except StopIteration as empty:
        return Answered(empty.value)


def _close(source: object, items: object = None) -> None:
    """Close the iterator of a stream, then the stream itself, which has the connection.

    What that raises must not take the place of what is on its way.
    """
    for stream in (items,) if items is source else (items, source):
        close = getattr(stream, "close", None)
        if close is not None:
            try:
                close()
            except Exception as trouble:  # noqa: BLE001 -- reported
                report("stream", stream, trouble)
