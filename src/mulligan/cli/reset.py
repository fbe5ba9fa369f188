"""`mulligan reset`: forget what is known about a target."""

from __future__ import annotations

import click

from ..core.breaker import Hand
from ..core.gate import Forget
from ..core.machine import Key
from ..core.text import clean
from ..core.tokens import Fund, Tokens
from .shared import opened, scope_option, store_option, suspect, target_argument

__all__ = ("command",)

# More than any bucket misses.
_ALL = 1e12


@click.command()
@target_argument
@scope_option
@store_option
def command(target: str, scope: str, url: str | None) -> None:
    r"""Forget what was counted and believed about TARGET.

    Takes a hand away, closes the shared breaker, opens the gate without any belief, and fills the
    retry tokens; retries that wait keep theirs. The next answers teach it all anew: a gate opened
    too early costs a rejection, and is shut again by it.

    \b
    Example:
      mulligan reset anthropic --scope team-a
    """
    store = opened(url)
    suspect(store, target)
    scope = store.scoped(scope)
    store.state.transact(Key(target, "breaker", scope), Hand(move="reset"))
    store.state.transact(Key(target, "gate", scope), Forget())
    store.state.transact(Key(target, "tokens", scope), Fund(successes=_ALL, tokens=Tokens()))
    click.echo(f"{clean(target, 80)}: breaker closed, gate open, tokens full")
