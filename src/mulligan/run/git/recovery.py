"""Sets a run's changes aside before a retry, gives them back afterwards.

    aside = set_aside(tree, "stash", run)       the tree is as it was when the run began
    …                                           the retry
    restore_changes(tree, aside)                what was set aside is there again

`prepare` records everything before `finish` touches the first file. If the process dies in between,
`recover` finishes or undoes it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.redaction import presentable
from ...errors import GitRefused, SettingError
from .apply import PathStep, apply_steps
from .baseline import changes
from .commits import PREFIX, commit_changes, identity, made_before
from .objects import Objects
from .record import LeftPath, SetAside
from .refs import checked_name, load, load_all, load_baseline, reading, set_state, write_record
from .restore import RestoreResult, restore_paths
from .status import TreeStatus
from .tree_lock import locked

if TYPE_CHECKING:
    from .record import Mode
    from .tree import Tree

__all__ = ("RecoveryResult", "finish", "prepare", "recover", "restore_changes", "set_aside")


def set_aside(
    tree: Tree,
    mode: Mode,
    run: str,
    *,
    since: str = "",
    words: str = "",
    prefix: str = PREFIX,
    author: str = "",
) -> SetAside | None:
    """Restore the tree to its state when the run began; None if nothing has changed.

    Args:
        tree: The tree.
        mode: ``commit``, ``stash`` or ``snapshot``.
        run: Whose changes they are.
        since: Whose baseline tells them from the user's; the run's own by default.
        words: The agent's last words, for a commit's message.
        prefix: Stands before them.
        author: ``Name <mail>``, for a commit where git does not know who commits.

    Raises:
        GitRefused: The tree is in the middle of something, or a commit would not leave it clean;
            nothing was touched.
        GitError: Git failed; what was set aside so far is reachable, and `recover` finishes it.
    """
    for aside in load_all(tree, checked_name(run)):
        # A commit that a hook refused has changed nothing, and is prepared again.
        if (aside.mode, aside.state) == ("commit", "prepared") and not made_before(tree, aside):
            restore_changes(tree, aside)
    recover(tree, run)
    prepared = prepare(tree, mode, run, since=since, words=words, prefix=prefix, author=author)
    return None if prepared is None else finish(tree, prepared)


def prepare(
    tree: Tree,
    mode: Mode,
    run: str,
    *,
    since: str = "",
    words: str = "",
    prefix: str = PREFIX,
    author: str = "",
) -> SetAside | None:
    """Record what is to be set aside, without touching a file; None if there is nothing."""
    checked_name(run)
    if mode == "worktree":
        raise SettingError("mode worktree lends each agent a tree of its own; use add_worktree()")
    with locked(tree), reading(tree):
        status, objects = TreeStatus.checked(tree), Objects(tree.store)
        baseline = load_baseline(tree, since or run)
        found = changes(tree, baseline, status=status, objects=objects)
        if mode == "commit" and found.shared:
            first, *more = sorted(found.shared)
            others = f" and {len(more)} more" if more else ""
            raise GitRefused(
                f"{presentable(first, 200)}{others} had changes before the run began, and the run "
                f"changed it, too: a commit cannot tell the two apart; commit or stash your own, "
                f"or use 'stash'"
            )
        if not found.moves:
            return None
        if mode == "commit":
            author = identity(tree.git, author or ("" if baseline is None else baseline.author))
        aside = SetAside(
            run=run,
            number=0,
            mode=mode,
            folder=tree.folder,
            head=status.commit,
            branch=status.branch,
            at=time.time(),
            moves=found.moves,
            left=found.left,
            folders=found.folders,
            words=presentable(words),
            prefix=prefix,
            author=author,
        )
        return write_record(tree, aside, objects)


def finish(tree: Tree, aside: SetAside) -> SetAside:
    """Do what was prepared. Idempotent, also after it was given back."""
    with locked(tree), reading(tree):
        aside = load(tree, aside.run, aside.number) or aside
        if aside.state != "prepared":
            return aside
        if aside.mode == "commit":
            return commit_changes(tree, aside)
        steps = [
            PathStep(
                path=move.path,
                before=move.aside.tree,
                after=move.base.tree,
                permissions=move.base.permissions,
                staged=(move.aside, move.base),
            )
            for move in aside.moves
        ]
        unexpected = apply_steps(tree, steps, aside.folders)
        done = set_state(tree, aside, "aside")
        late = [LeftPath(path=path, reason="it was changed meanwhile") for path in unexpected]
        return replace(done, left=(*aside.left, *late))


def restore_changes(
    tree: Tree, aside: SetAside, *, is_partial: bool = False, is_rehearsal: bool = False
) -> RestoreResult:
    """Give back what was set aside; if a path conflicts, touch nothing and say where it is.

    With `is_partial`, what does not conflict is given back. A rehearsal touches nothing.
    """
    with locked(tree), reading(tree):
        status = TreeStatus.of(tree) if is_rehearsal else TreeStatus.checked(tree)
        return restore_paths(tree, aside, status, is_partial=is_partial, is_rehearsal=is_rehearsal)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryResult:
    """What recovering a run has done."""

    finished: tuple[SetAside, ...] = ()  # it was being set aside
    returned: tuple[RestoreResult, ...] = ()  # it was being given back, or set aside and undone


def recover(tree: Tree, run: str, *, is_undone: bool = False) -> RecoveryResult:
    """Finish what a process that died had begun.

    With `is_undone`, what was being set aside is given back, instead of setting the rest aside.
    """
    finished: list[SetAside] = []
    returned: list[RestoreResult] = []
    with locked(tree):  # waits for a git that the dead process started
        found = load_all(tree, run)
    for aside in found:
        # `merge_worktree` finishes changes of an agent's own tree.
        is_prepared = aside.state == "prepared" and aside.mode != "worktree"
        if aside.folder != tree.folder or not (is_prepared or aside.state == "returning"):
            continue
        if not is_prepared or (is_undone and not made_before(tree, aside)):
            returned.append(restore_changes(tree, aside))
        else:
            TreeStatus.checked(tree)
            finished.append(finish(tree, aside))
    return RecoveryResult(finished=tuple(finished), returned=tuple(returned))
