"""Numbers as people write them: ``1,234``, ``1 234``, ``1'234``, ``1_234``, ``2,5``, ``三十``.

The digits of a number are read together or not at all: "1 234 seconds" is never one second.
"""

from __future__ import annotations

from ...core.lazy_pattern import lazy

__all__ = ("FIGURES", "GROUPED", "HAN", "HAN_DIGITS", "number_of", "ungrouped")

# Thousands, all behind the same sign. "429 300" is a status and the number behind it.
GROUPED = r"(?:(?![45]\d\d\s)[1-9]\d{0,2}(?P<sep>[,'_ ])\d{3}(?:(?P=sep)\d{3}){0,5}(?!\d))"
# With a decimal part; a comma is one where three digits do not follow it.
FIGURES = rf"(?:{GROUPED}(?:\.\d{{1,15}})?|\d{{1,9}}(?:[.,]\d{{1,15}})?|\.\d{{1,15}})"
HAN_DIGITS = "〇零一二三四五六七八九十百千两兩半"
# 十分 is "very" as often as ten minutes, 百分 begins a percentage.
HAN = rf"(?:(?!十分(?![钟鐘間後后])|百分)[{HAN_DIGITS}]{{1,7}})"

_GROUPED = lazy(rf"(?<![\w.,:'-]){GROUPED}")
_DIGITS = {
    **{figure: value for value, figure in enumerate("〇一二三四五六七八九")},
    "零": 0,
    "两": 2,
    "兩": 2,
}
_PLACES = {"十": 10, "百": 100, "千": 1000}


def ungrouped(text: str) -> str:
    """`text` with its numbers free of signs between thousands."""
    return _GROUPED.sub(lambda found: found[0].replace(found["sep"], ""), text)


def number_of(words: str) -> float:
    """The number that `FIGURES` or `HAN` found."""
    if words[0] in _DIGITS or words[0] in _PLACES or words[0] == "半":
        return _han(words)
    return float(ungrouped(words).replace(",", "."))


def _han(words: str) -> float:
    total, digits = 0.0, 0
    for sign in words:
        if sign in _PLACES:
            total, digits = total + (digits or 1) * _PLACES[sign], 0
        elif sign == "半":
            total += 0.5
        else:
            digits = digits * 10 + _DIGITS[sign]
    return total + digits
