"""A tree of its own for every agent that works beside others.

Agents that share one tree cannot be told apart: whoever sets its changes aside takes a sibling's
with them. So each is lent a linked work tree, as the user's tree is at that moment, uncommitted
changes included. What it did is given back as a change to the user's tree, or kept on a branch.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...core.text import presentable
from ...errors import GitError, GitRefused, SettingError
from ...stores.home import home, private_folder
from .apply import Step, take
from .baseline import record_baseline, smudged, stored, untracked_folders
from .objects import commit_tree, entries_of
from .places import Left, Move, Place
from .record import SetAside, checked_name
from .refs import advance, forget_baselines, load, load_all, load_baseline, write
from .returning import GivenBack, bring_back
from .status import Status, ignored
from .tree import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .files import Entry
    from .record import Baseline, Mode

__all__ = (
    "Lent",
    "TakenBack",
    "discard",
    "lend",
    "lent_out",
    "lent_to",
    "sharing_problem",
    "take_back",
)


def sharing_problem(mode: Mode | Literal["off"], *, is_parallel: bool, agents: int) -> str:
    """Why this mode cannot be used in a phase, or nothing.

    Args:
        mode: The mode of the phase.
        is_parallel: Whether its agents run at the same time.
        agents: How many share one tree.
    """
    if is_parallel and agents > 1 and mode not in {"worktree", "off"}:
        return (
            f"git mode {mode!r} needs a tree for one agent at a time, and {agents} run in "
            f"parallel: one would set the other's edits aside; use 'worktree'"
        )
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """A work tree that was lent to an agent.

    Args:
        run: Whose run it is.
        agent: Who works in it.
        folder: Where it is.
        owner: The user's tree.
    """

    run: str
    agent: str
    folder: str
    owner: str

    @property
    def key(self) -> str:
        """The run to name for what is set aside in this tree, before a retry of its agent."""
        return f"{self.run}/agents/{self.agent}"

    @property
    def branch(self) -> str:
        """The branch on which its changes are kept, if they are."""
        return f"mulligan/{self.run}/{self.agent}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """What became of an agent's changes.

    Args:
        given: What is in the user's tree now; None if nothing was changed, or it is kept.
        branch: The branch on which the changes are kept, if they are.
        folder: The agent's folder if it still exists, because of what git does not hold.
        left: What that is.
        is_gone: Whether somebody else has removed the folder: what was not committed is lost.
    """

    given: GivenBack | None = None
    branch: str = ""
    folder: str = ""
    left: tuple[Left, ...] = ()
    is_gone: bool = False


def lend(tree: Tree, run: str, agent: str, *, under: str = "") -> Lent:
    """A work tree for `agent`, as the user's tree is now. Idempotent, until it is taken back.

    Ignored files (installed packages, ``.env``) are not in it; git does not know them.

    Args:
        tree: The user's tree.
        run: The run.
        agent: The agent; no two agents of a run have one name, whatever their phase.
        under: A private folder; one in Mulligan's home by default.

    Raises:
        GitRefused: There is no commit to start from, or something is under way.
        GitRefused: … or somebody has removed the tree while its agent had it.
        SettingError: An agent of this name has had a tree in this run.
    """
    lent = lent_to(tree, run, agent, under=under)
    place = lent.folder
    is_whole = load_baseline(tree, lent.key) is not None
    if is_whole and os.path.isdir(place):
        return lent
    if is_whole and _written_before(tree, lent) is None:
        raise GitRefused(
            f"{presentable(place)}, the tree of agent {agent!r}, is gone: somebody has removed it "
            f"while the agent had it; what was not committed there is lost"
        )
    if is_whole:
        raise SettingError(
            f"agent {agent!r} of run {run!r} has had a tree, and it was taken back; "
            f"give the agents of every phase names of their own"
        )
    if os.path.isdir(place):
        _remove(tree, place)  # half made by a process that died: no agent has seen it
    with tree.held():
        tree.check()
        head = tree.head
        if not head:
            raise GitRefused(
                f"{presentable(tree.folder)} has no commit yet, and a work tree needs one; "
                f"commit something first"
            )
        status = Status.of(tree)
        places = stored(tree, status.dirty, status)
        private_folder(Path(place).parent)
        tree.git.run("worktree", "prune")
        tree.git.run("worktree", "add", "--quiet", "--detach", "--", place, head)
        own = Tree.find(place)
        private_folder(Path(own.scratch))
        _dress(own, places)
        for each in untracked_folders(tree):
            own.files.make_folder(each)
    record_baseline(own, lent.key)
    return lent


def lent_to(tree: Tree, run: str, agent: str, *, under: str = "") -> Lent:
    """What `agent` is lent, was lent, or would be: nothing is made or looked at."""
    checked_name(run)
    checked_name(agent, "an agent")
    base = Path(under) if under else home() / "worktrees"
    place = os.path.join(os.path.realpath(private_folder(base)), run, agent)
    return Lent(run=run, agent=agent, folder=place, owner=tree.folder)


def take_back(lent: Lent, *, is_kept: bool = False) -> TakenBack:
    """Give an agent's changes to the user's tree, and remove the agent's. Idempotent.

    A conflict touches nothing: the changes are kept on a branch, as with `is_kept`. What git
    ignores stays in the agent's folder, and the folder with it; caches go.

    Args:
        lent: What was lent.
        is_kept: Keep the changes on a branch, and leave the user's tree alone.
    """
    tree = Tree.find(lent.owner)
    aside = _written_before(tree, lent)
    left: tuple[Left, ...] = ()
    if os.path.isdir(lent.folder):
        own = Tree.find(lent.folder)
        with own.held():
            own.check()
            if aside is None:
                aside = _collect(own, lent)
        left = (*Status.of(own).left, *ignored(own))
    elif aside is None and (baseline := load_baseline(tree, lent.key)) is not None:
        return _saved(tree, lent, baseline)
    if aside is None:
        return _cleared(tree, lent, TakenBack(left=left))
    aside = load(tree, lent.key, aside.number) or aside
    if aside.state == "kept":
        return _cleared(tree, lent, TakenBack(branch=aside.made, left=left))
    given = None
    if not is_kept:
        with tree.held():
            tree.check()
            given = bring_back(tree, aside, is_partial=False, is_rehearsal=False)
    if given is not None and given.is_whole:
        return _cleared(tree, lent, TakenBack(given=given, left=left))
    _keep(lent, aside if given is None else given.aside)
    return _cleared(tree, lent, TakenBack(given=given, branch=lent.branch, left=left))


def _saved(tree: Tree, lent: Lent, baseline: Baseline) -> TakenBack:
    """Keep what the agent had committed in a tree that somebody has removed."""
    commit = next((head for place, head in _linked(tree) if place == lent.folder), "")
    branch = lent.branch if commit and commit != baseline.head else ""
    if branch:
        tree.git.run("update-ref", "--", f"refs/heads/{branch}", commit)
    return TakenBack(branch=branch, is_gone=True)


def _linked(tree: Tree) -> list[tuple[str, str]]:
    """Every work tree that git knows, there or not, with the commit that is checked out there."""
    said = tree.git.run("worktree", "list", "--porcelain").decode(errors="surrogateescape")
    found = []
    for block in said.split("\n\n"):
        words = [line.partition(" ") for line in block.splitlines()]
        facts = {name: value for name, _, value in words}
        found.append((facts.get("worktree", ""), facts.get("HEAD", "")))
    return found


def lent_out(tree: Tree, run: str = "") -> list[Lent]:
    """The trees that agents have in this repository: at work, or left by one that failed.

    Args:
        tree: Where their changes would come, if they were taken back.
        run: Only those of this run, or of one of its agents.
    """
    found = []
    for place, _ in _linked(tree):
        above, agent = os.path.split(place)
        lent = Lent(run=os.path.basename(above), agent=agent, folder=place, owner=tree.folder)
        if run in {"", lent.run, lent.key} and _is_ours(tree, lent):
            found.append(lent)
    return found


def _is_ours(tree: Tree, lent: Lent) -> bool:
    with suppress(SettingError):  # a folder of somebody's that cannot be a run's
        return os.path.isdir(lent.folder) and load_baseline(tree, lent.key) is not None
    return False


def discard(tree: Tree, lent: Lent) -> None:
    """Remove an agent's tree, with all that nobody has taken back from it."""
    _remove(tree, lent.folder)


def _dress(own: Tree, places: Mapping[str, Place]) -> None:
    """Make a new work tree what the user's was: with the changes that are not committed."""
    status = Status.of(own)
    take(
        own,
        [
            Step(
                path=path,
                before=own.files.entry(path),
                after=place.tree,
                permissions=place.permissions,
                staged=(status.place(path), place),
            )
            for path, place in places.items()
        ],
    )


def _collect(own: Tree, lent: Lent) -> SetAside | None:
    """Write down what the agent has done in its tree, its own commits included."""
    baseline = load_baseline(own, lent.key)
    if baseline is None:
        raise GitError(f"{presentable(lent.folder)} was not lent, or its baseline was dropped")
    status = Status.of(own)
    then = entries_of(own.git, baseline.head)
    moved = {path for path in {*then, *status.head} if then.get(path) != status.head.get(path)}
    hands_off = {each.path for each in status.left}
    paths = sorted({*status.dirty, *moved, *baseline.places} - hands_off)
    now = stored(own, paths, status)
    clean: dict[str, Entry] = smudged(
        own, baseline.head, {p: then[p] for p in paths if p in then and p not in baseline.places}
    )
    moves = []
    for path in paths:
        known = baseline.places.get(path)
        base = known or Place(tree=clean.get(path), index=then.get(path))
        if base.tree != now[path].tree:
            moves.append(Move(path=path, base=base, aside=now[path]))
    if not moves:
        return None
    return write(own, lent.key, "worktree", tuple(moves), status.left, folder=lent.owner)


def _written_before(tree: Tree, lent: Lent) -> SetAside | None:
    found = [each for each in load_all(tree, lent.key) if each.mode == "worktree"]
    return found[-1] if found else None


def _keep(lent: Lent, aside: SetAside) -> None:
    """Put the changes on a branch, as commits that git would have made: filters applied."""
    own = Tree.find(lent.folder)
    with own.held():
        paths = b"".join(os.fsencode(move.path) + b"\0" for move in aside.moves)
        aside_index = os.path.join(own.scratch, "tmp-kept")
        git = own.git.having(GIT_INDEX_FILE=aside_index)
        git.run("read-tree", own.head)
        options = ("--add", "--remove", "--replace", "-z", "--stdin")
        git.run("update-index", *options, stdin=paths)
        tree = git.line("write-tree", "--missing-ok")
        os.unlink(aside_index)
        message = f"mulligan: what {lent.agent} did in {lent.run}\n"
        commit = commit_tree(own.git, tree, [own.head], message)
        own.git.run("update-ref", "--", f"refs/heads/{lent.branch}", commit)
        advance(own, aside, "kept", made=lent.branch)


def _cleared(tree: Tree, lent: Lent, result: TakenBack) -> TakenBack:
    """Remove the agent's tree, unless it holds what would be lost with it."""
    if result.left:
        return replace(result, folder=lent.folder)
    _remove(tree, lent.folder)
    if result == TakenBack():
        # Nothing was written down; without it nobody takes the folder for one that is missed.
        forget_baselines(tree, lent.key)
    return result


def _remove(tree: Tree, place: str) -> None:
    """Remove a work tree in one step: whoever is killed on the way leaves no half of one."""
    above, name = os.path.split(place)
    if os.path.isdir(place):
        tree.git.ask("worktree", "unlock", "--", place)
        os.rename(place, os.path.join(above, f".gone-{os.urandom(4).hex()}-{name}"))
    tree.git.run("worktree", "prune")
    with suppress(OSError):
        for each in os.listdir(above):
            if each.startswith(".gone-") and each.endswith(f"-{name}"):
                shutil.rmtree(os.path.join(above, each), ignore_errors=True)
        os.rmdir(above)  # the run's folder, once its last agent has left
