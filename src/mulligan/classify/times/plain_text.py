"""Terminal text made plain without moving a character.

Everything that decorates words (escape codes, box borders, no-break spaces, typographic quotes)
becomes its plain twin or a blank of the same length, so that a position found in the plain text
is the same position in the original.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("level", "one_line", "without_escapes")

_LONGEST = 4000
_BLANKS = re.compile(r"\s+")

# Bounded repeats: an unfinished sequence in a megabyte of noise must not be read to its end.
_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b\n]{0,1024}(?:\x07|\x1b\\)?"
    r"|\x1b[PX^_][^\x1b\n]{0,1024}(?:\x1b\\)?"
    r"|[\x1b\x9b][\[()#;?]{0,4}[0-9;:]{0,64}[A-Za-z=><~]?"
)

_TWINS = {
    **dict.fromkeys(map(ord, "’‘ʼ′`´＇"), "'"),
    **dict.fromkeys(map(ord, "“”„«»＂"), '"'),
    **dict.fromkeys(map(ord, "∙•‧⋅・"), "·"),
    **dict.fromkeys(map(ord, "−‐‑"), "-"),
    **dict.fromkeys(map(ord, "–―"), "—"),
    **dict.fromkeys(map(ord, "（"), "("),
    **dict.fromkeys(map(ord, "）"), ")"),
    **dict.fromkeys(map(ord, "："), ":"),
    **dict.fromkeys(map(ord, "│┃║╎┆┊▏▕"), " "),
    **dict.fromkeys(range(0x2000, 0x2010), " "),
    **dict.fromkeys((0x00A0, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF, 0x1680), " "),
    **dict.fromkeys(range(0x2028, 0x202F), " "),
    **dict.fromkeys(range(0x2066, 0x206A), " "),
    **{code: " " for code in range(0x20) if code != 0x0A},
    **dict.fromkeys(range(0x7F, 0xA0), " "),
}


def level(text: str) -> str:
    """`text` in plain characters, every one at its old position."""
    if text.isascii() and text.isprintable():
        return text.replace("`", "'")
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub(lambda found: " " * len(found[0]), text)
    return text.translate(_TWINS)


def one_line(text: str, codes: Iterable[str] = ()) -> str:
    """`text` as patterns see it: plain characters, single blanks, one line; codes in brackets."""
    text = " ".join((text, *(f"[{code}]" for code in codes)))
    return _BLANKS.sub(" ", level(text[: 2 * _LONGEST])).strip()[:_LONGEST]


def without_escapes(text: str) -> str:
    """`text` without terminal escape sequences; positions move."""
    return _ESCAPES.sub("", text) if "\x1b" in text or "\x9b" in text else text
