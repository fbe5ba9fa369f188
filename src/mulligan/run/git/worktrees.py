"""Linked work trees: one for every agent that works in parallel with others.

In a shared tree the changes of two agents cannot be told apart, so setting one's aside would take
the other's, too. So each agent is lent a linked work tree, a copy of the user's tree with its
uncommitted changes. Its changes are merged into the user's tree, or kept on a branch.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...core.redaction import presentable
from ...errors import GitError, GitRefused, SettingError
from ...stores.home import home, private_folder
from .apply import PathStep, apply_steps
from .baseline import changes, read_states, record_baseline, smudged, untracked_folders
from .command import null_terminated
from .objects import Objects, entries_of
from .record import OPEN, FileState, LeftPath, Move, SetAside
from .refs import (
    add_record,
    checked_name,
    delete_record,
    drop_baselines,
    load_all,
    load_baseline,
    reading,
    restore_plan,
    set_state,
    write_record,
)
from .restore import Conflict, RestoreResult, restore_paths
from .status import TreeStatus, ignored_paths
from .tree import Tree
from .tree_lock import locked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .files import TreeEntry
    from .record import Baseline, Mode, State

__all__ = (
    "AgentWorktree",
    "WorktreeMerge",
    "add_worktree",
    "agent_worktrees",
    "holds_unsaved_work",
    "merge_worktree",
    "remove_worktree",
    "sharing_problem",
    "unmerged_changes",
    "unsaved_paths",
    "worktree_of",
)

# Final states: later changes of the agent get a new record.
_CLOSED: frozenset[State] = frozenset({"returned", "kept"})

# Prefix of a folder that is being removed, before a random number and its old name.
_GONE = ".gone-"


def sharing_problem(mode: Mode | Literal["off"], *, is_parallel: bool, agents: int) -> str:
    """Why this mode cannot be used by so many agents in one tree; empty if it can."""
    if is_parallel and agents > 1 and mode not in {"worktree", "off"}:
        return (
            f"git mode {mode!r} needs a tree for one agent at a time, and {agents} run in "
            f"parallel: one would set the other's edits aside; use 'worktree'"
        )
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWorktree:
    """A work tree that was lent to an agent."""

    run: str
    agent: str
    folder: str  # where it is
    owner: str  # the user's tree

    @property
    def key(self) -> str:
        """The run to name for what is set aside in this tree, before a retry of its agent."""
        return f"{self.run}/agents/{self.agent}"

    @property
    def branch(self) -> str:
        """The branch on which its changes are kept, if they are."""
        return f"mulligan/{self.run}/{self.agent}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeMerge:
    """What became of an agent's changes."""

    # What was given to the user's tree, with conflicts; None if nothing changed, or all is kept.
    given: RestoreResult | None = None
    branch: str = ""  # on which the changes are kept, if they are
    folder: str = ""  # the agent's, if it was not removed because work in it would be lost
    left: tuple[LeftPath, ...] = ()  # the paths of that work
    # Another program removed the folder: uncommitted work is lost, commits are not in the tree.
    is_gone: bool = False


def add_worktree(tree: Tree, run: str, agent: str, *, under: str = "") -> AgentWorktree:
    """A work tree for `agent`, a copy of the user's tree now. Idempotent, until it is taken back.

    A folder that stayed when it was taken back is lent again unchanged, with a new baseline.
    Ignored files (installed packages, ``.env``) are not in it; git does not know them. No two
    agents of a run have one name, whatever their phase. The tree is made in `under`, a private
    folder; one in Mulligan's home by default.

    Raises:
        GitRefused: There is no commit to start from, something is under way, or the tree
            was removed while its agent had it.
    """
    with reading(tree):
        return _add(tree, worktree_of(tree, run, agent, under=under))


def _add(tree: Tree, worktree: AgentWorktree) -> AgentWorktree:
    place = worktree.folder
    baseline = load_baseline(tree, worktree.key)
    records = _records_of(tree, worktree.key, baseline)
    is_closed = bool(records) and records[-1].state in _CLOSED
    if baseline is not None and os.path.isdir(place):
        if is_closed and not _unmerged(Tree.find(place), worktree.key, baseline):
            record_baseline(Tree.find(place), worktree.key, instead_of=baseline.commit)
        return worktree
    if baseline is not None and not is_closed and not _is_being_removed(place):
        raise GitRefused(
            f"{presentable(place)}, the tree of agent {worktree.agent!r}, is gone: it was "
            f"removed while the agent was using it; what was not committed there is lost"
        )
    remove_worktree(tree, worktree)  # left incomplete by a process that died; no agent uses it
    with locked(tree):
        status, objects = TreeStatus.checked(tree), Objects(tree.store)
        if not status.commit:
            raise GitRefused(
                f"{presentable(tree.folder)} has no commit yet, and a work tree needs one; "
                f"commit something first"
            )
        states = read_states(tree, status.dirty, status, objects)
        objects.write()
        folders = untracked_folders(tree)
        private_folder(Path(place).parent)
        tree.git.run("worktree", "add", "--quiet", "--detach", "--", place, status.commit)
    # The lock on the user's tree is released here: the rest happens in the agent's own tree.
    own = tree.new_linked(place)
    _copy_changes(own, states, status.head)
    for each in folders:
        own.files.make_folder(each)
    record_baseline(own, worktree.key, folders=folders)
    return worktree


def worktree_of(tree: Tree, run: str, agent: str, *, under: str = "") -> AgentWorktree:
    """The `AgentWorktree` of `agent`, whether it exists or not: nothing is created or read."""
    checked_name(run)
    checked_name(agent, "an agent")
    base = Path(under) if under else home() / "worktrees"
    place = os.path.join(os.path.realpath(private_folder(base)), run, agent)
    return AgentWorktree(run=run, agent=agent, folder=place, owner=tree.folder)


def merge_worktree(worktree: AgentWorktree, *, is_kept: bool = False) -> WorktreeMerge:
    """Give an agent's changes to the user's tree, and remove the agent's. Idempotent.

    A conflict touches nothing: the changes are kept on a branch, as with `is_kept`, and it stays
    a conflict until that branch is merged, or deleted. What git ignores stays in the agent's
    folder, and the folder with it; caches go. What is changed in a folder that stayed is given
    the next time.

    With `is_kept`, the changes are kept on a branch, and the user's tree is left alone.
    """
    tree = Tree.find(worktree.owner)
    with reading(tree):
        taken = _merge(tree, worktree, is_kept=is_kept)
        if is_kept or (taken.given is not None and taken.given.conflicts):
            return taken
        for each in _records_of(tree, worktree.key):
            if conflicts := _open_conflicts(tree, each):
                given = replace(taken.given or RestoreResult(aside=each), conflicts=conflicts)
                return replace(taken, given=given, branch=each.made)
        return taken


def _merge(tree: Tree, worktree: AgentWorktree, *, is_kept: bool) -> WorktreeMerge:
    baseline = load_baseline(tree, worktree.key)
    records = _records_of(tree, worktree.key, baseline)
    aside = records[-1] if records else None
    if os.path.isdir(worktree.folder):
        if baseline is None:
            raise GitError(
                f"{presentable(worktree.folder)} was not lent, or its baseline was dropped"
            )
        if aside is None or aside.state in {"prepared", *_CLOSED}:
            own = Tree.find(worktree.folder)
            with locked(own):
                records = _records_of(tree, worktree.key, baseline)
                aside = _record_changes(own, worktree.key, baseline, records, folder=worktree.owner)
    elif aside is None and baseline is not None and not _is_being_removed(worktree.folder):
        return _keep_commits(tree, worktree, baseline)
    if aside is None:
        return _removed(tree, worktree, WorktreeMerge())
    if aside.state == "kept":
        is_there = _exists(tree, aside.made)
        return _removed(tree, worktree, WorktreeMerge(branch=aside.made if is_there else ""))
    given = None
    if not is_kept or aside.state in {"returning", "returned"}:
        with locked(tree):
            status = TreeStatus.checked(tree)
            given = restore_paths(tree, aside, status, is_partial=False, is_rehearsal=False)
        if given.is_whole:
            return _removed(tree, worktree, WorktreeMerge(given=given))
    branch = _keep(worktree, given or RestoreResult(aside=aside))
    return _removed(tree, worktree, WorktreeMerge(given=given, branch=branch))


def unmerged_changes(worktree: AgentWorktree) -> tuple[Move, ...]:
    """What was changed in an agent's tree, and not taken from it yet."""
    own = Tree.find(worktree.folder)
    baseline = load_baseline(own, worktree.key)
    return () if baseline is None else _unmerged(own, worktree.key, baseline)


def unsaved_paths(worktree: AgentWorktree) -> list[str]:
    """The paths in an agent's tree that would be lost with it."""
    own = Tree.find(worktree.folder)
    left = (*changes(own, load_baseline(own, worktree.key)).left, *ignored_paths(own))
    return [*(each.path for each in unmerged_changes(worktree)), *(each.path for each in left)]


def holds_unsaved_work(tree: Tree, run: str) -> bool:
    """Whether work would be lost with what git keeps for a run and its agents.

    What was given back, committed or put on a branch is not lost, nor is what changes nothing.
    """
    with reading(tree):
        if any(each.state in OPEN and each.moves for each in load_all(tree, run)):
            return True
        return any(unsaved_paths(each) for each in agent_worktrees(tree, run))


def _open_conflicts(tree: Tree, aside: SetAside) -> tuple[Conflict, ...]:
    """The conflicts because of which changes are on a branch, until it is merged or deleted."""
    if aside.state != "kept" or not _exists(tree, aside.made):
        return ()
    conflicts = tuple(Conflict(**each) for each in restore_plan(tree, aside)["conflicts"])
    return () if _is_merged(tree, f"refs/heads/{aside.made}") else conflicts


def _exists(tree: Tree, branch: str) -> bool:
    return not tree.git.ask("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").code


def _is_merged(tree: Tree, commit: str) -> bool:
    return tree.git.ask("merge-base", "--is-ancestor", commit, "HEAD").code == 0


def _keep_commits(tree: Tree, worktree: AgentWorktree, baseline: Baseline) -> WorktreeMerge:
    """Keep what the agent had committed in a tree that was removed since."""
    commit = next((head for place, head in _linked(tree) if place == worktree.folder), "")
    if commit in {"", baseline.head}:
        return WorktreeMerge(is_gone=True)
    if _is_merged(tree, commit):
        remove_worktree(tree, worktree)
        return WorktreeMerge()
    if not _exists(tree, worktree.branch):
        branch = f"refs/heads/{worktree.branch}"
        tree.git.run("update-ref", "--", branch, commit, tree.git.null_id)
    return WorktreeMerge(branch=worktree.branch, is_gone=True)


def agent_worktrees(tree: Tree, run: str = "") -> list[AgentWorktree]:
    """The trees that agents of all runs, of a run or of ``RUN/agents/NAME`` have: used or left."""
    found = []
    for place, _ in _linked(tree):
        above, agent = os.path.split(place)
        worktree = AgentWorktree(
            run=os.path.basename(above), agent=agent, folder=place, owner=tree.folder
        )
        with suppress(SettingError):  # a folder whose name is not a run id
            if (
                run in {"", worktree.run, worktree.key}
                and os.path.isdir(place)
                and load_baseline(tree, worktree.key) is not None
            ):
                found.append(worktree)
    return found


def _copy_changes(
    own: Tree, states: Mapping[str, FileState], head: Mapping[str, TreeEntry]
) -> None:
    """Copy the user's uncommitted changes into a new work tree."""
    steps = [
        PathStep(
            path=path,
            before=own.files.entry(path),
            after=state.tree,
            permissions=state.permissions,
            staged=(FileState(index=head.get(path)), state),
        )
        for path, state in states.items()
    ]
    apply_steps(own, steps)


def _keep(worktree: AgentWorktree, given: RestoreResult) -> str:
    """Put the changes on a branch, as commits that git would have made: filters applied."""
    own = Tree.find(worktree.folder)
    with locked(own):
        index = os.path.join(own.scratch, "tmp-kept")
        git = own.git.with_variables(GIT_INDEX_FILE=index)
        head = own.head
        git.run("read-tree", head)
        paths = null_terminated(move.path for move in given.aside.moves)
        options = ("--add", "--remove", "--replace", "-z", "--stdin")
        git.run("update-index", *options, stdin=paths)
        whole = git.line("write-tree", "--missing-ok")
        os.unlink(index)
        branch = _branched(own, worktree, whole, head)
        why = {"conflicts": [asdict(each) for each in given.conflicts]}
        objects = Objects(own.store)
        record = add_record(objects, why, {})
        set_state(own, given.aside, "kept", made=branch, plan=record, objects=objects)
    return branch


def _branched(own: Tree, worktree: AgentWorktree, whole: str, head: str) -> str:
    """The branch that has this tree on this commit, made unless it is there."""
    number, branch = 1, worktree.branch
    while True:
        found = own.git.ask("log", "-1", "--format=%T %P", f"refs/heads/{branch}", "--")
        if found.out.decode().split() == [whole, head]:
            return branch
        if found.code:
            break
        # It holds earlier work, or has commits of the user's by now.
        number += 1
        branch = f"{worktree.branch}-{number}"
    message = f"mulligan: what {worktree.agent} did in {worktree.run}\n"
    objects = Objects(own.store)
    commit = objects.commit(whole, [head], message)
    objects.write()
    own.git.run("update-ref", "--", f"refs/heads/{branch}", commit, own.git.null_id)
    return branch


def _removed(tree: Tree, worktree: AgentWorktree, result: WorktreeMerge) -> WorktreeMerge:
    """Remove the agent's tree, unless it holds what would be lost with it."""
    if os.path.isdir(worktree.folder):
        own = Tree.find(worktree.folder)
        status, baseline = TreeStatus.of(own), load_baseline(own, worktree.key)
        moves = () if baseline is None else _unmerged(own, worktree.key, baseline, status)
        late = [LeftPath(path=each.path, reason="it was changed meanwhile") for each in moves]
        left = (*status.left, *ignored_paths(own), *late)
        if left:
            return replace(result, left=left, folder=worktree.folder)
    remove_worktree(tree, worktree)
    return result


def remove_worktree(tree: Tree, worktree: AgentWorktree) -> None:
    """Remove an agent's tree, with all that was not merged from it."""
    # With a baseline but no folder, it would look as if another program removed it.
    _move_out(worktree.folder)
    drop_baselines(tree, worktree.key)
    _clear(tree, worktree.folder)


def _linked(tree: Tree) -> list[tuple[str, str]]:
    """Every work tree that git knows, there or not, with the commit that is checked out there."""
    said = tree.git.run("worktree", "list", "--porcelain").decode(errors="surrogateescape")
    found = []
    for block in said.split("\n\n"):
        words = [line.partition(" ") for line in block.splitlines()]
        facts = {name: value for name, _, value in words}
        found.append((facts.get("worktree", ""), facts.get("HEAD", "")))
    return found


def _move_out(place: str) -> None:
    """Rename a folder away atomically, so that a kill leaves no partly removed one."""
    above, name = os.path.split(place)
    if os.path.isdir(place):
        os.rename(place, os.path.join(above, f"{_GONE}{os.urandom(4).hex()}-{name}"))


def _is_being_removed(place: str) -> bool:
    """Whether `_move_out` was called, and `_clear` was not."""
    return any(_moved_out(place))


def _clear(tree: Tree, place: str) -> None:
    """Remove what was moved out, and what git knows of it.

    `git worktree prune` would also forget the work trees of the user whose drive is not mounted.
    """
    if _is_known(tree, place):
        # Locked: git removes the shared folder with the last tree, and a sibling's may be created.
        with locked(tree):
            if _is_known(tree, place):
                # --force twice, for a work tree that its agent has locked.
                tree.git.run("worktree", "remove", "--force", "--force", "--", place)
    for each in list(_moved_out(place)):
        shutil.rmtree(each, ignore_errors=True)
    with suppress(OSError):
        os.rmdir(os.path.dirname(place))  # the run's folder, once its last agent has left


def _is_known(tree: Tree, place: str) -> bool:
    """Whether git knows a work tree at `place`: it keeps one file for each, with its folder."""
    above = os.path.join(tree.common, "worktrees")
    with suppress(FileNotFoundError):
        for name in os.listdir(above):
            with suppress(OSError), open(os.path.join(above, name, "gitdir"), "rb") as file:
                said = os.fsdecode(file.read().removesuffix(b"\n"))
                if os.path.dirname(os.path.join(above, name, said)) == place:
                    return True
    return False


def _moved_out(place: str) -> Iterator[str]:
    above, name = os.path.split(place)
    with suppress(OSError):
        for each in os.listdir(above):
            if each.startswith(_GONE) and each[len(_GONE) + 9 :] == name:
                yield os.path.join(above, each)


def _record_changes(
    own: Tree, key: str, baseline: Baseline, records: list[SetAside], *, folder: str
) -> SetAside | None:
    """Record what the agent has done in its tree, unless the last record has the same.

    A tree is lent, taken back, and perhaps lent again: each time with a baseline of its own, which
    every record names. So an earlier record is never mistaken for later work. `folder` is the tree
    that the changes will be given to.
    """
    status, objects = TreeStatus.checked(own), Objects(own.store)
    moves = _moves(own, baseline, records, status, objects)
    last = records[-1] if records else None
    if last is not None and last.state != "returned" and _same(last.moves, moves):
        return last
    if last is not None and last.state == "prepared":
        delete_record(own, last)  # not given to the user's tree yet, and outdated
        last = None
    if not moves:
        return last
    aside = SetAside(
        run=key,
        number=0,
        mode="worktree",
        folder=folder,
        head=status.commit,
        branch=status.branch,
        at=time.time(),
        moves=moves,
        left=status.left,
        since=baseline.commit,
    )
    return write_record(own, aside, objects)


def _moves(
    own: Tree,
    baseline: Baseline,
    records: list[SetAside],
    status: TreeStatus,
    objects: Objects,
) -> tuple[Move, ...]:
    """What the agent has done since it was last given back, its own commits included."""
    known = dict(baseline.states)
    for each in records:
        if each.state == "returned":
            known.update({move.path: move.aside for move in each.moves})
    then = entries_of(own, baseline.head)
    moved = {path for path in {*then, *status.head} if then.get(path) != status.head.get(path)}
    untouchable = {each.path for each in status.left}
    paths = sorted({*status.dirty, *moved, *known} - untouchable)
    now = read_states(own, paths, status, objects)
    committed = {path: then[path] for path in paths if path in then and path not in known}
    clean = smudged(own, baseline.head, committed, objects)
    moves = []
    for path in paths:
        base = known.get(path) or FileState(tree=clean.get(path), index=then.get(path))
        if base.tree != now[path].tree:
            moves.append(Move(path=path, base=base, aside=now[path]))
    return tuple(moves)


def _unmerged(
    own: Tree, key: str, baseline: Baseline, status: TreeStatus | None = None
) -> tuple[Move, ...]:
    """Changes in the agent's tree that were neither given to the user's tree nor kept."""
    records = _records_of(own, key, baseline)
    moves = _moves(own, baseline, records, status or TreeStatus.of(own), Objects(own.store))
    last = records[-1] if records else None
    is_kept = last is not None and last.state in _CLOSED and _same(last.moves, moves)
    return () if is_kept else moves


def _same(some: tuple[Move, ...], others: tuple[Move, ...]) -> bool:
    """Whether both leave the same files, regardless of staging."""
    one, other = (
        {move.path: (move.base.tree, move.aside.tree) for move in moves} for moves in (some, others)
    )
    return one == other


def _records_of(tree: Tree, key: str, baseline: Baseline | None = None) -> list[SetAside]:
    """The records since `baseline`, which is another each time the tree is lent."""
    return [
        each
        for each in load_all(tree, key)
        if each.mode == "worktree" and (baseline is None or each.since == baseline.commit)
    ]
