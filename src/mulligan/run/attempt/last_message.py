"""What an agent said last, before it failed.

It becomes the message of a commit (R-P5), so it has to be the agent's own words: not the error that
ended it, not what a tool printed, not the question that it was asked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .output import tail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ("last_words",)

# Events, or parts of them, in which nobody speaks but a tool, the user, or the program itself.
_NOT_SAID = frozenset({
    *("user", "tool_result", "tool_use", "tool", "system", "error", "result", "thinking"),
    *("reasoning", "command_execution", "file_change"),
})  # fmt: skip
# A document that nests deeper is no event of a program's.
_DEEPEST = 8


def last_words(log: Path, failure: str = "") -> str:
    """The last text that the agent wrote in an attempt; empty if it wrote none.

    Args:
        log: The attempt's log, without the suffix.
        failure: The message that it failed with, which is nobody's words.
    """
    printed, _ = tail(log)
    error = " ".join(failure.split())
    for line in reversed(printed.decode("utf-8", "replace").splitlines()):
        for text in _said(line.strip()):
            words = " ".join(text.split())
            if words and not (error and (words in error or error in words)):
                return words
    return ""


def _said(line: str) -> Iterator[str]:
    """The texts of one line of output, the last first."""
    if not line.startswith("{"):
        yield line
        return
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return  # half an event
    texts = list(_texts(event, 0))
    for text in reversed(texts):
        yield text.strip().rpartition("\n\n")[2]


def _texts(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for each in value:
            yield from _texts(each, depth + 1)
    if not isinstance(value, dict) or {value.get("type"), value.get("role")} & _NOT_SAID:
        return
    for key, each in value.items():
        is_text = key == "text" or (key == "content" and value.get("role") == "assistant")
        if isinstance(each, str) and is_text:
            yield each
        elif isinstance(each, dict | list):
            yield from _texts(each, depth + 1)
