"""Objects as Python and JavaScript print them: error bodies that are no JSON.

SDKs put ``{'error': {'message': …, 'param': None}}`` into their messages, runtimes print
``{ type: 'error', error: { message: '…' } }``: no JSON, but the same body. Only values are read:
source code that looks alike has names, calls or templates, and the first of these ends the reading.
"""

from __future__ import annotations

import ast
import re
from typing import Any

__all__ = ("LARGEST_OBJECT", "is_python", "may_be_printed", "printed_object")

# A body, not a data dump; deeper than any vendor nests.
LARGEST_OBJECT = 16_384
_DEEPEST = 40
_PYTHON = re.compile(r"\{\s*(?:'|\"[\w-]{1,40}\"\s?:(?! ?\"))")
_JAVASCRIPT = re.compile(r"\{\s{0,40}(?:[A-Za-z_$][\w$]{0,60}|'[\w.-]{1,60}'): {1,2}\S")
_TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<string>'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|`(?:[^`\\$]|\\.)*+`)"
    r"|(?P<number>-?\d{1,18}(?:\.\d{1,18})?)(?![\w.:-])"
    r"|(?P<constant>true|false|null|undefined|NaN|True|False|None)\b"
    # [Object], [Function: retry], [Circular *1], a date
    r"|(?P<other>\[(?:Object|Array|Function|Getter|Setter|Circular|class)\b[^\[\]\n]{0,80}\]"
    r"|\d{4}-\d\d-\d\dT[\d:.]{5,15}Z)"
    r"|(?P<key>[A-Za-z_$][\w$]{0,60})(?=:\s)"
    r"|(?P<mark>[{}\[\](),:+]))",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_CONSTANTS = {"true": "True", "True": "True", "false": "False", "False": "False"}
# A long string is printed in pieces; Python joins those that stand side by side.
_MARKS = {"+": ""}


def is_python(text: str, start: int) -> bool:
    """Whether an object as Python prints it may begin at `start`."""
    return _PYTHON.match(text, start) is not None


def may_be_printed(text: str, start: int) -> bool:
    """Whether an object as either of them prints it may begin at `start`."""
    return is_python(text, start) or _JAVASCRIPT.match(text, start) is not None


def printed_object(text: str, start: int) -> tuple[dict[Any, Any], int] | None:
    """The object that begins at `start`, with where it ends; None if there is none."""
    if not may_be_printed(text, start):
        return None
    literal, depth, position = "", 0, start
    while found := _TOKEN.match(text, position, start + LARGEST_OBJECT):
        position, piece = found.end(), found[found.lastgroup or 0]
        literal += _as_python(found.lastgroup, piece)
        if found.lastgroup == "mark":
            depth += (piece in "{[(") - (piece in ")]}")
        if depth == 0:
            break
        if depth > _DEEPEST:
            return None
    try:
        data = ast.literal_eval(literal)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    return (data, position) if isinstance(data, dict) else None


def _as_python(kind: str | None, piece: str) -> str:
    """One token as Python writes it."""
    if kind == "string":
        # A terminal may have wrapped the line inside a string.
        plain = piece[1:-1].replace("\r", " ").replace("\n", " ")
        return repr(_ESCAPE.sub(_unescaped, plain)) + " "
    if kind == "constant":
        return _CONSTANTS.get(piece, "None") + " "
    if kind == "number":
        return piece + " "
    return _MARKS.get(piece, piece) if kind == "mark" else repr(piece)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, code)
