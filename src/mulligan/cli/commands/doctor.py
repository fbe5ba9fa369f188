"""`mulligan doctor`: check the journal, the store and the folders of runs."""

from __future__ import annotations

import json
from time import time

import click

from ...core.redaction import printable
from ...run.journal.doctor import examine
from ...stores.home import home_path
from .. import EXIT_FAILED

__all__ = ("command",)


@click.command("doctor", epilog="Exit codes: 0 no problems, 1 problems found, 2 wrong usage.")
@click.option("--check", "is_check", is_flag=True, help="Print only problems.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object per finding.")
@click.option(
    "--forget",
    metavar="RUN",
    default="",
    help="Remove an unreadable run from the journal; its logs are moved to the folder lost.",
)
def command(*, is_check: bool, is_json: bool, forget: str) -> int:
    """Check where runs are stored: folder, permissions, store, journal, every run, leases.

    Nothing is changed without --forget, so it can be run at any time, also next to workers.
    Each problem is printed with how to fix it. docs/doctor.md explains how to recover a
    journal.

    \b
    mulligan doctor
    mulligan doctor --check || mail -s "mulligan needs you" me < /dev/null
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    if forget:
        from contextlib import closing

        from ...run.journal.store import RunStore

        with closing(RunStore()) as runs:
            kept = runs.forget_unreadable(forget)
        click.echo(f"forgot run {forget}; its output is in {kept}", err=True)
        return 0
    found = list(examine(home_path(), time()))
    wrong = [each for each in found if each.is_wrong]
    for each in wrong if is_check else found:
        if is_json:
            click.echo(json.dumps({**each._asdict(), "is_wrong": each.is_wrong}))
            continue
        mark = "wrong" if each.is_wrong else "ok"
        click.echo(f"{mark:<6} {each.about:<8} {printable(each.what)}")
        if each.advice:
            click.echo(f"{'':<15} {printable(each.advice)}")
    if not is_check and not is_json:
        click.echo(f"{len(wrong) or 'no'} problem{'s' * (len(wrong) != 1)} found", err=True)
    return EXIT_FAILED if wrong else 0
