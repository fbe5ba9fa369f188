"""`mulligan status`: limits that runs have hit, and the shared state of targets."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from ...core.redaction import clean
from ...run.show.messages import clock
from ...shared.snapshot import known, snapshot, whole_seconds
from .. import run_limits
from ..store_options import store_option, stores_of
from ..ui.manual import Manual

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...run.attempt.account_limits import AccountLimit

__all__ = ("command",)

_HEADS = ("TARGET", "SCOPE", "BREAKER", "GATE", "TOKENS", "WAITING")
_RUNS_HEADS = ("LIMIT", "ACCOUNT", "UNTIL", "RUN", "WHY")

_SECTIONS = {
    "Limits of runs": [
        ("LIMIT", "the name that reset, block and allow take: provider, @account, /model"),
        ("ACCOUNT", "where the credential was found; all for block and allow"),
        ("UNTIL", "when it ends, and when one run tries before that"),
        ("RUN", "the program and the run that hit it"),
    ],
    "Targets of guards": [
        ("BREAKER", "closed, open, half open; blocked or allowed manually"),
        ("GATE", "what is left and when it resets; shut; opening slowly"),
        ("TOKENS", "retry tokens spent, of 500 unless the guard says otherwise"),
        ("WAITING", "retries that hold tokens, and calls that hold permits"),
    ],
    "Examples": [
        ("mulligan status", ""),
        ("mulligan status claude", "limits that make runs of claude wait"),
        ("mulligan status --json --store redis://state.example.com", ""),
    ],
}

# By the first word of a cell; everything else is plain.
_COLOURS = {
    **dict.fromkeys(("open", "blocked", "shut"), "red"),
    **dict.fromkeys(("half", "opening", "closed,", "allowed", "over,"), "yellow"),
}


@click.command(cls=Manual, sections=_SECTIONS)
@click.argument("targets", metavar="[NAME]…", nargs=-1)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per row, one per line."
)
@store_option
def command(targets: tuple[str, ...], as_json: bool, url: str | None) -> None:  # noqa: FBT001 -- click passes flags by name
    """Show limits that runs have hit, and the shared state of guards.

    NAME is a provider, a program or a target; without it everything is shown. Limits are those
    of this user's runs, and of the store given by MULLIGAN_STORE or --store.

    A successful call writes nothing, so a target without any failure is not listed. Each
    process also counts failures and queues calls on its own; that is not in the store.

    Nothing is changed. Exit codes: 0 done, whatever is found, 1 the store cannot be read, 2 wrong
    usage, or no such store.
    """
    stores = stores_of(url)
    limits = run_limits.rows_of(stores.runs)
    if targets:
        found = [row for target in targets for row in run_limits.matching(limits, target)]
        limits = [row for row in limits if row in found]
    rows = []
    if (store := stores.guards) is not None:
        rows = [
            snapshot(store, target, scope)
            for target, scope in known(store)
            if not targets or target in targets
        ]
    if as_json:
        for each in (*_limit_objects(limits), *rows):
            # In ASCII: names of targets are other people's words, and must not turn a terminal's
            # letters around. A script reads them as they are.
            click.echo(json.dumps(each))
        return
    if not rows and not limits:
        about = " about these names" if targets else ""
        click.echo(f"no limits and no failures are known{about}", err=True)
    if limits:
        _print([_RUNS_HEADS, *_limit_cells(limits)], paint=2)
    if rows and limits:
        click.echo()
    if rows:
        _table(rows)


def _limit_objects(rows: list[run_limits.AccountRow]) -> list[dict[str, Any]]:
    """Limits and orders, for machines."""
    found: list[dict[str, Any]] = []
    for row in rows:
        account = {
            "provider": row.key.target,
            "account": row.state.label,
            "tag": row.key.scope[:4],
            "programs": list(row.state.programs),
        }
        if hand := row.state.ordered(row.moment):
            due = row.state.hand_until
            until = None if due is None else row.moment.wall + due.left(row.moment)
            order = {"hand": hand, "until": until, "because": row.state.because}
            found.append({"limit": row.name, **account, **order})
        found += [
            {
                "limit": row.name_of(each),
                **account,
                "model": each.model,
                "until": _until(each, row),
                "tried_at": row.moment.wall + each.look.left(row.moment),
                "because": each.because,
                "program": each.program,
                "run": each.run,
                "met_at": each.met_at,
            }
            for each in row.state.limits
        ]
    return found


def _limit_cells(rows: list[run_limits.AccountRow]) -> list[tuple[str, ...]]:
    """Limits and orders, for people."""
    found: list[tuple[str, ...]] = []
    for row in rows:
        if hand := row.state.ordered(row.moment):
            due = row.state.hand_until
            end = "until reset" if due is None else f"for {whole_seconds(due.left(row.moment))}"
            why = clean(row.state.because, 100) or f"{hand} manually"
            found.append((row.name, row.account, f"{hand} {end}", "-", why))
        for each in row.state.limits:
            run = f"{clean(each.program, 40)} {clean(each.run, 80)}"
            cells = (row.name_of(each), row.account, _until_text(each, row), run)
            found.append((*cells, clean(each.because, 100)))
    return found


def _until(limit: AccountLimit, row: run_limits.AccountRow) -> float:
    return max(limit.resets_at or 0.0, row.moment.wall + limit.look.left(row.moment))


def _until_text(limit: AccountLimit, row: run_limits.AccountRow) -> str:
    now, left = row.moment.wall, limit.look.left(row.moment)
    if left <= 0:
        return f"has passed, {'the next' if limit.probe is None else 'one'} run tries"
    until = _until(limit, row)
    said = f"{clock(until, now)}, in {whole_seconds(until - now)}"
    if until - now - left > 60:
        said = f"{said}; tried at {clock(now + left, now)}"
    return said


def _table(rows: list[dict[str, Any]]) -> None:
    _print([_HEADS, *map(_cells, rows)])
    for each in rows:
        for part in ("breaker", "gate"):
            because = each[part]["because"]
            if because and because != each[part]["text"]:
                click.echo(f"{clean(each['target'], 80)}: {part}: {clean(because, 200)}")


def _print(cells: Sequence[tuple[str, ...]], paint: int | None = None) -> None:
    """Print rows in columns, the heads first; `paint` is the only column in colour, if given."""
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    for number, row in enumerate(cells):
        line = []
        for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
            colour = _COLOURS.get(cell.partition(" ")[0])
            is_painted = number and colour and paint in {None, at}
            text = cell.ljust(width)
            line.append(click.style(text, fg=colour) if is_painted else text)
        # Colour goes to a terminal alone, and to none whose owner does not want it.
        no_colour = False if os.environ.get("NO_COLOR") else None
        click.echo("  ".join(line).rstrip(), color=no_colour)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    retries, permits = row["waiting"]["retries"], row["waiting"]["permits"]
    parts = [f"{retries} retries" if retries else "", f"{permits} calls" if permits else ""]
    waiting = ", ".join(part for part in parts if part)
    return (
        *(clean(row["target"], 80), row["scope"][:8] or "-"),
        *(row["breaker"]["text"], row["gate"]["text"], row["tokens"]["text"], waiting or "-"),
    )
