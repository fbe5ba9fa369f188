"""What an agent has done in a tree of its own, written down as often as there is more of it.

A tree is lent, taken back, and perhaps lent again: each time with a baseline of its own, which
every record names. So nothing that was taken before stands for work that was done later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .baseline import smudged, stored
from .objects import Objects, entries_of
from .record import FileState, Move
from .refs import load_all, withdraw, write
from .status import TreeStatus

if TYPE_CHECKING:
    from .files import TreeEntry
    from .record import Baseline, SetAside, State
    from .tree import Tree

__all__ = ("CLOSED", "collect", "fresh", "last_of", "written")

# Nothing more becomes of it: what its agent does from then on is other work.
CLOSED: frozenset[State] = frozenset({"returned", "kept"})


def collect(
    own: Tree, key: str, baseline: Baseline, last: SetAside | None, *, folder: str
) -> SetAside | None:
    """Write down what the agent has done in its tree, unless just that was written down before.

    Args:
        own: The agent's tree.
        key: What the agent is called, as ``RUN/agents/NAME``.
        baseline: The tree when it was lent.
        last: What was written down last.
        folder: Where it will be given back.
    """
    status, objects = TreeStatus.checked(own), Objects(own.store)
    moves = _moves(own, key, baseline, status, objects)
    if last is not None and last.state != "returned" and _same(last.moves, moves):
        return last
    if last is not None and last.state == "prepared":
        withdraw(own, last)  # nothing of it was given, and what is in the folder is newer
        last = None
    if not moves:
        return last
    since = baseline.commit
    return write(
        status,
        key,
        "worktree",
        objects,
        moves=moves,
        left=status.left,
        folder=folder,
        since=since,
    )


def _moves(
    own: Tree, key: str, baseline: Baseline, status: TreeStatus, objects: Objects
) -> tuple[Move, ...]:
    """What the agent has done since it was last given back, its own commits included."""
    known = dict(baseline.places)
    for each in written(own, key, baseline):
        if each.state == "returned":
            known.update({move.path: move.aside for move in each.moves})
    then = entries_of(own, baseline.head)
    moved = {path for path in {*then, *status.head} if then.get(path) != status.head.get(path)}
    hands_off = {each.path for each in status.left}
    paths = sorted({*status.dirty, *moved, *known} - hands_off)
    now = stored(own, paths, status, objects)
    clean: dict[str, TreeEntry] = smudged(
        own, baseline.head, {p: then[p] for p in paths if p in then and p not in known}, objects
    )
    moves = []
    for path in paths:
        base = known.get(path) or FileState(tree=clean.get(path), index=then.get(path))
        if base.tree != now[path].tree:
            moves.append(Move(path=path, base=base, aside=now[path]))
    return tuple(moves)


def fresh(
    own: Tree, key: str, baseline: Baseline, status: TreeStatus | None = None
) -> tuple[Move, ...]:
    """What the agent's tree has that was neither given to anybody nor kept."""
    moves = _moves(own, key, baseline, status or TreeStatus.of(own), Objects(own.store))
    last = last_of(own, key, baseline)
    is_kept = last is not None and last.state in CLOSED and _same(last.moves, moves)
    return () if is_kept else moves


def _same(some: tuple[Move, ...], others: tuple[Move, ...]) -> bool:
    """Whether they leave the same files; how those are staged is not looked at."""
    one, other = (
        {move.path: (move.base.tree, move.aside.tree) for move in moves} for moves in (some, others)
    )
    return one == other


def written(tree: Tree, key: str, baseline: Baseline | None = None) -> list[SetAside]:
    """What was written down, be it since `baseline`: another each time the tree is lent."""
    return [
        each
        for each in load_all(tree, key)
        if each.mode == "worktree" and (baseline is None or each.since == baseline.commit)
    ]


def last_of(tree: Tree, key: str, baseline: Baseline | None) -> SetAside | None:
    """What was written down last since `baseline`, or at all if that is forgotten."""
    return next(reversed(written(tree, key, baseline)), None)
