"""Streams: restarted unseen while nothing has been delivered, never replayed afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mulligan

if TYPE_CHECKING:
    from collections.abc import Iterator

begun: list[str] = []


@mulligan.retry(effects="idempotent")
def early() -> Iterator[str]:
    """Breaks before its first word, once."""
    begun.append("early")
    if begun.count("early") == 1:
        raise ConnectionResetError("reset before the first word")
    yield from ("the ", "quick ", "brown ", "fox")


@mulligan.retry(effects="idempotent")
def late() -> Iterator[str]:
    """Breaks after two words, always."""
    begun.append("late")
    yield "the "
    yield "quick "
    raise ConnectionResetError("reset after two words")


if __name__ == "__main__":
    print("early:", "".join(early()), f"(begun {begun.count('early')} times)")

    words: list[str] = []
    try:
        for word in late():
            words.append(word)  # noqa: PERF402 -- what came before the break must be kept
    except ConnectionResetError as error:
        story = mulligan.story(error)
        assert story is not None  # noqa: S101 -- whatever passes a guard has one
        print("late: ", "".join(words), f"(begun {begun.count('late')} time)")
        print("      ", story.because)
