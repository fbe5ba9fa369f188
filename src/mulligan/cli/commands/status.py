"""`mulligan status`: what everybody together knows about every target."""

from __future__ import annotations

import json
import os
from math import ceil
from typing import TYPE_CHECKING, Any

import click

from ..core.breaker import BREAKER
from ..core.duration import duration_text
from ..core.gate import GATE, advanced
from ..core.machine import Key
from ..core.text import clean
from ..core.tokens import TOKENS
from .shared import known, opened, store_option

if TYPE_CHECKING:
    from ..core.breaker import Circuit
    from ..core.gate import Flow
    from ..core.moment import Moment
    from ..core.ports import Store
    from ..core.tokens import Bucket

__all__ = ("command",)

_HEADS = ("TARGET", "SCOPE", "BREAKER", "GATE", "TOKENS", "WAITING")

# By the first word of a cell; everything else is plain.
_COLOURS = {
    "open": "red",
    "blocked": "red",
    "shut": "red",
    "half": "yellow",
    "opening": "yellow",
    "closed,": "yellow",
    "allowed": "yellow",
}


@click.command()
@click.argument("targets", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a target, a line each.")
@store_option
def command(targets: tuple[str, ...], as_json: bool, url: str | None) -> None:  # noqa: FBT001 -- click passes flags by name
    r"""Say how it stands with TARGETS, or with every target that anything is known of.

    A healthy call writes nothing, so a target at which nothing has ever gone wrong is not in the
    table. What a process knows alone, its own count of failures and how many calls it lets wait,
    is not in the store either.

    \b
    BREAKER  closed, open, half open; blocked or allowed by hand
    GATE     what is left and when it resets; shut for everybody; opening
    TOKENS   retry tokens spent, of 500 unless the guard says otherwise
    WAITING  retries that hold tokens, and calls that hold permits

    Looking changes nothing. Exits 0 whatever it finds.
    """
    store = opened(url)
    rows = [
        _row(store, target, scope)
        for target, scope in known(store)
        if not targets or target in targets
    ]
    if as_json:
        for row in rows:
            # In ASCII: names of targets are other people's words, and must not turn a terminal's
            # letters around. A script reads them as they are.
            click.echo(json.dumps(row))
        return
    if not rows:
        click.echo("nothing is known of these targets" if targets else "nothing is known", err=True)
        return
    _table(rows)


def _row(store: Store, target: str, scope: str) -> dict[str, Any]:
    """Everything about one target, for machines; texts for people stand in it, too."""
    circuit, moment = store.state.peek(Key(target, "breaker", scope), BREAKER)
    flow, _ = store.state.peek(Key(target, "gate", scope), GATE)
    bucket, _ = store.state.peek(Key(target, "tokens", scope), TOKENS)
    flow = advanced(flow, moment)
    retries = sum(each.due.left(moment) > 0 for each in bucket.reserved)
    return {
        "target": target,
        "scope": scope,
        "breaker": _breaker(circuit.untouched(moment), moment),
        "gate": _gate(flow, moment),
        "tokens": _tokens(bucket),
        "waiting": {"retries": retries, "permits": sum(each.count for each in flow.permits)},
    }


def _breaker(state: Circuit, moment: Moment) -> dict[str, Any]:
    for_ = None
    if state.hand:
        name = state.hand
        for_ = None if state.hand_until is None else state.hand_until.left(moment)
        end = "" if for_ is None else f" for {_time(for_)}"
        text = f"{name} by hand{end}"
    elif state.until is None:
        name = "closed"
        text = f"closed, {state.streak} failures in a row" if state.streak else "closed"
    elif state.retry_in(moment) > 0:
        for_ = state.retry_in(moment)
        name, text = "open", f"open for {_time(for_)}"
    else:
        name, text = "half open", "half open"
    return {
        "state": name,
        "text": text,
        "for": for_,
        "failures": state.streak,
        "because": state.because,
    }


def _gate(state: Flow, moment: Moment) -> dict[str, Any]:
    limits = [
        {
            "dimension": each.dimension,
            "remaining": each.remaining,
            "limit": each.limit,
            "reset_in": None if each.reset is None else each.reset.left(moment),
        }
        for each in state.beliefs
    ]
    for_ = None
    if state.shut is not None:
        for_ = state.shut.left(moment)
        name, text = "shut", f"shut for {_time(for_)}"
    elif state.opening is not None:
        name, text = "opening", f"opening, {state.opening.allowed} at a time"
    elif limits:
        name, text = "limited", "; ".join(map(_limit, limits))
    else:
        name, text = "free", "free"
    return {"state": name, "text": text, "for": for_, "because": state.because, "limits": limits}


def _time(seconds: float) -> str:
    """Rounded up: who comes back then is not too early."""
    return duration_text(ceil(seconds))


def _limit(limit: dict[str, Any]) -> str:
    total = "" if limit["limit"] is None else f" of {limit['limit']:g}"
    reset = "" if limit["reset_in"] is None else f", reset in {_time(limit['reset_in'])}"
    return f"{int(limit['remaining'])}{total} {clean(limit['dimension'], 40)}{reset}"


def _tokens(state: Bucket) -> dict[str, Any]:
    text = f"{state.spent:.0f} spent" if state.spent else "full"
    return {"spent": state.spent, "text": text}


def _table(rows: list[dict[str, Any]]) -> None:
    cells = [_HEADS, *map(_cells, rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(_HEADS))]
    for number, row in enumerate(cells):
        line = "  ".join(
            _painted(cell, cell.ljust(width)) if number else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        )
        # Colour goes to a terminal alone, and to none whose owner does not want it.
        click.echo(line.rstrip(), color=False if os.environ.get("NO_COLOR") else None)
    for each in rows:
        for part in ("breaker", "gate"):
            because = each[part]["because"]
            if because and because != each[part]["text"]:
                click.echo(f"{clean(each['target'], 80)}: {part}: {clean(because, 200)}")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    retries, permits = row["waiting"]["retries"], row["waiting"]["permits"]
    parts = [f"{retries} retries" if retries else "", f"{permits} calls" if permits else ""]
    waiting = ", ".join(part for part in parts if part)
    return (
        *(clean(row["target"], 80), row["scope"][:8] or "-"),
        *(row["breaker"]["text"], row["gate"]["text"], row["tokens"]["text"], waiting or "-"),
    )


def _painted(cell: str, text: str) -> str:
    colour = _COLOURS.get(cell.partition(" ")[0])
    return text if colour is None else click.style(text, fg=colour)
