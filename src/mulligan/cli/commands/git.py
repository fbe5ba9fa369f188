"""`mulligan git`: list, restore and drop what runs have set aside."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...core.redaction import clean, presentable
from ...errors import GitRefused
from ...run.git import (
    OPEN,
    Tree,
    agent_worktrees,
    drop,
    has_baseline,
    leased,
    load_all,
    merge_worktree,
    recover,
    remove_worktree,
    restore_changes,
    unmerged_changes,
    unsaved_paths,
)
from ...run.journal.store import NoSuchRun, RunStore
from .. import EXIT_FAILED, Unusable
from ..ui.tables import columns

if TYPE_CHECKING:
    from ...run.git import AgentWorktree, RestoreResult, SetAside

__all__ = ("command",)

_FOLDER = click.option(
    "-C",
    "--folder",
    default=".",
    metavar="DIR",
    help="A folder in the work tree. [the current one]",
)
_JSON = click.option("--json", "is_json", is_flag=True, help="Print JSON.")
_HEAD = ("RUN", "N", "MODE", "STATE", "FILES", "WHEN", "WHERE")


@click.group(
    epilog='Runs set changes aside only if told to (git = "stash", "commit", …). The changes are '
    "stored in the repository itself, under refs/mulligan/: git log, git show and git diff work "
    "on them, git gc keeps them, git push does not send them.",
)
def command() -> None:
    """List changes that runs have set aside in git, and restore them.

    \b
    mulligan git list                      all changes, newest last
    mulligan git restore RUN --dry-run     what would be restored, and what conflicts
    mulligan git restore RUN               restore the changes
    mulligan git drop RUN                  delete them, once they are restored

    For a plan, RUN stands for all of its agents. RUN/agents/NAME, as shown by the list, is one
    agent.
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are


@command.command("list")
@_FOLDER
@_JSON
def list_(*, folder: str, is_json: bool) -> None:
    """List everything that runs have set aside in this repository.

    \b
    prepared    recorded, nothing touched yet; restore completes it
    aside       not in your tree; restore brings it back
    returning   being restored when the process died; restore completes it
    partly      restored except for conflicts
    returned    restored to your tree
    committed   a commit on your branch
    kept        on a branch of its own
    lent        in the work tree of an agent that is running or failed; its folder stays
                until mulligan git restore RUN/agents/NAME takes the changes out of it, or
                mulligan git drop RUN removes it
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    tree = Tree.find(folder)
    found, worktrees = load_all(tree), agent_worktrees(tree)
    if is_json:
        about = [*map(_about, found), *map(_worktree_data, worktrees)]
        click.echo(json.dumps(about, indent=2))
        return
    if not found and not worktrees:
        click.echo("nothing has been set aside here", err=True)
        return
    rows = [_row(each) for each in sorted(found, key=lambda each: each.at)]
    rows += [_worktree_row(each) for each in worktrees]
    for line in columns(_HEAD, rows, is_cut=False):
        click.echo(line)


@command.command()
@click.argument("run")
@click.option("-n", "--number", type=int, metavar="N", help="Only this one. [all, newest first]")
@click.option("--partly", is_flag=True, help="Restore what does not conflict, leave the rest.")
@click.option(
    "--dry-run", "is_rehearsal", is_flag=True, help="Print what would be restored; change nothing."
)
@_FOLDER
@_JSON
def restore(
    run: str, *, number: int | None, partly: bool, is_rehearsal: bool, folder: str, is_json: bool
) -> None:
    """Restore what RUN has set aside.

    Each file is restored byte for byte, staged as it was. If a file was changed since, the changes
    are merged where they concern other lines. If any file conflicts, none is touched, and the
    command that shows the version set aside is printed; --partly restores the others.

    Refused while a process is running RUN, or another run works in the tree.

    If a process was killed while setting files aside or restoring them, that is completed first.

    An agent of a plan that failed in its own work tree keeps that tree. Given as
    RUN/agents/NAME, its changes are merged into your tree, and its tree is removed.

    \b
    Exit codes: 0 everything was restored, 1 something conflicts, 2 wrong usage.
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    here = Tree.find(folder)
    run = _meant(here, run)
    worktrees = [] if number is not None else agent_worktrees(here, run)
    is_taken = bool(worktrees) and worktrees[0].key == run
    asides = [] if is_taken else _of(here, run, number, is_needed=not worktrees)
    with ExitStack() as stack:
        if not is_rehearsal:
            trees = [here] if is_taken else [_tree_of(each, here) for each in asides]
            _hold(run, trees, stack, is_shared=is_taken)
            # As it is now that no other process is there.
            asides = [] if is_taken else _of(here, run, number, is_needed=not worktrees)
        if is_taken:
            _merge(worktrees[0], is_rehearsal=is_rehearsal, is_json=is_json)
            return
        results = _given(here, asides, is_partial=partly, is_rehearsal=is_rehearsal)
    if is_json:
        click.echo(json.dumps([_result(each) for each in results], indent=2))
    else:
        for result in results:
            _tell(result, is_rehearsal=is_rehearsal)
        for each in worktrees:
            where = presentable(each.folder, 200)
            said = f"is in its own work tree, {where}; mulligan git restore {each.key}"
            if _is_merged(here, each):
                said = f"was taken back; what git does not hold is left in {where}"
            click.echo(f"{each.key}: {said}")
    if not all(result.is_whole for result in results):
        click.get_current_context().exit(EXIT_FAILED)


def _hold(run: str, trees: list[Tree], stack: ExitStack, *, is_shared: bool) -> None:
    """Hold the trees that files come back to, so that no run works there meanwhile."""
    runs, id_ = RunStore(), run.partition("/")[0]
    state = runs.look(id_)
    if state is not None and runs.is_held(id_):
        raise Unusable(
            f"run {id_} is being run by {runs.holder(id_)}, and restores by itself what it has "
            f"set aside",
            f"wait until it ends, or cancel it first: mulligan cancel {id_}",
        )
    if state is not None and state.is_open and not is_shared:
        note = f"note: run {id_} has not ended, and will continue with what is in the tree then"
        click.echo(note, err=True)
    who = f"{id_}, by mulligan git restore,"
    for tree in {each.folder: each for each in trees}.values():
        stack.enter_context(leased(tree, who, is_shared=is_shared))


def _given(
    here: Tree, asides: list[SetAside], *, is_partial: bool, is_rehearsal: bool
) -> list[RestoreResult]:
    """Give back what was set aside, the newest first."""
    results = []
    for aside in sorted(asides, key=lambda each: (-each.at, -each.number)):
        tree = _tree_of(aside, here)
        if aside.state in OPEN and aside.mode == "commit":
            if not is_rehearsal:
                recover(tree, aside.run)
            continue
        results.append(
            restore_changes(tree, aside, is_partial=is_partial, is_rehearsal=is_rehearsal)
        )
    return results


@command.command("drop")
@click.argument("run")
@click.option(
    "--force", "is_forced", is_flag=True, help="Also drop changes that were not restored."
)
@_FOLDER
def drop_(run: str, *, is_forced: bool, folder: str) -> None:
    """Delete what RUN has set aside; git removes the data some weeks later.

    The work trees of its failed agents are removed. Refused while something is not restored,
    unless --force is given, and while RUN can be resumed.
    """
    tree = Tree.find(folder)
    run = _meant(tree, run)
    worktrees = agent_worktrees(tree, run)
    asides = _of(tree, run, None, is_needed=not (worktrees or has_baseline(tree, run)))
    _check_over(run)
    if not is_forced:
        _check_given(tree, run, asides, worktrees)
    for each in worktrees:
        remove_worktree(tree, each)
    drop(tree, run)
    trees = f", and removed {len(worktrees)} of its trees" if worktrees else ""
    click.echo(f"dropped {len(asides)} set aside by {run}{trees}")


def _check_given(
    tree: Tree, run: str, asides: list[SetAside], worktrees: list[AgentWorktree]
) -> None:
    """Refuse to delete the only copy of something."""
    count = sum(len(each.moves) for each in asides if each.state in OPEN)
    count += sum(len(unsaved_paths(each)) for each in worktrees if not _is_merged(tree, each))
    if count:
        verb, what = ("is", "it") if count == 1 else ("are", "them")
        raise Unusable(
            f"{_files(count)} of {run!r} {verb} not restored",
            f"mulligan git restore {run} restores {what}, --force drops {what}",
        )
    for each in worktrees:
        if left := unsaved_paths(each):
            raise Unusable(
                f"{_files(len(left))} that git must not store would be lost with "
                f"{presentable(each.folder, 200)}",
                f"take {presentable(left[0], 80)} out of it, or write --force",
            )


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def _check_over(run: str) -> None:
    """Refuse to take from an agent what it may be working on, or will go on with."""
    runs, id_ = RunStore(), run.partition("/")[0]
    state = runs.look(id_)
    if state is not None and (state.is_open or runs.is_held(id_)):
        raise Unusable(
            f"run {id_} has not ended, and will continue with its changes there",
            f"mulligan resume {id_} finishes it, mulligan cancel {id_} cancels it",
        )


def _merge(worktree: AgentWorktree, *, is_rehearsal: bool, is_json: bool) -> None:
    """Bring the changes of an agent that failed into the tree, and remove its own."""
    _check_over(worktree.run)
    about = _worktree_data(worktree)
    if is_rehearsal:
        what = f"{_files(len(about['moves']))} would come from {worktree.folder}"
    else:
        taken = merge_worktree(worktree)
        paths = taken.given.paths if taken.given is not None and taken.given.is_whole else ()
        what = f"{_files(len(paths))} were taken from its work tree"
        if taken.branch:
            what = f"conflicts with your tree, and is kept on a branch; git merge {taken.branch}"
        about.update(state="kept" if taken.branch else "returned", made=taken.branch, paths=paths)
        for each in taken.left:
            where = presentable(f"{worktree.folder}/{each.path}", 200)
            click.echo(f"left {where}: {each.reason}", err=True)
    click.echo(json.dumps([about], indent=2) if is_json else f"{worktree.key}: {what}")


def _is_merged(tree: Tree, worktree: AgentWorktree) -> bool:
    """Whether its changes were taken back, and only what git must not hold is left there."""
    states = [each.state for each in load_all(tree, worktree.key) if each.mode == "worktree"]
    return bool(states) and states[-1] in {"returned", "kept"} and not unmerged_changes(worktree)


def _tree_of(aside: SetAside, here: Tree) -> Tree:
    """The work tree it was taken from; this one if that was moved, or is another repository's."""
    if Path(aside.folder).is_dir():
        with suppress(GitRefused):
            tree = Tree.find(aside.folder)
            if tree.common == here.common:
                return tree
    return here


def _meant(tree: Tree, run: str) -> str:
    """The run that was meant, if it is called by its name or by the beginning of its id."""
    known = [*(each.run for each in load_all(tree)), *(each.key for each in agent_worktrees(tree))]
    if not any(_is_of(each, run) for each in known):
        with suppress(NoSuchRun):
            return RunStore().find(run)
    return run


def _is_of(name: str, run: str) -> bool:
    return name == run or name.startswith(f"{run}/agents/")


def _of(tree: Tree, run: str, number: int | None, *, is_needed: bool = True) -> list[SetAside]:
    every = load_all(tree)
    found = [each for each in every if _is_of(each.run, run)]
    if number is not None:
        found = [each for each in found if each.number == number]
    if found or not is_needed:
        return found
    names = sorted({each.run.partition("/")[0] for each in every})
    near = get_close_matches(run, names, n=1)
    which = f"nothing number {number} was" if number is not None else "nothing was"
    raise Unusable(
        f"{which} set aside here by a run {clean(run, 80)!r}",
        f"did you mean {near[0]!r}?" if near and near[0] != run else "mulligan git list shows all",
    )


def _row(aside: SetAside) -> tuple[str, ...]:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(aside.at))
    where = f"branch {aside.made}" if aside.state == "kept" else aside.ref
    if aside.state == "committed":
        where = f"commit {aside.made[:12]}" if aside.made else "nothing was left to commit"
    files = str(len(aside.moves))
    return (aside.run, str(aside.number), aside.mode, aside.state, files, when, where)


def _worktree_row(worktree: AgentWorktree) -> tuple[str, ...]:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(Path(worktree.folder).stat().st_mtime))
    files = str(len(unsaved_paths(worktree)))
    return (worktree.key, "", "worktree", "lent", files, when, worktree.folder)


def _worktree_data(worktree: AgentWorktree) -> dict[str, Any]:
    about = {"run": worktree.key, "mode": "worktree", "state": "lent"}
    return {**about, "folder": worktree.folder, "moves": unsaved_paths(worktree)}


def _about(aside: SetAside) -> dict[str, Any]:
    data = aside.to_json()
    data.pop("tip")
    return {**data, "ref": aside.ref, "moves": [each.path for each in aside.moves]}


def _result(given: RestoreResult) -> dict[str, Any]:
    names = ("is_whole", "paths", "merged", "unstaged")
    conflicts = [asdict(each) for each in given.conflicts]
    about = {name: getattr(given, name) for name in names}
    return {**_about(given.aside), **about, "conflicts": conflicts}


def _tell(given: RestoreResult, *, is_rehearsal: bool) -> None:
    aside = given.aside
    name = f"{aside.run}/{aside.number}"
    if aside.state == "committed":
        click.echo(f"{name}: is commit {aside.made[:12]} on your branch; nothing to restore")
    elif aside.state == "kept":
        click.echo(f"{name}: is kept on branch {aside.made}; git merge {aside.made}")
    elif not given.paths and not given.conflicts:
        click.echo(f"{name}: was restored before")
    else:
        verb = "would be restored" if is_rehearsal else "restored"
        merged = f", {len(given.merged)} of them merged" if given.merged else ""
        click.echo(f"{name}: {_files(len(given.paths))} {verb}{merged}")
    for path in given.unstaged:
        click.echo(f"  not staged as it was, something else is: {presentable(path, 200)}", err=True)
    for conflict in given.conflicts:
        click.echo(f"error: {presentable(conflict.path, 200)}: {conflict.reason}", err=True)
    commands = [each.command for each in given.conflicts if each.command]
    if given.conflicts:
        look = f"{commands[0]} prints the other version; " if commands else ""
        rest = "it stays set aside" if aside.state == "partly" else "--partly restores the others"
        click.echo(f"\nhint: {look}{rest}", err=True)
