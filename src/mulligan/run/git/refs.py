"""Records of what is set aside, stored as references in the repository.

    refs/mulligan/RUN/baseline    the tree when the run began
    refs/mulligan/RUN/1           the first thing set aside, then 2, 3 …
    refs/mulligan/RUN/agents/A/   the same, for an agent with a tree of its own

Each points to a commit whose tree is the whole work tree at that moment, so that ``git diff`` and
``git show`` work on it, and whose last parent holds the record: every path, both contents, and what
has to stand there instead. The reference is created before a file is touched, and each step moves
it with a compare-and-swap: of two processes that recover one run, one fails.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from ...core.redaction import presentable
from ...errors import GitError, SettingError
from .files import FILE, TreeEntry
from .objects import ROOT, ObjectReader, Objects, edited_tree
from .record import Baseline, FileState, SetAside, State, inside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from .record import LeftPath, Mode, Move
    from .status import TreeStatus
    from .tree import Tree

__all__ = (
    "ConcurrentUpdate",
    "add_record",
    "checked_name",
    "delete_record",
    "drop",
    "drop_baselines",
    "has_baseline",
    "load",
    "load_all",
    "load_baseline",
    "reading",
    "restore_plan",
    "set_state",
    "write_baseline",
    "write_record",
)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_AGENT = re.compile(rf"{_NAME.pattern}/agents/{_NAME.pattern}")


class ConcurrentUpdate(GitError):
    """Another process has moved the reference since it was read."""


_readers: ContextVar[Mapping[str, ObjectReader]] = ContextVar(
    "readers", default=MappingProxyType({})
)


@contextmanager
def reading(tree: Tree) -> Iterator[ObjectReader]:
    """A reader of the tree's repository; the same one for everything that is called in here."""
    known = _readers.get()
    if tree.common in known:
        yield known[tree.common]
        return
    reader = ObjectReader(tree)
    token = _readers.set({**known, tree.common: reader})
    try:
        yield reader
    finally:
        _readers.reset(token)
        reader.close()


def checked_name(name: str, what: str = "a run") -> str:
    """`name` if it can stand in a reference.

    Raises:
        SettingError: It cannot.
    """
    if not (_NAME.fullmatch(name) or _AGENT.fullmatch(name)):
        raise SettingError(
            f"{what} needs a name of letters, digits, - and _, up to 64; "
            f"got {presentable(name, 80)!r}"
        )
    return name


def write_baseline(
    status: TreeStatus,
    run: str,
    places: Mapping[str, FileState],
    folders: tuple[str, ...],
    objects: Objects,
    *,
    instead_of: str = "",
    author: str = "",
) -> Baseline:
    """Record the baseline of a run once, or replace the previous one atomically.

    Args:
        status: The tree as it is.
        run: Whose baseline it is.
        places: Every path that differs from the last commit.
        folders: Folders with nothing in them that git tracks.
        objects: The contents of `places`, to be written with it.
        instead_of: The commit of a baseline that shall stay no longer.
        author: The author for commits if git has no identity configured.
    """
    tree, head = status.tree, status.commit
    entries = {f"staged/{path}": place.index for path, place in places.items()}
    data = {path: place.to_json() for path, place in places.items()}
    about = {"head": head, "places": data, "folders": folders, "author": author}
    record = add_record(objects, about, entries)
    with reading(tree) as reader:
        whole = _whole(reader, objects, head, {path: each.tree for path, each in places.items()})
        # The time, so that two baselines of the same second differ.
        facts = {"baseline": run, "at": time.time(), "record": record}
        commit = _add_commit(objects, whole, [head, record], facts)
        objects.write()
        ref = f"{ROOT}/{run}/baseline"
        tree.git.run("update-ref", "--", ref, commit, instead_of or tree.git.nothing)
        reader.moved(ref, commit)
    return Baseline(
        run=run, head=head, commit=commit, places=places, folders=folders, author=author
    )


def load_baseline(tree: Tree, run: str) -> Baseline | None:
    """The baseline of a run, if one was recorded."""
    with reading(tree) as reader:
        tip = reader.find(f"{ROOT}/{checked_name(run)}/baseline")
        if tip is None:
            return None
        data = _record(reader, _facts(tip.content)["record"])
    places = {inside(path): FileState.from_json(each) for path, each in data["places"].items()}
    folders = tuple(inside(each) for each in data.get("folders", ()))
    author = data.get("author", "")
    return Baseline(
        run=run, head=data["head"], commit=tip.oid, places=places, folders=folders, author=author
    )


def write_record(
    status: TreeStatus,
    run: str,
    mode: Mode,
    objects: Objects,
    *,
    moves: tuple[Move, ...],
    left: tuple[LeftPath, ...],
    folders: tuple[str, ...] = (),
    folder: str = "",
    since: str = "",
    words: str = "",
    prefix: str = "",
    author: str = "",
) -> SetAside:
    """Record what is to be set aside; from here on its contents are reachable.

    Args:
        status: The tree that it is taken from, as it is.
        run: Whose it is.
        mode: How it is set aside.
        objects: The contents of `moves`, to be written with it.
        moves: What is set aside.
        left: What is not.
        folders: Folders that are kept even if empty.
        folder: Where it will be given back, if not in `tree`.
        since: The baseline of the agent's own tree that it is taken from.
        words: What a commit will say.
        prefix: Stands before it.
        author: The author if git has no identity configured.
    """
    tree, head = status.tree, status.commit
    with reading(tree) as reader:
        taken = [each.number for each in _numbers(reader, run) if each.run == run]
        aside = SetAside(
            run=run,
            number=1 + max(taken, default=0),
            mode=mode,
            folder=folder or tree.folder,
            head=head,
            branch=status.branch,
            at=time.time(),
            moves=moves,
            left=left,
            folders=folders,
            since=since,
            words=words,
            prefix=prefix,
            author=author,
        )
        entries: dict[str, TreeEntry | None] = {}
        for move in moves:
            entries[f"base/{move.path}"] = move.base.tree
            entries[f"staged/{move.path}"] = move.aside.index
            entries[f"staged-base/{move.path}"] = move.base.index
        record = add_record(objects, aside.to_json(), entries)
        whole = _whole(reader, objects, head, {move.path: move.aside.tree for move in moves})
        facts = {"run": run, "number": aside.number, "mode": mode, "state": "prepared"}
        commit = _add_commit(objects, whole, [head, record], {**facts, "record": record})
        objects.write()
        tree.git.run("update-ref", "--", aside.ref, commit, tree.git.nothing)
        reader.moved(aside.ref, commit)
    return replace(aside, commit=commit, tip=commit)


def set_state(
    tree: Tree,
    aside: SetAside,
    state: State,
    *,
    made: str = "",
    plan: str = "",
    objects: Objects | None = None,
) -> SetAside:
    """Move the record to a new state, atomically.

    Args:
        tree: Any work tree of the repository.
        aside: As it was last read.
        state: The new state.
        made: A commit or branch that came of it.
        plan: A record of what is about to be done.
        objects: That record and what belongs to it, to be written with this.

    Raises:
        Overtaken: Another process was faster.
    """
    objects = objects or Objects(tree.store)
    with reading(tree) as reader:
        facts = _facts(reader.read(aside.tip))
        whole = _tree_of(reader.read(aside.commit))
        made, plan = made or aside.made, plan or facts.get("plan", "")
        facts.update(state=state, made=made, first=aside.commit, plan=plan)
        parents = [aside.commit, plan]
        if state == "committed":
            parents.append(made)  # stays reachable if the branch is deleted
        tip = _add_commit(objects, whole, parents, facts)
        objects.write()
        answer = tree.git.ask("update-ref", "--", aside.ref, tip, aside.tip)
        if answer.code:
            now = reader.find(aside.ref)
            if now is None or now.oid != aside.tip:
                raise ConcurrentUpdate(
                    f"{aside.ref} was moved by another process that is recovering the same run"
                )
            raise GitError(f"{aside.ref} cannot be moved: {answer.words}", answer.words)
        reader.moved(aside.ref, tip)
    return replace(aside, state=state, tip=tip, made=made)


def delete_record(tree: Tree, aside: SetAside) -> None:
    """Delete a record of changes that were not set aside yet."""
    with reading(tree) as reader:
        tree.git.run("update-ref", "-d", "--", aside.ref, aside.tip)
        reader.moved(aside.ref, "")


def load(tree: Tree, run: str, number: int) -> SetAside | None:
    """Something that was set aside, as it is now."""
    with reading(tree) as reader:
        tip = reader.find(f"{ROOT}/{checked_name(run)}/{number}")
        return None if tip is None else _read(reader, _Numbered(run, number, tip.oid))


def load_all(tree: Tree, run: str = "") -> list[SetAside]:
    """Everything that was set aside in this repository, or by one run and its agents, in order."""
    with reading(tree) as reader:
        return [_read(reader, each) for each in _numbers(reader, run)]


def restore_plan(tree: Tree, aside: SetAside) -> dict[str, Any]:
    """What was about to be done when its state was last written."""
    with reading(tree) as reader:
        return _record(reader, _facts(reader.read(aside.tip))["plan"])


def add_record(
    objects: Objects, data: Mapping[str, Any], entries: Mapping[str, TreeEntry | None]
) -> str:
    """Add a commit that holds plain data, and keeps `entries` reachable; its id."""
    kept: dict[str, TreeEntry | None] = {path: each for path, each in entries.items() if each}
    kept["record.json"] = TreeEntry(FILE, objects.blob(json.dumps(data).encode()))
    return objects.commit(edited_tree(objects, None, "", kept), [], "mulligan: record")


def _record(reader: ObjectReader, record: str) -> dict[str, Any]:
    """The plain data of `add_record`."""
    data: dict[str, Any] = json.loads(reader.read(f"{record}:record.json"))
    return data


def drop(tree: Tree, run: str) -> int:
    """Remove every reference of a run; git sweeps the objects later. How many there were."""
    return _delete(tree, checked_name(run))


def drop_baselines(tree: Tree, run: str, *, but: Iterable[str] = ()) -> None:
    """Remove the baselines of a run and its agents; what was set aside stays.

    Args:
        tree: Any work tree of the repository.
        run: The run.
        but: Agents whose baseline is still needed, as ``RUN/agents/NAME``.
    """
    kept = {f"{ROOT}/{each}/baseline" for each in but}
    _delete(tree, run, lambda ref: ref.endswith("/baseline") and ref not in kept)


def _delete(tree: Tree, run: str, is_meant: Callable[[str], bool] = lambda _: True) -> int:
    with reading(tree) as reader:
        refs = [ref for ref in reader.refs(_under(run)) if is_meant(ref)]
        if refs:
            asked = "".join(f"delete {ref}\n" for ref in refs)
            tree.git.run("update-ref", "--stdin", stdin=asked.encode())
        for ref in refs:
            reader.moved(ref, "")
    return len(refs)


def has_baseline(tree: Tree, run: str) -> bool:
    """Whether a run or one of its agents has a baseline."""
    with reading(tree) as reader:
        return any(ref.endswith("/baseline") for ref in reader.refs(_under(run)))


def _under(run: str) -> str:
    """What the references of a run and its agents, or of all, begin with."""
    return f"{ROOT}/{checked_name(run)}/" if run else f"{ROOT}/"


@dataclass(frozen=True, slots=True)
class _Numbered:
    run: str
    number: int
    tip: str


def _numbers(reader: ObjectReader, run: str) -> list[_Numbered]:
    found = []
    for ref, tip in reader.refs(_under(run)).items():
        name, _, last = ref.removeprefix(f"{ROOT}/").rpartition("/")
        if last.isdigit():
            found.append(_Numbered(name, int(last), tip))
    return sorted(found, key=lambda each: (each.run, each.number))


def _read(reader: ObjectReader, found: _Numbered) -> SetAside:
    try:
        facts = _facts(reader.read(found.tip))
        aside = SetAside.from_json(_record(reader, facts["record"]))
    except (KeyError, TypeError, ValueError) as trouble:
        name = f"{ROOT}/{found.run}/{found.number}"
        raise GitError(f"{name} has no record that this mulligan can read") from trouble
    if (aside.run, aside.number) != (found.run, found.number):
        raise GitError(f"{ROOT}/{found.run}/{found.number} holds the record of {aside.ref}")
    if facts["state"] not in get_args(State):
        raise GitError(f"{aside.ref}: state {facts['state']!r} is of another version of mulligan")
    made, first = facts.get("made") or "", facts.get("first") or found.tip
    return replace(aside, state=facts["state"], commit=first, tip=found.tip, made=made)


def _whole(
    reader: ObjectReader, objects: Objects, head: str, changes: Mapping[str, TreeEntry | None]
) -> str:
    """The whole work tree: the last commit with these entries instead."""
    base = _tree_of(reader.read(head)) if head else ""
    return edited_tree(objects, reader.read, base, changes)


def _add_commit(
    objects: Objects, whole: str, parents: Sequence[str], facts: Mapping[str, Any]
) -> str:
    name = facts.get("baseline") or f"{facts['run']}/{facts['number']} {facts['state']}"
    return objects.commit(whole, parents, f"mulligan: {name}\n\n{json.dumps(facts)}\n")


def _tree_of(commit: bytes) -> str:
    return commit.split(b"\n", 1)[0].removeprefix(b"tree ").decode()


def _facts(commit: bytes) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(commit.rstrip().rpartition(b"\n")[2])
    return facts
