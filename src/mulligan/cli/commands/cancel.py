"""`mulligan cancel`: end a run for good."""

from __future__ import annotations

import time
from contextlib import suppress

import click

from ..run.desk import Desk, NoSuchRun
from ..run.steps import Over
from . import EXIT_FAILED, Unusable
from .run_names import RunName

__all__ = ("command",)

# How long its holder may take: it looks once a second, then ends the program, first with patience.
_PATIENCE = 10.0


@click.command(
    "cancel",
    epilog="Exit codes: 0 cancelled, 1 no such run, or what drives it does not let go, 2 it has "
    "ended already.",
)
@click.argument("run", type=RunName(is_open=True))
def command(run: str) -> int:
    """End RUN for good: what runs is ended, what waits is not woken.

    RUN is its id, the beginning of it, or its name. Its logs and journal stay until they are
    pruned. To end only what runs now, and go on later, interrupt it with Ctrl-C instead.
    """
    desk = Desk()
    id_ = desk.find(run)
    state = desk.look(id_)
    assert state is not None  # noqa: S101 -- it was found
    if state.status in {"done", "cancelled"}:
        raise Unusable(
            f"run {id_} is {state.status}: there is nothing to cancel",
            f"mulligan show {id_} tells what came of it",
        )
    over = Over(time.time(), "cancelled by hand")
    desk.cancel(id_, over)
    for child, one in desk.all(id_):
        if one.is_open:
            desk.cancel(child, over)
    ends_at = time.monotonic() + _PATIENCE
    while (state := desk.look(id_)) is not None and desk.is_held(id_, state.holder):
        if time.monotonic() > ends_at:
            click.echo(
                f"error: run {id_} is cancelled, but whoever drives it has not let go in "
                f"{_PATIENCE:g}s\n\nhint: look for its process; mulligan show {id_} has its folder",
                err=True,
            )
            return EXIT_FAILED
        time.sleep(0.05)
    from ..run.leftovers import end_leftovers

    end_leftovers(id_)  # of a supervisor that died; children of a plan carry its mark as well
    click.echo(f"cancelled run {id_}", err=True)
    for each in _still_aside(desk, id_):
        click.echo(each, err=True)
    return 0


def _still_aside(desk: Desk, id_: str) -> list[str]:
    """What git has set aside for a plan, and nobody will give back by himself."""
    if not (desk.folder / "runs" / id_ / "plan.json").exists():
        return []
    from ..run.plan_trees import still_aside
    from ..run.planning import plan_of

    with suppress(NoSuchRun):
        plan, _, cwd = plan_of(desk, id_)
        return still_aside(plan, cwd, id_)
    return []
