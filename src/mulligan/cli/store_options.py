"""The store that a command looks into, with the options that name it."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.breaker import BREAKER
from ..core.duration import seconds
from ..core.gate import GATE
from ..core.text import clean
from ..core.tokens import TOKENS
from ..errors import SettingError
from ..stores.url import open_store, printable, sqlite_path
from . import Unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.ports import Store

__all__ = (
    "ENVIRONMENT",
    "known",
    "opened",
    "scope_option",
    "span_option",
    "store_option",
    "suspect",
    "target_argument",
)

ENVIRONMENT = "MULLIGAN_STORE"

store_option: Callable[..., Any] = click.option(
    "--store",
    "url",
    metavar="URL",
    help=f"Where the state is shared: sqlite:PATH or redis://HOST.  [default: ${ENVIRONMENT}]",
)

scope_option: Callable[..., Any] = click.option(
    "--scope",
    default="",
    metavar="ACCOUNT",
    help="The account, as the guard names it in scope=; without it, the guards that name none.",
)


def _named(_context: click.Context, _argument: click.Parameter, text: str) -> str:
    if not text.strip():
        raise Unusable(
            f"a target needs a name; got {text!r}",
            'the name is the guard\'s, as in mulligan.Guard("anthropic")',
        )
    return text


target_argument: Callable[..., Any] = click.argument("target", callback=_named)


def _span(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    try:
        return None if text is None else seconds(text, name="--for", least=0.001)
    except SettingError as error:
        raise Unusable(str(error), "--for 2h") from None


span_option: Callable[..., Any] = click.option(
    "--for",
    "span",
    metavar="TIME",
    callback=_span,
    help="For how long, such as 90s, 2h or 1h30m; without it, until another hand.",
)


def opened(url: str | None, *, must_exist: bool = True) -> Store:
    """The store at `url`, else at MULLIGAN_STORE."""
    url = url or os.environ.get(ENVIRONMENT, "")
    if not url:
        raise Unusable(
            "no store is named, and what other processes keep in memory cannot be seen",
            f"name the store that the guards share, with --store or {ENVIRONMENT}: "
            f"sqlite:PATH or redis://HOST",
        )
    if url.startswith("memory:"):
        raise Unusable(
            "memory: belongs to one process, and this is another one",
            "let the guards share a store, sqlite:PATH or redis://HOST, and name it here",
        )
    path = sqlite_path(url)
    if must_exist and path and not Path(path).expanduser().exists():
        raise Unusable(
            f"{printable(url)}: no such file",
            "a guard makes it at its first call; is this the path that the guards use?",
        )
    try:
        return open_store(url)
    except SettingError as error:
        is_path = ":" not in url
        hint = (
            f"did you mean --store sqlite:{clean(url, 200)}?"
            if is_path
            else "sqlite:PATH or redis://HOST"
        )
        raise Unusable(str(error), hint) from None


def known(store: Store) -> list[tuple[str, str]]:
    """Every target and scope of which the store knows anything, in order."""
    state = store.state
    keys = (*state.known(BREAKER), *state.known(GATE), *state.known(TOKENS))
    return sorted({(key.target, key.scope) for key in keys})


def suspect(store: Store, target: str) -> None:
    """Remark on a target of which nothing is known, on stderr."""
    names = sorted({name for name, _ in known(store)})
    if target in names:
        return
    near = get_close_matches(target, names, n=1)
    guess = f"; did you mean {clean(near[0], 80)!r}?" if near else ""
    click.echo(f"note: nothing has gone wrong at {clean(target, 80)!r} so far{guess}", err=True)
