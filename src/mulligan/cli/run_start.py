"""Shared by `run`, `resume` and `worker`: check options, create or claim a run, run it."""

from __future__ import annotations

import contextlib
import os
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..core.duration import duration_text
from ..errors import FileError, SettingError
from ..run.agents.adapter import CommandRefused
from ..run.attempt.options import DriveOptions, RunOptions
from ..run.context import open_context
from ..run.drive import drive_run, make_run
from ..run.journal.entries import PLAN, WOKEN, RunRescheduled
from ..run.journal.retention import prune_daily
from ..run.journal.store import NoSuchRun, RunHeld
from ..run.process.environment import credentials, environment_of
from ..run.process.stop import signals
from ..run.show.choose_view import showing
from ..run.show.messages import clock
from . import Unusable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..run.context import RunContext
    from ..run.journal.state import RunState
    from ..run.journal.store import ClaimedRun, RunStore
    from ..run.process.stdin import StdinSpool

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
    policy: str,
    final_only: bool,
    stream: bool,
    notify: str,
    park: Literal["wait", "exit"],
    is_json: bool,
    is_now: bool,
    **asked: Any,
) -> int:
    """Make a run of `words`, and drive it; `asked` are further fields of `RunOptions`."""
    if final_only and stream:
        raise Unusable(
            "--final-only and --stream contradict each other",
            "--final-only prints the last attempt, --stream all attempts as they come",
        )
    options = RunOptions(
        policy=str(Path(policy).absolute()) if policy.endswith(".toml") else policy,
        is_final_only=final_only or (False if stream else None),
        is_notified=bool(notify),
        **asked,
    )
    check_name(name)
    if policy:
        _check_policy(options)
    told = notice_argv(notify)
    folder = working_folder(cwd)
    with open_context(os.environ, ends_process=True) as context, signals(context.stop):
        try:
            claimed, stdin = make_run(context, words, options, cwd=str(folder), name=name, stdin=0)
        except CommandRefused as refused:
            raise Unusable(refused.because, refused.hint) from None
        except SettingError as error:
            raise Unusable(str(error), _HELP) from None
        if told:
            from ..run.show.notify import remember

            remember(context.runs.files(claimed.id), told)
        how = DriveOptions(park, is_now)
        return _go(context, claimed, how, is_json=is_json, stdin=stdin)


def resume_run(
    run: str | None,
    *,
    is_now: bool,
    horizon: float | None,
    may_restart: bool,
    is_here: bool,
    park: Literal["wait", "exit"],
    report: str,
    cost_limit: float | None,
    is_json: bool,
) -> int:
    """Claim a run, and drive it from where it stands."""
    with open_context(os.environ, ends_process=True) as opened:
        runs = opened.runs
        id_ = runs.find(run) if run else _newest(runs)
        state = runs.look(id_)
        assert state is not None  # noqa: S101 -- it was found
        if state.status == "done":
            shown = f"mulligan show {id_} shows the result"
            click.echo(f"mulligan: run {id_} is done; {shown}", err=True)
            return 0
        _check_resumable(runs, id_, state, report, cost_limit)
        _check_here(runs, id_, state, is_here=is_here)
        environ = environment_of(state.made, os.environ)
        for missing in sorted(credentials(state.made.variables) - environ.keys()):
            when = "was set when the run was created, and is not set now"
            click.echo(f"mulligan: {missing} {when}", err=True)
        now = opened.now()
        if not is_now and _is_far(id_, state, now, horizon):
            return EX_TEMPFAIL
        context = opened._replace(environ=environ)
        with signals(context.stop):
            try:
                claimed = runs.claim(id_, now, is_by_hand=True)
            except RunHeld:
                if not (is_now and state.status == "waiting" and state.made.agent != PLAN):
                    raise
                # It waits in another process: that one is told to try at once.
                runs.note(id_, RunRescheduled(now, now, WOKEN), f"woken-{now}")
                click.echo(f"mulligan: run {id_} is woken in {runs.holder(id_)}", err=True)
                return 0
            state = runs.look(id_)
            assert state is not None  # noqa: S101 -- this process holds it
            if state.status in _OVER:  # between the look and the claim
                runs.release(claimed)
                _check_resumable(runs, id_, state, report, cost_limit)
            if not runs.is_here(state.made):
                runs.adopt(claimed, now)
            if moved := _moved(state, now, horizon, is_now=is_now):
                runs.write(claimed, moved, "resumed")
            how = DriveOptions(park, is_now, may_restart)
            if state.made.agent == PLAN:
                from ..run.plan.drive import kept_plan
                from .plans import drive_plan

                _ready_plan(
                    runs, id_, state, now, is_now=is_now, horizon=horizon, cost_limit=cost_limit
                )
                kept = kept_plan(runs, id_)
                return drive_plan(context, claimed, kept, how, is_json=is_json, report=report)
            return _go(context, claimed, how, is_json=is_json)


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
    own = RunOptions.from_journal(state.made.terms).load_policy().horizon
    bounds = (horizon, state.horizon, own)
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
        from ..run.plan.drive import kept_plan
        from .plans import check_report

        check_report(report)
        kept_plan(runs, id_)  # before it is resumed: a missing plan must not change the run
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
    context: RunContext,
    claimed: ClaimedRun,
    how: DriveOptions,
    *,
    is_json: bool,
    stdin: StdinSpool | None = None,
) -> int:
    """Drive the run that this process holds, and show it."""
    state = context.runs.look(claimed.id)
    assert state is not None  # noqa: S101 -- this process holds it
    with showing(context, claimed.id, state, is_json=is_json) as (shown, streams):
        code = drive_run(shown, claimed, how=how, state=state, stdin=stdin)
    if not code and streams.is_unread:
        # What was done is done; but the reader does not have all of the answer.
        click.echo(
            f"mulligan: its output was not fully read: mulligan show {claimed.id} --answer",
            err=True,
        )
        code = _UNREAD
    prune_daily(context.runs, context.now())
    return code


def _check_policy(options: RunOptions) -> None:
    """Refuse rules that do not exist now: they are not read before something fails."""
    try:
        options.load_policy()
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
        from ..run.plan.drive import kept_plan

        with contextlib.suppress(NoSuchRun):
            plan, _, cwd = kept_plan(runs, id_)
            yield (cwd / plan.cwd).resolve()


def _newest(runs: RunStore) -> str:
    """The newest run of this folder that can go on."""
    here = _here()
    for id_, state in runs.all():
        if state.status not in {"done", "cancelled"} and here in _folders(runs, id_, state):
            return id_
    raise Unusable(f"no run in {here} can be resumed", "mulligan runs lists them")
