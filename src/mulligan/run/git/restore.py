"""Gives back what was set aside, merging each path with its current content.

as it was left           what was set aside comes back
as it was set aside      nothing to do
text, changed since      both changes, if they touch different lines
anything else            a conflict: nothing is touched, both versions stay reachable
"""

from __future__ import annotations

import os
import shlex
import tempfile
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .apply import PathStep, apply_steps
from .files import FILE, PROGRAM, TreeEntry
from .objects import Objects
from .record import SetAside
from .refs import add_record, load, reading, restore_plan, set_state

if TYPE_CHECKING:
    from .record import Move
    from .status import TreeStatus
    from .tree import Tree

__all__ = ("Conflict", "RestoreResult", "continue_restore", "restore_paths")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A path that could not be given back.

    Args:
        path: In the tree.
        reason: Why, in a clause.
        command: What prints the version that was set aside; empty if that was a deletion.
    """

    path: str
    reason: str
    command: str

    def to_json(self) -> dict[str, str]:
        """Plain data for a record."""
        return {"path": self.path, "reason": self.reason, "command": self.command}


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """What giving back has done, or would do.

    Args:
        aside: What was set aside, as it is now.
        paths: What is back.
        merged: Paths among them that have newer changes, too: other lines of the same file.
        conflicts: What is not back.
        unstaged: What is back but not staged as it was: something else is staged by now.
    """

    aside: SetAside
    paths: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    unstaged: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether everything is back."""
        return not self.conflicts


def restore_paths(
    tree: Tree, aside: SetAside, status: TreeStatus, *, is_partial: bool, is_rehearsal: bool
) -> RestoreResult:
    """Give back; see `mulligan.run.git.restore_changes`."""
    aside = load(tree, aside.run, aside.number) or aside
    if aside.state == "returning" and not is_rehearsal:
        return continue_restore(tree, aside)
    if aside.state in {"returned", "committed", "kept"}:
        return RestoreResult(aside=aside)
    objects = Objects(tree.store)
    steps, plan = _plan(tree, aside, status, objects)
    if is_rehearsal:
        return plan
    if plan.conflicts and not is_partial:
        return replace(plan, paths=(), merged=(), unstaged=())
    record = _recorded(objects, steps, plan)
    announced = set_state(tree, aside, "returning", plan=record, objects=objects)
    return _done(tree, announced, steps, plan)


def continue_restore(tree: Tree, aside: SetAside) -> RestoreResult:
    """Finish the plan that a process recorded before it died."""
    data = restore_plan(tree, aside)
    moves = {move.path: move for move in aside.moves}
    steps = [
        PathStep(
            path=each["path"],
            before=_entry(each["before"]),
            after=_entry(each["after"]),
            permissions=moves[each["path"]].aside.permissions,
            staged=_staged(aside, moves[each["path"]]),
        )
        for each in data["steps"]
    ]
    plan = RestoreResult(
        aside=aside,
        paths=tuple(step.path for step in steps),
        merged=tuple(data["merged"]),
        conflicts=tuple(Conflict(**each) for each in data["conflicts"]),
        unstaged=tuple(data["unstaged"]),
    )
    return _done(tree, aside, steps, plan)


def _done(tree: Tree, aside: SetAside, steps: list[PathStep], plan: RestoreResult) -> RestoreResult:
    late = apply_steps(tree, steps, aside.folders)
    conflicts = (
        *plan.conflicts,
        *(_conflict(aside, path, "it was changed meanwhile") for path in late),
    )
    return replace(
        plan,
        aside=set_state(tree, aside, "partly" if conflicts else "returned"),
        paths=tuple(path for path in plan.paths if path not in late),
        conflicts=conflicts,
    )


def _plan(
    tree: Tree, aside: SetAside, status: TreeStatus, objects: Objects
) -> tuple[list[PathStep], RestoreResult]:
    """What to do at each path; whatever is overwritten is stored first, in `objects`."""
    steps: list[PathStep] = []
    merged: list[str] = []
    conflicts: list[Conflict] = []
    unstaged: list[str] = []
    for move in aside.moves:
        now, goal = tree.files.entry(move.path), move.aside.tree
        if now not in {goal, move.base.tree}:
            both = _merged(tree, move, now, objects)
            if both is None:
                conflicts.append(_conflict(aside, move.path, _why(now, goal)))
                continue
            goal = both
            merged.append(move.path)
        staged = _staged(aside, move)
        steps.append(
            PathStep(
                path=move.path,
                before=now,
                after=goal,
                permissions=move.aside.permissions,
                staged=staged,
            )
        )
        index = status.index(move.path)
        known = [(each.index, each.is_intended) for each in (move.base, move.aside)]
        if staged is not None and index not in known:
            unstaged.append(move.path)
    plan = RestoreResult(
        aside=aside,
        paths=tuple(step.path for step in steps),
        merged=tuple(merged),
        conflicts=tuple(conflicts),
        unstaged=tuple(unstaged),
    )
    return steps, plan


def _staged(aside: SetAside, move: Move) -> Any:
    # What an agent staged in its own tree does not apply to the user's index.
    return None if aside.mode == "worktree" else (move.base, move.aside)


def _recorded(objects: Objects, steps: list[PathStep], plan: RestoreResult) -> str:
    entries: dict[str, TreeEntry | None] = {}
    for step in steps:
        if step.path in plan.merged:
            entries[f"had/{step.path}"] = step.before
            entries[f"merged/{step.path}"] = step.after
    data = {
        "steps": [
            {"path": each.path, "before": _plain(each.before), "after": _plain(each.after)}
            for each in steps
        ],
        "merged": plan.merged,
        "conflicts": [each.to_json() for each in plan.conflicts],
        "unstaged": plan.unstaged,
    }
    return add_record(objects, data, entries)


def _merged(tree: Tree, move: Move, now: TreeEntry | None, objects: Objects) -> TreeEntry | None:
    """Both changes in one file, in `objects`; None if they touch the same lines, or are no text."""
    base, theirs = move.base.tree, move.aside.tree
    if not (now and base and theirs and now.is_file and base.is_file and theirs.is_file):
        return None
    mode = theirs.mode if now.mode == base.mode else now.mode
    place = tree.files.place(move.path)
    with open(place, "rb") as file:
        ours = file.read()
    if tree.files.name(ours) != now.oid:
        return None
    with tempfile.TemporaryDirectory(dir=tree.scratch) as folder, reading(tree) as reader:
        contents = {"now": ours, "base": reader.read(base.oid), "aside": reader.read(theirs.oid)}
        names = [os.path.join(folder, name) for name in contents]
        for name, content in zip(names, contents.values(), strict=True):
            with open(name, "wb") as file:
                file.write(content)
        answer = tree.git.ask("merge-file", "-p", "-q", "--", *names)
    if answer.code:
        return None
    objects.blob(ours)
    return TreeEntry(PROGRAM if mode == PROGRAM else FILE, objects.blob(answer.out))


def _why(now: TreeEntry | None, goal: TreeEntry | None) -> str:
    if now is None:
        return "it was removed since"
    return "it was changed since" if goal is not None else "it was removed, and changed since"


def _conflict(aside: SetAside, path: str, reason: str) -> Conflict:
    is_there = any(move.path == path and move.aside.tree for move in aside.moves)
    command = f"git show {shlex.quote(f'{aside.commit}:{path}')}" if is_there else ""
    return Conflict(path=path, reason=reason, command=command)


def _plain(entry: TreeEntry | None) -> list[str] | None:
    return None if entry is None else [entry.mode, entry.oid]


def _entry(data: list[str] | None) -> TreeEntry | None:
    return None if data is None else TreeEntry(*data)
