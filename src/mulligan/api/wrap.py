"""The calm path: what a call costs when nothing goes wrong.

Calm means that nobody needs to know of a success: no judge, no deadline, no timeout, no context,
no listener for successes, no admissions, no task around the call, and nothing amiss at the place
where callers of the target meet. A calm call costs two checks and a `try`; drivers and core load
at the first failure.
"""

from __future__ import annotations

import sys
from functools import update_wrapper
from time import monotonic

from ..drivers.ambient import Context, ambient_context, ambient_task, endings, replaced
from ..errors import SettingError
from .engine import PATHS, name_of
from .flavour import ASYNC, ASYNC_GENERATOR, GENERATOR, PLAIN, flavour

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any

    from .engine import Engine

__all__ = ("COROUTINE", "wrap")


_CO_COROUTINE = 0x80  # inspect's constant; inspect is too dear for a first import


async def _nothing() -> None: ...


_coroutine = _nothing()
_coroutine.close()
COROUTINE = type(_coroutine)


def wrap(engine: Engine, function: Any) -> Any:
    """`function` under `engine`, of the same flavour and signature."""
    if isinstance(function, staticmethod | classmethod):
        raise SettingError(
            f"retry goes under @{type(function).__name__}: write it on the line below"
        )
    if not callable(function) or isinstance(function, type):
        raise SettingError(f"retry needs a function; got {function!r}")
    kind = flavour(function)
    if kind in (PLAIN, GENERATOR):
        engine.check_timeout(function)
        engine.check_plain(function)
    if kind in (GENERATOR, ASYNC_GENERATOR):
        engine.check_stream(function)
    return update_wrapper(_MAKERS[kind, engine.path](engine, function), function)


def _plain(engine: Engine, function: Any) -> Any:
    task, marks, place, worlds = ambient_task.get, endings, engine.place, replaced

    def calm(*args: Any, **kwargs: Any) -> Any:
        here = engine.here() if worlds.worlds else place
        if not here.is_calm or task() is not None:
            return engine.run(function, args, kwargs)
        mark = marks.count
        try:
            answer = function(*args, **kwargs)
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        else:
            if answer.__class__ is COROUTINE:
                return engine.drive(function, args, kwargs, mark, answer)
            return answer
        try:
            return engine.recover(function, args, kwargs, error, (mark,))
        finally:
            del error

    return calm


def _async(engine: Engine, function: Any) -> Any:
    task, marks, place, worlds = ambient_task.get, endings, engine.place, replaced

    async def calm(*args: Any, **kwargs: Any) -> Any:
        here = engine.here() if worlds.worlds else place
        if not here.is_calm or task() is not None:
            return await engine.arun(function, args, kwargs)
        mark = marks.count
        try:
            return await function(*args, **kwargs)
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        try:
            return await engine.arecover(function, args, kwargs, error, (mark,))
        finally:
            del error

    return calm


def _plain_timed(engine: Engine, function: Any) -> Any:
    task, marks, place = ambient_task.get, endings, engine.place
    now = engine.now

    def timed(*args: Any, **kwargs: Any) -> Any:
        if replaced.worlds:
            here, started_at = engine.here(), now()
        else:
            here, started_at = place, monotonic()
        if not here.is_calm or task() is not None:
            return engine.run(function, args, kwargs)
        mark = marks.count
        try:
            answer = function(*args, **kwargs)
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        else:
            if answer.__class__ is COROUTINE:
                return engine.drive(function, args, kwargs, mark, answer)
            return answer
        try:
            return engine.recover(function, args, kwargs, error, (mark, started_at))
        finally:
            del error

    return timed


def _async_timed(engine: Engine, function: Any) -> Any:
    from ..drivers.aio_time import armed, cut, kept

    task, marks, place = ambient_task.get, endings, engine.place
    now = engine.now
    deadline = engine.deadline or 0.0
    name, loaded = engine.target or name_of(function), sys.modules
    # Written with `async def`: what it returns is a coroutine of the interpreter's own kind.
    code = getattr(function, "__code__", None)
    is_native = code is not None and bool(code.co_flags & _CO_COROUTINE)

    def overtime() -> TimeoutError:
        return TimeoutError(f"{name} was cut at its deadline, {deadline:g}s into attempt 1")

    async def timed(*args: Any, **kwargs: Any) -> Any:
        if replaced.worlds:
            here, started_at = engine.here(), now()
        else:
            here, started_at = place, monotonic()
        if not here.is_calm or task() is not None:
            return await engine.arun(function, args, kwargs)
        mark = marks.count
        try:
            work = function(*args, **kwargs)
            if "trio" in loaded or not is_native:
                return await cut(work, deadline, overtime)
            # As in `lazily`, without the price of one more coroutine.
            box = [None]
            steps: Any = kept(work, box)
            for signal in steps:
                gone = (now() if replaced.worlds else monotonic()) - started_at
                await armed(signal, steps, deadline - gone, overtime)
                break
            return box[0]
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        try:
            return await engine.arecover(function, args, kwargs, error, (mark, started_at))
        finally:
            del error

    return timed


def _plain_known(engine: Engine, function: Any) -> Any:
    task, marks, known, place = ambient_task.get, endings, ambient_context, engine.place
    name, target, metadata = name_of(function), engine.target, engine.metadata

    def in_context(*args: Any, **kwargs: Any) -> Any:
        here = engine.here() if replaced.worlds else place
        if not here.is_calm or task() is not None:
            return engine.run(function, args, kwargs)
        mark, context = marks.count, Context(name, target, metadata)
        token = known.set(context)
        try:
            answer = function(*args, **kwargs)
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        else:
            if answer.__class__ is COROUTINE:
                return engine.drive(function, args, kwargs, mark, answer)
            return answer
        finally:
            known.reset(token)
        try:
            return engine.recover(function, args, kwargs, error, (mark, None, context))
        finally:
            del error

    return in_context


def _async_known(engine: Engine, function: Any) -> Any:
    task, marks, known, place = ambient_task.get, endings, ambient_context, engine.place
    name, target, metadata = name_of(function), engine.target, engine.metadata

    async def in_context(*args: Any, **kwargs: Any) -> Any:
        here = engine.here() if replaced.worlds else place
        if not here.is_calm or task() is not None:
            return await engine.arun(function, args, kwargs)
        mark, context = marks.count, Context(name, target, metadata)
        token = known.set(context)
        try:
            return await function(*args, **kwargs)
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        finally:
            known.reset(token)
        try:
            return await engine.arecover(function, args, kwargs, error, (mark, None, context))
        finally:
            del error

    return in_context


def _plain_observed(engine: Engine, function: Any) -> Any:
    from .glance import call

    glance = engine.glance
    assert glance is not None  # noqa: S101 -- what makes the path this one

    def observed(*args: Any, **kwargs: Any) -> Any:
        return call(engine, glance, function, args, kwargs)

    return observed


def _async_observed(engine: Engine, function: Any) -> Any:
    from .glance import acall

    glance = engine.glance
    assert glance is not None  # noqa: S101 -- what makes the path this one

    async def observed(*args: Any, **kwargs: Any) -> Any:
        return await acall(engine, glance, function, args, kwargs)

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


# How a call of this flavour goes down this path.
_MAKERS: dict[tuple[str, str], Callable[[Engine, Any], Any]] = {
    (PLAIN, "calm"): _plain,
    (PLAIN, "timed"): _plain_timed,
    (PLAIN, "known"): _plain_known,
    (PLAIN, "observed"): _plain_observed,
    (PLAIN, "watched"): _plain_watched,
    (ASYNC, "calm"): _async,
    (ASYNC, "timed"): _async_timed,
    (ASYNC, "known"): _async_known,
    (ASYNC, "observed"): _async_observed,
    (ASYNC, "watched"): _async_watched,
    **{(GENERATOR, path): _generator for path in PATHS},
    **{(ASYNC_GENERATOR, path): _async_generator for path in PATHS},
}
