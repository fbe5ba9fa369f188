"""`mulligan allow`: a target is called whatever its results, until a hand says otherwise."""

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
@scope_option
@store_option
def command(target: str, span: float | None, scope: str, url: str | None) -> None:
    r"""Let everybody call TARGET, however often it fails.

    The shared breaker of TARGET stays closed until mulligan block or mulligan reset, or for the
    time of --for. A process still stops itself after failures of its own, and a gate that the
    server has shut stays shut: it said when it opens.

    \b
    Examples:
      mulligan allow billing-api
      mulligan allow billing-api --for 30m
    """
    store = opened(url)
    suspect(store, target)
    store.state.transact(
        Key(target, "breaker", store.scoped(scope)), Hand(move="allow", seconds=span)
    )
    end = "until mulligan block or reset" if span is None else f"for {duration_text(span)}"
    click.echo(f"{clean(target, 80)}: allowed {end}")
