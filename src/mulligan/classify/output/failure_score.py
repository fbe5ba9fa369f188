"""How much a text reads like the output of a run that failed, rather than a text about failures.

Asked only where the exit code is not known: a document, a test or an answer can quote every word
of an error. The weights of words were learnt from labelled messages by bench/failure_words.py.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from .failure_words import BIAS, LAST_WORDS, QUANTUM, WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "READS_FAILED",
    "READS_HARMLESS",
    "FailureScore",
    "failure_score",
    "weigh",
    "word_counts",
)

READS_FAILED = 1.3
READS_HARMLESS = -1.5
_LINES = 80
_LAST_LINES = 3
_WIDEST = 400
# A word, two characters of a script without spaces, a number, some punctuation.
_WORD = re.compile(
    r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{1,2}|[^\W\d_]{2,24}|\d+|[^\w\s]{1,3}"
)
_STATUS_DIGITS = 3
_NAMED = 3
# Known words and pairs: fewer, and the score counts for less.
_ENOUGH_WORDS = 120


@dataclass(frozen=True, slots=True)
class FailureScore:
    """A score, and why.

    Args:
        value: Above 0 for the output of a run that failed, below 0 for a text about failures,
            near 0 for a text of few words: the logarithm of the odds.
        words: Those that decided most, the strongest first.
    """

    value: float
    words: tuple[str, ...]


def failure_score(text: str) -> FailureScore:
    """Weigh the words of the last lines of `text`."""
    value, shares = weigh(word_counts(text), _weights(), BIAS)
    sign = math.copysign(1.0, value)
    ordered = sorted(shares, key=lambda word: (-sign * shares[word], word))
    plain = (word.removeprefix("l:").replace("_", " ") for word in ordered)
    spoken = dict.fromkeys(word for word in plain if word[-1].isalpha() and word[0].isalpha())
    return FailureScore(value, tuple(spoken)[:_NAMED])


def weigh(
    counts: Mapping[str, int], weights: Mapping[str, float], bias: float
) -> tuple[float, dict[str, float]]:
    """The score of a text by the counts of its words, and the share of each word in it."""
    told = {word: 1 + math.log(count) for word, count in counts.items() if word in weights}
    length = math.sqrt(math.fsum(one * one for one in told.values())) or 1.0
    shares = {word: weights[word] * one / length for word, one in told.items()}
    return (bias + math.fsum(shares.values())) * min(1.0, len(told) / _ENOUGH_WORDS), shares


def word_counts(text: str) -> Counter[str]:
    """The words of the last lines of `text` and their pairs, those of the very last once more.

    ``^`` and ``$`` are the ends of a line, ``^>`` begins an indented one; every number is ``0``,
    but those of three digits, which may be a status.
    """
    counts: Counter[str] = Counter()
    lines = [line for line in text.splitlines() if line.strip()][-_LINES:]
    for left, line in zip(range(len(lines), 0, -1), lines, strict=True):
        found = _WORD.findall(line[:_WIDEST].lower())
        if not found:
            continue
        words = ["^>" if line[0].isspace() else "^", *map(_word, found), "$"]
        words += [f"{one}_{other}" for one, other in pairwise(words)]
        counts.update(words)
        if left <= _LAST_LINES:
            counts.update(f"l:{word}" for word in words)
    return counts


def _word(found: str) -> str:
    return "0" if found.isdecimal() and len(found) != _STATUS_DIGITS else found


@cache
def _weights() -> dict[str, float]:
    return {
        prefix + word: weight * QUANTUM
        for prefix, table in (("", WORDS), ("l:", LAST_WORDS))
        for weight, words in table.items()
        for word in words.split()
    }
