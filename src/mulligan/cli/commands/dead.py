"""`mulligan dead`: list, show, replay and purge dead letters."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from ...core.dead_letter import State
from ...core.redaction import clean, presentable
from ...dead_letters.browse import DeadLetters
from ...errors import SettingError, StoreError
from .. import EXIT_FAILED, Unusable
from ..store_options import ENVIRONMENT, opened
from ..ui.dead_letters import as_json, letter_sheet, letter_table, outcome_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.dead_letter import Mark, Record

__all__ = ("command",)

_STORE = click.option(
    "--store",
    metavar="URL",
    help="The store of the letters: sqlite:PATH, redis://HOST. [$MULLIGAN_STORE, else the user's]",
)


def _filters(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose letters."""
    states = click.Choice(get_args(State))
    for option in (
        click.option("--newer", metavar="AGE", help="At most this old: 90s, 2h, 7d."),
        click.option("--older", metavar="AGE", help="At least this old."),
        click.option(
            "--state", "states", multiple=True, type=states, help="Only letters in this state."
        ),
        click.option(
            "--function", metavar="NAME", help="Only letters of this function, by either name."
        ),
        click.option("--target", metavar="NAME", help="Only letters of this target."),
    ):
        function = option(function)
    return function


@click.group()
def command() -> None:
    """Dead letters: calls that ran out of attempts, time or budget.

    A guard with dead_letters=True writes a letter for each such call, with what failed and why.
    If the function is replayable, the call can be made again.

    \b
    mulligan dead list                              list all letters
    mulligan dead show 6605                         one letter, by a prefix of its id
    mulligan dead replay --app shop.hooks --all     make the calls again
    mulligan dead purge --state replayed --older 7d

    States: waiting, replaying, replayed, failed (again), refused. Letters that could not be
    written to their store are kept in files on this machine, and are listed and replayed like
    the others.
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are


@command.command("list")
@_filters
@_STORE
@click.option("--json", "is_json", is_flag=True, help="Print the letters as JSON lines.")
def list_(*, store: str | None, is_json: bool, **chosen: Any) -> None:
    """List letters, oldest first.

    Exit codes: 0 done, even if there are none; 1 the store cannot be read; 2 wrong usage, or no
    such store.
    """
    box = _box(store)
    try:
        found = _selected(box, (), chosen)
    except StoreError:
        waiting = box.spooled()
        if waiting:
            letter_table(waiting, box.url)
        raise
    if is_json:
        for record in found:
            click.echo(json.dumps(as_json(record)))
    else:
        letter_table(found, box.url)


@command.command("show")
@click.argument("id")
@_STORE
@click.option("--json", "is_json", is_flag=True, help="Print the letter as JSON.")
def show(*, id: str, store: str | None, is_json: bool) -> None:  # noqa: A002 -- what it is called everywhere
    """Show one letter: the call, why it failed, and its replays.

    ID may be a prefix of an id. Arguments are shown as they are stored: without secrets.

    Exit codes: 0 done, 1 the store cannot be read, 2 wrong usage, or no such letter.
    """
    record = _named(_box(store), id)
    if is_json:
        click.echo(json.dumps(as_json(record), indent=2))
    else:
        letter_sheet(record)


@command.command("replay")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "is_all", is_flag=True, help="Every letter that has not been replayed.")
@_filters
@_STORE
@click.option(
    "--app",
    metavar="MODULE[:SETUP]",
    help="Import MODULE, which defines the functions, and call SETUP() if given.",
)
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Print what would be replayed; call nothing."
)
@click.option("--json", "is_json", is_flag=True, help="Print the result of each as JSON lines.")
def replay(
    *,
    ids: tuple[str, ...],
    is_all: bool,
    store: str | None,
    app: str | None,
    is_dry: bool,
    is_json: bool,
    **chosen: Any,
) -> None:
    """Make the calls of letters again, and record the results.

    Letters are selected by ID, by filters, or with --all; those already replayed are skipped.
    The functions must be imported: --app names the module that defines them; the current folder
    is searched, too.

    \b
    mulligan dead replay --app shop.hooks 6605a1
    mulligan dead replay --app shop.hooks:setup --target billing --newer 2d
    mulligan dead replay --app shop.hooks --all --dry-run

    A letter is claimed first, so two concurrent replays make one call. A call with an
    idempotency key is made under the same key. Secrets come from the function's supply=;
    without it, such a letter is refused.

    Exit codes: 0 all were replayed, or there were none; 1 some failed again, were refused, or
    are being replayed by another process; 2 wrong usage; 130 interrupted: the rest can be
    replayed later.
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    _check_selected(ids, chosen, is_all=is_all, example="--target")
    if ids and (is_all or any(chosen.values())):
        raise Unusable("letters are selected by ID or by filters, not by both", "keep one")
    box = _box(store)
    if app is not None:
        _load(app)
    found = _selected(box, ids, chosen)
    found = tuple(record for record in found if ids or record.state != "replayed")
    if is_dry:
        _rehearse(box, found, is_json=is_json)
        return
    results: list[tuple[Record, Mark | None]] = []
    try:
        _replay(box, found, results, is_quiet=is_json)
    finally:
        outcome_lines(results, is_json=is_json, left=len(found) - len(results))
    if any(mark is None or mark.state != "replayed" for _, mark in results):
        sys.exit(EXIT_FAILED)


@command.command("purge")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "is_all", is_flag=True, help="Every letter.")
@_filters
@_STORE
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Print what would be purged; remove nothing."
)
def purge(
    *, ids: tuple[str, ...], is_all: bool, store: str | None, is_dry: bool, **chosen: Any
) -> None:
    """Delete letters.

    \b
    mulligan dead purge --state replayed --older 7d
    mulligan dead purge 6605a1

    Exit codes: 0 done, 1 the store cannot be written, 2 wrong usage.
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    _check_selected(ids, chosen, is_all=is_all, example="--state")
    box = _box(store)
    for record in _selected(box, ids, chosen):
        if not is_dry:
            box.purge(record)
        click.echo(f"{'would purge' if is_dry else 'purged'} {record.letter.id}")


def _box(url: str | None) -> DeadLetters:
    """The letters at `url`, else at MULLIGAN_STORE, else this user's, where there may be none."""
    if not url and not os.environ.get(ENVIRONMENT):
        return DeadLetters()
    box = DeadLetters(opened(url, must_exist=False))
    # Letters for a file that is missing may be in spool files.
    is_spooled = any(record.letter.home == box.url for record in box.spooled())
    return box if is_spooled else DeadLetters(opened(url))


def _check_selected(
    ids: tuple[str, ...], chosen: dict[str, Any], *, is_all: bool, example: str
) -> None:
    if not ids and not is_all and not any(chosen.values()):
        hint = f"name some, filter with {example} and others, or use --all"
        raise Unusable("no letters were selected", hint)


def _selected(box: DeadLetters, ids: tuple[str, ...], chosen: dict[str, Any]) -> tuple[Record, ...]:
    if ids:
        return tuple(_named(box, each) for each in ids)
    try:
        return box.all(**chosen)
    except SettingError as error:
        raise Unusable(f"--{error}", "an age is written 90s, 2h or 7d") from None


def _named(box: DeadLetters, id: str) -> Record:  # noqa: A002 -- what it is called everywhere
    try:
        return box.get(id)
    except SettingError as error:
        raise Unusable(clean(str(error)), "mulligan dead list shows them all") from None


def _load(app: str) -> None:
    """Import the module that defines the functions; the current folder is searched first."""
    module, colon, setup = app.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        loaded: Any = import_module(module)
        for name in setup.split(".") if colon else ():
            loaded = getattr(loaded, name)
        if colon and callable(loaded):
            loaded()
    except Exception as trouble:  # noqa: BLE001 -- the user's module, which may raise anything
        raise Unusable(
            f"--app {clean(app)} cannot be loaded: {type(trouble).__name__}: "
            f"{presentable(str(trouble))}",
            "write MODULE or MODULE:FUNCTION, as you would import them here",
        ) from None


def _rehearse(box: DeadLetters, found: tuple[Record, ...], *, is_json: bool) -> None:
    for record in found:
        why = box.hindrance(record)
        if is_json:
            click.echo(json.dumps({"id": record.letter.id, "would": not why, "because": why}))
        else:
            said = f"would {'refuse' if why else 'replay'} {record.letter.id}"
            click.echo(clean(f"{said}: {why}" if why else said))


def _replay(
    box: DeadLetters,
    found: tuple[Record, ...],
    results: list[tuple[Record, Mark | None]],
    *,
    is_quiet: bool,
) -> None:
    """Replay `found` one by one into `results`, so that an interruption loses none of them."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("replaying"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[now]}"),
        TimeElapsedColumn(),
        console=console,
        disable=is_quiet or not console.is_terminal or not found,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=len(found), now="")
        for record in found:
            label = clean(record.letter.name or record.letter.function, 40)
            progress.update(task, now=label.replace("[", "\\["))
            results.append((record, box.replay(record)))
            progress.advance(task)
