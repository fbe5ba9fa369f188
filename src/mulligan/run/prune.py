"""Old runs are forgotten: their journal, their logs, their folders.

A run that has ended stays for 30 days; one that can go on by itself stays for good. What a crash
left without a journal, half a run, goes after a day.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from .desk import InOtherHands

if TYPE_CHECKING:
    from .desk import Desk

__all__ = ("KEPT", "prune", "prune_daily")

KEPT = 30 * 86_400.0
_DAY = 86_400.0


def prune(desk: Desk, now: float, *, kept: float = KEPT) -> tuple[str, ...]:
    """Forget what ended more than `kept` seconds before `now`; the ids of what went."""
    gone = []
    for id_ in desk.ids():
        state = desk.look(id_)
        if state is None or state.is_open or state.at > now - kept:
            continue
        try:
            claimed = desk.claim(id_, now)  # somebody may be taking it up at this moment
        except InOtherHands:
            continue
        except OSError:  # its folder is gone: then nobody can
            claimed = None
        state = desk.look(id_)
        if state is not None and not state.is_open:
            desk.forget(id_)
            gone.append(id_)
        if claimed is not None:
            desk.release(claimed)
    _sweep(desk, now)
    return tuple(gone)


def _sweep(desk: Desk, now: float) -> None:
    """Remove folders that no journal knows."""
    import shutil

    known = set(desk.ids())
    folder = desk.folder / "runs"
    for each in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            if each.name not in known and each.stat().st_mtime < now - _DAY:
                shutil.rmtree(each)


def prune_daily(desk: Desk, now: float) -> tuple[str, ...]:
    """`prune`, unless that was done within the last day."""
    mark = desk.folder / "pruned"
    with contextlib.suppress(FileNotFoundError):
        if now - _DAY < mark.stat().st_mtime <= now + _DAY:
            return ()
    mark.touch(mode=0o600)
    return prune(desk, now)
