"""Validates the data of a file against a dataclass, and words the errors of the validator.

The dataclass is the schema: there is no second list of keys to keep in step. What is wrong leaves
here as a `FileError` about the key that stands first in the file, with the values that would do and
the nearest of them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from .lines import line_of, path_of
from .source import shown
from .suggestions import POLICY_WORDS, about_key, guess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

    from .lines import KeyPath
    from .source import Source
    from .suggestions import FileKeys

__all__ = ("validated",)

T = TypeVar("T")

_NEEDS = {
    "bool_type": "true or false",
    "dataclass_type": "a table",
    "dict_type": "a table",
    "float_type": "a number",
    "frozen_set_type": "an array",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "string_type": "text",
    "tuple_type": "an array",
}
# ``phases[1].needs``
_SUBJECT = re.compile(r"[a-z_]+(?:\[\d+\]|\.[\w-]+)*")


def validated(
    source: Source,
    adapter: TypeAdapter[T],
    data: Mapping[str, Any],
    *,
    at: KeyPath = (),
    words: FileKeys = POLICY_WORDS,
    written: Callable[[KeyPath], KeyPath] = lambda path: path,
) -> T:
    """The object that `data` describes, which stands `at` a path of the file `source`.

    `words` are the names of the file's keys; `written` gives a path as it stands in the file, where
    `data` has another. Raises a `FileError` with the line if it is invalid.
    """
    try:
        # Strict, and as JSON: no "4" for 4 and no true for 1, but lists for tuples and words
        # for enums, which strict Python input would refuse.
        return adapter.validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        problems = [_problem(each, data, words) for each in error.errors(include_url=False)]
    found = [((*at, *written(path)), message, hint) for path, message, hint in problems]
    path, message, hint = min(
        found, key=lambda problem: line_of(source.text, problem[0]) or len(source.text)
    )
    raise source.error(message, path, hint=hint)


def _problem(
    error: ErrorDetails, data: Mapping[str, Any], words: FileKeys
) -> tuple[KeyPath, str, str]:
    """A broken rule as its path, what was found, and a hint."""
    path, table = _path(error["loc"], data)
    found, context = error["input"], error.get("ctx", {})
    match error["type"]:
        case "unexpected_keyword_argument":
            return path, "unknown key", about_key(path, str(table.get("shape", "")), words)
        case "enum" | "literal_error" as kind:
            known = _quoted(context["expected"])
            needs = f"needs one of {', '.join(known)}; got {shown(found)}"
            if kind == "enum" and error["loc"][-1] == "[key]":
                needs = f"is not a kind of failure; the kinds are {', '.join(known)}"
            return path, needs, guess(found, known)
        case "union_tag_invalid":
            known = _quoted(context["expected_tags"])
            tag = found.get("shape")
            message = f"needs one of {', '.join(known)}; got {shown(tag)}"
            return (*path, "shape"), message, guess(tag, known)
        case "value_error":
            return _said(path, str(context["error"]), table)
        case kind:
            # Whatever the validator may learn to say is better than nothing.
            needs = f"needs {_NEEDS.get(kind, error['msg'].lower())}; got {shown(found)}"
            is_text = kind == "tuple_type" and isinstance(found, str)
            hint = 'write ["…"], one string per word' if is_text else ""
            return path, "is missing" if kind == "missing" else needs, hint


def _path(loc: tuple[int | str, ...], data: Any) -> tuple[KeyPath, dict[str, Any]]:
    """`loc` without the validator's labels; the innermost table on the way that exists."""
    path: KeyPath = ()
    table: dict[str, Any] = data
    for step in loc:
        is_table = isinstance(data, dict)
        if step == "[key]" or (is_table and step not in data and step == data.get("shape")):
            continue
        path = (*path, step)
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            data = None
        if isinstance(data, dict):
            table = data
    return path, table


def _said(path: KeyPath, message: str, table: dict[str, Any]) -> tuple[KeyPath, str, str]:
    """Our own refusal. Where its first word is a key of the table, it belongs to the path."""
    subject, _, rest = message.partition(" ")
    key = subject.rpartition(".")[2]
    if subject == "duration" or (path and path[-1] == key):
        return path, rest, ""
    inner = path_of(subject) if _SUBJECT.fullmatch(subject) else ()
    if inner and inner[0] in table:
        return (*path, *inner), rest, ""
    return ((*path, key), rest, "") if key in table else (path, message, "")


def _quoted(expected: str) -> list[str]:
    """``'a', 'b' or 'c'`` as a list."""
    return [word.strip(" '") for word in expected.replace("' or '", "', '").split(",")]
