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
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, get_args

from ...core.redaction import presentable
from ...errors import GitError, SettingError
from .command import CommandTimer, check_stop
from .files import FILE, TreeEntry
from .objects import Objects, edited_tree
from .record import ROOT, Baseline, FileState, SetAside, State, checked_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from .command import Git
    from .tree import Tree

__all__ = (
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


class ObjectReader:
    """Reads objects and references through one long-running git, started at the first use.

    Its working directory is not in a tree, so `locks` does not take it for a git at work there.
    """

    def __init__(self, git: Git) -> None:
        self._git = git
        self._refs: dict[str, str] | None = None
        self._pipes: tuple[IO[bytes], IO[bytes], CommandTimer] | None = None
        self._stack = ExitStack()

    def find(self, name: str) -> tuple[str, bytes] | None:
        """Id and content of an object: named by id, as ``COMMIT:path`` or by a reference.

        Raises:
            GitError: Git has ended.
            GitStopped: A stop was requested.
        """
        source, answers, timer = self._pipes or self._started()
        timer.began = time.monotonic()
        with suppress(BrokenPipeError):  # a git that has ended answers nothing
            source.write(name.encode() + b"\n")
            source.flush()
        head = answers.readline().split()
        if head[-1:] == [b"missing"]:
            return None
        if len(head) != 3:  # id, type, size
            check_stop("git cat-file")
            said = b" ".join(head).decode() or "git has ended"
            raise GitError(f"object {name} cannot be read: {said}")
        size = int(head[2])
        content = answers.read(size + 1)
        if len(content) != size + 1:
            check_stop("git cat-file")
            raise GitError(f"object {name} ends after {len(content)} of {size} bytes")
        return head[0].decode(), content[:-1]

    def read(self, name: str) -> bytes:
        """The content of an object; raises `GitError` if it is missing."""
        found = self.find(name)
        if found is None:
            raise GitError(f"object {name} cannot be read: {name} missing")
        return found[1]

    def refs(self, run: str) -> dict[str, str]:
        """The references of a run and its agents, or of all, with what they point to."""
        if self._refs is None:
            asked = ("for-each-ref", "--format=%(refname) %(objectname)", "--", f"{ROOT}/")
            said = self._git.run(*asked).decode().splitlines()
            self._refs = dict(line.split(" ") for line in said)
        under = f"{ROOT}/{checked_name(run)}/" if run else f"{ROOT}/"
        return {ref: tip for ref, tip in self._refs.items() if ref.startswith(under)}

    def moved(self, ref: str, tip: str) -> None:
        """Remember that a reference of ours was moved, or removed if `tip` is empty."""
        if self._refs is not None:
            self._refs.pop(ref, None)
            self._refs.update({ref: tip} if tip else {})

    def close(self) -> None:
        """End git."""
        self._stack.close()

    def _started(self) -> tuple[IO[bytes], IO[bytes], CommandTimer]:
        child = self._git.start("cat-file", "--batch")
        assert child.stdin is not None  # noqa: S101 -- a pipe
        assert child.stdout is not None  # noqa: S101 -- a pipe
        self._stack.enter_context(suppress(BrokenPipeError))  # git has exited already
        self._stack.enter_context(child.stdin)
        self._stack.enter_context(child.stdout)
        timer = self._stack.enter_context(CommandTimer(child))
        self._pipes = child.stdin, child.stdout, timer
        return self._pipes


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
    reader = ObjectReader(tree.store)
    token = _readers.set({**known, tree.common: reader})
    try:
        yield reader
    finally:
        _readers.reset(token)
        reader.close()


def checked_name(name: str, what: str = "a run") -> str:
    """`name`; raises `SettingError` if it cannot stand in a reference."""
    if not (_NAME.fullmatch(name) or _AGENT.fullmatch(name)):
        raise SettingError(
            f"{what} needs a name of letters, digits, - and _, up to 64; "
            f"got {presentable(name, 80)!r}"
        )
    return name


def write_baseline(
    tree: Tree, baseline: Baseline, objects: Objects, *, instead_of: str = ""
) -> Baseline:
    """Write `baseline`, and the contents of its files in `objects`; returns it with its commit.

    It replaces the baseline whose commit is `instead_of`; without that the run must have none.
    """
    run, head, states = baseline.run, baseline.head, baseline.states
    about = {
        "head": head,
        "places": {path: state.to_json() for path, state in states.items()},
        "folders": baseline.folders,
        "author": baseline.author,
    }
    entries = {f"staged/{path}": state.index for path, state in states.items()}
    record = add_record(objects, about, entries)
    with reading(tree) as reader:
        whole = _whole(reader, objects, head, {path: each.tree for path, each in states.items()})
        # The time, so that two baselines of the same second differ.
        facts = {"baseline": run, "at": time.time(), "record": record}
        commit = _add_commit(objects, whole, [head, record], facts)
        objects.write()
        ref = f"{ROOT}/{run}/baseline"
        tree.git.run("update-ref", "--", ref, commit, instead_of or tree.git.null_id)
        reader.moved(ref, commit)
    return replace(baseline, commit=commit)


def load_baseline(tree: Tree, run: str) -> Baseline | None:
    """The baseline of a run, if one was recorded."""
    with reading(tree) as reader:
        found = reader.find(f"{ROOT}/{checked_name(run)}/baseline")
        if found is None:
            return None
        commit, content = found
        data = _record(reader, _facts(content)["record"])
    states = data["places"].items()
    return Baseline(
        run=run,
        head=data["head"],
        commit=commit,
        states={checked_path(path): FileState.from_json(each) for path, each in states},
        folders=tuple(checked_path(each) for each in data.get("folders", ())),
        author=data.get("author", ""),
    )


def write_record(tree: Tree, aside: SetAside, objects: Objects) -> SetAside:
    """Record what is to be set aside; returns it with its number and commit.

    From here on the contents of its files, in `objects`, are reachable.
    """
    run, head, moves = aside.run, aside.head, aside.moves
    with reading(tree) as reader:
        taken = [number for whose, number, _ in _numbers(reader, run) if whose == run]
        aside = replace(aside, number=1 + max(taken, default=0))
        entries: dict[str, TreeEntry | None] = {}
        for move in moves:
            entries[f"base/{move.path}"] = move.base.tree
            entries[f"staged/{move.path}"] = move.aside.index
            entries[f"staged-base/{move.path}"] = move.base.index
        record = add_record(objects, aside.to_json(), entries)
        whole = _whole(reader, objects, head, {move.path: move.aside.tree for move in moves})
        facts = {"run": run, "number": aside.number, "mode": aside.mode, "state": "prepared"}
        commit = _add_commit(objects, whole, [head, record], {**facts, "record": record})
        objects.write()
        tree.git.run("update-ref", "--", aside.ref, commit, tree.git.null_id)
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
    """Move a record to a new state, atomically; raises `ConcurrentUpdate` if another process did.

    `made` is a commit or branch that came of it, `plan` a record of what is about to be done, which
    is written with `objects`.
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
        done = tree.git.ask("update-ref", "--", aside.ref, tip, aside.tip)
        if done.code:
            now = reader.find(aside.ref)
            if now is None or now[0] != aside.tip:
                raise ConcurrentUpdate(
                    f"{aside.ref} was moved by another process that is recovering the same run"
                )
            raise GitError(f"{aside.ref} cannot be moved: {done.text}", done.text)
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
        found = reader.find(f"{ROOT}/{checked_name(run)}/{number}")
        return None if found is None else _read(reader, run, number, found[0])


def load_all(tree: Tree, run: str = "") -> list[SetAside]:
    """Everything that was set aside in this repository, or by one run and its agents, in order."""
    with reading(tree) as reader:
        return [_read(reader, *each) for each in _numbers(reader, run)]


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


def drop(tree: Tree, run: str, is_dropped: Callable[[str], bool] = lambda _: True) -> None:
    """Remove the references of a run and its agents; git deletes the objects later."""
    with reading(tree) as reader:
        refs = [ref for ref in reader.refs(checked_name(run)) if is_dropped(ref)]
        if refs:
            asked = "".join(f"delete {ref}\n" for ref in refs)
            tree.git.run("update-ref", "--stdin", stdin=asked.encode())
        for ref in refs:
            reader.moved(ref, "")


def drop_baselines(tree: Tree, run: str, *, but: Iterable[str] = ()) -> None:
    """Remove the baselines of a run and its agents, except those of the agents in `but`.

    An agent is named ``RUN/agents/NAME``. What was set aside stays.
    """
    kept = {f"{ROOT}/{each}/baseline" for each in but}
    drop(tree, run, lambda ref: ref.endswith("/baseline") and ref not in kept)


def has_baseline(tree: Tree, run: str) -> bool:
    """Whether a run or one of its agents has a baseline."""
    with reading(tree) as reader:
        return any(ref.endswith("/baseline") for ref in reader.refs(run))


def _numbers(reader: ObjectReader, run: str) -> list[tuple[str, int, str]]:
    """Run, number and tip of all that was set aside by a run and its agents, or by all."""
    found = []
    for ref, tip in reader.refs(run).items():
        name, _, last = ref.removeprefix(f"{ROOT}/").rpartition("/")
        if last.isdigit():
            found.append((name, int(last), tip))
    return sorted(found)


def _read(reader: ObjectReader, run: str, number: int, tip: str) -> SetAside:
    ref = f"{ROOT}/{run}/{number}"
    try:
        facts = _facts(reader.read(tip))
        aside = SetAside.from_json(_record(reader, facts["record"]))
    except (KeyError, TypeError, ValueError) as trouble:
        raise GitError(f"{ref} has no record that this mulligan can read") from trouble
    if (aside.run, aside.number) != (run, number):
        raise GitError(f"{ref} holds the record of {aside.ref}")
    if facts["state"] not in get_args(State):
        raise GitError(f"{ref}: state {facts['state']!r} is of another version of mulligan")
    made, first = facts.get("made") or "", facts.get("first") or tip
    return replace(aside, state=facts["state"], commit=first, tip=tip, made=made)


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
