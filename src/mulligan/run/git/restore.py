"""Giving back what was set aside, path by path, against whatever stands there by now.

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

from .apply import Step, take
from .files import FILE, PROGRAM, Entry
from .objects import reader, write_blob, write_files
from .record import SetAside
from .refs import advance, load, plan_of, write_record
from .status import Status

if TYPE_CHECKING:
    from .places import Move
    from .tree import Tree

__all__ = ("Conflict", "GivenBack", "bring_back", "go_on_bringing")


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
class GivenBack:
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


def bring_back(tree: Tree, aside: SetAside, *, is_partial: bool, is_rehearsal: bool) -> GivenBack:
    """Give back; see `mulligan.run.git.give_back`."""
    aside = load(tree, aside.run, aside.number) or aside
    if aside.state == "returning" and not is_rehearsal:
        return go_on_bringing(tree, aside)
    if aside.state in {"returned", "committed", "kept"}:
        return GivenBack(aside=aside)
    steps, plan = _plan(tree, aside)
    if is_rehearsal:
        return plan
    if plan.conflicts and not is_partial:
        return replace(plan, paths=(), merged=(), unstaged=())
    announced = advance(tree, aside, "returning", plan=_written(tree, steps, plan))
    return _done(tree, announced, steps, plan)


def go_on_bringing(tree: Tree, aside: SetAside) -> GivenBack:
    """Go on with what a process that died had announced."""
    data = plan_of(tree, aside)
    moves = {move.path: move for move in aside.moves}
    steps = [
        Step(
            path=each["path"],
            before=_entry(each["before"]),
            after=_entry(each["after"]),
            permissions=moves[each["path"]].aside.permissions,
            staged=_staged(aside, moves[each["path"]]),
        )
        for each in data["steps"]
    ]
    plan = GivenBack(
        aside=aside,
        paths=tuple(step.path for step in steps),
        merged=tuple(data["merged"]),
        conflicts=tuple(Conflict(**each) for each in data["conflicts"]),
        unstaged=tuple(data["unstaged"]),
    )
    return _done(tree, aside, steps, plan)


def _done(tree: Tree, aside: SetAside, steps: list[Step], plan: GivenBack) -> GivenBack:
    late = take(tree, steps, aside.folders)
    conflicts = (
        *plan.conflicts,
        *(_conflict(aside, path, "it was changed meanwhile") for path in late),
    )
    return replace(
        plan,
        aside=advance(tree, aside, "partly" if conflicts else "returned"),
        paths=tuple(path for path in plan.paths if path not in late),
        conflicts=conflicts,
    )


def _plan(tree: Tree, aside: SetAside) -> tuple[list[Step], GivenBack]:
    """What to do at each path; whatever is overwritten is stored first."""
    status = Status.of(tree)
    steps: list[Step] = []
    merged: list[str] = []
    conflicts: list[Conflict] = []
    unstaged: list[str] = []
    for move in aside.moves:
        now, goal = tree.files.entry(move.path), move.aside.tree
        if now not in {goal, move.base.tree}:
            both = _merged(tree, move, now)
            if both is None:
                conflicts.append(_conflict(aside, move.path, _why(now, goal)))
                continue
            goal = both
            merged.append(move.path)
        staged = _staged(aside, move)
        steps.append(
            Step(
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
    plan = GivenBack(
        aside=aside,
        paths=tuple(step.path for step in steps),
        merged=tuple(merged),
        conflicts=tuple(conflicts),
        unstaged=tuple(unstaged),
    )
    return steps, plan


def _staged(aside: SetAside, move: Move) -> Any:
    # What an agent staged in a tree of its own says nothing about the user's index.
    return None if aside.mode == "worktree" else (move.base, move.aside)


def _written(tree: Tree, steps: list[Step], plan: GivenBack) -> str:
    entries: dict[str, Entry | None] = {}
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
    return write_record(tree, data, entries)


def _merged(tree: Tree, move: Move, now: Entry | None) -> Entry | None:
    """Both changes in one file, stored; None if they touch the same lines, or are no text."""
    base, theirs = move.base.tree, move.aside.tree
    if not (now and base and theirs and now.is_file and base.is_file and theirs.is_file):
        return None
    mode = theirs.mode if now.mode == base.mode else now.mode
    if write_files(tree.git, [tree.files.place(move.path)]) != [now.oid]:
        return None
    with tempfile.TemporaryDirectory(dir=tree.scratch) as folder, reader(tree.git) as read:
        names = []
        for name, oid in (("now", now.oid), ("base", base.oid), ("aside", theirs.oid)):
            names.append(os.path.join(folder, name))
            with open(names[-1], "wb") as file:
                file.write(read(oid))
        answer = tree.git.ask("merge-file", "-p", "-q", "--", *names)
    if answer.code:
        return None
    return Entry(PROGRAM if mode == PROGRAM else FILE, write_blob(tree.git, answer.out))


def _why(now: Entry | None, goal: Entry | None) -> str:
    if now is None:
        return "it was removed since"
    return "it was changed since" if goal is not None else "it was removed, and changed since"


def _conflict(aside: SetAside, path: str, reason: str) -> Conflict:
    is_there = any(move.path == path and move.aside.tree for move in aside.moves)
    command = f"git show {shlex.quote(f'{aside.commit}:{path}')}" if is_there else ""
    return Conflict(path=path, reason=reason, command=command)


def _plain(entry: Entry | None) -> list[str] | None:
    return None if entry is None else [entry.mode, entry.oid]


def _entry(data: list[str] | None) -> Entry | None:
    return None if data is None else Entry(*data)
