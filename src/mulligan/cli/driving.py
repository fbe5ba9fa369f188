"""Shared by `run`, `resume` and `worker`: check options, create or claim a run, run it."""

from __future__ import annotations

import contextlib
import os
from math import ceil
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import click

from ..core.duration import duration_text
from ..errors import FileError, SettingError
from ..run.agents.adapter import CommandRefused
from ..run.attempt.options import RunRequest, policy_of, request_of
from ..run.journal.entries import PLAN, RunRescheduled
from ..run.journal.retention import prune_daily
from ..run.journal.store import NoSuchRun, RunStore
from ..run.process.environment import credentials, environment_of
from ..run.process.stop import Stop, signals
from ..run.setup import drive_run, make_run, real_platform
from ..run.show.choose import showing
from ..run.show.wording import clock
from . import Unusable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..run.journal.state import RunState
    from ..run.journal.store import ClaimedRun

__all__ = ("check_name", "notice_argv", "resume_run", "run_command", "working_folder")

EX_TEMPFAIL = 75
# What a shell says of a program that wrote to a pipe without a reader.
_UNREAD = 141

_OVER = frozenset({"done", "cancelled"})
_NAME = "write it without them"
_HELP = "mulligan run --help lists its options"


def run_command(
    words: tuple[str, ...],
    *,
    name: str,
    cwd: str,
    agent: str,
    horizon: float | None,
    attempts: int | None,
    policy: str,
    idle: float | None,
    timeout: float | None,
    deadline: float | None,
    own_retries: int | None,
    restart: bool,
    final_only: bool,
    stream: bool,
    park: str,
    notify: str,
    is_json: bool,
    is_now: bool,
) -> int:
    """Make a run of `words`, and drive it."""
    if final_only and stream:
        raise Unusable(
            "--final-only and --stream contradict each other",
            "--final-only prints the last attempt, --stream all attempts as they come",
        )
    asked = RunRequest(
        agent=agent,
        policy=str(Path(policy).absolute()) if policy.endswith(".toml") else policy,
        attempts=attempts,
        horizon=horizon,
        idle=idle,
        timeout=timeout,
        deadline=deadline,
        own_retries=own_retries,
        may_restart=restart,
        is_final_only=final_only or (False if stream else None),
        is_notified=bool(notify),
    )
    check_name(name)
    if policy:
        _check_policy(asked)
    told = notice_argv(notify)
    folder = working_folder(cwd)
    runs = RunStore()
    with signals(Stop()) as stop:
        try:
            claimed, stdin = make_run(
                runs,
                words,
                asked,
                cwd=str(folder),
                environ=os.environ,
                now=time(),
                name=name,
                stdin=0,
            )
        except CommandRefused as refused:
            raise Unusable(refused.because, refused.hint) from None
        except SettingError as error:
            raise Unusable(str(error), _HELP) from None
        if told:
            from ..run.show.notify import remember

            remember(runs.files(claimed.id), told)
        return _go(
            runs,
            claimed,
            environ=os.environ,
            stop=stop,
            is_json=is_json,
            stdin=stdin,
            is_parked_by_exit=park == "exit",
            is_now=is_now,
        )


def resume_run(
    run: str | None,
    *,
    is_now: bool,
    horizon: float | None,
    restart: bool,
    is_here: bool,
    park: str,
    report: str,
    cost_limit: float | None,
    is_json: bool,
) -> int:
    """Take a run, and drive it from where it stands."""
    runs = RunStore()
    id_ = runs.find(run) if run else _newest(runs)
    state = runs.look(id_)
    assert state is not None  # noqa: S101 -- it was found
    if state.status == "done":
        click.echo(f"mulligan: run {id_} is done; mulligan show {id_} shows the result", err=True)
        return 0
    _check_resumable(runs, id_, state, report, cost_limit)
    _check_here(runs, id_, state, is_here=is_here)
    environ = environment_of(state.made, os.environ)
    for missing in sorted(credentials(state.made.variables) - environ.keys()):
        click.echo(
            f"mulligan: {missing} was set when the run was created, and is not set now", err=True
        )
    now = time()
    if not is_now and _is_far(id_, state, now, horizon):
        return EX_TEMPFAIL
    with signals(Stop()) as stop:
        claimed = runs.claim(id_, now, is_by_hand=True)
        state = runs.look(id_)
        assert state is not None  # noqa: S101 -- this process holds it
        if state.status in _OVER:  # between the look and the claim
            runs.release(claimed)
            _check_resumable(runs, id_, state, report, cost_limit)
        if not runs.is_here(state.made):
            runs.adopt(claimed, now)
        if moved := _moved(state, now, horizon, is_now=is_now):
            runs.write(claimed, moved, "resumed")
        if state.made.agent == PLAN:
            from ..run.attempt.options import ManualResume
            from .plans import drive_plan

            how = {"horizon": horizon, "cost_limit": cost_limit}
            _ready_plan(runs, id_, state, now, is_now=is_now, **how)
            return drive_plan(
                runs,
                claimed,
                stop=stop,
                environ=environ,
                is_json=is_json,
                report=report,
                is_parked_by_exit=park == "exit",
                by_hand=ManualResume(is_now, restart),
            )
        return _go(
            runs,
            claimed,
            environ=environ,
            stop=stop,
            is_json=is_json,
            is_parked_by_exit=park == "exit",
            may_restart=restart,
            is_now=is_now,
        )


def _ready_plan(
    runs: RunStore,
    id_: str,
    state: RunState,
    now: float,
    *,
    horizon: float | None,
    cost_limit: float | None,
    is_now: bool,
) -> None:
    """Let the agents of a plan go on as its user asked."""
    from ..run.plan.drive import allow_cost, revive

    if cost_limit is not None:
        allow_cost(runs, id_, cost_limit)
    if state.status in {"failed", "limited"}:
        revive(runs, id_, now, is_now=is_now, horizon=horizon)
    if is_now:
        revive(runs, id_, now, is_waking=True)


def _moved(
    state: RunState, now: float, horizon: float | None, *, is_now: bool
) -> RunRescheduled | None:
    """When a resumed run continues; None for when it would anyway."""
    is_stated = state.status in {"waiting", "limited"} and not is_now
    until = max(now, state.until or now) if is_stated else now
    is_open = state.status not in {"paused", "failed", "limited"}
    if is_open and not is_now and horizon is None:
        return None
    return RunRescheduled(now, until, "resumed by the user", horizon=horizon)


def _is_far(id_: str, state: RunState, now: float, horizon: float | None) -> bool:
    """Whether the run is limited beyond its horizon, and not waited for here; then that is said."""
    if state.status != "limited" or state.until is None or state.made.agent == PLAN:
        return False
    bounds = (horizon, state.horizon, policy_of(request_of(state.made.terms)).horizon)
    bound = next(each for each in bounds if each is not None)
    left = state.until - now
    if left <= bound:
        return False
    until, resume = clock(state.until, now), f"mulligan resume {id_}"
    click.echo(
        f"mulligan: run {id_} is limited until {until}, in {duration_text(left)}: beyond the "
        f"horizon of {duration_text(bound)}\n"
        f"mulligan: to continue then: mulligan worker; to wait for it here: {resume} --horizon "
        f"{ceil(left / 86_400)}d; to try now: {resume} --now",
        err=True,
    )
    return True


def _check_resumable(
    runs: RunStore, id_: str, state: RunState, report: str, cost_limit: float | None
) -> None:
    """Refuse what cannot go on, or not here, before anything is changed."""
    if state.status in _OVER:
        raise Unusable(
            f"run {id_} is {state.status}: it cannot be resumed",
            f"mulligan show {id_} shows the result",
        )
    if state.made.parent:
        raise Unusable(
            f"run {id_} is an agent of the plan {state.made.parent}, which controls it",
            f"mulligan resume {state.made.parent} resumes both",
        )
    if state.made.agent == PLAN:
        from ..run.plan.drive import plan_of
        from .plans import check_report

        check_report(report)
        plan_of(runs, id_)  # before it is resumed: a missing plan must not change the run
    elif report or cost_limit is not None:
        option = "--report" if report else "--cost-limit"
        raise Unusable(f"{option} is for plans", f"mulligan show {id_} shows the result")


def _check_here(runs: RunStore, id_: str, state: RunState, *, is_here: bool) -> None:
    """Refuse a run of another machine or user, unless its user says that it belongs here now."""
    if is_here or runs.is_here(state.made):
        return
    raise Unusable(
        f"run {id_} was made by user {state.made.user} on {state.made.host}: its sessions and "
        f"files are there",
        f"resume it there; if they are here now, mulligan resume {id_} --here adopts it",
    )


def _go(
    runs: RunStore,
    claimed: ClaimedRun,
    *,
    environ: Mapping[str, str],
    stop: Stop,
    is_json: bool,
    **how: Any,
) -> int:
    """Drive the run that this process holds, and show it."""
    state = runs.look(claimed.id)
    assert state is not None  # noqa: S101 -- this process holds it
    shown = showing(runs, claimed.id, state, stop=stop, environ=environ, is_json=is_json)
    with shown as (view, streams):
        code = drive_run(
            runs, claimed, environ=environ, view=view, stop=stop, platform=real_platform(), **how
        )
    if not code and streams.is_unread:
        # What was done is done; but the reader does not have all of the answer.
        click.echo(
            f"mulligan: its output was not fully read: mulligan show {claimed.id} --answer",
            err=True,
        )
        code = _UNREAD
    prune_daily(runs, time())
    return code


def _check_policy(asked: RunRequest) -> None:
    """Refuse rules that do not exist now: they are not read before something fails."""
    try:
        policy_of(asked)
    except FileError:
        raise
    except SettingError as error:
        raise Unusable(str(error), "name a preset, or the path of a .toml file") from None


def check_name(name: str) -> None:
    """Refuse what is not a line of text."""
    if not name.isprintable():
        raise Unusable(f"--name needs a line of text; {name!r} has control characters", _NAME)


def working_folder(cwd: str) -> Path:
    """The folder that was asked for, without links and dots, as `resume` sees it from within."""
    folder = (Path(cwd) if cwd.startswith("/") else _here() / cwd).resolve()
    if not folder.is_dir():
        raise Unusable(f"--cwd needs a folder; {folder} is not one", "make it, or name another")
    return folder


def notice_argv(notify: str) -> tuple[str, ...]:
    """The command of a notification, split as a shell would."""
    if not notify:
        return ()
    import shlex

    try:
        argv = tuple(shlex.split(notify))
    except ValueError as error:
        raise Unusable(f"--notify cannot be split: {error}".lower(), "close its quotes") from None
    if not argv:
        raise Unusable("--notify needs a command", "write --notify 'notify-send mulligan'")
    return argv


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as trouble:
        because = (trouble.strerror or str(trouble)).lower()
        raise Unusable(
            f"the folder this was called in cannot be used: {because}",
            "go to one that exists, or name a run",
        ) from None


def _folders(runs: RunStore, id_: str, state: RunState) -> Iterator[Path]:
    """Where a run is looked for: its folder; of a plan also the one that its agents run in."""
    yield Path(state.made.cwd)
    if state.made.agent == PLAN:
        from ..run.plan.drive import plan_of

        with contextlib.suppress(NoSuchRun):
            plan, _, cwd = plan_of(runs, id_)
            yield (cwd / plan.cwd).resolve()


def _newest(runs: RunStore) -> str:
    """The newest run of this folder that can go on."""
    here = _here()
    for id_, state in runs.all():
        if state.status not in {"done", "cancelled"} and here in _folders(runs, id_, state):
            return id_
    raise Unusable(f"no run in {here} can be resumed", "mulligan runs lists them")
