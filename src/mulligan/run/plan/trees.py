"""The trees of a plan: checked before its first agent starts, locked while it is driven."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from ...core.redaction import clean, presentable
from ...errors import GitError, GitRefused
from ..git import (
    OPEN,
    Tree,
    agent_worktrees,
    drop_baselines,
    has_baseline,
    interruptible,
    leased,
    load_all,
    load_baseline,
    record_baseline,
)
from ..git.commits import identity
from ..git.refs import reading
from ..git.status import TreeStatus
from .validate import EXCLUSIVE, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..git import WorktreeMerge
    from ..process.stop import Stop
    from .model import Phase, Plan

__all__ = (
    "check_trees",
    "drop_plan_baselines",
    "files_aside",
    "holding_trees",
    "merge_remarks",
    "plan_baseline",
    "still_aside",
    "tree_folders",
    "tree_problems",
)


# How many of the files that git does not hold are named.
_FEW = 3


def tree_problems(plan: Plan, home: Path) -> Iterator[Problem]:
    """What keeps git from doing what the phases of `plan` ask of it, in trees under `home`."""
    looked_at: dict[str, TreeStatus] = {}
    for at, phase in enumerate(plan.phases):
        for folder in _folders(plan, phase, home):
            try:
                tree = Tree.find(folder)
                if tree.folder not in looked_at:
                    looked_at[tree.folder] = TreeStatus.checked(tree)
                status = looked_at[tree.folder]
                if _mode(plan, phase) == "commit":
                    identity(tree.git)
                if _mode(plan, phase) == "worktree":
                    _check_lending(status, folder)
            except GitRefused as wrong:
                yield Problem(("phases", at, "git"), str(wrong))


def _check_lending(status: TreeStatus, folder: Path) -> None:
    """Whether an agent can be lent a tree, with the folder that it is to run in."""
    tree = status.tree
    if not status.commit:
        raise GitRefused(
            f"{presentable(tree.folder)} has no commit yet, and a work tree needs one; "
            f"commit something first"
        )
    inside = os.path.relpath(os.path.realpath(folder), tree.folder)
    if inside != os.curdir and tree.ignores(inside):
        raise GitRefused(
            f"{presentable(str(folder))} is ignored by git, and will not be in the tree that an "
            f"agent is lent; name a folder that git knows"
        )


def check_trees(plan: Plan, home: Path) -> set[str]:
    """Refuse trees that cannot be used, before the first agent starts; returns their folders.

    Raises:
        GitRefused: A phase wants its tree cleaned, and there is no such tree.
        TreeBusy: Another run works there.
    """
    for problem in tree_problems(plan, home):
        raise GitRefused(f"phase {plan.phases[int(problem.path[1])].name}: {problem.message}")
    with ExitStack() as stack:
        return {tree.folder for tree, _ in _lease(plan, home, "", stack)}


def tree_folders(plan: Plan, home: Path, *, is_exclusive: bool = False) -> set[str]:
    """Folders of the trees that git works in for the plan, or takes all changes of."""
    found = _trees(plan, home)
    return {tree.folder for tree, modes in found if modes & EXCLUSIVE or not is_exclusive}


@contextmanager
def holding_trees(plan: Plan, home: Path, run: str, stop: Stop) -> Iterator[list[Tree]]:
    """Hold the trees of the plan, and record their baselines; yields the trees.

    Raises:
        GitRefused: A tree is not there any more.
        GitStopped: A stop was requested.
        TreeBusy: Another run works there.
    """
    with ExitStack() as stack:
        with interruptible(stop):
            trees = _lease(plan, home, run, stack)
            for tree, modes in trees:
                key = plan_baseline(tree, run) if "commit" in modes else ""
                if key and load_baseline(tree, key) is None:
                    # A worker that resumes the plan under cron may have no git identity.
                    record_baseline(tree, key, author=identity(tree.git))
        yield [tree for tree, _ in trees]


def plan_baseline(tree: Tree, run: str) -> str:
    """The run whose baseline tells the user's changes from those of the whole plan.

    Uncommitted changes of one agent are not the user's for the next agent.
    """
    which = hashlib.sha256(os.fsencode(tree.folder)).hexdigest()[:8]
    return f"{run}/agents/tree-{which}"


def drop_plan_baselines(trees: list[Tree], run: str) -> None:
    """Delete the baselines of a plan that succeeded."""
    with suppress(GitError):  # harmless: a baseline is left over
        for tree in trees:
            with reading(tree):
                if has_baseline(tree, run):
                    drop_baselines(tree, run, but=[each.key for each in agent_worktrees(tree, run)])


def files_aside(plan: Plan, home: Path, run: str) -> list[str]:
    """How many files a plan that is not driven has set aside, and how to get them, in sentences."""
    said = []
    with suppress(GitError):  # a tree that is gone has nothing to say
        for tree, _ in _trees(plan, home):
            count = sum(len(each.moves) for each in load_all(tree, run) if each.state in OPEN)
            files = f"{count} file{'s stay' if count != 1 else ' stays'} set aside"
            back = f"mulligan git restore {run} restores {'them' if count != 1 else 'it'}"
            said += [f"{files}; in {presentable(tree.folder)}, {back}"] if count else []
    return said


def still_aside(plan: Plan, home: Path, run: str) -> list[str]:
    """What of a plan that has ended is not in its trees, and how to get it, in sentences."""
    said = files_aside(plan, home, run)
    with suppress(GitError):  # a tree that is gone has nothing to say
        for tree, _ in _trees(plan, home):
            where = presentable(tree.folder)
            said += [
                f"the tree of an agent stays, {presentable(each.folder)}; in {where}, mulligan git "
                f"restore {each.key} restores its changes"
                for each in agent_worktrees(tree, run)
            ]
    return said


def _trees(plan: Plan, home: Path) -> list[tuple[Tree, set[str]]]:
    """Every tree in which something is done to the agents' changes, with the modes of doing it."""
    modes: dict[Path, set[str]] = {}
    for phase in plan.phases:
        for folder in _folders(plan, phase, home):
            modes.setdefault(folder, set()).add(_mode(plan, phase))
    found: dict[str, tuple[Tree, set[str]]] = {}
    for folder, each in modes.items():
        tree = Tree.find(folder)
        found.setdefault(tree.folder, (tree, set()))[1].update(each)
    return [found[folder] for folder in sorted(found)]


def _folders(plan: Plan, phase: Phase, home: Path) -> list[Path]:
    """The folders of a phase in whose trees something is done to the agents' changes."""
    if _mode(plan, phase) == "off":
        return []
    folders = dict.fromkeys([home / plan.cwd / agent.cwd for agent in phase.agents])
    # One that is not there yet may be cloned by an earlier agent.
    return [each for each in folders if each.is_dir() or not plan.needs(phase)]


def _mode(plan: Plan, phase: Phase) -> str:
    return phase.git or plan.git


def _lease(plan: Plan, home: Path, run: str, stack: ExitStack) -> list[tuple[Tree, set[str]]]:
    found = _trees(plan, home)
    for tree, modes in found:
        stack.enter_context(leased(tree, run, is_shared=not modes & EXCLUSIVE))
    return found


def merge_remarks(taken: WorktreeMerge, key: str) -> tuple[str, list[str]]:
    """Why the changes of agent ``RUN/agents/NAME`` were not merged, if so, and remarks."""
    said = [f"git: left {each.path}: {each.reason}" for each in taken.left[:_FEW]]
    if taken.folder:
        rest = f"{len(taken.left) - _FEW} more, and " if len(taken.left) > _FEW else ""
        forget = f"mulligan git drop --force {key}"
        said.append(f"git: {rest}its folder stays: {taken.folder}; {forget} removes it")
    if taken.branch:
        said.append(f"git: its changes are on the branch {taken.branch}")
    return clean(_trouble(taken, key)), [clean(each) for each in said]


def _trouble(taken: WorktreeMerge, key: str) -> str:
    if taken.given is not None and taken.given.conflicts:
        first, *more = taken.given.conflicts
        others = f" and {len(more)} more" if more else ""
        return (
            f"{first.path}{others} conflicts with the tree: {first.reason}; "
            f"merge the branch {taken.branch}, or delete it"
        )
    if taken.is_gone:
        merge = f"merge the branch {taken.branch}, or " if taken.branch else ""
        return (
            f"its tree is gone, removed while it worked: what was not committed is lost; "
            f"{merge}forget it with mulligan git drop {key}"
        )
    return ""
