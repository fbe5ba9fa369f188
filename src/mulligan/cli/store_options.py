"""Options that name a store, and the stores that status commands open."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..core.redaction import clean
from ..errors import SettingError, StoreError
from ..shared.snapshot import known
from ..stores.home import home
from ..stores.open import open_store, printable, sqlite_path
from . import EXIT_FAILED, Unusable
from .ui.types import DurationType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..core.ports import Store

__all__ = (
    "ENVIRONMENT",
    "NothingMatched",
    "Stores",
    "nearest",
    "note_unknown_target",
    "opened",
    "scope_of",
    "scope_option",
    "span_option",
    "store_option",
    "stores_of",
    "target_argument",
)

ENVIRONMENT = "MULLIGAN_STORE"

_NAME_IT = (
    f"give the store that the guards share, with --store or {ENVIRONMENT}: "
    f"sqlite:PATH or redis://HOST"
)

store_option: Callable[..., Any] = click.option(
    "--store",
    "url",
    metavar="URL",
    help=(
        f"The store that the guards share: sqlite:PATH or redis://HOST.  [default: ${ENVIRONMENT}]"
    ),
)

scope_option: Callable[..., Any] = click.option(
    "--scope",
    default="",
    metavar="ACCOUNT",
    help="For guards: the account, as in scope=, or its hash as shown by status.  [none]",
)


class NothingMatched(Unusable):
    """A name that is in no store."""

    exit_code = EXIT_FAILED


def _named(_context: click.Context, _argument: click.Parameter, text: str) -> str:
    if not text.strip():
        raise Unusable(
            f"a target needs a name; got {text!r}",
            'the name is the guard\'s, as in mulligan.Guard("anthropic")',
        )
    return text


target_argument: Callable[..., Any] = click.argument("target", metavar="NAME", callback=_named)


span_option: Callable[..., Any] = click.option(
    "--for",
    "span",
    metavar="TIME",
    type=DurationType(is_zero_refused=True),
    help="How long, such as 90s, 2h or 1h30m.  [until another block, allow or reset]",
)


class Stores(NamedTuple):
    """The stores that a status command reads and changes."""

    guards: Store | None  # that guards share, if one is named
    runs: tuple[Store, ...]  # in which runs of this user find limits


def stores_of(url: str | None, *, must_exist: bool = True, is_made: bool = False) -> Stores:
    """The store of guards at `url` or MULLIGAN_STORE, and that of the runs of this user.

    With `is_made`, the store of runs is created if no run has needed it yet.
    """
    url = url or os.environ.get(ENVIRONMENT, "")
    guards = opened(url, must_exist=must_exist) if url else None
    own = None
    try:
        file = home() / "state.db"
        own = open_store(f"sqlite:{file}") if is_made or file.exists() else None
    except StoreError:
        if guards is None:
            raise
    if guards is None and own is None:
        raise Unusable("no run of this user has hit a limit, and no store was given", _NAME_IT)
    is_one = guards is not None and own is not None and guards.url == own.url
    return Stores(guards, tuple(each for each in (guards, None if is_one else own) if each))


def opened(url: str | None, *, must_exist: bool = True) -> Store:
    """The store at `url`, else at MULLIGAN_STORE."""
    url = url or os.environ.get(ENVIRONMENT, "")
    if not url:
        raise Unusable(
            "no store was given, and the memory of other processes cannot be read", _NAME_IT
        )
    if url.startswith("memory:"):
        raise Unusable(
            "memory: is the memory of one process, which others cannot read",
            "let the guards share a store, sqlite:PATH or redis://HOST, and give it here",
        )
    if must_exist and not _exists(sqlite_path(url)):
        raise Unusable(
            f"{printable(url)}: no such file",
            "a guard creates it at its first call; is this the path that the guards use?",
        )
    try:
        return open_store(url)
    except SettingError as error:
        meant = f"did you mean --store sqlite:{clean(url, 200)}?"
        hint = meant if ":" not in url else "sqlite:PATH or redis://HOST"
        raise Unusable(str(error), hint) from None


def _exists(path: str) -> bool:
    """Whether one of the two files of a store on SQLite exists; dead letters are in the second."""
    if not path or (hot := Path(path).expanduser()).exists():
        return True
    from ..stores.sqlite.journal import journal_file

    return journal_file(hot).path.exists()


def scope_of(store: Store, target: str, scope: str) -> str:
    """The hash of `scope`: of the account that it names, or the one whose hash begins like it."""
    scopes = [hashed for name, hashed in known(store) if name == target and hashed]
    if scope and store.scoped(scope) not in scopes:
        begins = [each for each in scopes if len(scope) >= 4 and each.startswith(scope)]
        if len(begins) == 1:
            return begins[0]
    return store.scoped(scope)


def note_unknown_target(store: Store, target: str) -> None:
    """Print a note on stderr if the store has no state of `target`."""
    names = sorted({name for name, _ in known(store)})
    if target not in names:
        guess = nearest(target, names)
        click.echo(f"note: no failure of {clean(target, 80)!r} is known so far{guess}", err=True)


def nearest(name: str, names: Iterable[str]) -> str:
    """A question whether another name was meant; empty if none is near."""
    near = get_close_matches(name, list(names), n=1)
    return f"; did you mean {clean(near[0], 80)!r}?" if near else ""
