"""`mulligan block`: nobody calls a target, until a hand says otherwise."""

from __future__ import annotations

import click

from ..core.breaker import Hand
from ..core.duration import duration_text
from ..core.machine import Key
from ..core.text import clean
from .shared import opened, scope_option, span_option, store_option, suspect, target_argument

__all__ = ("command",)


@click.command()
@target_argument
@span_option
@click.option("--because", default="blocked by hand", metavar="WORDS", help="Told to the refused.")
@scope_option
@store_option
def command(target: str, span: float | None, because: str, scope: str, url: str | None) -> None:
    r"""Let nobody call TARGET.

    Every guard of TARGET that shares the store refuses calls from now on, with CircuitOpen and
    the words of --because. Calls under way are not touched. No success and no timer undoes it:
    it lasts until mulligan allow or mulligan reset, or for the time of --for.

    \b
    Examples:
      mulligan block billing-api --because "wrong invoices, see #812"
      mulligan block anthropic --scope team-a --for 2h
    """
    store = opened(url, must_exist=False)
    suspect(store, target)
    key = Key(target, "breaker", store.scoped(scope))
    store.state.transact(key, Hand(move="block", because=clean(because, 200), seconds=span))
    end = "until mulligan allow or reset" if span is None else f"for {duration_text(span)}"
    click.echo(f"{clean(target, 80)}: blocked {end}")
