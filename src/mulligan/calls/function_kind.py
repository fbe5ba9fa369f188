"""What kind of function it is: plain, coroutine, generator, async generator.

`inspect` answers this too, and takes longer to load than the rest of a decorated module.
"""

from __future__ import annotations

import sys
from functools import partial

__all__ = ("ASYNC", "ASYNC_GENERATOR", "GENERATOR", "PLAIN", "flavour")

PLAIN, ASYNC, GENERATOR, ASYNC_GENERATOR = "plain", "async", "generator", "async generator"

# The interpreter's own marks on a code object (inspect.CO_*).
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200


_CODE = type((lambda: None).__code__)


def flavour(function: object) -> str:
    """The flavour of `function`, looking through partials, methods and callable objects."""
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
