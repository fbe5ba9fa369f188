"""`mulligan cancel`: cancel a run."""

from __future__ import annotations

import time
from contextlib import suppress

import click

from ...run.journal.entries import RunCancelled
from ...run.journal.store import NoSuchRun, RunStore
from .. import EXIT_FAILED, Unusable
from ..run_names import RunName

__all__ = ("command",)

# How long its holder may take: it looks once a second, then ends the program, first with patience.
_PATIENCE = 10.0


@click.command(
    "cancel",
    epilog=(
        "Exit codes: 0 cancelled, 1 no such run, or its supervisor did not release it, 2 "
        "it has ended already."
    ),
)
@click.argument("run", type=RunName(is_open=True))
def command(run: str) -> int:
    """Cancel RUN: stop its program if it is running, and do not wake it if it is waiting.

    RUN is its id, a prefix of it, or its name. Its logs and journal stay until they are pruned.
    To stop the program now and resume it later, interrupt it with Ctrl-C instead.
    """
    runs = RunStore()
    id_ = runs.find(run)
    state = runs.look(id_)
    assert state is not None  # noqa: S101 -- it was found
    hint = f"mulligan show {id_} shows the result"
    if state.status in {"done", "cancelled"}:
        raise Unusable(f"run {id_} is {state.status}: it cannot be cancelled", hint)
    over = RunCancelled(time.time(), "cancelled by the user")
    runs.cancel(id_, over)
    state = runs.look(id_)
    if state is not None and state.status == "done":
        raise Unusable(f"run {id_} finished before it could be cancelled", hint)
    for child, one in runs.all(id_):
        if one.is_open:
            runs.cancel(child, over)
    ends_at = time.monotonic() + _PATIENCE
    while runs.is_held(id_):
        if time.monotonic() > ends_at:
            click.echo(
                f"error: run {id_} is cancelled, but {runs.holder(id_)} has not released it in "
                f"{_PATIENCE:g}s\n\nhint: look for it; mulligan show {id_} has its folder",
                err=True,
            )
            return EXIT_FAILED
        time.sleep(0.05)
    from ...run.process.orphans import end_leftovers

    end_leftovers(id_)  # of a supervisor that died; children of a plan carry its mark as well
    click.echo(f"cancelled run {id_}", err=True)
    for each in _still_aside(runs, id_):
        click.echo(each, err=True)
    return 0


def _still_aside(runs: RunStore, id_: str) -> list[str]:
    """What git has set aside for a plan, which only `mulligan git restore` brings back."""
    if not (runs.folder / "runs" / id_ / "plan.json").exists():
        return []
    from ...run.plan.drive import kept_plan
    from ...run.plan.trees import still_aside

    with suppress(NoSuchRun):
        plan, _, cwd = kept_plan(runs, id_)
        return still_aside(plan, cwd, id_)
    return []
