"""Answers that are work which has not started: coroutines, generators, unentered context managers.

A call that returns one of these has sent nothing yet, so counting it as a success would leave the
request unguarded. Coroutines are driven. Generators and context managers are refused with the way
to guard them: streams have `guard.stream`, and a with statement belongs in the guarded function.

Loaded with the first decorated function, so nothing is imported for it.
"""

from __future__ import annotations

from ..errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ("COROUTINE", "is_manager", "refuse", "results")


async def _nothing() -> None: ...


async def _no_items() -> Any:
    yield


_coroutine = _nothing()
_coroutine.close()
COROUTINE: Any = type(_coroutine)
_GENERATOR: type = type(None for _ in ())
_ASYNC_GENERATOR: type = type(_no_items())

# Classes of which an answer is known to be a result. Classes made at run time must not be kept for
# ever, so there is a bound.
results: set[Any] = set()
_MOST = 1024


def is_manager(answer: Any) -> bool:
    """Whether `answer` sends its request when it is entered.

    That is true of functions under `contextlib.contextmanager` (``httpx.stream``), and of what
    ``messages.stream`` and ``with_streaming_response`` of the SDKs return. Other context managers
    (files, responses) are results that somebody may close.
    """
    cls: type = answer.__class__
    root, name = cls.__module__.partition(".")[0], cls.__name__
    if root == "contextlib":
        return name.endswith("GeneratorContextManager")
    if root == "aiohttp":
        return name.endswith("RequestContextManager")
    return root in ("anthropic", "openai") and name.endswith("Manager")


def refuse(answer: Any, name: str) -> None:
    """Raise a SettingError if `answer` of the function `name` is work that has not started.

    Raises:
        SettingError: With the reason, and with the way to guard it.
    """
    cls = answer.__class__
    if cls in results:
        return
    if is_manager(answer):
        raise SettingError(
            f"{name}() returned a {cls.__name__} that has not been entered: its "
            f"request is sent by the with statement, which this guard does not see; put the with "
            f"statement into a function and guard that function, as a generator for guard.stream "
            f"if it delivers items"
        )
    if cls in (_GENERATOR, _ASYNC_GENERATOR):
        if _has_begun(answer):
            return
        stream = "stream" if cls is _GENERATOR else "astream"
        raise SettingError(
            f"{name}() returned a generator that has not started: its work is done "
            f"during iteration, which this guard does not see; write guard.{stream}({name}, …), or "
            f"decorate the generator function itself"
        )
    if cls is not COROUTINE:
        if len(results) >= _MOST:
            results.clear()
        results.add(cls)


def _has_begun(generator: Any) -> bool:
    """Whether somebody has taken something from it; expressions over a result are results, too."""
    code = getattr(generator, "gi_code", None) or generator.ag_code
    if code.co_name == "<genexpr>":
        return True
    for name in ("gi_suspended", "ag_suspended"):
        if hasattr(generator, name):
            return bool(getattr(generator, name)) or getattr(generator, "gi_frame", 0) is None
    from opcode import opmap  # Python 3.11 does not say it of async generators

    frame = generator.ag_frame
    return frame is None or code.co_code[frame.f_lasti] != opmap["RETURN_GENERATOR"]
