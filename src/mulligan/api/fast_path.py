"""Wrappers around user functions: the fast path of a call that succeeds at once.

Calm means that a success need not be reported: no judge, no deadline, no timeout, no context,
no listener for successes, no admissions, no task around the call, and nothing amiss with what the
callers of the target share, which has answered before. A calm call costs a check before, a
check after and a `try`; the loop and the core load at the first failure, or with the first call to
a target. Keywords are handed on where there are any: handing on none costs as much as a check.
"""

from __future__ import annotations

import sys
from functools import update_wrapper
from time import monotonic

from ..calls.callables import (
    ASYNC,
    ASYNC_GENERATOR,
    COROUTINE,
    GENERATOR,
    PLAIN,
    function_kind,
    known_results,
    name_of,
)
from ..calls.context import Context, ambient_context, endings, surroundings
from ..errors import SettingError
from .engine import PATHS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any

    from .engine import Engine

__all__ = ("async_observed", "plain_observed", "wrap")


_CO_COROUTINE = 0x80  # inspect's constant; inspect is too dear for a first import


def wrap(engine: Engine, function: Any) -> Any:
    """`function` under `engine`, of the same function_kind and signature."""
    if isinstance(function, staticmethod | classmethod):
        raise SettingError(
            f"retry goes under @{type(function).__name__}: write it on the line below"
        )
    if not callable(function) or isinstance(function, type):
        raise SettingError(f"retry needs a function; got {function!r}")
    kind = function_kind(function)
    engine.check_parameter(function)
    if kind in (PLAIN, GENERATOR):
        engine.check_timeout(function)
        engine.check_plain(function)
    if kind in (GENERATOR, ASYNC_GENERATOR):
        engine.check_stream(function)
    return update_wrapper(_MAKERS[kind, engine.path](engine, function), function)


def _plain(engine: Engine, function: Any) -> Any:
    shared = engine.shared

    def calm(*args: Any, **kwargs: Any) -> Any:
        here: Any = engine.around() if surroundings.exist else shared
        if not here.is_calm:
            return engine.run(function, args, kwargs)
        mark = endings.count
        try:
            answer = function(*args, **kwargs) if kwargs else function(*args)
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        else:
            if here.is_calm and answer.__class__ in known_results:
                return answer
            return engine.returned(function, args, kwargs, mark, answer)
        try:
            return engine.recover(function, args, kwargs, error, (mark,))
        finally:
            del error

    return calm


def _async(engine: Engine, function: Any) -> Any:
    shared = engine.shared

    async def calm(*args: Any, **kwargs: Any) -> Any:
        here: Any = engine.around() if surroundings.exist else shared
        if not here.is_calm:
            return await engine.arun(function, args, kwargs)
        mark = endings.count
        try:
            answer = await (function(*args, **kwargs) if kwargs else function(*args))
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        else:
            if not here.is_calm:
                engine.tell_success(function, mark)
            return answer
        try:
            return await engine.arecover(function, args, kwargs, error, (mark,))
        finally:
            del error

    return calm


def _plain_timed(engine: Engine, function: Any) -> Any:
    shared, now = engine.shared, engine.now

    def timed(*args: Any, **kwargs: Any) -> Any:
        here: Any = engine.around() if surroundings.exist else shared
        if not here.is_calm:
            return engine.run(function, args, kwargs)
        mark = endings.count
        started_at = now() if surroundings.exist else monotonic()
        try:
            answer = function(*args, **kwargs) if kwargs else function(*args)
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        else:
            if here.is_calm and answer.__class__ in known_results:
                return answer
            return engine.returned(function, args, kwargs, mark, answer)
        try:
            return engine.recover(function, args, kwargs, error, (mark, started_at))
        finally:
            del error

    return timed


def _async_timed(engine: Engine, function: Any) -> Any:
    from ..calls.async_time import armed, cut, kept

    shared, now, deadline = engine.shared, engine.now, engine.deadline or 0.0
    name, loaded = engine.target or name_of(function), sys.modules
    # Written with `async def`: what it returns is a coroutine of the interpreter's own kind.
    code = getattr(function, "__code__", None)
    is_native = code is not None and bool(code.co_flags & _CO_COROUTINE)

    def overtime() -> TimeoutError:
        return TimeoutError(f"{name} was cut at its deadline, {deadline:g}s into attempt 1")

    async def timed(*args: Any, **kwargs: Any) -> Any:
        here: Any = engine.around() if surroundings.exist else shared
        if not here.is_calm:
            return await engine.arun(function, args, kwargs)
        mark = endings.count
        started_at = now() if surroundings.exist else monotonic()
        try:
            work = function(*args, **kwargs) if kwargs else function(*args)
            # As in `lazily`, without the price of one more coroutine.
            box = [None]
            if "trio" in loaded or not is_native:
                box[0] = await cut(work, deadline, overtime)
            else:
                steps: Any = kept(work, box)
                for signal in steps:
                    gone = (now() if surroundings.exist else monotonic()) - started_at
                    await armed(signal, steps, deadline - gone, overtime)
                    break
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        else:
            if not here.is_calm:
                engine.tell_success(function, mark)
            return box[0]
        try:
            return await engine.arecover(function, args, kwargs, error, (mark, started_at))
        finally:
            del error

    return timed


def _plain_known(engine: Engine, function: Any) -> Any:
    shared, known = engine.shared, ambient_context
    name, target, metadata = name_of(function), engine.target, engine.metadata

    def in_context(*args: Any, **kwargs: Any) -> Any:
        here: Any = engine.around() if surroundings.exist else shared
        if not here.is_calm:
            return engine.run(function, args, kwargs)
        mark, context = endings.count, Context(name, target, metadata)
        token = known.set(context)
        try:
            answer = function(*args, **kwargs) if kwargs else function(*args)
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        else:
            if here.is_calm and answer.__class__ in known_results:
                return answer
            return engine.returned(function, args, kwargs, mark, answer)
        finally:
            known.reset(token)
        try:
            return engine.recover(function, args, kwargs, error, (mark, None, context))
        finally:
            del error

    return in_context


def _async_known(engine: Engine, function: Any) -> Any:
    shared, known = engine.shared, ambient_context
    name, target, metadata = name_of(function), engine.target, engine.metadata

    async def in_context(*args: Any, **kwargs: Any) -> Any:
        here: Any = engine.around() if surroundings.exist else shared
        if not here.is_calm:
            return await engine.arun(function, args, kwargs)
        mark, context = endings.count, Context(name, target, metadata)
        token = known.set(context)
        try:
            answer = await (function(*args, **kwargs) if kwargs else function(*args))
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        else:
            if not here.is_calm:
                engine.tell_success(function, mark)
            return answer
        finally:
            known.reset(token)
        try:
            return await engine.arecover(function, args, kwargs, error, (mark, None, context))
        finally:
            del error

    return in_context


def plain_observed(engine: Engine, function: Any) -> Any:
    """`function` under a guard that reads the quotas in each answer."""
    shared, fast_path = engine.shared, engine.fast_path
    assert fast_path is not None  # noqa: S101 -- what makes the path this one

    def observed(*args: Any, **kwargs: Any) -> Any:
        here: Any = engine.around() if surroundings.exist else shared
        if not here.is_clear:
            return engine.run(function, args, kwargs)
        mark, begun = endings.count, fast_path.begin()
        try:
            answer = function(*args, **kwargs)
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        except BaseException:
            fast_path.end()
            raise
        else:
            under_way = begun - fast_path.end()
            # If other calls have failed meanwhile, report this success normally.
            if here.is_clear and fast_path.is_enough(answer, under_way):
                return answer
            if answer.__class__ is COROUTINE:
                return engine.guard_coroutine(function, args, kwargs, mark, answer)
            return engine.observe_answer(function, answer, mark)
        try:
            fast_path.end()
            return engine.recover(function, args, kwargs, error, (mark,))
        finally:
            del error

    return observed


def async_observed(engine: Engine, function: Any) -> Any:
    """The same for a coroutine function."""
    shared, fast_path = engine.shared, engine.fast_path
    assert fast_path is not None  # noqa: S101 -- what makes the path this one

    async def observed(*args: Any, **kwargs: Any) -> Any:
        here: Any = engine.around() if surroundings.exist else shared
        if not here.is_clear:
            return await engine.arun(function, args, kwargs)
        mark, begun = endings.count, fast_path.begin()
        try:
            answer = function(*args, **kwargs)
            if hasattr(answer, "__await__"):
                answer = await answer
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        except BaseException:
            fast_path.end()
            raise
        else:
            under_way = begun - fast_path.end()
            if here.is_clear and fast_path.is_enough(answer, under_way):
                return answer
            return engine.observe_answer(function, answer, mark)
        try:
            fast_path.end()
            return await engine.arecover(function, args, kwargs, error, (mark,))
        finally:
            del error

    return observed


def _plain_watched(engine: Engine, function: Any) -> Any:
    def watched(*args: Any, **kwargs: Any) -> Any:
        return engine.run(function, args, kwargs)

    return watched


def _async_watched(engine: Engine, function: Any) -> Any:
    async def watched(*args: Any, **kwargs: Any) -> Any:
        return await engine.arun(function, args, kwargs)

    return watched


def _generator(engine: Engine, function: Any) -> Any:
    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from engine.stream(function, args, kwargs))

    return generator


def _async_generator(engine: Engine, function: Any) -> Any:
    async def generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        # `yield from` for async generators, so that inspect sees one, too.
        stream = engine.astream(function, args, kwargs)
        step: Any = stream.__anext__()
        try:
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    raise
                except BaseException as thrown:  # noqa: BLE001 -- handed on
                    step = stream.athrow(thrown)
                else:
                    step = stream.asend(sent)
        finally:
            await stream.aclose()

    return generator


# How a call of this function_kind goes down this path.
_MAKERS: dict[tuple[str, str], Callable[[Engine, Any], Any]] = {
    (PLAIN, "calm"): _plain,
    (PLAIN, "timed"): _plain_timed,
    (PLAIN, "known"): _plain_known,
    (PLAIN, "observed"): plain_observed,
    (PLAIN, "watched"): _plain_watched,
    (ASYNC, "calm"): _async,
    (ASYNC, "timed"): _async_timed,
    (ASYNC, "known"): _async_known,
    (ASYNC, "observed"): async_observed,
    (ASYNC, "watched"): _async_watched,
    **{(GENERATOR, path): _generator for path in PATHS},
    **{(ASYNC_GENERATOR, path): _async_generator for path in PATHS},
}
