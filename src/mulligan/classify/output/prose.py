"""How much prose stands below a line: a banner with an answer below it is part of the answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .echo import is_frame, is_survival, is_trailer, prose_words
from .wraps import continues

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("ANSWER", "PROSE_AFTER_ALL", "PROSE_AFTER_BANNER", "PROSE_AFTER_ERROR", "prose_after")

# ⏺ I went on where I had stopped, …: an answer, so whatever stands above it was survived.
_BULLET = re.compile(r"\s{0,4}[⏺●]\s{1,3}[A-Z]")
ANSWER = 12
# "Estimated usage" is a heading, no answer.
_LABEL = 3
_SENTENCE = re.compile(r"[.!?…]\s*$")
# Words of prose below it that make a banner part of an answer; an error is believed for longer,
# because programs explain their errors.
PROSE_AFTER_BANNER = 8
PROSE_AFTER_ERROR = 25
PROSE_AFTER_ALL = 400


def prose_after(lines: Sequence[str], echoed: Sequence[bool]) -> list[int]:
    """For each line, how many words of prose stand below it."""
    after, total = [0] * len(lines), 0
    is_advice = _advice(lines, echoed)
    for index in range(len(lines) - 1, -1, -1):
        after[index] = total
        line = lines[index]
        if is_survival(line):
            total += PROSE_AFTER_ERROR + 1
        is_continued = index > 0 and continues(lines[index - 1], line)
        if not is_continued and not is_advice[index]:
            words = prose_words(line)
            is_answer = words >= ANSWER and _BULLET.match(line) is not None
            is_label = words <= _LABEL and not _SENTENCE.search(line[-40:])
            total += PROSE_AFTER_ERROR + 1 if is_answer else 0 if is_label else words
    return after


def _advice(lines: Sequence[str], echoed: Sequence[bool]) -> list[bool]:
    """For each line, whether it may follow a banner: advice, also as an item of a list."""
    found: list[bool] = []
    is_headed = False
    for line, is_echoed in zip(lines, echoed, strict=True):
        is_item = is_headed and line.lstrip().startswith(("- ", "* ", "• "))
        found.append(is_frame(line) or (is_trailer(line) and (is_item or not is_echoed)))
        is_headed = found[-1] and (is_item or line.rstrip().endswith(":"))
    return found
