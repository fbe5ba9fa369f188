"""A dictionary that stays as it was made."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

__all__ = ("FrozenDict",)

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dict for the tables of a policy: presets are shared by the whole process.

    A dict all the same, so that it can be compared, copied, pickled and written as JSON.
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a policy's tables cannot be changed; make a new one with replace()")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = _refuse
    setdefault = update = _refuse  # pyright: ignore[reportAssignmentType] -- both are overloaded

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)
