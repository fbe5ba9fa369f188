"""Sets a run's changes aside before a retry, and gives them back.

    tree = Tree.find()                            refuses clearly what it cannot work on
    record_baseline(tree, run)                    when the run begins: what was the user's already
    aside = set_aside(tree, "stash", run)         before a retry
    restore_changes(tree, aside)                  after it
    recover(tree, run)                            after a crash, at whatever moment it came

Usable alone: nothing here knows about plans, agents or journals.
"""

from __future__ import annotations

from .baseline import changes, record_baseline
from .command import interruptible
from .record import OPEN, Mode, SetAside, State
from .recovery import RecoveryResult, finish, prepare, recover, restore_changes, set_aside
from .refs import drop, drop_baselines, has_baseline, load_all, load_baseline
from .restore import RestoreResult
from .secret_files import SECRETS, why_secret
from .tree import Tree
from .tree_lock import leased
from .worktrees import (
    AgentWorktree,
    WorktreeMerge,
    add_worktree,
    agent_worktrees,
    holds_unsaved_work,
    merge_worktree,
    remove_worktree,
    sharing_problem,
    unmerged_changes,
    unsaved_paths,
    worktree_of,
)

__all__ = (
    "OPEN",
    "SECRETS",
    "AgentWorktree",
    "Mode",
    "RecoveryResult",
    "RestoreResult",
    "SetAside",
    "State",
    "Tree",
    "WorktreeMerge",
    "add_worktree",
    "agent_worktrees",
    "changes",
    "drop",
    "drop_baselines",
    "finish",
    "has_baseline",
    "holds_unsaved_work",
    "interruptible",
    "leased",
    "load_all",
    "load_baseline",
    "merge_worktree",
    "prepare",
    "record_baseline",
    "recover",
    "remove_worktree",
    "restore_changes",
    "set_aside",
    "sharing_problem",
    "unmerged_changes",
    "unsaved_paths",
    "why_secret",
    "worktree_of",
)
