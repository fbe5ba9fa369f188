"""Removes old runs: their journal, their logs, their folders, what git keeps for them.

A run that has ended is kept for 30 days, one that can be resumed is kept for ever. A plan is also
kept as long as git holds work of it that was never given back: only its user may delete that, with
``mulligan git drop``. The agents of a plan are kept as long as the plan, because a resumed plan
uses their results. Runs that cannot be read are left alone. A folder of logs without a run, left by
a crash, is removed after a day.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ...errors import GitError, MulliganError
from .entries import PLAN
from .store import NoSuchRun, UnreadableRun

if TYPE_CHECKING:
    from ..git import Tree
    from .state import RunState
    from .store import RunStore

__all__ = ("KEPT", "prune", "prune_daily")

KEPT = 30 * 86_400.0
_DAY = 86_400.0


def prune(runs: RunStore, now: float, *, kept: float = KEPT) -> tuple[str, ...]:
    """Remove runs that ended more than `kept` seconds before `now`; returns their ids."""
    gone = []
    known = set(runs.ids())
    for id_ in sorted(known):
        plan = id_.partition(".")[0]
        if plan != id_ and plan in known:
            continue  # removed with its plan
        with contextlib.suppress(UnreadableRun):
            state = runs.look(id_)
            # A limited run counts from when it could have resumed.
            if state is None or state.is_open or max(state.at, state.until or 0) > now - kept:
                continue
            trees = _trees(runs, id_, state)
            if _keeps_work(runs, id_, trees):
                continue
            if runs.forget(id_, state.steps):
                _forget_trees(id_, trees)
                gone.append(id_)
    _sweep(runs, known, now)
    return tuple(gone)


def _trees(runs: RunStore, id_: str, state: RunState) -> list[Tree]:
    """The git trees that a plan has worked in; empty if one of them is gone."""
    if state.made.agent != PLAN:
        return []
    from ..git import Tree
    from ..plan.drive import kept_plan
    from ..plan.trees import tree_folders

    with contextlib.suppress(GitError, NoSuchRun, OSError):
        plan, _, cwd = kept_plan(runs, id_)
        return [Tree.find(folder) for folder in sorted(tree_folders(plan, cwd))]
    return []


def _keeps_work(runs: RunStore, id_: str, trees: list[Tree]) -> bool:
    """Whether git holds work of a run that exists nowhere else; True if that cannot be read."""
    folder = runs.folder / "worktrees" / id_
    left = {os.path.realpath(each) for each in folder.iterdir()} if folder.is_dir() else set()
    if not trees:
        return bool(left)
    from ..git import agent_worktrees, holds_unsaved_work

    try:
        for tree in trees:
            if holds_unsaved_work(tree, id_):
                return True
            left -= {each.folder for each in agent_worktrees(tree, id_)}
    except (GitError, OSError):
        return True
    return bool(left)


def _forget_trees(id_: str, trees: list[Tree]) -> None:
    """Remove what git keeps for a run: its references, and the trees that agents were lent."""
    for tree in trees:
        from ..git import agent_worktrees, drop, remove_worktree

        with contextlib.suppress(GitError, OSError):  # a tree that is gone keeps nothing
            for worktree in agent_worktrees(tree, id_):
                remove_worktree(tree, worktree)
            drop(tree, id_)


def _sweep(runs: RunStore, known: set[str], now: float) -> None:
    """Remove folders of logs without a run in the journal, left by a crash before the run was made.

    Folders older than the journal are kept: they belonged to a journal that was lost, and are all
    that is left of its runs. Trees of agents stay as well: they can be made without a run.
    """
    import shutil  # which loads three compressors, and this is done once a day

    made_at = runs.made_at()
    folder = runs.folder / "runs"
    for each in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            if each.name not in known and made_at < each.stat().st_mtime < now - _DAY:
                shutil.rmtree(each)


def prune_daily(runs: RunStore, now: float) -> tuple[str, ...]:
    """`prune`, unless that was done within the last day. Never raises: no user asked for it.

    A state folder that was never pruned was made just now: its turn is tomorrow.
    """
    mark = runs.folder / "pruned"
    try:
        is_new = not mark.exists()
        if not is_new and now - _DAY < mark.stat().st_mtime <= now + _DAY:
            return ()
        mark.touch(mode=0o600)
        return () if is_new else prune(runs, now)
    except (MulliganError, OSError):
        return ()
