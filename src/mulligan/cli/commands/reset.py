"""`mulligan reset`: forget the limits of runs, or the shared state of a target."""

from __future__ import annotations

import click

from ...core.redaction import clean
from ...shared.breaker import ManualOverride
from ...shared.gate.gate import ForgetGate
from ...shared.retry_tokens import Fund, Tokens
from ...shared.snapshot import known
from ...stores.state_machine import Key
from .. import run_limits
from ..store_options import (
    NothingMatched,
    nearest,
    scope_of,
    scope_option,
    store_option,
    stores_of,
    target_argument,
)
from ..ui.manual import Manual

__all__ = ("command",)

# More than any bucket misses.
_ALL = 1e12

_SECTIONS = {
    "Examples": [
        ("mulligan reset anthropic", "limits that runs have hit there, and the guards' state"),
        ("mulligan reset claude", "limits of the accounts that claude uses"),
        ("mulligan reset anthropic/opus", "limits on Opus alone"),
        ("mulligan reset billing-api --scope team-a", "shared state of the guards of one account"),
    ]
}


@click.command(cls=Manual, sections=_SECTIONS)
@target_argument
@scope_option
@store_option
def command(target: str, scope: str, url: str | None) -> None:
    """Forget what is known about NAME.

    Runs: forget limits that they have hit, and mulligan block or allow. NAME is a provider or a
    program, optionally with an account or a model, as shown by mulligan status.

    Guards: close the shared breaker, open the gate, fill the retry tokens, and undo mulligan
    block or allow; waiting retries keep their tokens. NAME is the guard's target.

    If a limit still holds, the next rejection sets it again. Exits with 1 if NAME is unknown.
    """
    stores = stores_of(url)
    said: list[str] = []
    rows = [] if scope else run_limits.rows_of(stores.runs)
    for row in run_limits.matching(rows, target):
        said += run_limits.forget(row, target)
    targets = [] if stores.guards is None else known(stores.guards)
    if stores.guards is not None:
        store, hashed = stores.guards, scope_of(stores.guards, target, scope)
        if (target, hashed) in targets:
            store.state.transact(Key(target, "breaker", hashed), ManualOverride(move="reset"))
            store.state.transact(Key(target, "gate", hashed), ForgetGate())
            fund = Fund(successes=_ALL, tokens=Tokens())
            store.state.transact(Key(target, "tokens", hashed), fund)
            said.append(f"{clean(target, 80)}: breaker closed, gate open, tokens full")
    if not said:
        scopes = [hashed[:8] for name, hashed in targets if name == target and hashed]
        names = [*(name for name, _ in targets), *run_limits.known_names(rows)]
        hint = "mulligan status lists the known names"
        if scopes:
            hint = f"its guards name accounts: --scope {' or --scope '.join(scopes)}"
        guess = nearest(target, [each for each in names if each != target])
        raise NothingMatched(f"nothing is known about {clean(target, 80)!r}{guess}", hint)
    for line in said:
        click.echo(line)
