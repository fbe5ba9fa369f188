"""`mulligan block` and `mulligan allow` for guards and for runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..core.duration import duration_text
from ..core.redaction import clean
from ..run.agents.catalogue import known as programs
from ..shared.breaker import ManualOverride
from ..shared.snapshot import known
from ..stores.state_machine import Key
from . import run_limits
from .store_options import NothingMatched, nearest, note_unknown_target, scope_of, stores_of

if TYPE_CHECKING:
    from typing import Literal

__all__ = ("apply_override",)


def apply_override(
    move: Literal["block", "allow"],
    target: str,
    *,
    scope: str,
    url: str | None,
    span: float | None,
    because: str = "",
) -> None:
    """Block or allow the guards and runs that `target` names, and print which they are.

    With a `scope`, no runs are meant: it is an account of guards. It lasts for `span` seconds; None
    for no end.
    """
    stores = stores_of(url, must_exist=move != "block", is_made=True)
    rows = [] if scope else run_limits.rows_of(stores.runs)
    is_runs = not scope and run_limits.is_runs_name(target, rows)
    undo = "allow" if move == "block" else "block"
    end = f"until mulligan {undo} or reset" if span is None else f"for {duration_text(span)}"
    done: Literal["blocked", "allowed"] = "blocked" if move == "block" else "allowed"
    words, said = clean(because, 200), []
    store = stores.guards
    # A program's name without a guard of that name means runs only.
    is_guards = store is not None and (
        not is_runs or target not in programs() or any(name == target for name, _ in known(store))
    )
    if store is not None and is_guards:
        if not is_runs:
            note_unknown_target(store, target)
        key = Key(target, "breaker", scope_of(store, target, scope))
        store.state.transact(key, ManualOverride(move=move, because=words, seconds=span))
        said.append(f"{clean(target, 80)}: {done} {end}")
    if is_runs:
        names = run_limits.order(stores.runs, rows, target, done, because=words, seconds=span)
        said += [f"{clean(name, 80)}: runs are {done} {end}" for name in names]
    if not said:
        guess = nearest(target, [*run_limits.known_names(rows), *programs()])
        raise NothingMatched(
            f"no program, provider or account of runs is called {clean(target, 80)!r}{guess}",
            "for a guard's target, name its store with --store or MULLIGAN_STORE",
        )
    for line in said:
        click.echo(line)
