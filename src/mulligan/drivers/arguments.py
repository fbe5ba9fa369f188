"""Arguments that a first attempt uses up.

A second attempt with an exhausted iterator sends an empty body and calls it a success (E-E1).
"""

from __future__ import annotations

from typing import Any

__all__ = ("used_up",)

# Iterators of the standard library only: a cursor or a client may be one, and reusable.
_ONE_SHOT = ("builtins", "itertools")


def used_up(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why the call cannot be made again with these arguments; empty if it can."""
    for value in (*args, *kwargs.values()):
        cls = type(value)
        if cls.__module__ in _ONE_SHOT:
            if hasattr(cls, "__anext__") or (hasattr(cls, "__next__") and not _is_untouched(value)):
                return f"the {cls.__name__} among its arguments is used up; pass a list"
        elif cls.__module__ == "_io" and not _is_at_start(value):
            return "the open file among its arguments has been read; open it inside the function"
    return ""


def _is_untouched(value: Any) -> bool:
    """Whether it is a generator that nobody has asked for anything: the call never got so far."""
    if not hasattr(value, "gi_frame"):
        return False
    from inspect import GEN_CREATED, getgeneratorstate

    return getgeneratorstate(value) == GEN_CREATED


def _is_at_start(file: Any) -> bool:
    try:
        return not file.readable() or file.tell() == 0
    except (OSError, ValueError):
        return False  # a pipe, or closed: there is no second reading
