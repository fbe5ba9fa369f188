"""Objects as Python and JavaScript print them: error bodies that are no JSON.

SDKs put ``{'error': {'message': …, 'param': None}}`` into their messages, runtimes print
``{ type: 'error', error: { message: '…' } }``: no JSON, but the same body. Only values are read:
source code that looks alike has names, calls or templates, and the first of these ends the reading.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = (
    "LARGEST_LITERAL",
    "inspected_object",
    "may_be_inspected",
    "python_object",
)

# A body, not a data dump; deeper than any vendor nests.
LARGEST_LITERAL = 16_384
_DEEPEST_LITERAL = 40
_LITERAL_OPENING = re.compile(r"\{\s*(?:'|\"[\w-]{1,40}\": ?(?:'|None|True|False|\{\s*'))")
# A string that does not end is read to the end of the text, once.
_LITERAL_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*+'?|\"(?:[^\"\\]|\\.)*+\"?|[{}\[\]()]", re.DOTALL)
# No vendor sends such numbers, and Python refuses to print the largest of them.
_ODD_NUMBER = re.compile(r"\b0[xXoObB]|\d{20}")
# Python warns of these, on the user's terminal.
_UNKNOWN_ESCAPE = re.compile(r"(?<!\\)\\(?![\\'\"abfnrtvxuUN0-7])")


def python_object(text: str, start: int) -> tuple[Any, int] | None:
    """The object that begins at `start`, with where it ends; None if there is none."""
    if _LITERAL_OPENING.match(text, start) is None:
        return None
    chunk = text[start : start + LARGEST_LITERAL]
    end = _literal_end(chunk)
    if end is None or _ODD_NUMBER.search(chunk, 0, end):
        return None
    try:
        # A terminal may have wrapped the line inside a string.
        plain = chunk[:end].replace("\r", " ").replace("\n", " ")
        data = ast.literal_eval(_UNKNOWN_ESCAPE.sub(r"\\\\", plain))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    return (data, start + end) if isinstance(data, dict) else None


def _literal_end(chunk: str) -> int | None:
    depth = 0
    for token in _LITERAL_TOKEN.finditer(chunk):
        if token[0] in "{[(":
            depth += 1
        elif token[0] in "}])":
            depth -= 1
        if depth > _DEEPEST_LITERAL:
            return None
        if depth == 0:
            return token.end()
    return None


# A body, not a data dump; deeper than any vendor nests.
_LARGEST_OBJECT = 16_384
_DEEPEST_OBJECT = 24
_OBJECT_OPENING = re.compile(r"\{\s{0,40}(?:[A-Za-z_$][\w$]{0,60}|'[\w.-]{1,60}'): {1,2}\S")
_OBJECT_TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<string>'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|`(?:[^`\\$]|\\.)*+`)"
    r"|(?P<number>-?\d{1,18}(?:\.\d{1,18})?)(?![\w.:-])"
    r"|(?P<constant>true|false|null|undefined|NaN)\b"
    # [Object], [Function: retry], [Circular *1], a date
    r"|(?P<other>\[(?:Object|Array|Function|Getter|Setter|Circular|class)\b[^\[\]\n]{0,80}\]"
    r"|\d{4}-\d\d-\d\dT[\d:.]{5,15}Z)"
    r"|(?P<key>[A-Za-z_$][\w$]{0,60})(?=:\s)"
    r"|(?P<mark>[{}\[\],:+]))",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_CONSTANTS = {"true": True, "false": False}
_END = ("", "")


class _NoObjectError(ValueError):
    """The text is something else."""


def may_be_inspected(text: str, start: int) -> bool:
    """Whether an object of this kind may begin at `start`."""
    return _OBJECT_OPENING.match(text, start) is not None


def inspected_object(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    """The object that begins at `start`, with where it ends; None if there is none."""
    if not may_be_inspected(text, start):
        return None
    reader = _ObjectReader(text, start, min(len(text), start + _LARGEST_OBJECT))
    try:
        data = reader.value(0)
    except _NoObjectError:
        return None
    return (data, reader.end) if isinstance(data, dict) else None


class _ObjectReader:
    """The tokens of one object, the next one looked at before it is taken."""

    def __init__(self, text: str, start: int, limit: int) -> None:
        self.end = start
        self._tokens = self._read(text, start, limit)
        self._next = next(self._tokens, (*_END, start))

    def value(self, depth: int) -> Any:
        """The value that comes next."""
        name, piece = self._take()
        if depth > _DEEPEST_OBJECT:
            raise _NoObjectError
        if piece == "{":
            return self._object(depth + 1)
        if piece == "[":
            return self._array(depth + 1)
        if name == "string":
            return self._string(piece)
        if name == "number":
            return float(piece) if "." in piece else int(piece)
        if name == "constant":
            return _CONSTANTS.get(piece)
        if name == "other":
            return piece
        raise _NoObjectError

    def _object(self, depth: int) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not self._comes("}"):
            name, key = self._take()
            if name not in ("key", "string") or not self._comes(":"):
                raise _NoObjectError
            data[key.strip("'\"")] = self.value(depth)
            if not self._comes(","):
                self._must("}")
                break
        return data

    def _array(self, depth: int) -> list[Any]:
        data: list[Any] = []
        while not self._comes("]"):
            data.append(self.value(depth))
            if not self._comes(","):
                self._must("]")
                break
        return data

    def _string(self, piece: str) -> str:
        text = _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), piece[1:-1])
        while self._comes("+"):  # a long string is printed in pieces
            name, more = self._take()
            if name != "string":
                raise _NoObjectError
            text += _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), more[1:-1])
        return text

    def _comes(self, mark: str) -> bool:
        is_it = self._next[:2] == ("mark", mark)
        if is_it:
            self._take()
        return is_it

    def _must(self, mark: str) -> None:
        if not self._comes(mark):
            raise _NoObjectError

    def _take(self) -> tuple[str, str]:
        name, piece, end = self._next
        if not name:
            raise _NoObjectError
        self.end = end
        self._next = next(self._tokens, (*_END, end))
        return name, piece

    @staticmethod
    def _read(text: str, start: int, limit: int) -> Iterator[tuple[str, str, int]]:
        position = start
        while found := _OBJECT_TOKEN.match(text, position, limit):
            yield found.lastgroup or "", found[found.lastgroup or 0], found.end()
            position = found.end()
