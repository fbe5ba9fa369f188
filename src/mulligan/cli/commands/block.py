"""`mulligan block`: no calls to a target and no runs of a program, until `allow` or `reset`."""

from __future__ import annotations

import click

from ..overrides import apply_override
from ..store_options import scope_option, span_option, store_option, target_argument
from ..ui.manual import Manual

__all__ = ("command",)

_SECTIONS = {
    "Examples": [
        ('mulligan block billing-api --because "wrong invoices, see #812"', ""),
        ("mulligan block anthropic --scope team-a --for 2h", ""),
        ("mulligan block claude --for 8h", "no run of claude starts an attempt"),
    ]
}


@click.command(cls=Manual, sections=_SECTIONS)
@target_argument
@span_option
@click.option(
    "--because",
    default="blocked manually",
    show_default=True,
    metavar="WORDS",
    help="The reason given to refused calls and runs.",
)
@scope_option
@store_option
def command(target: str, span: float | None, because: str, scope: str, url: str | None) -> None:
    """Block all calls to NAME, and all runs that use it.

    Guards of the target NAME that share the store refuse calls: they raise CircuitOpen with the
    text of --because. Runs of the program or provider NAME start no attempt and wait. Running
    calls and attempts are not interrupted.

    This lasts until mulligan allow or mulligan reset, or for the time given by --for.
    """
    apply_override("block", target, scope=scope, url=url, span=span, because=because)
