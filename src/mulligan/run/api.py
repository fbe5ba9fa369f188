"""`run_plan`: runs a plan from Python code."""

from __future__ import annotations

import os
from pathlib import Path
from signal import raise_signal
from typing import TYPE_CHECKING

from ..api.defaults import listeners_of
from ..config.secret_variables import MaskingSecretsOf
from .attempt.options import DriveOptions
from .context import open_context
from .listeners import PlanListener
from .plan.drive import conduct, make_plan
from .show.plan_view import PlanTable
from .show.standard_streams import StandardStreams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..core.events import Event
    from .plan.model import Plan
    from .plan.report import Report

__all__ = ("run_plan",)


def run_plan(
    plan: Plan,
    *,
    folder: str | os.PathLike[str] = "",
    cwd: str | os.PathLike[str] = "",
    environ: Mapping[str, str] | None = None,
    name: str = "",
    is_shown: bool = True,
    is_parked: bool = False,
    listeners: Iterable[Callable[[Event], None]] = (),
) -> Report:
    """Run `plan` and return its report.

    It is a run like those of ``mulligan run``: in the same journal, listed by ``mulligan runs``,
    and resumed by ``mulligan resume`` with the `run` of its report. A plan that fails raises
    nothing: see `is_success`.

    Args:
        plan: The plan.
        folder: Where its prompt files are; the current folder by default.
        cwd: The folder that its own `cwd` starts from; `folder` by default.
        environ: The environment that its agents inherit; ours by default.
        name: What it is called in ``mulligan runs``; the plan's name by default.
        is_shown: Whether it shows itself on stderr while it runs.
        is_parked: Whether to return when every remaining agent has to wait, instead of waiting
            here.
        listeners: Callables that take the events of its agents, as those of a guard do.

    Raises:
        SettingError: The plan is invalid, or something that it needs is missing; nothing was
            started.
        GitError: A phase wants its tree cleaned, and there is no such tree.
        KeyboardInterrupt: Ctrl-C was pressed in the main thread. The agents were stopped, and can
            be resumed.

    SIGTERM, SIGHUP and SIGQUIT stop the agents in the same way, and are then passed on to the
    previous handler: by default they end the process.
    """
    own = dict(os.environ if environ is None else environ)
    home, told = Path(folder or ".").absolute(), listeners_of(listeners)
    with MaskingSecretsOf(own), open_context(own) as opened:
        context, stop = opened._replace(events=(*opened.events, *told)), opened.stop
        claimed, kept = make_plan(context, plan, folder=home, cwd=home / cwd, name=name)
        table = None
        if is_shown:
            table = PlanTable(plan, run=claimed.id, streams=StandardStreams(stop), environ=own)
        how = DriveOptions(park="exit" if is_parked else "wait")
        try:
            _, report = conduct(context, claimed, kept, table or PlanListener(), how)
        finally:
            if table is not None:
                table.close()
    if stop.reason == "interrupt":
        raise KeyboardInterrupt
    if stop.signal:
        raise_signal(stop.signal)
    return report
