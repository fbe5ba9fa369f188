"""Frozen records whose methods are shared, not compiled for each class.

`dataclasses` writes and compiles six methods for a frozen class, which takes most of a millisecond;
a guard and its first failure need fifty such classes. A record is a dataclass to `fields`,
`replace`, `asdict`, pydantic and type checkers, and has its methods from here.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("record",)

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, kw_only: bool = False, eq: bool = True) -> Callable[[type[T]], type[T]]:
    """A decorator for frozen classes with slots.

    Args:
        kw_only: Whether fields are given by name only.
        eq: Whether equal fields make equal records; else each is equal to itself alone.
    """

    def made(cls: type[T]) -> type[T]:
        new = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
        named: Any = new
        named.__init__ = _init(new, is_by_name=kw_only)
        named.__repr__, named.__reduce__ = _repr, _reduce
        named.__setattr__, named.__delattr__ = _frozen, _frozen
        if eq:
            values = _values(new)
            named.__eq__, named.__hash__ = _eq(values), _hash(values)
        return new

    return made


def _init(cls: Any, *, is_by_name: bool) -> Callable[..., None]:
    """The constructor of `cls`."""
    known = [(each.name, getattr(cls, each.name).__set__) for each in fields(cls)]
    puts = [put for _, put in known]
    placed = () if is_by_name else tuple(name for name, _ in known)
    usual = {each.name: each.default for each in fields(cls) if each.default is not MISSING}
    factories = [
        (each.name, each.default_factory)
        for each in fields(cls)
        if each.default_factory is not MISSING
    ]
    check = getattr(cls, "__post_init__", None)

    def init(self: Any, /, *args: Any, **given: Any) -> None:
        if args and len(args) == len(placed) and not given:
            for put, value in zip(puts, args):  # noqa: B905 -- of one length; `strict` takes as long
                put(self, value)
        else:
            values = {**usual, **(_by_name(cls, placed, args, given) if args else given)}
            for name, make in factories:
                values[name] = values[name] if name in values else make()
            for name, put in known:
                put(self, values[name] if name in values else _missing(cls, name))
            if len(values) > len(known):
                raise TypeError(
                    f"{cls.__name__}() takes no {', '.join(values.keys() - dict(known))}"
                )
        if check is not None:
            check(self)

    return init if len(placed) != 3 or check is not None else _init_of_three(puts, init)


def _init_of_three(puts: list[Any], init: Callable[..., None]) -> Callable[..., None]:
    """The constructor of a decision, which every failure makes: a third quicker than the loop."""
    first, second, third = puts

    def init_of_three(self: Any, /, *args: Any, **given: Any) -> None:
        if len(args) == 3 and not given:
            one, two, three = args
            first(self, one)
            second(self, two)
            third(self, three)
        else:
            init(self, *args, **given)

    return init_of_three


def _missing(cls: type, name: str) -> NoReturn:
    raise TypeError(f"{cls.__name__}() needs {name}")


def _by_name(
    cls: type, names: tuple[str, ...], args: tuple[Any, ...], given: dict[str, Any]
) -> dict[str, Any]:
    """All arguments by the names of their fields."""
    placed = dict(zip(names, args))  # noqa: B905 -- see above
    if len(placed) < len(args) or not given.keys().isdisjoint(placed):
        raise TypeError(f"{cls.__name__}() takes {', '.join(names) or 'named arguments only'}")
    return {**placed, **given}


def _values(cls: Any) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives the class and all fields of an instance of `cls`."""
    return attrgetter("__class__", *(each.name for each in fields(cls)))


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def eq(self: Any, other: object) -> bool:
        return (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )

    return eq


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


def _repr(self: Any) -> str:
    told = ", ".join(
        f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr
    )
    return f"{self.__class__.__qualname__}({told})"


def _frozen(self: Any, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot change the field {name!r} of a {type(self).__name__}")


def _reduce(self: Any) -> tuple[Any, ...]:
    return _rebuilt, _values(self.__class__)(self)


def _rebuilt(cls: Any, *values: Any) -> Any:
    """A record as it was pickled; what was checked when it was made is not checked again."""
    new: Any = object.__new__(cls)
    for each, value in zip(fields(cls), values, strict=False):
        getattr(cls, each.name).__set__(new, value)
    return new
