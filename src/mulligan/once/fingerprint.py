"""Canonical form of a value, for fingerprints: equal arguments give equal bytes.

Two calls are the same operation if their arguments mean the same: the order of keys, the spelling
of ``é`` in one code point or two, 1 and 1.0 make no difference (E-F9). What only looks alike does:
``"1"`` is not 1, and neither is True.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
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

# A list of lists that are one list doubles with each level: sixty short lines make more values than
# there is memory. To read this many takes half a second, which is long enough.
_MOST = 100_000

# A Decimal may have more digits than fit into memory; beyond this it is known by its text.
_HUGE = 1000


def canonical(value: object, *, name: str, is_strict: bool = True) -> Any:
    """`value` as nested lists of strings that are equal if the values mean the same.

    Args:
        value: An argument.
        name: What it is called, for the error.
        is_strict: Whether a value that has no such form is an error; else its type stands for it.

    Raises:
        SettingError: Two of these cannot be compared. Only where that is strict,
            and nothing else, whatever the value's own methods raise.
    """
    try:
        return _Reader(name, is_strict).read(value, 0)
    except SettingError:
        if is_strict:
            raise
    except Exception as trouble:
        if is_strict:
            raise SettingError(
                f"{name} holds something that cannot be read ({type(trouble).__name__}); "
                f"exclude=({name!r},), or give the call a key of its own"
            ) from trouble
    return _opaque(value)


def digest(form: Any) -> str:
    """128 bits of SHA-256 over a canonical form, in hexadecimal."""
    text = json.dumps(form, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()[:32]


class _Reader:
    def __init__(self, name: str, is_strict: bool) -> None:  # noqa: FBT001 -- one caller, above
        self._name, self._is_strict, self._left = name, is_strict, _MOST

    def read(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            what = f"is nested more than {_DEEPEST} deep"
            if self._left < 0:
                what = f"holds more than {_MOST} values"
            raise SettingError(f"{self._name} {what}; give the call a key of its own")
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
        # Asked of its type: a class has the methods of its objects, and a stub answers to any name.
        kind = type(value)
        if hasattr(kind, "as_integer_ratio"):
            if not _is_finite(value):
                if not _is_nan(value):
                    return ["number", str(float(value))]
                return self._unknown(value, "holds NaN, which is equal to nothing")
            if hasattr(kind, "adjusted") and abs(value.adjusted()) > _HUGE:
                return ["number", _spelled(value)]
            above, below = value.as_integer_ratio()
            return ["number", f"{above:x}" if below == 1 else f"{above:x}/{below:x}"]
        if hasattr(kind, "__index__"):
            return ["number", f"{value.__index__():x}"]
        return None

    @staticmethod
    def _time(value: Any) -> Any:
        if isinstance(value, datetime) and value.utcoffset() is not None:
            with suppress(OverflowError):  # the first and the last day there is
                value = value.astimezone(UTC)
            return ["time", value.isoformat()]
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
        return self._unknown(
            value,
            f"holds a {_kind(value)}, and two of these cannot be compared; "
            f"exclude=({self._name!r},), or give the call a key of its own",
        )

    def _unknown(self, value: object, what: str) -> list[str]:
        if self._is_strict:
            raise SettingError(f"{self._name} {what}")
        return _opaque(value)

    def _pairs(self, items: Any, depth: int) -> list[Any]:
        pairs = [[self.read(key, depth), self.read(value, depth)] for key, value in items]
        return sorted(pairs, key=json.dumps)


def _is_finite(value: Any) -> bool:
    test = getattr(value, "is_finite", None)  # Decimal's; a large one does not fit a float
    return bool(test()) if test is not None else isinstance(value, int) or _fits(value)


def _is_nan(value: Any) -> bool:
    test = getattr(value, "is_nan", None)  # Decimal's; a signalling one must not be compared
    return bool(test()) if test is not None else value != value  # noqa: PLR0124 -- NaN is not


def _spelled(value: Any) -> str:
    """A Decimal by its digits, whatever the precision of the moment is."""
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits))
    bare = text.rstrip("0")
    return f"{'-' * sign}{bare}e{exponent + len(text) - len(bare)}"


def _fits(value: Any) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # a Fraction beyond all floats
        return True


def _opaque(value: object) -> list[str]:
    return ["opaque", _kind(value)]


def _kind(value: object) -> str:
    kind = type(value)
    try:
        return f"{kind.__module__}.{kind.__qualname__}"
    except Exception:  # noqa: BLE001 -- a metaclass may hide even that
        return "object"
