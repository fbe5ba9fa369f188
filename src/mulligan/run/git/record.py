"""What is set aside, written down in the repository itself.

    refs/mulligan/RUN/baseline    the tree when the run began
    refs/mulligan/RUN/1           the first thing set aside, then 2, 3 …
    refs/mulligan/RUN/agents/A/   the same, for an agent with a tree of its own

Each points to a commit whose tree is the whole work tree at that moment, so that ``git diff`` and
``git show`` work on it, and whose last parent holds the record: every path, both contents, and
what has to stand there instead. A reference is made before anything is touched, and each step
from then on moves it in one atomic comparison: of two processes that recover one run, one loses.

    prepared ──▶ aside ──▶ returning ──▶ returned          stash, snapshot, worktree
        │                      └──────▶ partly             what conflicts stays here
        └──▶ committed                                     commit
        └──▶ kept                                          worktree, on a branch
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from ...core.text import presentable
from ...errors import GitError, SettingError
from .files import FILE, Entry
from .objects import build_tree, commit_tree, content_of, write_blob
from .places import Left, Move, Place

if TYPE_CHECKING:
    from .tree import Tree

__all__ = ("Baseline", "Mode", "SetAside", "State", "advance", "load", "load_all", "load_baseline")

Mode = Literal["commit", "stash", "worktree", "snapshot"]
State = Literal["prepared", "aside", "returning", "returned", "partly", "committed", "kept"]

# What a run may still want back.
OPEN = frozenset({"prepared", "aside", "returning", "partly"})

_ROOT = "refs/mulligan"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_AGENT = re.compile(rf"{_NAME.pattern}/agents/{_NAME.pattern}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The tree when a run began: what the user had changed already.

    Args:
        run: Whose it is.
        head: The commit that was checked out; empty if there was none.
        commit: The whole tree at that moment.
        places: Every path that differed from the last commit.
    """

    run: str
    head: str
    commit: str
    places: Mapping[str, Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """Something that was set aside: all that is needed to give it back.

    Args:
        run: Whose it is.
        number: Counted from 1 in each run.
        mode: How it was set aside.
        folder: The work tree it was taken from.
        head: The commit that was checked out; empty if there was none.
        branch: The branch; empty for a detached HEAD.
        at: When, in epoch seconds.
        moves: Every path, with what stands there instead.
        left: Paths that were changed and stay as they are.
        words: The agent's last words, for a commit's message.
        prefix: Stands before them.
        author: Who commits if git does not know.
        state: How far it is.
        commit: The object that holds it.
        tip: What the reference points to.
        made: The commit made on the branch, or the branch it is kept on.
    """

    run: str
    number: int
    mode: Mode
    folder: str
    head: str
    branch: str
    at: float
    moves: tuple[Move, ...] = field(repr=False)
    left: tuple[Left, ...] = ()
    words: str = ""
    prefix: str = ""
    author: str = ""
    state: State = "prepared"
    commit: str = ""
    tip: str = ""
    made: str = ""

    @property
    def ref(self) -> str:
        """The reference that keeps it reachable."""
        return f"{_ROOT}/{self.run}/{self.number}"

    def to_json(self) -> dict[str, Any]:
        """Plain data for a journal; `from_json` reads it."""
        plain = ("run", "number", "mode", "folder", "head", "branch", "at")
        texts = ("words", "prefix", "author", "state", "commit", "tip", "made")
        return {
            **{name: getattr(self, name) for name in (*plain, *texts)},
            "moves": [move.to_json() for move in self.moves],
            "left": [left.to_json() for left in self.left],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SetAside:
        """What `to_json` described."""
        moves = tuple(Move.from_json(each) for each in data["moves"])
        left = tuple(Left(**each) for each in data["left"])
        return cls(**{**data, "moves": moves, "left": left})


class Overtaken(GitError):
    """Somebody else has moved the reference; what was read of it is old."""


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


def write_baseline(tree: Tree, run: str, places: Mapping[str, Place]) -> Baseline:
    """Write the baseline of a run down, once."""
    head = tree.head
    entries = {f"staged/{path}": place.index for path, place in places.items()}
    data = {path: place.to_json() for path, place in places.items()}
    record = write_record(tree, {"head": head, "places": data}, entries)
    whole = build_tree(
        tree.git, head, {path: place.tree for path, place in places.items()}, tree.scratch
    )
    commit = _commit(tree, whole, [head, record], {"baseline": run, "record": record})
    tree.git.run("update-ref", "--", f"{_ROOT}/{run}/baseline", commit, tree.git.nothing)
    return Baseline(run=run, head=head, commit=commit, places=places)


def load_baseline(tree: Tree, run: str) -> Baseline | None:
    """The baseline of a run, if one was recorded."""
    tip = _tip(tree, f"{_ROOT}/{checked_name(run)}/baseline")
    if not tip:
        return None
    data = read_record(tree, _facts(tree, tip)["record"])
    places = {path: Place.from_json(each) for path, each in data["places"].items()}
    return Baseline(run=run, head=data["head"], commit=tip, places=places)


def write(
    tree: Tree,
    run: str,
    mode: Mode,
    moves: tuple[Move, ...],
    left: tuple[Left, ...],
    *,
    folder: str = "",
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
        folder: Where it will be given back, if not in `tree`.
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
        raise Overtaken(
            f"{aside.ref} was moved by somebody else, who is recovering the same run",
            answer.words,
        )
    return replace(aside, state=state, tip=tip, made=made)


def load(tree: Tree, run: str, number: int) -> SetAside | None:
    """Something that was set aside, as it is now."""
    tip = _tip(tree, f"{_ROOT}/{checked_name(run)}/{number}")
    return _read(tree, tip) if tip else None


def load_all(tree: Tree, run: str = "") -> list[SetAside]:
    """Everything that was set aside in this repository, or by one run and its agents, in order."""
    return [_read(tree, each.tip) for each in _numbers(tree, run)]


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
        "for-each-ref", "--format=%(refname)", "--", f"{_ROOT}/{checked_name(run)}/"
    ).split()
    for ref in refs:
        tree.git.run("update-ref", "-d", "--", ref.decode())
    return len(refs)


@dataclass(frozen=True, slots=True)
class _Numbered:
    run: str
    number: int
    tip: str


def _numbers(tree: Tree, run: str) -> list[_Numbered]:
    under = f"{_ROOT}/{checked_name(run)}/" if run else f"{_ROOT}/"
    said = tree.git.run("for-each-ref", "--format=%(objectname) %(refname)", "--", under)
    found = []
    for line in said.decode().splitlines():
        tip, _, ref = line.partition(" ")
        name, _, last = ref.removeprefix(f"{_ROOT}/").rpartition("/")
        if last.isdigit():
            found.append(_Numbered(name, int(last), tip))
    return sorted(found, key=lambda each: (each.run, each.number))


def _tip(tree: Tree, ref: str) -> str:
    return tree.git.ask("rev-parse", "--verify", "--quiet", ref).out.decode().strip()


def _read(tree: Tree, tip: str) -> SetAside:
    facts = _facts(tree, tip)
    aside = SetAside.from_json(read_record(tree, facts["record"]))
    if facts["state"] not in get_args(State):
        raise GitError(f"{aside.ref}: state {facts['state']!r} is of another version of mulligan")
    first = facts.get("first") or tip
    return replace(aside, state=facts["state"], commit=first, tip=tip, made=facts.get("made") or "")


def _commit(tree: Tree, whole: str, parents: list[str], facts: Mapping[str, Any]) -> str:
    name = facts.get("baseline") or f"{facts['run']}/{facts['number']} {facts['state']}"
    message = f"mulligan: {name}\n\n{json.dumps(facts)}\n"
    return commit_tree(tree.git, whole, [each for each in parents if each], message)


def _facts(tree: Tree, commit: str) -> dict[str, Any]:
    said = tree.git.run("cat-file", "commit", commit)
    facts: dict[str, Any] = json.loads(said.rstrip().rpartition(b"\n")[2])
    return facts
