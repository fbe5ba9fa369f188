"""How long a pattern takes on text that is made to hurt it.

Lengths grow slowly, and the first slow one ends the search: a pattern with catastrophic
backtracking doubles its time with every character, so it is caught at thirty, not at four
thousand. Texts repeat the pattern's own words, because a pattern is slow on what almost fits it.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("LIMIT_SECONDS", "TEXT_LENGTH", "slowest")

# What a message is cut to before it is matched.
TEXT_LENGTH = 4000
LIMIT_SECONDS = 0.05
_LENGTHS = (8, 12, 16, 20, 24, 28, 32, 40, 64, 256, 1000, TEXT_LENGTH)
_SEEDS = ("a", " ", "0", "a ", "0.", "- ", "you've hit your limit ", "(", "aA0_-. ")
_WORDS = re.compile(r"[a-z]{3,}")


def slowest(pattern: re.Pattern[str]) -> tuple[float, int]:
    """The longest search of `pattern` in seconds, with the length of the text that caused it."""
    worst, at = 0.0, 0
    for seed in _seeds(pattern.pattern):
        for length in _LENGTHS:
            # The last character breaks what the rest has promised.
            text = (seed * (length // len(seed) + 1))[: length - 1] + "!"
            seconds = _search(pattern, text)
            if seconds > LIMIT_SECONDS:
                # A cold or throttled processor is not a slow pattern: the second look decides.
                seconds = min(seconds, _search(pattern, text))
            if seconds > worst:
                worst, at = seconds, length
            if seconds > LIMIT_SECONDS:
                return worst, at
    return worst, at


def _seeds(pattern: str) -> Iterator[str]:
    yield from _SEEDS
    words = list(dict.fromkeys(_WORDS.findall(re.sub(r"\\[a-zA-Z]|\(\?P?<?\w*>?", " ", pattern))))[
        :8
    ]
    yield from (f"{word} " for word in words[:4])
    if words:
        yield " ".join(words) + " "


def _search(pattern: re.Pattern[str], text: str) -> float:
    began = time.thread_time()  # of the processor: others' work is no fault of a pattern
    pattern.search(text)
    return time.thread_time() - began
