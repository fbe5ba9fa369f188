"""What the commands that run something share."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import click

from ..errors import FileError, SettingError, StoreError
from ..run.agents.adapter import Refused
from ..run.begin import Asked, go, machine, make, policy_of
from ..run.desk import Desk, NoSuchRun
from ..run.prune import prune_daily
from ..run.showing import showing
from ..run.steps import PLAN, Moved
from ..run.stop import Stop, signals
from . import Unusable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..run.desk import Claimed
    from ..run.state import RunState

__all__ = ("check_name", "notice_argv", "resume_run", "run_command", "working_folder")

_NAME = "write it without them"
_HELP = "mulligan run --help lists what it takes"


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
    park: str,
    notify: str,
    is_json: bool,
) -> int:
    """Make a run of `words`, and drive it."""
    asked = Asked(
        agent=agent,
        policy=str(Path(policy).absolute()) if policy.endswith(".toml") else policy,
        attempts=attempts,
        horizon=horizon,
        idle=idle,
        timeout=timeout,
        deadline=deadline,
        own_retries=own_retries,
        may_restart=restart,
        is_final_only=final_only,
        is_notified=bool(notify),
    )
    check_name(name)
    if policy:
        _check_policy(asked)
    told = notice_argv(notify)
    folder = working_folder(cwd)
    desk = Desk()
    with signals(Stop()) as stop:
        try:
            claimed, stdin = make(
                desk,
                words,
                asked,
                cwd=str(folder),
                environ=os.environ,
                now=time(),
                name=name,
                stdin=0,
            )
        except Refused as refused:
            raise Unusable(refused.because, refused.hint) from None
        except SettingError as error:
            raise Unusable(str(error), _HELP) from None
        if told:
            from ..run.notice import remember

            remember(desk.files(claimed.id), told)
        return _go(
            desk,
            claimed,
            stop=stop,
            is_json=is_json,
            stdin=stdin,
            is_parked_by_exit=park == "exit",
        )


def resume_run(
    run: str | None,
    *,
    is_now: bool,
    restart: bool,
    park: str,
    report: str,
    cost_limit: float | None,
    is_json: bool,
) -> int:
    """Take a run in hand, and drive it from where it stands."""
    desk = Desk()
    id_ = desk.find(run) if run else _newest(desk)
    state = desk.look(id_)
    assert state is not None  # noqa: S101 -- it was found
    _check_resumable(desk, id_, state, report, cost_limit)
    for missing in sorted(_credentials(state.made.variables) - os.environ.keys()):
        click.echo(f"mulligan: {missing} was set when the run was made, and is not now", err=True)
    with signals(Stop()) as stop:
        now = time()
        claimed = desk.claim(id_, now, is_by_hand=True)
        if is_now or state.status in {"paused", "failed", "limited"}:
            desk.write(claimed, Moved(now, now, "taken up by hand"), "resumed")
        if state.made.agent == PLAN:
            from ..run.planning import allow_cost, revive
            from ..run.work import ByHand
            from .planning import drive_plan

            if cost_limit is not None:
                allow_cost(desk, id_, cost_limit)
            if state.status in {"failed", "limited"}:
                revive(desk, id_, now)
            if is_now:
                revive(desk, id_, now, is_waking=True)
            return drive_plan(
                desk,
                claimed,
                stop=stop,
                environ=os.environ,
                is_json=is_json,
                report=report,
                is_parked_by_exit=park == "exit",
                by_hand=ByHand(is_now, restart),
            )
        return _go(
            desk,
            claimed,
            stop=stop,
            is_json=is_json,
            is_parked_by_exit=park == "exit",
            may_restart=restart,
            is_now=is_now,
        )


def _check_resumable(
    desk: Desk, id_: str, state: RunState, report: str, cost_limit: float | None
) -> None:
    """Refuse what cannot go on, or not here, before anything is changed."""
    if state.status in {"done", "cancelled"}:
        raise Unusable(
            f"run {id_} is {state.status}: nothing is left to go on with",
            f"mulligan show {id_} tells what came of it",
        )
    if state.made.parent:
        raise Unusable(
            f"run {id_} is an agent of the plan {state.made.parent}, which looks after it",
            f"mulligan resume {state.made.parent} goes on with both",
        )
    if state.made.host != os.uname().nodename or state.made.user != os.geteuid():
        raise Unusable(
            f"run {id_} belongs to user {state.made.user} on {state.made.host}: "
            f"its sessions and files are there",
            "resume it there",
        )
    if state.made.agent == PLAN:
        from ..run.planning import plan_of
        from .planning import check_report

        check_report(report)
        plan_of(desk, id_)  # before it is taken up: one that is gone is no reason to change it
    elif report or cost_limit is not None:
        option = "--report" if report else "--cost-limit"
        raise Unusable(f"{option} is for plans", f"mulligan show {id_} tells what came of it")


def _go(desk: Desk, claimed: Claimed, *, stop: Stop, is_json: bool, **how: Any) -> int:
    """Drive the run in our hand, and show it."""
    state = desk.look(claimed.id)
    assert state is not None  # noqa: S101 -- it is in our hand
    with showing(desk, claimed.id, state, stop=stop, environ=os.environ, is_json=is_json) as view:
        code = go(desk, claimed, environ=os.environ, view=view, stop=stop, world=machine(), **how)
    with contextlib.suppress(StoreError):  # old runs are no reason for a new one to fail
        prune_daily(desk, time())
    return code


def _check_policy(asked: Asked) -> None:
    """Refuse rules that do not exist now: they are not read before something fails."""
    try:
        policy_of(asked)
    except FileError:
        raise
    except SettingError as error:
        raise Unusable(str(error), "name a preset, or the path of a .toml file") from None


def check_name(name: str) -> None:
    """Refuse what is no line of text."""
    if not name.isprintable():
        raise Unusable(f"--name needs a line of text; {name!r} has control characters", _NAME)


def working_folder(cwd: str) -> Path:
    """The folder that was asked for, without links and dots, as `resume` sees it from within."""
    folder = (Path(cwd) if cwd.startswith("/") else _here() / cwd).resolve()
    if not folder.is_dir():
        raise Unusable(f"--cwd needs a folder; {folder} is none", "make it, or name another")
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


def _folders(desk: Desk, id_: str, state: RunState) -> Iterator[Path]:
    """Where a run is looked for: its folder; of a plan also the one that its agents run in."""
    yield Path(state.made.cwd)
    if state.made.agent == PLAN:
        from ..run.planning import plan_of

        with contextlib.suppress(NoSuchRun):
            plan, _, cwd = plan_of(desk, id_)
            yield (cwd / plan.cwd).resolve()


def _newest(desk: Desk) -> str:
    """The newest run of this folder that can go on."""
    here = _here()
    for id_, state in desk.all():
        if state.status not in {"done", "cancelled"} and here in _folders(desk, id_, state):
            return id_
    raise Unusable(f"no run in {here} can go on", "mulligan runs lists what there is")


def _credentials(names: list[str]) -> set[str]:
    """Those of `names` without which a program could be locked out."""
    return {each for each in names if each.endswith(("_KEY", "_TOKEN", "_SECRET"))}
