"""Finds the line of a key in a TOML file.

tomllib does not say, so a file that turned out wrong is read a second time, statement by
statement: every statement of a TOML document is a small document itself, and the first lines
that parse together are one. Only files that have parsed as a whole come here.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("KeyPath", "line_of", "path_of", "path_text")

# ("phases", 1, "prompt"): names of keys and places in arrays.
KeyPath: TypeAlias = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def path_text(path: KeyPath) -> str:
    """`path` as people write it: ``phases[1].agents[0].prompt``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = step if _BARE.fullmatch(step) else repr(step[:80])
            text += f".{name}" if text else name
    return text


_STEP = re.compile(r"\[(\d+)\]|'([^']*)'|([^.\['\]]+)")


def path_of(text: str) -> KeyPath:
    """The path that `path_text` wrote as `text`."""
    return tuple(
        int(place) if place else quoted or name for place, quoted, name in _STEP.findall(text)
    )


def line_of(text: str, path: KeyPath) -> int | None:
    """The line on which the statement with `path` starts, counted from 1.

    A key that is not there is looked for where it would belong: the nearest parent that is.
    None where not even the first step of the path can be found.
    """
    best, line = 0, None
    for number, found in _statements(text):
        shared = _depth(found, path)
        if shared > best:
            best, line = shared, number
        if best == len(path):
            break
    return line


def _statements(text: str) -> Iterator[tuple[int, Any]]:
    """Each statement's first line, with the document it would make if it stood alone."""
    table: KeyPath = ()
    tables: dict[KeyPath, int] = {}  # how many [[tables]] of a name there were so far
    start, chunk = 1, ""
    for number, line in enumerate(text.split("\n"), start=1):
        chunk = f"{chunk}\n{line}" if chunk else line
        try:
            document: Any = tomllib.loads(chunk)
        except (ValueError, RecursionError):
            continue  # in the middle of an array or of a long string
        if document:
            if chunk.lstrip().startswith("["):
                table = _opened(document, chunk.lstrip().startswith("[["), tables)
                document = {}
            for step in reversed(table):  # places in arrays become keys: only `_depth` looks
                document = {step: document}
            yield start, document
        start, chunk = number + 1, ""


def _opened(header: dict[str, Any], is_array: bool, tables: dict[KeyPath, int]) -> KeyPath:  # noqa: FBT001 -- private, and its callers say what it is
    """The path that a ``[header]`` opens; tables of an array are counted."""
    path: KeyPath = ()
    value: Any = header
    while value:
        if isinstance(value, list):
            value = value[0]
            continue
        name, value = next(iter(value.items()))
        path = (*path, name)
        if is_array and isinstance(value, list):
            tables[path] = tables.get(path, 0) + 1
            path = (*path, tables[path] - 1)
        elif path in tables:
            path = (*path, tables[path] - 1)
    return path


def _depth(value: Any, path: KeyPath) -> int:
    """How many steps of `path` lead somewhere in `value`."""
    for depth, step in enumerate(path):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return depth
    return len(path)
