"""Reads from a traceback whether the failed request was made in a loop, or by a guard inside.

An exception describes one request. It proves that nothing was done only where the function is that
request: a loop over recipients whose third request meets a 429 has sent two messages by then; an
agent whose model is rate limited in its fourth turn has run its tools. The traceback shows the way
from the function to the request: if there is a loop on it, or a guarded call inside, the request
may have been one of several.

Requests that succeeded earlier in straight-line code, or in other tasks, leave no trace here; the
documentation tells users to guard each request of such a function.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, TracebackType

__all__ = ("is_made_by_inner_guard", "is_made_in_a_loop")

# Frames of these are the request itself: what they loop over are their own retries and addresses.
_CLIENTS = frozenset(
    (
        *("aiohttp", "anthropic", "boto3", "botocore", "grpc", "httpcore", "httpcore2", "httpx"),
        *("httpx2", "litellm", "openai", "redis", "requests", "urllib3", "websockets"),
    )
)
_CLIENT_PARTS = ("google.genai.", "google.api_core.", "google.auth.", "google.cloud.")
# Agents that live in a client's package: they call a model again and again, with tools in between.
_AGENT_PARTS = ("anthropic.lib.tools.",)
# Event loops call the user's coroutines in loops of their own.
_RUNTIMES = frozenset(("anyio", "sniffio", "trio"))
_OURS = ("mulligan.api.", "mulligan.calls.")


def is_made_in_a_loop(error: BaseException, *, is_block: bool = False) -> bool:
    """Whether a loop stands between the guarded function and the request that raised `error`.

    A block of `attempts()` (`is_block`) itself stands in a loop.
    """
    frames = _frames(error)
    if is_block:
        next(frames, None)
    for name, traceback in frames:
        if name.startswith(_OURS) or _is_client(name):
            return False
        root = name.partition(".")[0]
        if root in sys.stdlib_module_names or root in _RUNTIMES:
            continue
        at = traceback.tb_lasti
        if any(first <= at <= last for first, last in _loops(traceback.tb_frame.f_code)):
            return True
    return False


def is_made_by_inner_guard(error: BaseException) -> bool:
    """Whether code of the guarded function called another guard, which raised `error`."""
    return any(name.startswith(_OURS) for name, _ in _frames(error))


def _frames(error: BaseException) -> Iterator[tuple[str, TracebackType]]:
    """The modules on the way from the guarded function to where `error` was raised."""
    traceback, is_inside = error.__traceback__, False
    while traceback is not None:
        name = traceback.tb_frame.f_globals.get("__name__", "")
        # The first frames are the guard's own, which called the function.
        is_inside = is_inside or not name.startswith(_OURS)
        if is_inside:
            yield name, traceback
        traceback = traceback.tb_next


def _is_client(name: str) -> bool:
    if name.startswith(_AGENT_PARTS):
        return False
    return name.partition(".")[0] in _CLIENTS or name.startswith(_CLIENT_PARTS)


@lru_cache(maxsize=256)
def _loops(code: CodeType) -> tuple[tuple[int, int], ...]:
    """Where the loops of `code` begin and end, as offsets of its bytecode."""
    back, extended_arg, end_send, suppressed = _jumps()
    found, words, more = [], code.co_code, 0
    for at in range(0, len(words), 2):
        operation, argument = words[at], words[at + 1] | more
        more = argument << 8 if operation == extended_arg else 0
        if operation in back:
            after = at + 2
            while after < len(words) and words[after] == 0:  # caches belong to the instruction
                after += 2
            begin = after - 2 * argument
            # A `with` that suppressed an exception goes on behind its block; that is no loop.
            is_suppressed = words[max(0, at - 6) : at : 2] == suppressed
            if words[begin] != end_send and not is_suppressed:
                found.append((begin, at))
    return tuple(found)


@lru_cache(maxsize=1)
def _jumps() -> tuple[frozenset[int], int, int | None, bytes]:
    """The operations that jump backwards; but not those that wait for what is awaited.

    Python 3.12 also returns with a plain jump from what was thrown into an ``await``, to the
    ``END_SEND`` behind it, where no loop begins.
    """
    from opcode import opmap

    back = {
        number
        for name, number in opmap.items()
        if "JUMP_BACKWARD" in name and "NO_INTERRUPT" not in name
    }
    suppressed = bytes(opmap[name] for name in ("POP_EXCEPT", "POP_TOP", "POP_TOP"))
    return frozenset(back), opmap["EXTENDED_ARG"], opmap.get("END_SEND"), suppressed
