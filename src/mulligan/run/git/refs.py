"""What is set aside, written down in the repository itself.

    refs/mulligan/RUN/baseline    the tree when the run began
    refs/mulligan/RUN/1           the first thing set aside, then 2, 3 …
    refs/mulligan/RUN/agents/A/   the same, for an agent with a tree of its own

Each points to a commit whose tree is the whole work tree at that moment, so that ``git diff`` and
``git show`` work on it, and whose last parent holds the record: every path, both contents, and
what has to stand there instead. A reference is made before anything is touched, and each step
from then on moves it in one atomic comparison: of two processes that recover one run, one loses.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from ...errors import GitError
from .files import FILE, Entry
from .objects import build_tree, commit_tree, content_of, write_blob
from .places import Place, inside
from .record import ROOT, Baseline, SetAside, State, checked_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .places import Left, Move
    from .record import Mode
    from .tree import Tree

__all__ = (
    "Overtaken",
    "advance",
    "drop",
    "forget_baselines",
    "has_baseline",
    "load",
    "load_all",
    "load_baseline",
    "plan_of",
    "read_record",
    "withdraw",
    "write",
    "write_baseline",
    "write_record",
)


class Overtaken(GitError):
    """Somebody else has moved the reference; what was read of it is old."""


def write_baseline(
    tree: Tree,
    run: str,
    places: Mapping[str, Place],
    folders: tuple[str, ...],
    *,
    instead_of: str = "",
) -> Baseline:
    """Write the baseline of a run down, once, or in one step instead of the one that was."""
    head = tree.head
    entries = {f"staged/{path}": place.index for path, place in places.items()}
    data = {path: place.to_json() for path, place in places.items()}
    record = write_record(tree, {"head": head, "places": data, "folders": folders}, entries)
    whole = build_tree(
        tree.git, head, {path: place.tree for path, place in places.items()}, tree.scratch
    )
    # The time, so that no two are one, be they made in one second.
    facts = {"baseline": run, "at": time.time(), "record": record}
    commit = _commit(tree, whole, [head, record], facts)
    before = instead_of or tree.git.nothing
    tree.git.run("update-ref", "--", f"{ROOT}/{run}/baseline", commit, before)
    return Baseline(run=run, head=head, commit=commit, places=places, folders=folders)


def load_baseline(tree: Tree, run: str) -> Baseline | None:
    """The baseline of a run, if one was recorded."""
    tip = _tip(tree, f"{ROOT}/{checked_name(run)}/baseline")
    if not tip:
        return None
    data = read_record(tree, _facts(tree, tip)["record"])
    places = {inside(path): Place.from_json(each) for path, each in data["places"].items()}
    folders = tuple(inside(each) for each in data.get("folders", ()))
    return Baseline(run=run, head=data["head"], commit=tip, places=places, folders=folders)


def write(
    tree: Tree,
    run: str,
    mode: Mode,
    moves: tuple[Move, ...],
    left: tuple[Left, ...],
    *,
    folders: tuple[str, ...] = (),
    folder: str = "",
    since: str = "",
    words: str = "",
    prefix: str = "",
    author: str = "",
) -> SetAside:
    """Write down what is to be set aside. From here on nothing of it can be lost.

    Args:
        tree: Where it is taken from.
        run: Whose it is.
        mode: How it is set aside.
        moves: What is.
        left: What is not.
        folders: Folders that stay, be they empty.
        folder: Where it will be given back, if not in `tree`.
        since: The baseline of the agent's own tree that it is taken from.
        words: What a commit will say.
        prefix: Stands before it.
        author: Who commits if git does not know.
    """
    head = tree.head
    number = 1 + max((each.number for each in _numbers(tree, run) if each.run == run), default=0)
    aside = SetAside(
        run=run,
        number=number,
        mode=mode,
        folder=folder or tree.folder,
        head=head,
        branch=tree.branch,
        at=time.time(),
        moves=moves,
        left=left,
        folders=folders,
        since=since,
        words=words,
        prefix=prefix,
        author=author,
    )
    entries: dict[str, Entry | None] = {}
    for move in moves:
        entries[f"base/{move.path}"] = move.base.tree
        entries[f"staged/{move.path}"] = move.aside.index
        entries[f"staged-base/{move.path}"] = move.base.index
    record = write_record(tree, aside.to_json(), entries)
    whole = {move.path: move.aside.tree for move in moves}
    commit = _commit(
        tree,
        build_tree(tree.git, head, whole, tree.scratch),
        [head, record],
        {"run": run, "number": number, "mode": mode, "state": "prepared", "record": record},
    )
    tree.git.run("update-ref", "--", aside.ref, commit, tree.git.nothing)
    return replace(aside, commit=commit, tip=commit)


def advance(
    tree: Tree, aside: SetAside, state: State, *, made: str = "", plan: str = ""
) -> SetAside:
    """Say how far it is, in one atomic step.

    Args:
        tree: Any work tree of the repository.
        aside: As it was last read.
        state: The new state.
        made: A commit or branch that came of it.
        plan: A record of what is about to be done.

    Raises:
        Overtaken: Somebody else was faster.
    """
    facts = _facts(tree, aside.tip)
    made, plan = made or aside.made, plan or facts.get("plan", "")
    facts.update(state=state, made=made, first=aside.commit, plan=plan)
    parents = [aside.commit, plan]
    if state == "committed":
        parents.append(made)  # reachable, whatever becomes of the branch
    tip = _commit(tree, f"{aside.commit}^{{tree}}", parents, facts)
    answer = tree.git.ask("update-ref", "--", aside.ref, tip, aside.tip)
    if answer.code:
        if _tip(tree, aside.ref) != aside.tip:
            raise Overtaken(
                f"{aside.ref} was moved by somebody else, who is recovering the same run"
            )
        raise GitError(f"{aside.ref} cannot be moved: {answer.words}", answer.words)
    return replace(aside, state=state, tip=tip, made=made)


def withdraw(tree: Tree, aside: SetAside) -> None:
    """Forget what was written down, and nothing was done with."""
    tree.git.run("update-ref", "-d", "--", aside.ref, aside.tip)


def load(tree: Tree, run: str, number: int) -> SetAside | None:
    """Something that was set aside, as it is now."""
    tip = _tip(tree, f"{ROOT}/{checked_name(run)}/{number}")
    return _read(tree, _Numbered(run, number, tip)) if tip else None


def load_all(tree: Tree, run: str = "") -> list[SetAside]:
    """Everything that was set aside in this repository, or by one run and its agents, in order."""
    return [_read(tree, each) for each in _numbers(tree, run)]


def plan_of(tree: Tree, aside: SetAside) -> dict[str, Any]:
    """What was about to be done when its state was last written."""
    return read_record(tree, _facts(tree, aside.tip)["plan"])


def write_record(tree: Tree, data: Mapping[str, Any], entries: Mapping[str, Entry | None]) -> str:
    """A commit that holds plain data, and keeps `entries` reachable."""
    blob = write_blob(tree.git, json.dumps(data).encode())
    kept: dict[str, Entry | None] = {path: each for path, each in entries.items() if each}
    kept["record.json"] = Entry(FILE, blob)
    record = build_tree(tree.git, "", kept, tree.scratch)
    return commit_tree(tree.git, record, [], "mulligan: record")


def read_record(tree: Tree, record: str) -> dict[str, Any]:
    """The plain data of `write_record`."""
    data: dict[str, Any] = json.loads(content_of(tree.git, f"{record}:record.json"))
    return data


def drop(tree: Tree, run: str) -> int:
    """Remove every reference of a run; git sweeps the objects later. How many there were."""
    refs = tree.git.run(
        "for-each-ref", "--format=%(refname)", "--", f"{ROOT}/{checked_name(run)}/"
    ).split()
    for ref in refs:
        tree.git.run("update-ref", "-d", "--", ref.decode())
    return len(refs)


def forget_baselines(tree: Tree, run: str, *, but: Iterable[str] = ()) -> None:
    """Remove the baselines of a run and its agents; what was set aside stays.

    Args:
        tree: Any work tree of the repository.
        run: The run.
        but: Agents whose baseline is still needed, as ``RUN/agents/NAME``.
    """
    kept = {f"{ROOT}/{each}/baseline" for each in but}
    for ref in _baselines(tree, run):
        if ref not in kept:
            tree.git.run("update-ref", "-d", "--", ref)


def has_baseline(tree: Tree, run: str) -> bool:
    """Whether a run or one of its agents has a baseline."""
    return bool(_baselines(tree, run))


def _baselines(tree: Tree, run: str) -> list[str]:
    refs = tree.git.run("for-each-ref", "--format=%(refname)", "--", f"{ROOT}/{checked_name(run)}/")
    return [ref for ref in refs.decode().split() if ref.endswith("/baseline")]


@dataclass(frozen=True, slots=True)
class _Numbered:
    run: str
    number: int
    tip: str


def _numbers(tree: Tree, run: str) -> list[_Numbered]:
    under = f"{ROOT}/{checked_name(run)}/" if run else f"{ROOT}/"
    said = tree.git.run("for-each-ref", "--format=%(objectname) %(refname)", "--", under)
    found = []
    for line in said.decode().splitlines():
        tip, _, ref = line.partition(" ")
        name, _, last = ref.removeprefix(f"{ROOT}/").rpartition("/")
        if last.isdigit():
            found.append(_Numbered(name, int(last), tip))
    return sorted(found, key=lambda each: (each.run, each.number))


def _tip(tree: Tree, ref: str) -> str:
    return tree.git.ask("rev-parse", "--verify", "--quiet", ref).out.decode().strip()


def _read(tree: Tree, found: _Numbered) -> SetAside:
    try:
        facts = _facts(tree, found.tip)
        aside = SetAside.from_json(read_record(tree, facts["record"]))
    except (KeyError, TypeError, ValueError) as trouble:
        name = f"{ROOT}/{found.run}/{found.number}"
        raise GitError(f"{name} holds no record that this mulligan can read") from trouble
    if (aside.run, aside.number) != (found.run, found.number):
        raise GitError(f"{ROOT}/{found.run}/{found.number} holds the record of {aside.ref}")
    if facts["state"] not in get_args(State):
        raise GitError(f"{aside.ref}: state {facts['state']!r} is of another version of mulligan")
    made, first = facts.get("made") or "", facts.get("first") or found.tip
    return replace(aside, state=facts["state"], commit=first, tip=found.tip, made=made)


def _commit(tree: Tree, whole: str, parents: list[str], facts: Mapping[str, Any]) -> str:
    name = facts.get("baseline") or f"{facts['run']}/{facts['number']} {facts['state']}"
    message = f"mulligan: {name}\n\n{json.dumps(facts)}\n"
    return commit_tree(tree.git, whole, [each for each in parents if each], message)


def _facts(tree: Tree, commit: str) -> dict[str, Any]:
    said = tree.git.run("cat-file", "commit", commit)
    facts: dict[str, Any] = json.loads(said.rstrip().rpartition(b"\n")[2])
    return facts
