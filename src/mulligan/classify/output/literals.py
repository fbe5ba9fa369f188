"""Objects as Python prints them.

SDKs put ``{'error': {'message': …, 'param': None}}`` into their messages: no JSON, but the same
body. Only literals are read, and only small ones that are not deeply nested.
"""

from __future__ import annotations

import ast
import re
from typing import Any

__all__ = ("LARGEST_LITERAL", "python_object")

# A body, not a data dump; deeper than any vendor nests.
LARGEST_LITERAL = 16_384
_DEEPEST = 40
_OPENING = re.compile(r"\{\s*(?:'|\"[\w-]{1,40}\": ?(?:'|None|True|False|\{\s*'))")
# A string that does not end is read to the end of the text, once.
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*+'?|\"(?:[^\"\\]|\\.)*+\"?|[{}\[\]()]", re.DOTALL)
# No vendor sends such numbers, and Python refuses to print the largest of them.
_NUMBER = re.compile(r"\b0[xXoObB]|\d{20}")
# Python warns of these, on the user's terminal.
_UNKNOWN_ESCAPE = re.compile(r"(?<!\\)\\(?![\\'\"abfnrtvxuUN0-7])")


def python_object(text: str, start: int) -> tuple[Any, int] | None:
    """The object that begins at `start`, with where it ends; None if there is none."""
    if _OPENING.match(text, start) is None:
        return None
    chunk = text[start : start + LARGEST_LITERAL]
    end = _end(chunk)
    if end is None or _NUMBER.search(chunk, 0, end):
        return None
    try:
        # A terminal may have wrapped the line inside a string.
        plain = chunk[:end].replace("\r", " ").replace("\n", " ")
        data = ast.literal_eval(_UNKNOWN_ESCAPE.sub(r"\\\\", plain))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    return (data, start + end) if isinstance(data, dict) else None


def _end(chunk: str) -> int | None:
    depth = 0
    for token in _TOKEN.finditer(chunk):
        if token[0] in "{[(":
            depth += 1
        elif token[0] in "}])":
            depth -= 1
        if depth > _DEEPEST:
            return None
        if depth == 0:
            return token.end()
    return None
