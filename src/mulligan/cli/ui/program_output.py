"""What a program printed, as `classify` and `report` read it, and the program's name.

Output is UTF-8, or UTF-16 behind a byte order mark: Windows PowerShell writes that with ``>``.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import deque
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

import click

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ...classify.pattern_packs import Packs

__all__ = ("PrintedOutput", "check_agent", "json_lines", "known_agents", "output_in", "unknown")

# A failure is reported in the last lines: no more than this is kept in memory.
_MOST = 4 << 20
_HEAD = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedOutput:
    """An output, or the beginning and the end of a long one.

    Args:
        text: All of it, or its last 4 MB from a whole line on.
        head: Its first 64 kB, if `text` is not all.
        above: How many lines stand above `text`, if they were counted.
    """

    text: str
    head: str = ""
    above: int = 0


def output_in(file: BinaryIO, *, is_counted: bool = False) -> PrintedOutput:
    """The output in `file`; of a long one the middle is read only to count its lines."""
    head = file.read(_HEAD)
    codec = _codec(head)
    line_end = "\n".encode(codec)
    parts, kept, above, is_cut = deque([head]), len(head), 0, False
    if file.seekable() and not is_counted:
        begin, size = file.tell(), file.seek(0, os.SEEK_END)
        is_cut = size - begin > _MOST
        # At an even place, as UTF-16 needs it.
        file.seek((size - _MOST) // 2 * 2 if is_cut else begin)
        parts = deque() if is_cut else parts
        kept = 0 if is_cut else kept
    while part := file.read(_HEAD):
        parts.append(part)
        kept += len(part)
        while kept - len(parts[0]) >= _MOST:
            kept -= len(parts[0])
            above += parts.popleft().count(line_end)
            is_cut = True
    text = _decoded(b"".join(parts), codec)
    if not is_cut:
        return PrintedOutput(text=text)
    _, is_torn, whole = text.partition("\n")
    above += bool(whole and is_torn)
    return PrintedOutput(text=whole or text, head=_decoded(head, codec), above=above)


def json_lines(file: BinaryIO) -> Iterable[bytes | str]:
    """The lines of `file` as they arrive; UTF-16 is read whole, because only files are."""
    first = file.readline()
    if (codec := _codec(first)) != "utf-8":
        return _decoded(first + file.read(), codec).split("\n")
    return chain([first.removeprefix(BOM_UTF8)], file)


def _codec(head: bytes) -> str:
    # Without a zero byte in it, it only begins like UTF-16.
    if b"\0" in head and head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16-le" if head.startswith(BOM_UTF16_LE) else "utf-16-be"
    return "utf-8"


def _decoded(raw: bytes, codec: str) -> str:
    return raw.decode(codec, "replace").removeprefix("\ufeff")


def known_agents(packs: Packs) -> frozenset[str]:
    """Names that an adapter or a pack has for a program."""
    from ...run.agents.catalogue import NAMES

    named = (each for one in packs.packs for each in (one.name, *one.agents))
    return frozenset((*NAMES, "generic", *named))


def unknown(name: str, known: Collection[str]) -> str:
    """Says that no program is called `name`, and which one may be meant."""
    from ...core.suggestions import nearest

    return f"no agent is called {name!r}; {nearest(name, sorted(known))}"


def check_agent(name: str, packs: Packs) -> None:
    """Refuse an option ``--agent`` that names a program which nothing knows."""
    if name and name not in (known := known_agents(packs)):
        raise click.BadParameter(unknown(name, known), param_hint="--agent")
