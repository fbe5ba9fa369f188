"""Suggestions for misspelt words: the nearest known one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("nearest",)


def nearest(word: str, known: Iterable[str]) -> str:
    """``did you mean 'server'?``, or the list of what is known where nothing is near."""
    from difflib import get_close_matches

    words = [str(each) for each in known]
    near = get_close_matches(word.lower(), words, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(words)}"
