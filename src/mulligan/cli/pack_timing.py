"""Times patterns of packs on hostile text.

Patterns that could take exponential time are refused before they get here
(`classify.pattern_cost`); this finds those that are merely slow. Lengths grow slowly, and the
first slow one ends the search. Texts repeat the pattern's own words, because a pattern is slow on
what almost fits it.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from ..classify.pattern_packs import TEXT_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("LIMIT_SECONDS", "slowest")

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
    began = time.thread_time()  # of the processor: other processes do not count
    pattern.search(text)
    return time.thread_time() - began
