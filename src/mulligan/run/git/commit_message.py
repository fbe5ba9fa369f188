"""The words of a commit that a machine makes.

They come from an agent, so they are data: one line, no control or direction characters, no secrets,
cut. The trailer at the end says which run it was, for people and for recovery.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ...core.redaction import presentable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("PREFIX", "TRAILER", "message_of")

PREFIX = "mulligan: "
TRAILER = "Mulligan-Run"

# What git log and most web pages show of a subject.
_SUBJECT = 72


def message_of(words: str, paths: Sequence[str], *, name: str, prefix: str = PREFIX) -> str:
    """A subject, the rest of the words, the trailer.

    Args:
        words: The agent's last words; empty to speak of the files instead.
        paths: What was changed.
        name: ``RUN/NUMBER``.
        prefix: Stands before the subject.
    """
    said = presentable(words) or _files(paths)
    room = max(20, _SUBJECT - len(prefix))
    subject, rest = said, ""
    if len(said) > room:
        cut = said.rfind(" ", 0, room)
        cut = cut if cut > 0 else room - 1
        subject, rest = said[:cut].rstrip() + "…", "…" + said[cut:].lstrip()
    parts = [presentable(prefix, 60) + " " * prefix.endswith(" ") + subject]
    if rest:
        parts.append(textwrap.fill(rest, _SUBJECT, break_on_hyphens=False))
    parts.append(f"{TRAILER}: {name}")
    return "\n\n".join(parts) + "\n"


def _files(paths: Sequence[str]) -> str:
    names = ", ".join(presentable(path, 60) for path in paths[:3])
    if len(paths) == 1:
        return f"unfinished changes to {names}"
    return f"unfinished changes to {len(paths)} files: {names}" + ", …" * (len(paths) > 3)
