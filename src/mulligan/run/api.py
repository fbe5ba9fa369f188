"""Plans that Python code runs."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from signal import raise_signal
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

from ..config.secret_variables import MaskingSecretsOf
from .journal.store import RunStore
from .plan.drive import conduct, make_plan
from .process.stop import Stop, signals
from .setup import real_platform
from .show.plan_view import PlanTable
from .show.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .journal.state import RunState
    from .plan.model import Plan
    from .plan.report import Report
    from .plan.schedule import PhaseState

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
) -> Report:
    """Run `plan`; what came of it.

    It is a run like those of ``mulligan run``: in the same journal, found by ``mulligan runs``, and
    taken up again by ``mulligan resume`` with the `run` of its report. A plan that fails is no
    exception: see `is_success`.

    Args:
        plan: The plan.
        folder: Where its prompt files are; the current folder by default.
        cwd: The folder that its own `cwd` starts from; `folder` by default.
        environ: The environment that its agents inherit; ours by default.
        name: What it is called in ``mulligan runs``; the plan's name by default.
        is_shown: Whether it shows itself on stderr while it runs.
        is_parked: Whether to return where all that is left has to wait, instead of waiting here.

    Raises:
        SettingError: Something in it cannot be meant, or is not here; nothing was started.
        GitError: A phase wants its tree cleaned, and there is none that can be.
        KeyboardInterrupt: Ctrl-C was pressed in the main thread. The agents were ended, and can be
            resumed.

    SIGTERM, SIGHUP and SIGQUIT end the agents in the same way, and are then passed on to whatever
    handled them before: by default they end the process.
    """
    own = dict(os.environ if environ is None else environ)
    home = Path(folder or ".").absolute()
    runs = RunStore()
    try:
        with MaskingSecretsOf(own), _stopping() as stop:
            claimed = make_plan(
                runs,
                plan,
                folder=home,
                cwd=home / cwd,
                environ=own,
                now=real_platform().clock.wall(),
                name=name,
            )
            table = None
            if is_shown:
                table = PlanTable(plan, run=claimed.id, streams=Streams(stop), environ=own)
            kept = _Kept(table)
            try:
                conduct(
                    runs,
                    claimed,
                    environ=own,
                    platform=real_platform(),
                    table=kept,
                    stop=stop,
                    is_parked_by_exit=is_parked,
                )
            finally:
                if table is not None:
                    table.close()
    finally:
        runs.close()
    if stop.reason == "interrupt":
        raise KeyboardInterrupt
    if stop.signal:
        raise_signal(stop.signal)
    assert kept.report is not None  # noqa: S101 -- whoever conducts reports at the end
    return kept.report


@contextmanager
def _stopping() -> Iterator[Stop]:
    """What ends it: signals in the main thread, where Python has them, and nothing elsewhere."""
    stop = Stop()
    try:
        if current_thread() is main_thread():
            with signals(stop):
                yield stop
        else:
            yield stop
    finally:
        stop.close()


class _Kept:
    """Keeps the report, and passes on what it is told."""

    def __init__(self, table: PlanTable | None) -> None:
        self._table = table
        self.report: Report | None = None

    def changed(self, key: str, state: RunState, now: float) -> None:
        if self._table is not None:
            self._table.changed(key, state, now)

    def phases(self, states: Mapping[str, PhaseState], because: Mapping[str, str]) -> None:
        if self._table is not None:
            self._table.phases(states, because)

    def tick(self, now: float) -> None:
        if self._table is not None:
            self._table.tick(now)

    def held(self, key: str, because: str) -> None:
        if self._table is not None:
            self._table.held(key, because)

    def notified(self, error: str) -> None:
        if self._table is not None:
            self._table.notified(error)

    def over(self, report: Report) -> None:
        self.report = report
        if self._table is not None:
            self._table.over(report)
