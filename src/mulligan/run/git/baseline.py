"""Tells what a run has changed from what the user had changed before.

    now, but not at the baseline            the run's: set aside
    at the baseline, and the same now       the user's: not touched
    at the baseline, and different now      both: set aside, and the user's version comes back

Where a path goes back to is the user's version if there was one and the last commit has not
changed the file since, else the last commit. Commits that an agent made are never undone.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.redaction import presentable
from ...errors import GitError, GitRefused
from ...stores.home import private_folder
from .command import null_terminated
from .files import LINK, TreeEntry
from .objects import Objects, entries_of, index_lines
from .record import Baseline, FileState, LeftPath, Move
from .refs import checked_name, load_baseline, reading, write_baseline
from .status import TreeStatus
from .tree_lock import locked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .tree import Tree

__all__ = ("MOST_BYTES", "Changes", "changes", "record_baseline")

# More than this is probably a node_modules that is not ignored, or a data set: refused instead of
# copied into the repository.
MOST_BYTES = 2 << 30
# Beyond this many folders, empty ones are not recorded.
_MOST_FOLDERS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a run has changed."""

    moves: tuple[Move, ...]
    left: tuple[LeftPath, ...]  # changed, and must not be touched
    shared: frozenset[str]  # paths among the moves that the user had changed before
    folders: tuple[str, ...] = ()  # the user's, which are kept even if empty


def record_baseline(
    tree: Tree,
    run: str,
    *,
    instead_of: str = "",
    author: str = "",
    folders: tuple[str, ...] | None = None,
) -> Baseline:
    """Record the tree as it is when the run begins. Idempotent: the first baseline stays.

    Args:
        tree: The tree; refused while a merge, a rebase or the like is under way.
        run: The run.
        instead_of: The commit of a baseline to replace.
        author: ``Name <mail>``, for commits of the run where git does not know who commits by then.
        folders: Its folders with nothing in them that git tracks, if they were just made.
    """
    checked_name(run)
    with locked(tree), reading(tree):
        found = load_baseline(tree, run)
        if found is not None and found.commit != instead_of:
            return found
        status, objects = TreeStatus.checked(tree), Objects(tree.store)
        baseline = Baseline(
            run=run,
            head=status.commit,
            commit="",
            states=read_states(tree, status.dirty, status, objects),
            folders=untracked_folders(tree) if folders is None else folders,
            author=author,
        )
        return write_baseline(tree, baseline, objects, instead_of=instead_of)


def changes(
    tree: Tree,
    baseline: Baseline | None,
    *,
    status: TreeStatus | None = None,
    objects: Objects | None = None,
) -> Changes:
    """What has changed since `baseline`, or since the last commit if there is none.

    The contents of what has changed are added to `objects`, to be written.
    """
    private_folder(Path(tree.scratch))
    status = status or TreeStatus.of(tree)
    objects = objects or Objects(tree.store)
    known = {} if baseline is None else baseline.states
    heads = status.head
    if baseline is not None and baseline.head != status.commit:
        heads = entries_of(tree, baseline.head) if baseline.head else {}
    # What the user had changed and the run has put back or removed is changed as well.
    mine = {path for path in known if heads.get(path) == status.head.get(path)}
    untouchable = {each.path for each in status.left}
    states = read_states(tree, sorted({*status.dirty, *mine} - untouchable), status, objects)
    changed = {
        path: state
        for path, state in states.items()
        if path not in known or not state.is_like(known[path])
    }
    shared = mine & {*changed}
    hidden = _ignored_before(status, heads, known, changed)
    committed = (changed.keys() - shared - hidden) & status.head.keys()
    clean = smudged(tree, status.commit, {path: status.head[path] for path in committed}, objects)
    moves = []
    for path in sorted(changed.keys() - hidden):
        base = FileState(tree=clean.get(path), index=status.head.get(path))
        base = known[path] if path in shared else base
        moves.append(Move(path=path, base=base, aside=changed[path]))
    late = [LeftPath(path=path, reason="ignored before") for path in sorted(hidden)]
    return Changes(
        moves=tuple(moves),
        left=(*status.left, *late),
        shared=frozenset(shared),
        folders=() if baseline is None else baseline.folders,
    )


def untracked_folders(tree: Tree) -> tuple[str, ...]:
    """Every folder, empty ones included, without a file that git tracks or ignores."""
    asked = ("ls-files", "--others", "--directory", "--exclude-standard", "-z")
    found: list[str] = []
    for top in (path for path in tree.git.fields(*asked) if path.endswith("/")):
        for folder, below, names in os.walk(tree.files.place(top.rstrip("/"))):
            if ".git" in (*below, *names):
                below.clear()  # a repository of its own
            elif len(found) < _MOST_FOLDERS:
                found.append(os.path.relpath(folder, tree.folder))
    return tuple(sorted(found))


def read_states(
    tree: Tree, paths: Iterable[str], status: TreeStatus, objects: Objects
) -> dict[str, FileState]:
    """The states of `paths`, with their bytes added to `objects`; refused if git cannot hold it."""
    paths = list(paths)
    _check_case(tree, paths, status)
    found = {path: status.state(path) for path in paths}
    entries = {path: state.tree for path, state in found.items() if state.tree is not None}
    for path, entry in entries.items():
        if not (entry.is_file or entry.mode == LINK):
            raise GitRefused(
                f"{presentable(path, 200)} is not a file that git can store; move it away"
            )
    regular = [path for path, entry in entries.items() if entry.is_file]
    total = sum(os.path.getsize(tree.files.place(path)) for path in regular)
    if total > MOST_BYTES:
        raise GitRefused(
            f"{total / (1 << 30):.1f} GB in {len(regular)} changed files is more than "
            f"{MOST_BYTES >> 30} GB; name what is not source in .gitignore"
        )
    for path, entry in entries.items():
        if entry.is_file:
            objects.file(tree.files.place(path), entry.oid)
        else:
            objects.blob(os.readlink(os.fsencode(tree.files.place(path))))
    return found


def _check_case(tree: Tree, paths: list[str], status: TreeStatus) -> None:
    """Refuse paths that differ only in case where that is one file: a move would move both."""
    if not tree.ignores_case:
        return
    known: dict[str, str] = {}
    moving = {*paths}
    for path in (*status.head, *paths):
        other = known.setdefault(path.casefold(), path)
        if other != path and moving & {other, path}:
            both = f"{presentable(other, 200)} and {presentable(path, 200)}"
            raise GitRefused(f"{both} differ only in case, which is one file here; rename one")


def smudged(
    tree: Tree, treeish: str, entries: Mapping[str, TreeEntry], objects: Objects
) -> dict[str, TreeEntry]:
    """Committed files as git would check them out, after filters; their bytes are in `objects`.

    They are checked out into an empty folder, so that the attributes of the commit apply, not those
    that an agent has changed.
    """
    wanted = {path: each for path, each in entries.items() if each.is_file or each.mode == LINK}
    if not wanted:
        return {}
    with tempfile.TemporaryDirectory(dir=tree.scratch) as folder:
        out = os.path.join(folder, "out")
        os.mkdir(out)
        git = replace(tree.git, folder=out).with_variables(
            GIT_INDEX_FILE=os.path.join(folder, "index"),
            GIT_DIR=tree.repository,
            GIT_WORK_TREE=out,
        )
        git.run("read-tree", treeish)
        git.run("update-index", "-z", "--index-info", stdin=index_lines(git, wanted))
        git.run("checkout-index", "-z", "--stdin", "--force", stdin=null_terminated(wanted))
        files = replace(tree.files, root=out)
        found = {}
        for path, entry in wanted.items():
            there = files.entry(path)
            if there is None:
                raise GitError(f"{presentable(path, 200)} could not be checked out")
            found[path] = entry if entry.mode == LINK else there
        for path, each in found.items():
            if each.is_file and each != entries[path]:
                objects.file(files.place(path), each.oid)
        objects.write()  # the temporary files are removed next
    return found


def _ignored_before(
    status: TreeStatus,
    heads: Mapping[str, TreeEntry],
    known: Mapping[str, FileState],
    changed: Mapping[str, FileState],
) -> set[str]:
    """Files that git ignored until the run changed the rules: the user's data, or a cache."""
    tree = status.tree
    asked = [path for path in changed if path in status.untracked and path not in known]
    then = {**heads, **{path: state.tree for path, state in known.items()}}
    before = {
        path: entry
        for path, entry in then.items()
        if entry is not None and path.rpartition("/")[2] == ".gitignore"
    }
    if not asked or all(tree.files.entry(path) == each for path, each in before.items()):
        return set()
    with tempfile.TemporaryDirectory(dir=tree.scratch) as folder:
        git = replace(tree.git, folder=folder).with_variables(
            GIT_DIR=tree.repository, GIT_WORK_TREE=folder
        )
        for path, entry in before.items():
            place = os.path.join(folder, path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file, reading(tree) as reader:
                file.write(reader.read(entry.oid))
        # This command has no literal pathspecs; after "./" no character is special.
        git = git.with_variables(GIT_LITERAL_PATHSPECS="0")
        listed = null_terminated(f"./{path}" for path in asked)
        done = git.ask("check-ignore", "--no-index", "-z", "--stdin", stdin=listed)
        if done.code not in {0, 1}:
            raise GitError(f"git check-ignore failed: {done.text}", done.text)
    return {os.fsdecode(each.removeprefix(b"./")) for each in done.out.split(b"\0") if each}
