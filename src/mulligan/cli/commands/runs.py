"""`mulligan runs`: where every run stands."""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import click

from ..core.duration import duration_text
from ..core.text import clean
from ..run.desk import Desk
from ..run.events import summary
from ..run.words import clock, money
from .columns import columns

if TYPE_CHECKING:
    from ..run.state import RunState

__all__ = ("as_data", "command", "standing")

# How many of those that have ended are shown beside those that have not.
_LAST = 5

_HEAD = ("run", "name", "program", "status", "attempts", "cost", "when", "folder")


@click.command(
    "runs",
    epilog="Runs are kept in $MULLIGAN_HOME, else in the state folder of the user, and forgotten "
    "30 days after they ended, logs and all. Exit codes: 0 done, 1 failed, 2 wrong usage.",
)
@click.option("--all", "is_all", is_flag=True, help="List every run, not only the last that ended.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object a line.")
@click.option(
    "--prune",
    "is_pruned",
    is_flag=True,
    help="Forget what ended 30 days ago now; otherwise done once a day by run and worker.",
)
def command(*, is_all: bool, is_json: bool, is_pruned: bool) -> None:
    """List runs, the newest first: those that go on, and the last few that ended.

    \b
    running    an attempt is under way
    cut off    it was, but its supervisor died: mulligan resume, or a worker, goes on
    waiting    the next attempt has a time; a worker, or whoever waits, wakes it
    paused     somebody interrupted it: mulligan resume goes on
    limited    its limit lies beyond the horizon: mulligan resume tries earlier or later
    failed     waiting does not mend it: mend it, then mulligan resume
    done, cancelled
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    desk, now = Desk(), time()
    if is_pruned:
        from ..run.prune import prune

        gone = prune(desk, now)
        click.echo(f"forgot {len(gone)} run{'' if len(gone) == 1 else 's'}", err=True)
    found = list(desk.all())
    if not is_all:
        ended = [id_ for id_, state in found if not state.is_open][:_LAST]
        found = [each for each in found if each[1].is_open or each[0] in ended]
    if is_json:
        for id_, state in found:
            click.echo(json.dumps(as_data(desk, id_, state)))
        return
    if not found:
        click.echo("no runs yet; begin one with: mulligan run -- COMMAND", err=True)
        return
    rows = [_row(desk, id_, state, now) for id_, state in found]
    for line in columns(_HEAD, rows, right="attempts cost"):
        click.echo(line)


def standing(desk: Desk, id_: str, state: RunState) -> str:
    """Its status, as a person sees it."""
    if state.status in {"running", "new"} and not desk.is_held(id_, state.holder):
        return "cut off"
    return state.status


def as_data(desk: Desk, id_: str, state: RunState) -> dict[str, Any]:
    """A run as plain data."""
    return {
        "run": id_,
        **summary(state),
        "is_held": desk.is_held(id_, state.holder),
        "made_at": state.made.at,
        "at": state.at,
        "files": str(desk.folder / "runs" / id_),
    }


def _row(desk: Desk, id_: str, state: RunState, now: float) -> tuple[str, ...]:
    return (
        id_,
        clean(state.made.name, 30),
        clean(_program(desk, id_, state), 20),
        standing(desk, id_, state),
        str(state.attempts),
        money(state.cost),
        _when(state, now),
        _short(state.made.cwd),
    )


def _program(desk: Desk, id_: str, state: RunState) -> str:
    try:
        return desk.program(id_)
    except Exception:  # noqa: BLE001 -- its folder is gone: the journal knows what it was
        return state.made.agent


def _when(state: RunState, now: float) -> str:
    if state.until is not None and state.until > now:
        return f"in {duration_text(state.until - now)}, {clock(state.until, now)}"
    if state.status == "waiting":
        return "due now"
    ago = duration_text(round(max(0.0, now - state.at)))
    return f"for {ago}" if state.status in {"running", "new"} else f"{ago} ago"


def _short(folder: str) -> str:
    """A folder as shells show it."""
    home = os.path.expanduser("~")  # noqa: PTH111 -- Path.home() raises where there is none
    if folder == home or folder.startswith(f"{home}/"):
        folder = f"~{folder[len(home) :]}"
    return clean(str(Path(folder)), 60)
