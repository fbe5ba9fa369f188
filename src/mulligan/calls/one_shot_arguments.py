"""One-shot arguments (generators, iterators, open files), which the first attempt uses up.

A second attempt with an exhausted iterator sends an empty body and calls it a success (E-E1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ("used_up_argument",)

# Iterators of the standard library only: a cursor or a client may be one, and reusable.
_ONE_SHOT = ("builtins", "itertools")
_ENDLESS = ("count", "cycle", "repeat")

# What most arguments are: not worth a second look.
_PLAIN = frozenset({type(None), bool, bytes, float, int, str})

# Items of a list that are looked at: a body has its parts at the front, and a list may be long.
_MOST = 100


def used_up_argument(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why the call cannot be made again with these arguments; empty if it can."""
    if not kwargs and _PLAIN.issuperset(map(type, args)):
        return ""
    suspects = [each for each in (*args, *kwargs.values()) if type(each) not in _PLAIN]
    for value in _values(suspects, depth=3):
        cls = type(value)
        if cls.__module__ in _ONE_SHOT:
            if hasattr(cls, "__anext__") or (hasattr(cls, "__next__") and not _is_fresh(value)):
                return f"the {cls.__name__} among its arguments is used up; pass a list"
        elif hasattr(cls, "read") and hasattr(cls, "tell") and not _is_at_start(value):
            return "the open file among its arguments has been read; open it inside the function"
    return ""


def _values(values: Iterable[Any], depth: int) -> Iterator[Any]:
    """`values`, with what stands in their dicts, lists and tuples: ``files={"f": file}``."""
    for value in values:
        if depth and isinstance(value, dict):
            yield from _values(value.values(), depth - 1)
        elif depth and isinstance(value, list | tuple):
            yield from _values(value[:_MOST], depth - 1)
        else:
            yield value


def _is_fresh(value: Any) -> bool:
    """Whether it never ends, or is a generator that has not started."""
    if not hasattr(value, "gi_frame"):
        return type(value).__name__ in _ENDLESS
    from inspect import GEN_CREATED, getgeneratorstate

    return getgeneratorstate(value) == GEN_CREATED


def _is_at_start(file: Any) -> bool:
    try:
        is_read = getattr(file, "readable", None)
        return (is_read is not None and not is_read()) or file.tell() == 0
    except Exception:  # noqa: BLE001 -- a pipe, or closed: there is no second reading
        return False
