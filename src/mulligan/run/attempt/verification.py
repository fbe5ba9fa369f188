"""Whether what an agent did holds: a command says so (R-A2)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ...core.redaction import mask
from ..journal.entries import WorkVerified

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..agents.adapter import Stream
    from ..process.stop import Stop
    from .options import Platform

__all__ = ("evidence", "verified")

# What goes back to the agent: the end of it, where test runners sum up.
_KEPT = 6000


class _Tail:
    """The end of what a command prints, both streams in one."""

    def __init__(self) -> None:
        self.text = b""

    def take(self, _stream: Stream, chunk: bytes) -> None:
        self.text = (self.text + chunk)[-4 * _KEPT :]

    def ending(self) -> None: ...

    def quiet_until(self) -> float:
        return 0.0


def verified(
    command: tuple[str, ...],
    attempt: int,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    timeout: float,
    platform: Platform,
    stop: Stop,
) -> WorkVerified | None:
    """Run the command, and say what it says of the attempt; None if it was stopped."""
    tail = _Tail()
    ended = platform.supervise(
        command,
        cwd=cwd,
        environ=environ,
        stdin=None,
        sink=tail,
        idle=None,
        timeout=timeout,
        stop=stop,
    )
    if ended.stopped and ended.stopped != "timeout":
        return None
    # Masked before it is cut: it is kept in the journal, and shown.
    said = mask(_readable(tail.text.decode("utf-8", "replace")))
    if ended.error:
        said = ended.error
    elif ended.stopped:
        said += f"\n[it was still running after {timeout:g} seconds, and was stopped]"
    elif ended.code and not said.strip():
        said = f"[it ended with exit code {ended.code}, and printed nothing]"
    is_good = ended.code == 0 and not ended.stopped and not ended.error
    return WorkVerified(platform.clock.wall(), attempt, is_good, said[-_KEPT:])


def evidence(command: tuple[str, ...], checked: WorkVerified) -> str:
    """What the agent is told after a check that failed."""
    shown = mask(shlex.join(command))
    return (
        f"Your work was checked with the command {shown!r}, and the check failed. "
        f"This is the end of what it printed:\n\n{checked.said}\n\n"
        "Mend what it complains about. Do not repeat what is finished, and do not weaken the check."
    )


def _readable(text: str) -> str:
    """`text` without what could move a cursor or hide words; its lines stay."""
    return "".join(each for each in text if each in "\n\t" or each.isprintable())
