"""`mulligan runs`: list runs."""

from __future__ import annotations

import json
import os
from math import isfinite
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import click

from ...core.duration import duration_text
from ...core.redaction import clean
from ...run.agents.catalogue import program_name
from ...run.journal.store import RunStore
from ...run.show.json_events import summary
from ...run.show.messages import clock, money
from ..ui.tables import columns

if TYPE_CHECKING:
    from ...run.journal.state import RunState

__all__ = ("as_data", "command", "standing", "unreadable_data")

# How many of those that have ended are shown beside those that have not.
_LAST = 5

_HEAD = ("run", "name", "program", "status", "attempts", "cost", "when", "folder")


@click.command(
    "runs",
    epilog=(
        "Runs are stored in $MULLIGAN_HOME, else in the user's state folder, and deleted "
        "with their logs 30 days after they ended; plans stay while git holds work "
        "of theirs that was not restored. Exit codes: 0 done, 1 failed, 2 wrong usage."
    ),
)
@click.option("--all", "is_all", is_flag=True, help="List all runs, not only recent ones.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object per line.")
@click.option(
    "--prune",
    "is_pruned",
    is_flag=True,
    help="Delete runs that ended more than 30 days ago; run and worker do this once a day.",
)
def command(*, is_all: bool, is_json: bool, is_pruned: bool) -> None:
    """List runs, newest first: the active ones, and the last few that ended.

    \b
    running    an attempt is running
    cut off    its supervisor died: mulligan resume, or a worker, continues it
    waiting    the next attempt has a time; a worker, or the waiting process, wakes it
    paused     it was interrupted: mulligan resume continues it
    limited    its limit resets beyond the horizon: a worker continues it then
    failed     waiting cannot fix it: fix the cause, then mulligan resume
    unreadable its journal is damaged, or of a newer version: see mulligan doctor
    done, cancelled
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    runs, now = RunStore(), time()
    if is_pruned:
        from ...run.journal.retention import prune

        gone = prune(runs, now)
        click.echo(f"deleted {len(gone)} run{'' if len(gone) == 1 else 's'}", err=True)
    found, unreadable = list(runs.all()), runs.unreadable()
    if not is_all:
        ended = [id_ for id_, state in found if not state.is_open][:_LAST]
        found = [each for each in found if each[1].is_open or each[0] in ended]
    if is_json:
        for id_, state in found:
            click.echo(json.dumps(as_data(runs, id_, state)))
        for id_, because in unreadable.items():
            click.echo(json.dumps(unreadable_data(runs, id_, because)))
        return
    if not found and not unreadable:
        click.echo("no runs yet; start one with: mulligan run -- COMMAND", err=True)
        return
    rows = [_row(runs, id_, state, now) for id_, state in found]
    rows += [(id_, "", "", "unreadable", "", "", "", "") for id_ in unreadable]
    for line in columns(_HEAD, rows, right="attempts cost"):
        click.echo(line)


def standing(runs: RunStore, id_: str, state: RunState) -> str:
    """Its status, as a person sees it."""
    if state.status in {"running", "new"} and not runs.is_held(id_):
        return "cut off"
    return state.status


def as_data(runs: RunStore, id_: str, state: RunState) -> dict[str, Any]:
    """A run as plain data."""
    return {
        "run": id_,
        **summary(state),
        "is_held": runs.is_held(id_),
        "made_at": state.made.at,
        "at": state.at,
        "files": str(runs.folder / "runs" / id_),
    }


def unreadable_data(runs: RunStore, id_: str, because: str) -> dict[str, Any]:
    """A run that cannot be read, as plain data."""
    files = str(runs.folder / "runs" / id_)
    return {"run": id_, "status": "unreadable", "because": because, "files": files}


def _row(runs: RunStore, id_: str, state: RunState, now: float) -> tuple[str, ...]:
    try:
        program = program_name(runs.command(id_))
    except Exception:  # noqa: BLE001 -- its folder is gone: the journal knows what it was
        program = state.made.agent
    return (
        *(id_, clean(state.made.name, 30), clean(program, 20), standing(runs, id_, state)),
        *(str(state.attempts), money(state.cost), _when(state, now), _short(state.made.cwd)),
    )


def _when(state: RunState, now: float) -> str:
    if state.until is not None and state.until > now:
        return f"in {duration_text(state.until - now)}, {clock(state.until, now)}"
    if state.status == "waiting":
        return "due now"
    since = max(0.0, now - state.at)
    ago = duration_text(round(since) if isfinite(since) else since)
    return f"for {ago}" if state.status in {"running", "new"} else f"{ago} ago"


def _short(folder: str) -> str:
    """A folder as shells show it."""
    home = os.path.expanduser("~")  # noqa: PTH111 -- Path.home() raises where there is none
    if folder == home or folder.startswith(f"{home}/"):
        folder = f"~{folder[len(home) :]}"
    return clean(str(Path(folder)), 60)
