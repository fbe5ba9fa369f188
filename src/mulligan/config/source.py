"""Reads a TOML file, with clear errors for what cannot be read.

Nothing is executed, no variable is expanded, no other file is opened. Whatever is wrong leaves
here as a `FileError` that names the file, the line, the key and what to do.
"""

from __future__ import annotations

import re
import stat
import tomllib
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.redaction import clean, presentable
from ..errors import FileError
from .lines import KeyPath, line_of, path_text

if TYPE_CHECKING:
    import os

__all__ = ("Source", "read", "shown")

# A policy is a page, a plan a few pages. What is longer was not meant.
_LIMIT = 1024 * 1024

# Nothing of ours nests deeper than phases[0].agents[0].policy.rules.server.backoff.waits[0].
_DEEPEST = 16

_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")
_BARE_DURATION = re.compile(
    r"^\s*[\w.-]+\s*=\s*([0-9][0-9.]*\s*(?:ms|s|m|h|d)[0-9msh]*)\s*(?:#.*)?$"
)
_BARE_WORD = re.compile(r"^\s*[\w.-]+\s*=\s*([A-Za-z_][\w-]*)\s*(?:#.*)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file and its content."""

    file: str  # its name, as the user gave it
    text: str  # for finding lines
    data: dict[str, Any]

    def error(self, message: str, path: KeyPath = (), *, hint: str = "") -> FileError:
        """The error about the key at `path`, with its line."""
        return FileError(
            clean(message),
            file=self.file,
            key=path_text(path),
            line=line_of(self.text, path) if path else None,
            hint=hint,
        )


def read(path: str | os.PathLike[str]) -> Source:
    """The TOML file at `path`, or a FileError that says why it cannot be read."""
    file = clean(str(path))
    text = _text(Path(path), file)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise FileError("not readable: nested too deeply", file=file) from None
    except ValueError as error:  # a number of five thousand digits does not raise TOMLDecodeError
        raise _not_toml(error, text, file) from None
    source = Source(file=file, text=text, data=data)
    _refuse_strange(source, data, ())
    return source


def shown(value: object) -> str:
    """`value` as an error may quote it: short, on one line, without secrets."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    return "an array" if isinstance(value, list) else presentable(repr(value), 80)


def _text(path: Path, file: str) -> str:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise FileError("no such file", file=file) from None
    except OSError as error:
        raise _unreadable(error, file) from None
    except ValueError:  # a null byte
        raise FileError("is not the name of a file", file=file) from None
    if stat.S_ISDIR(status.st_mode):
        raise FileError("is a folder, not a file", file=file)
    if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for, a device has no end
        raise FileError("is not a regular file", file=file)
    if status.st_size > _LIMIT:
        raise FileError(f"has {status.st_size} bytes; at most {_LIMIT} are read", file=file)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _unreadable(error, file) from None
    if b"\0" in raw:
        raise FileError("is a binary file, not TOML", file=file)
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")  # editors on Windows add both
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"is not UTF-8 text (byte 0x{raw[error.start]:02x})", file=file, line=line
        ) from None


def _unreadable(error: OSError, file: str) -> FileError:
    return FileError(f"cannot be read: {(error.strerror or str(error)).lower()}", file=file)


def _not_toml(error: ValueError, text: str, file: str) -> FileError:
    if not isinstance(error, tomllib.TOMLDecodeError):
        return FileError("is not TOML: a number in it is too long to be read", file=file)
    said, lines = str(error), text.rstrip().split("\n")
    found = _AT_LINE.search(said)
    number = int(found[1]) if found else len(lines)  # "at end of document"
    said = clean(_AT_LINE.sub("", said).removesuffix(" (at end of document)"))
    line = lines[min(number, len(lines)) - 1]
    hint = ""
    if bare := _BARE_DURATION.match(line):
        hint = f'a duration with a unit is text: write "{bare[1]}"'
    elif bare := _BARE_WORD.match(line):
        hint = f'text needs quotes: write "{bare[1]}"'
    elif line.rstrip().endswith("{"):
        hint = "an inline table { … } stands on one line"
    elif "overwrite" in said or "twice" in said:
        hint = "a key or a table stands in the file twice; keep one"
    return FileError(
        f"is not TOML: {said[:1].lower()}{said[1:]}", file=file, line=number, hint=hint
    )


def _refuse_strange(source: Source, value: object, path: KeyPath) -> None:
    """Refuse what TOML allows and no file of ours has: dates, and very deep tables."""
    if len(path) > _DEEPEST:
        raise source.error("nested too deeply", path[:1])
    if isinstance(value, date | time):
        raise source.error(f"is a date or a time ({value}); text needs quotes", path)
    children: Any = enumerate(value) if isinstance(value, list) else ()
    for step, child in value.items() if isinstance(value, dict) else children:
        _refuse_strange(source, child, (*path, step))
