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
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from .apply import PathStep, apply_steps
from .files import FILE, PROGRAM, TreeEntry
from .objects import Objects
from .record import SetAside, entry_from_json, entry_to_json
from .refs import add_record, load, reading, restore_plan, set_state

if TYPE_CHECKING:
    from .record import Move
    from .status import TreeStatus
    from .tree import Tree

__all__ = ("Conflict", "RestoreResult", "restore_paths")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A path that could not be given back."""

    path: str
    reason: str  # in a clause
    command: str  # prints the version that was set aside; empty if that was a deletion


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """What giving back has done, or would do."""

    aside: SetAside  # as it is now
    paths: tuple[str, ...] = ()  # given back
    merged: tuple[str, ...] = ()  # those with newer changes, too, in other lines of the file
    conflicts: tuple[Conflict, ...] = ()  # not given back
    unstaged: tuple[str, ...] = ()  # given back, not staged as before: something else is staged

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
        return _continue(tree, aside)
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


def _continue(tree: Tree, aside: SetAside) -> RestoreResult:
    """Finish the plan that a process recorded before it died."""
    data = restore_plan(tree, aside)
    moves = {move.path: move for move in aside.moves}
    steps = []
    for each in data["steps"]:
        before, after = entry_from_json(each["before"]), entry_from_json(each["after"])
        steps.append(_step(aside, moves[each["path"]], before, after))
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
    conflicts = [*plan.conflicts]
    conflicts += [_conflict(aside, path, "it was changed meanwhile") for path in late]
    return replace(
        plan,
        aside=set_state(tree, aside, "partly" if conflicts else "returned"),
        paths=tuple(path for path in plan.paths if path not in late),
        conflicts=tuple(conflicts),
    )


def _plan(
    tree: Tree, aside: SetAside, status: TreeStatus, objects: Objects
) -> tuple[list[PathStep], RestoreResult]:
    """What to do at each path; contents that get overwritten are added to `objects`."""
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
        step = _step(aside, move, now, goal)
        steps.append(step)
        known = (move.base.staged, move.aside.staged)
        if step.staged is not None and status.index(move.path) not in known:
            unstaged.append(move.path)
    plan = RestoreResult(
        aside=aside,
        paths=tuple(step.path for step in steps),
        merged=tuple(merged),
        conflicts=tuple(conflicts),
        unstaged=tuple(unstaged),
    )
    return steps, plan


def _step(
    aside: SetAside, move: Move, before: TreeEntry | None, after: TreeEntry | None
) -> PathStep:
    return PathStep(
        path=move.path,
        before=before,
        after=after,
        permissions=move.aside.permissions,
        # What an agent staged in its own tree does not apply to the user's index.
        staged=None if aside.mode == "worktree" else (move.base, move.aside),
    )


def _recorded(objects: Objects, steps: list[PathStep], plan: RestoreResult) -> str:
    entries: dict[str, TreeEntry | None] = {}
    for step in steps:
        if step.path in plan.merged:
            entries[f"had/{step.path}"] = step.before
            entries[f"merged/{step.path}"] = step.after
    data = {
        "steps": [
            {
                "path": each.path,
                "before": entry_to_json(each.before),
                "after": entry_to_json(each.after),
            }
            for each in steps
        ],
        "merged": plan.merged,
        "conflicts": [asdict(each) for each in plan.conflicts],
        "unstaged": plan.unstaged,
    }
    return add_record(objects, data, entries)


def _merged(tree: Tree, move: Move, now: TreeEntry | None, objects: Objects) -> TreeEntry | None:
    """Both changes in one file, added to `objects`; None if they touch the same lines."""
    base, theirs = move.base.tree, move.aside.tree
    if not (now and base and theirs and now.is_file and base.is_file and theirs.is_file):
        return None
    mode = theirs.mode if now.mode == base.mode else now.mode
    place = tree.files.place(move.path)
    with open(place, "rb") as file:
        ours = file.read()
    if tree.files.oid_of(ours) != now.oid:
        return None
    with tempfile.TemporaryDirectory(dir=tree.scratch) as folder, reading(tree) as reader:
        contents = {"now": ours, "base": reader.read(base.oid), "aside": reader.read(theirs.oid)}
        names = [os.path.join(folder, name) for name in contents]
        for name, content in zip(names, contents.values(), strict=True):
            with open(name, "wb") as file:
                file.write(content)
        done = tree.git.ask("merge-file", "-p", "-q", "--", *names)
    if done.code:  # the same lines, or not text
        return None
    objects.blob(ours)
    return TreeEntry(PROGRAM if mode == PROGRAM else FILE, objects.blob(done.out))


def _why(now: TreeEntry | None, goal: TreeEntry | None) -> str:
    if now is None:
        return "it was removed since"
    return "it was changed since" if goal is not None else "it was removed, and changed since"


def _conflict(aside: SetAside, path: str, reason: str) -> Conflict:
    is_there = any(move.path == path and move.aside.tree for move in aside.moves)
    command = f"git show {shlex.quote(f'{aside.commit}:{path}')}" if is_there else ""
    return Conflict(path=path, reason=reason, command=command)
