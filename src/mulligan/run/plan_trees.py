"""The trees that the agents of a plan work in.

What git needs for what the phases ask of it is looked at before the first agent starts, and the
trees are the plan's own for as long as it is driven.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from ..core.text import presentable
from ..errors import GitError, GitRefused
from .git import Tree, forget_baselines, interruptible, leased, lent_out, record_baseline
from .git.commits import check_somebody
from .plan_checks import ALONE, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .plan import Phase, Plan
    from .stop import Stop

__all__ = ("at_work", "baseline_of", "check_trees", "forget", "tree_problems")


def tree_problems(plan: Plan, home: Path) -> Iterator[Problem]:
    """What keeps git from doing what the phases of `plan` ask of it.

    Args:
        plan: The plan.
        home: The folder that its `cwd` starts from.
    """
    for at, phase in enumerate(plan.phases):
        for folder in _folders(plan, phase, home):
            try:
                tree = Tree.find(folder)
                tree.check()
                if _mode(plan, phase) == "commit":
                    check_somebody(tree)
                if _mode(plan, phase) == "worktree":
                    _check_lending(tree, folder)
            except GitRefused as wrong:
                yield Problem(("phases", at, "git"), str(wrong))


def _check_lending(tree: Tree, folder: Path) -> None:
    """Whether an agent can be lent a tree, with the folder that it is to run in."""
    if not tree.head:
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


def check_trees(plan: Plan, home: Path, run: str = "") -> None:
    """Refuse what cannot work, before anybody pays.

    Raises:
        GitRefused: A phase wants its tree cleaned, and there is none that can be.
        TreeBusy: Another run works there.
    """
    for problem in tree_problems(plan, home):
        raise GitRefused(f"phase {plan.phases[int(problem.path[1])].name}: {problem.message}")
    with ExitStack() as stack:
        _lease(plan, home, run, stack)


@contextmanager
def at_work(plan: Plan, home: Path, run: str, stop: Stop) -> Iterator[None]:
    """Have the trees of the plan, and know what was in them when it began.

    Raises:
        GitRefused: A tree is not there any more.
        GitStopped: We were told to stop.
        TreeBusy: Another run works there.
    """
    with ExitStack() as stack:
        with interruptible(stop):
            for tree, modes in _lease(plan, home, run, stack).values():
                if "commit" in modes:
                    record_baseline(tree, baseline_of(tree, run))
        yield


def baseline_of(tree: Tree, run: str) -> str:
    """Whose baseline tells the user's changes from those of the whole plan.

    What an agent has changed and nobody has committed is no user's change for the next agent.
    """
    which = hashlib.sha256(os.fsencode(tree.folder)).hexdigest()[:8]
    return f"{run}/agents/tree-{which}"


def forget(plan: Plan, home: Path, run: str) -> None:
    """The plan has ended well: nobody will ask what was in its trees when it began."""
    with suppress(GitError):  # no reason for anybody to worry
        for tree, _ in _trees(plan, home).values():
            forget_baselines(tree, run, but=[each.key for each in lent_out(tree, run)])


def _trees(plan: Plan, home: Path) -> dict[str, tuple[Tree, set[str]]]:
    """Every tree in which something is done to the agents' changes, with the modes of doing it."""
    found: dict[str, tuple[Tree, set[str]]] = {}
    for phase in plan.phases:
        for folder in _folders(plan, phase, home):
            tree = Tree.find(folder)
            found.setdefault(tree.folder, (tree, set()))[1].add(_mode(plan, phase))
    return dict(sorted(found.items()))


def _folders(plan: Plan, phase: Phase, home: Path) -> Iterator[Path]:
    """The folders of a phase in whose trees something is done to the agents' changes."""
    if _mode(plan, phase) == "off":
        return
    for folder in dict.fromkeys(home / plan.cwd / agent.cwd for agent in phase.agents):
        # One that is not there yet may be cloned by an earlier agent.
        if folder.is_dir() or not plan.needs(phase):
            yield folder


def _mode(plan: Plan, phase: Phase) -> str:
    return phase.git or plan.git


def _lease(plan: Plan, home: Path, run: str, stack: ExitStack) -> dict[str, tuple[Tree, set[str]]]:
    found = _trees(plan, home)
    for tree, modes in found.values():
        stack.enter_context(leased(tree, run, is_shared=not modes & ALONE))
    return found
