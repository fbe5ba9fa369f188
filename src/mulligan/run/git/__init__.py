"""Sets a run's changes aside before a retry, and gives them back.

    tree = Tree.find()                            refuses clearly what it cannot work on
    record_baseline(tree, run)                    when the run begins: what was the user's already
    aside = set_aside(tree, "stash", run)         before a retry
    give_back(tree, aside)                        after it
    recover(tree, run)                            after a crash, at whatever moment it came

Usable alone: nothing here knows about plans, agents or journals.
"""

from __future__ import annotations

from .baseline import Changes, changes, record_baseline
from .command import Stoppable, interruptible
from .record import OPEN, Baseline, FileState, Left, Mode, Move, SetAside, State
from .recovery import Caught, finish, give_back, is_clean, prepare, recover, set_aside
from .refs import drop, forget_baselines, has_baseline, load, load_all, load_baseline
from .restore import Conflict, GivenBack
from .secret_files import SECRETS, Secret, why_secret
from .status import ignored
from .tree import Tree
from .tree_lock import leased
from .worktrees import (
    Lent,
    TakenBack,
    discard,
    lend,
    lent_out,
    lent_to,
    only_there,
    sharing_problem,
    take_back,
    untaken,
    would_lose,
)

__all__ = (
    "OPEN",
    "SECRETS",
    "Baseline",
    "Caught",
    "Changes",
    "Conflict",
    "FileState",
    "GivenBack",
    "Left",
    "Lent",
    "Mode",
    "Move",
    "Secret",
    "SetAside",
    "State",
    "Stoppable",
    "TakenBack",
    "Tree",
    "changes",
    "discard",
    "drop",
    "finish",
    "forget_baselines",
    "give_back",
    "has_baseline",
    "ignored",
    "interruptible",
    "is_clean",
    "leased",
    "lend",
    "lent_out",
    "lent_to",
    "load",
    "load_all",
    "load_baseline",
    "only_there",
    "prepare",
    "record_baseline",
    "recover",
    "set_aside",
    "sharing_problem",
    "take_back",
    "untaken",
    "why_secret",
    "would_lose",
)
