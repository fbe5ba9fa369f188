"""Kinds of functions, and of what they return: results, or work that has not started.

A call that returns a coroutine, a generator or an unentered context manager has sent nothing yet,
so counting it as a success would leave the request unguarded. Coroutines are driven. Generators
and context managers are refused with the way to guard them: streams have `guard.stream`, and a
with statement belongs in the guarded function.

Loaded with the first decorated function, so it imports next to nothing: `inspect` takes longer to
load than the rest of a decorated module.
"""

from __future__ import annotations

import sys
from functools import partial

from ..errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = (
    "ASYNC",
    "ASYNC_GENERATOR",
    "COROUTINE",
    "GENERATOR",
    "PLAIN",
    "function_kind",
    "is_unentered_manager",
    "known_results",
    "name_of",
    "refuse_unstarted",
)

PLAIN, ASYNC, GENERATOR, ASYNC_GENERATOR = "plain", "async", "generator", "async generator"

# The interpreter's own marks on a code object (inspect.CO_*).
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200


_CODE = type((lambda: None).__code__)


def function_kind(function: object) -> str:
    """The kind of `function`, looking through partials, methods and callable objects."""
    while isinstance(function, partial):
        function = function.func
    # inspect.markcoroutinefunction sets a mark that only inspect knows; a Mock has any attribute.
    mark = getattr(sys.modules.get("inspect"), "_is_coroutine_mark", None)
    if mark is not None and getattr(function, "_is_coroutine_mark", None) is mark:
        return ASYNC
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if type(code) is not _CODE:
        call = getattr(type(function), "__call__", None)  # noqa: B004 -- its code, not whether
        code = getattr(call, "__code__", None)
    flags = code.co_flags if isinstance(code, _CODE) else 0
    if flags & _ASYNC_GENERATOR:
        return ASYNC_GENERATOR
    if flags & (_COROUTINE | _ITERABLE_COROUTINE):
        return ASYNC
    return GENERATOR if flags & _GENERATOR else PLAIN


def name_of(function: Any) -> str:
    """The name of `function` as stories tell it."""
    name = getattr(function, "__name__", None)
    if isinstance(name, str):
        return name
    if isinstance(function, partial):  # which has no name of its own
        return name_of(function.func)
    return type(function).__name__


# What functions return


async def _nothing() -> None: ...


async def _no_items() -> Any:
    yield


_coroutine = _nothing()
_coroutine.close()
COROUTINE: Any = type(_coroutine)
_GENERATOR_TYPE: type = type(None for _ in ())
_ASYNC_GENERATOR_TYPE: type = type(_no_items())
_STREAMS = "mulligan.calls.guarded_streams"  # not imported: most programs have none

# Classes of which an answer is known to be a result. Classes made at run time must not be kept for
# ever, so there is a bound.
known_results: set[Any] = set()
_MOST = 1024


def is_unentered_manager(answer: Any) -> bool:
    """Whether `answer` sends its request when it is entered.

    That is true of functions under `contextlib.contextmanager` (``httpx.stream``), and of what
    ``messages.stream`` and ``with_streaming_response`` of the SDKs return. Other context managers
    (files, responses) are results.
    """
    cls: type = answer.__class__
    root, name = cls.__module__.partition(".")[0], cls.__name__
    if root == "contextlib":
        return name.endswith("GeneratorContextManager")
    if root == "aiohttp":
        return name.endswith("RequestContextManager")
    if root == "agents":
        return name == "RunResultStreaming"  # openai-agents: its run goes on while it is iterated
    return root in ("anthropic", "openai") and name.endswith("Manager")


def refuse_unstarted(answer: Any, name: str) -> None:
    """Raise a SettingError if `answer` of the function `name` is work that has not started.

    Raises:
        SettingError: With the reason, and with the way to guard it.
    """
    cls = answer.__class__
    if cls in known_results:
        return
    if is_unentered_manager(answer):
        raise SettingError(
            f"{name}() returned a {cls.__name__} that has not been entered: its "
            f"request is sent by the with statement, which this guard does not see; guard the "
            f"client itself, guard.wrap(client), or put the with statement into a function and "
            f"guard that function, as a generator for guard.stream if it delivers items"
        )
    if cls.__module__ == _STREAMS:  # what another guard's stream() or astream() returned
        answer, cls = answer.items, answer.items.__class__
    if cls in (_GENERATOR_TYPE, _ASYNC_GENERATOR_TYPE):
        if _has_begun(answer):
            return
        stream = "stream" if cls is _GENERATOR_TYPE else "astream"
        raise SettingError(
            f"{name}() returned a generator that has not started: its work is done "
            f"during iteration, which this guard does not see; write guard.{stream}({name}, …), or "
            f"decorate the generator function itself"
        )
    if cls is not COROUTINE:
        if len(known_results) >= _MOST:
            known_results.clear()
        known_results.add(cls)


def _has_begun(generator: Any) -> bool:
    """Whether it has started; a generator expression over a result is a result, too."""
    code = getattr(generator, "gi_code", None) or generator.ag_code
    if code.co_name == "<genexpr>":
        return True
    for name in ("gi_suspended", "ag_suspended"):
        if hasattr(generator, name):
            return bool(getattr(generator, name)) or getattr(generator, "gi_frame", 0) is None
    from opcode import opmap  # Python 3.11 does not say it of async generators

    frame = generator.ag_frame
    return frame is None or code.co_code[frame.f_lasti] != opmap["RETURN_GENERATOR"]
