"""Turns errors of the validator into our messages, with file, key and suggestion.

The validator knows the path and the rule that was broken. What a person needs besides is the
key as it stands in the file, the values that would do, and the nearest of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .source import shown
from .suggestions import about_key, guess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from .lines import KeyPath
    from .suggestions import FileKeys

__all__ = ("problems",)

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


def problems(
    error: ValidationError, data: Mapping[str, Any], words: FileKeys
) -> list[tuple[KeyPath, str, str]]:
    """Each broken rule as its path, what was found, and a hint.

    Args:
        error: What the validator raised.
        data: What it was given, to tell keys from the validator's own labels.
        words: What the file calls its keys.
    """
    return [_problem(each, data, words) for each in error.errors(include_url=False)]


def _problem(
    error: ErrorDetails, data: Mapping[str, Any], words: FileKeys
) -> tuple[KeyPath, str, str]:
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
    inner = _steps(subject)
    if inner and inner[0] in table:
        return (*path, *inner), rest, ""
    return ((*path, key), rest, "") if key in table else (path, message, "")


_SUBJECT = re.compile(r"[a-z_]+(?:\[\d+\]|\.[\w-]+)*")


def _steps(subject: str) -> KeyPath:
    """``phases[1].needs`` as a path; empty if it is none."""
    if not _SUBJECT.fullmatch(subject):
        return ()
    found = re.findall(r"\[(\d+)\]|([\w-]+)", subject)
    return tuple(int(number) if number else name for number, name in found)


def _quoted(expected: str) -> list[str]:
    """``'a', 'b' or 'c'`` as a list."""
    return [word.strip(" '") for word in expected.replace("' or '", "', '").split(",")]
