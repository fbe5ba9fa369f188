"""Splits the text of a script, but not inside parentheses or double quotes.

``shell(echo ":)" -> x)`` is one step. A value that is one quoted string is taken without its
quotes; any other keeps them, as JSON and shells need theirs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("pieces", "quoted", "unquoted")

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')


def pieces(text: str, separator: str, most: int = -1) -> list[str]:
    """`text` split at the separators that stand outside parentheses and quotes.

    At most `most` times, unless that is negative.
    """
    found: list[str] = []
    start = 0
    for place in _outside(text):
        if len(found) == most:
            break
        if place >= start and text.startswith(separator, place):
            found.append(text[start:place])
            start = place + len(separator)
    return [*found, text[start:]]


def _outside(text: str) -> Iterator[int]:
    """The places outside parentheses and quotes."""
    depth = place = 0
    while place < len(text):
        if text[place] == '"' and (string := _QUOTED.match(text, place)):
            place = string.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth < 0:
            break
        if depth == 0:
            yield place
        place += 1
    if depth != 0:
        raise SettingError(f"parentheses are opened as often as closed; got {text.strip()!r}")


def unquoted(text: str) -> str:
    """`text`, without its quotes if it is one quoted string."""
    found = _QUOTED.fullmatch(text)
    return text if found is None else _ESCAPED.sub(r"\1", found[1])


def quoted(text: str, *, may_have_commas: bool = False) -> str:
    """`text` so that `pieces` and `unquoted` give it back; as it is where they do already."""
    try:
        parts = pieces(text, ",")
    except SettingError:
        parts = []
    is_plain = text == text.strip() == unquoted(text) and text != ""
    # A quote that is not closed would be closed by what comes behind it.
    is_closed = '"' not in _QUOTED.sub("", text)
    if is_plain and is_closed and (len(parts) == 1 or (parts and may_have_commas)):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
