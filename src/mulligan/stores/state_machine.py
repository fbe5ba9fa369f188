"""State machines in a form that a store can apply without interpreting it.

A machine has a state; an operation is a pure function (state, moment) → (state, result). A store
keeps the state and applies operations one at a time. A grant carries an id that the caller chose,
and an operation is idempotent per id: if an answer is lost, the caller repeats the operation.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, get_args, get_origin
from typing import get_type_hints as hints_of

from ..core.moment import Moment
from ..core.record import record

__all__ = ("Key", "Machine", "Operation", "packed", "scoped", "unpacked")

S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)


class Key(NamedTuple):
    """The key of a state.

    Args:
        target: The dependency.
        part: Which machine of it: ``breaker``, ``gate``, ``tokens``, or an operation's own key.
        scope: Which account, as the store's hash of it; never the account itself.
    """

    target: str
    part: str
    scope: str = ""


def scoped(scope: str, salt: str) -> str:
    """A salted hash of `scope`; empty for no scope.

    The salt is in the store, so that all its users compute the same hash, and a leaked credential
    cannot be matched to an entry without the store.
    """
    if not scope:
        return ""
    from hashlib import blake2b  # loads OpenSSL, which most guards do not need

    return blake2b(scope.encode(), key=salt.encode()[:64], digest_size=12).hexdigest()


def _a_day(_state: Any, _moment: Moment) -> float:
    return 86_400.0


def _theirs(_base: Any, _ours: Any, theirs: Any, _moment: Moment) -> Any:
    return theirs


@record(kw_only=True)
class Machine(Generic[S]):
    """One kind of state: its start, its serialisation, and when it expires.

    Args:
        name: What is kept, for tables and people.
        start: The initial state. It is never stored.
        keep: (state, moment) → seconds after which the state may be forgotten. Default: a day.
        join: (base, ours, theirs, moment) → the state after a process that could not reach its
            store has made `ours` of `base`, and all others `theirs`. Default: theirs.
    """

    name: str
    start: S
    keep: Callable[[S, Moment], float] = _a_day
    join: Callable[[S, S, S, Moment], S] = _theirs

    def pack(self, state: S) -> str | None:
        """The state as JSON; None for the initial state."""
        if state == self.start:
            return None
        return json.dumps(packed(state), separators=(",", ":"))

    def unpack(self, text: str | None) -> S:
        """The state that `pack` wrote.

        Raises:
            ValueError: It did not write this.
        """
        if text is None:
            return self.start
        state: S = unpacked(type(self.start), json.loads(text))
        return state


class Operation(Protocol[S, R_co]):
    """One step of a machine, with everything it needs except the state and the time."""

    @property
    def machine(self) -> Machine[S]: ...

    def __call__(self, state: S, moment: Moment) -> tuple[S, R_co]:
        """The state after it, and the answer to the caller."""
        ...


def packed(value: Any) -> Any:
    """A frozen dataclass as nested lists, the shortest JSON there is."""
    if isinstance(value, tuple):
        return [packed(each) for each in value]
    if is_dataclass(value):
        return [packed(getattr(value, name)) for name in value.__dataclass_fields__]
    return value


def unpacked(shape: Any, data: Any) -> Any:
    """The value of type `shape` that `packed` made `data` of.

    Raises:
        ValueError: `data` does not have that shape. It came from a file or a server: another
            version wrote it, or another program.
    """
    if get_origin(shape) is tuple:
        (each, _) = get_args(shape)
        if isinstance(data, list):
            return tuple([unpacked(each, item) for item in data])
    elif get_origin(shape) is UnionType:
        if data is None and NoneType in get_args(shape):
            return None
        (shape,) = (each for each in get_args(shape) if each is not NoneType)
        return unpacked(shape, data)
    elif is_dataclass(shape):
        types = _types(shape)  # type: ignore[arg-type]  # a class is hashable
        if isinstance(data, list) and len(data) == len(types):
            return shape(*map(unpacked, types, data))  # type: ignore[operator]
    elif type(data) is shape:
        return data
    elif shape is float and type(data) is int and abs(data) < 1e300:  # no float is much larger
        return float(data)
    raise ValueError(f"expected {shape}, found {str(data)[:80]!r}")


@lru_cache(maxsize=64)
def _types(cls: Any) -> tuple[Any, ...]:
    hints = hints_of(cls)
    return tuple([hints[each.name] for each in fields(cls)])
