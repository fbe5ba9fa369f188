"""`mulligan allow`: let calls and runs start despite known limits and failures."""

from __future__ import annotations

import click

from ..overrides import apply_override
from ..store_options import scope_option, span_option, store_option, target_argument
from ..ui.manual import Manual

__all__ = ("command",)

_SECTIONS = {
    "Examples": [
        ("mulligan allow billing-api", ""),
        ("mulligan allow billing-api --for 30m", ""),
        ("mulligan allow claude", "runs of claude start despite known limits"),
    ]
}


@click.command(cls=Manual, sections=_SECTIONS)
@target_argument
@span_option
@scope_option
@store_option
def command(target: str, span: float | None, scope: str, url: str | None) -> None:
    """Let calls and runs of NAME start despite known limits and failures.

    Guards: the shared breaker of the target NAME stays closed. A process still stops after its
    own failures, and a gate that the server has shut stays shut until the time that the server
    named.

    Runs: runs of the program or provider NAME start despite limits that other runs have hit. A
    run that hits a limit itself waits for it.

    This lasts until mulligan block or mulligan reset, or for the time given by --for.
    """
    apply_override("allow", target, scope=scope, url=url, span=span)
