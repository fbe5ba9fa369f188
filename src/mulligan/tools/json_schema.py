"""Checks a value against a JSON schema: the part of draft 2020-12 that models are asked for.

A keyword that is not known here is refused when the schema is read: a check that is left out would
pass what the schema forbids.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..core.duration import is_number
from ..errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("JsonSchema",)

# They describe, and check nothing. So does `format`, unless a vocabulary says otherwise.
_NOTES = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("$schema", "$id", "$comment", "$defs", "definitions", "format"),
    }
)

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list | tuple),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": is_number,
    "integer": lambda value: is_number(value) and float(value).is_integer(),
}

# For each keyword: the type that it is about, the check, and what is wrong where it fails.
_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool], str]] = {
    "minimum": ("number", lambda value, bound: value >= bound, "must be at least {}"),
    "maximum": ("number", lambda value, bound: value <= bound, "must be at most {}"),
    "exclusiveMinimum": ("number", lambda value, bound: value > bound, "must be more than {}"),
    "exclusiveMaximum": ("number", lambda value, bound: value < bound, "must be less than {}"),
    "multipleOf": ("number", lambda value, bound: value % bound == 0, "must be a multiple of {}"),
    "minLength": ("string", lambda value, bound: len(value) >= bound, "needs {} characters"),
    "maxLength": ("string", lambda value, bound: len(value) <= bound, "has over {} characters"),
    "pattern": ("string", lambda value, bound: bool(re.search(bound, value)), "must match {}"),
    "minItems": ("array", lambda value, bound: len(value) >= bound, "needs at least {} items"),
    "maxItems": ("array", lambda value, bound: len(value) <= bound, "has more than {} items"),
    "minProperties": ("object", lambda value, bound: len(value) >= bound, "needs {} properties"),
    "maxProperties": ("object", lambda value, bound: len(value) <= bound, "has over {} properties"),
}

_OTHERS = frozenset(
    {
        *("type", "enum", "const", "properties", "required", "additionalProperties", "items"),
        *("prefixItems", "uniqueItems", "anyOf", "oneOf", "allOf", "not", "$ref"),
    }
)


class JsonSchema:
    """A JSON schema, given as JSON has it.

    Raises:
        SettingError: It uses a keyword that is not checked here.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self._root = schema
        for each in _parts(schema):
            unknown = sorted(set(each) - _NOTES - set(_BOUNDS) - _OTHERS)
            if unknown:
                raise SettingError(
                    f"the JSON schema uses {unknown[0]!r}, which is not checked here; write that "
                    f"part as a function, or use a pydantic model"
                )

    def wrong(self, value: Any) -> list[str]:
        """What is wrong with `value`, each with its place; empty if nothing is."""
        return list(self._wrong(self._root, value, "$"))

    def _wrong(self, schema: Any, value: Any, at: str) -> Iterator[str]:
        if isinstance(schema, bool):
            if not schema:
                yield f"{at} is not allowed"
            return
        if "$ref" in schema:
            yield from self._wrong(self._referred(schema["$ref"]), value, at)
        yield from _wrong_kind(schema, value, at)
        for keyword, (kind, check, said) in _BOUNDS.items():
            if keyword in schema and _TYPES[kind](value) and not check(value, schema[keyword]):
                yield f"{at} {said.format(schema[keyword])}"
        if isinstance(value, dict):
            yield from self._wrong_object(schema, value, at)
        if isinstance(value, list | tuple):
            yield from self._wrong_array(schema, value, at)
        yield from self._wrong_choice(schema, value, at)

    def _wrong_object(
        self, schema: dict[str, Any], value: dict[str, Any], at: str
    ) -> Iterator[str]:
        known = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at}.{name} is missing"
        for name, each in value.items():
            if name in known:
                yield from self._wrong(known[name], each, f"{at}.{name}")
            elif schema.get("additionalProperties") is False:
                yield f"{at}.{name} is unknown"
            else:
                rest = schema.get("additionalProperties", True)
                yield from self._wrong(rest, each, f"{at}.{name}")

    def _wrong_array(self, schema: dict[str, Any], value: Any, at: str) -> Iterator[str]:
        first = schema.get("prefixItems", [])
        for number, each in enumerate(value):
            rule = first[number] if number < len(first) else schema.get("items", True)
            yield from self._wrong(rule, each, f"{at}[{number}]")
        if schema.get("uniqueItems") and any(each in value[:n] for n, each in enumerate(value)):
            yield f"{at} repeats an item"

    def _wrong_choice(self, schema: dict[str, Any], value: Any, at: str) -> Iterator[str]:
        for each in schema.get("allOf", ()):
            yield from self._wrong(each, value, at)
        for keyword in ("anyOf", "oneOf"):
            choices = schema.get(keyword)
            if choices is None:
                continue
            found = [list(self._wrong(each, value, at)) for each in choices]
            fits = sum(not each for each in found)
            if fits == 0:
                yield f"{at} fits none of {len(choices)} forms ({min(found, key=len)[0]})"
            elif keyword == "oneOf" and fits > 1:
                yield f"{at} fits {fits} forms, and must fit one"
        if "not" in schema and not list(self._wrong(schema["not"], value, at)):
            yield f"{at} is a form that is not allowed"

    def _referred(self, reference: str) -> Any:
        found: Any = self._root
        try:
            for part in reference.removeprefix("#/").split("/"):
                found = found[part.replace("~1", "/").replace("~0", "~")]
        except (KeyError, TypeError):
            raise SettingError(f"the JSON schema refers to {reference!r}, which it lacks") from None
        return found


def _wrong_kind(schema: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    kinds = schema.get("type")
    if kinds is not None:
        listed = [kinds] if isinstance(kinds, str) else kinds
        if not any(_TYPES[each](value) for each in listed):
            yield f"{at} must be {' or '.join(listed)}; it is {_kind(value)}"
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        yield f"{at} must be one of {', '.join(map(repr, schema['enum']))}; it is {value!r}"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{at} must be {schema['const']!r}; it is {value!r}"


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _kind(value: Any) -> str:
    return next((name for name, check in _TYPES.items() if check(value)), type(value).__name__)


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """The schema and all schemas inside it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword in ("properties", "$defs", "definitions"):
        for each in schema.get(keyword, {}).values():
            yield from _parts(each)
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for each in schema.get(keyword, ()):
            yield from _parts(each)
    for keyword in ("items", "additionalProperties", "not"):
        yield from _parts(schema.get(keyword))
