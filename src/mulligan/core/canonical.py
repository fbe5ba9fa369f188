"""What a value is, whatever it was written like.

Two calls are the same operation if their arguments mean the same: the order of keys, the spelling
of ``é`` in one code point or two, 1 and 1.0 make no difference (E-F9). What only looks alike does:
``"1"`` is not 1, and neither is True.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from hashlib import sha256
from math import isfinite
from typing import Any
from unicodedata import normalize

from ..errors import SettingError

__all__ = ("canonical", "digest")

# Deeper than any argument that is written on purpose; a list that contains itself ends here, too.
_DEEPEST = 64

# A Decimal may have more digits than fit into memory; beyond this it is known by its text.
_HUGE = 1000


def canonical(value: object, *, name: str, is_strict: bool = True) -> Any:
    """`value` as nested lists of strings that are equal if the values mean the same.

    Args:
        value: An argument.
        name: What it is called, for the error.
        is_strict: Whether a value that has no such form is an error; else its type stands for it.

    Raises:
        SettingError: Nobody can tell whether two of these are the same.
    """
    return _Reader(name, is_strict).read(value, 0)


def digest(form: Any) -> str:
    """128 bits of SHA-256 over a canonical form, in hexadecimal."""
    text = json.dumps(form, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()[:32]


class _Reader:
    def __init__(self, name: str, is_strict: bool) -> None:  # noqa: FBT001 -- one caller, above
        self._name, self._is_strict = name, is_strict

    def read(self, value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise SettingError(
                f"{self._name} is nested more than {_DEEPEST} deep; give the call a key of its own"
            )
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return ["enum", _kind(value), value.name]
        if isinstance(value, str):
            return normalize("NFC", value)
        if isinstance(value, bytes | bytearray):
            return ["bytes", value.hex()]
        return self._number(value) or self._time(value) or self._whole(value, depth)

    def _number(self, value: Any) -> Any:
        """A number by its exact value: 1, 1.0 and Decimal("1.00") are one."""
        if hasattr(value, "as_integer_ratio"):
            if not _is_finite(value):
                if value != value:  # noqa: PLR0124 -- NaN, which is not even equal to itself
                    raise SettingError(f"{self._name} holds NaN, which is equal to nothing")
                return ["number", str(float(value))]
            exponent = value.adjusted() if hasattr(value, "adjusted") else 0
            if abs(exponent) > _HUGE:
                return ["number", str(value.normalize())]
            above, below = value.as_integer_ratio()
            return ["number", f"{above:x}" if below == 1 else f"{above:x}/{below:x}"]
        if hasattr(value, "__index__"):
            return ["number", f"{value.__index__():x}"]
        return None

    @staticmethod
    def _time(value: Any) -> Any:
        if isinstance(value, datetime) and value.tzinfo is not None:
            return ["time", value.astimezone(UTC).isoformat()]
        if isinstance(value, date | time):
            return ["time", f"{type(value).__name__} {value.isoformat()}"]
        if isinstance(value, timedelta):
            return ["span", str(value // timedelta(microseconds=1))]
        return None

    def _whole(self, value: Any, depth: int) -> Any:  # noqa: PLR0911 -- one a shape
        """What consists of others."""
        deeper = depth + 1
        if isinstance(value, list | tuple):
            return ["list", *[self.read(each, deeper) for each in value]]
        if isinstance(value, AbstractSet):
            return ["set", *sorted((self.read(each, deeper) for each in value), key=json.dumps)]
        if isinstance(value, Mapping):
            return ["map", *self._pairs(value.items(), deeper)]
        if is_dataclass(value) and not isinstance(value, type):
            named = ((each.name, getattr(value, each.name)) for each in fields(value))
            return ["object", _kind(value), *self._pairs(named, deeper)]
        for method, tag in (("model_dump", "model"), ("__fspath__", "path")):  # pydantic, pathlib
            if callable(getattr(type(value), method, None)):
                return [tag, _kind(value), self.read(getattr(value, method)(), deeper)]
        if _kind(value) == "uuid.UUID":
            return ["uuid", str(value)]
        if self._is_strict:
            raise SettingError(
                f"{self._name} holds a {_kind(value)}, and nobody can tell whether two of these "
                f"are the same; exclude=({self._name!r},), or give the call a key of its own"
            )
        return ["opaque", _kind(value)]

    def _pairs(self, items: Any, depth: int) -> list[Any]:
        pairs = [[self.read(key, depth), self.read(value, depth)] for key, value in items]
        return sorted(pairs, key=json.dumps)


def _is_finite(value: Any) -> bool:
    test = getattr(value, "is_finite", None)  # Decimal's; a large one does not fit a float
    return bool(test()) if test is not None else isinstance(value, int) or _fits(value)


def _fits(value: Any) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # a Fraction beyond all floats
        return True


def _kind(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"
