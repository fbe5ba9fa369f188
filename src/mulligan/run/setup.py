"""A run put together: what was asked, the adapter of its program, the platform.

What every way to run something shares: a new command, a run taken up again, a worker that wakes
what is due.
"""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import StoreError
from .agents.catalogue import inherited, program_name, recognise
from .attempt.options import Platform, RunRequest, RunWork, policy_of, request_of
from .attempt.runner import Runner
from .context import RunContext
from .journal.entries import RunMade
from .process.stdin import StdinSpool
from .process.supervise import supervise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core.policy import Policy
    from ..core.ports import Store
    from .agents.adapter import AgentAdapter
    from .attempt.clean_tree import TreeCleaner
    from .attempt.limit_store import RunLimits
    from .journal.store import ClaimedRun, RunStore
    from .process.stop import Stop
    from .show.views import RunView

__all__ = ("drive_run", "limits_of", "make_run", "real_platform")

# Shorter words are never masked, whatever the environment holds; see `config.environment`.
_SHORTEST_SECRET = 8


def real_platform(stop_wait: Callable[[Stop, float], bool] | None = None) -> Platform:
    """The clocks, random generator and processes of this machine."""
    return Platform(
        clock=_Clock(),
        wait=stop_wait or (lambda stop, seconds: stop.wait(seconds)),
        roll=_roll,
        supervise=supervise,
        end_leftovers=_end_leftovers,
    )


def _roll() -> float:
    from random import random  # loads hashlib; most runs roll no dice

    return random()  # noqa: S311 -- jitter


def _end_leftovers(token: str) -> None:
    from .process.orphans import end_leftovers

    end_leftovers(token)


class _Clock:
    """The machine's clocks; drivers have one as well, and much else that is not needed here."""

    @staticmethod
    def now() -> float:
        return time.monotonic()

    @staticmethod
    def wall() -> float:
        return time.time()


def make_run(
    runs: RunStore,
    command: tuple[str, ...],
    request: RunRequest,
    *,
    cwd: str,
    environ: Mapping[str, str],
    now: float,
    name: str = "",
    stdin: int | bytes | None = None,
    id_: str = "",
    parent: str = "",
) -> tuple[ClaimedRun, StdinSpool]:
    """A new run of `command`, in our hand; nothing is started.

    What `stdin` gives is kept before the run is known to anybody: whoever takes it up later finds
    all there is, or that some is missing.

    Raises:
        Refused: The command cannot be run unattended.
        SettingError: Something was asked for that cannot be meant.
        MissingExtra: The client of the store that limits are shared in is not installed.
        StoreError: That store cannot be used.
    """
    from .agents.adapter import LaunchRequest

    adapter = recognise(command, request.agent or None)
    # Refused here, before anything is written: a worker would start what is.
    adapter.start(command, LaunchRequest(environ=environ))
    if adapter.name != "generic":
        _shared(environ)
    made = RunMade(
        at=now,
        agent=adapter.name,
        command=_masked(command),
        cwd=cwd,
        host=os.uname().nodename,
        user=os.geteuid(),
        name=_shown(name),
        terms=request._asdict(),
        variables=sorted(environ),
        parent=parent,
        path=environ.get("PATH", ""),
    )
    try:
        id_ = runs.room(command, id_)
        path = runs.files(id_) / "stdin"
        if isinstance(stdin, bytes):
            path.write_bytes(stdin)
        spool = StdinSpool.open(path, stdin) if isinstance(stdin, int) else StdinSpool.saved(path)
        try:
            return runs.make(id_, made), spool
        except BaseException:
            spool.close()
            raise
    except OSError as trouble:
        because = f"no run can be kept here: {trouble.strerror or trouble}"
        raise StoreError(
            str(runs.folder), f"{because}; make room, or choose another folder with MULLIGAN_HOME"
        ) from trouble


def drive_run(
    runs: RunStore,
    claimed: ClaimedRun,
    *,
    environ: Mapping[str, str],
    view: RunView,
    stop: Stop,
    platform: Platform,
    stdin: StdinSpool | None = None,
    is_parked_by_exit: bool = False,
    may_restart: bool = False,
    is_now: bool = False,
    policy: Policy | None = None,
    tidy: TreeCleaner | None = None,
) -> int:
    """Drive the run in our hand until it ends, is parked, or is stopped; the exit code.

    Args:
        runs: Where runs are kept.
        claimed: The run.
        environ: The environment it inherits.
        view: Told of everything that a user wants to see.
        stop: Set to interrupt it.
        platform: Time, luck and processes.
        stdin: What the user gave it to read, closed at the end; what was kept of it by default.
        is_parked_by_exit: Whether to return where it would wait.
        may_restart: Whether it may be started anew after a crash, whatever was said before.
        is_now: Whether the next attempt is made whatever is known of the account's limits.
        policy: The rules; those that the run was made with by default.
        tidy: Cleans the tree before a retry; None to leave it alone.
    """
    with RunContext(runs, claimed, stop) as context:
        folder = runs.files(claimed.id)
        stdin = context.own(stdin or StdinSpool.saved(folder / "stdin"))
        state = runs.look(claimed.id)
        assert state is not None  # noqa: S101 -- this process holds it
        made = state.made
        request = request_of(made.terms)
        command = runs.command(claimed.id)
        shrink = 1.0
        if may_restart:
            request = request._replace(may_restart=True)
        if policy is not None:
            if request.deadline is None:
                request = request._replace(deadline=policy.deadline)
            if policy.timeouts is not None and request.timeout is None:
                request = request._replace(timeout=policy.timeouts.total)
                shrink = policy.timeouts.shrink
        adapter = recognise(command, made.agent)
        work = RunWork(
            command=command,
            cwd=Path(made.cwd),
            environ=environ,
            program=program_name(command),
            adapter=adapter,
            policy=cache(lambda: (policy or policy_of(request)).but(horizon=state.horizon)),
            request=request,
            stdin=stdin,
            folder=folder,
            deadline_at=None if request.deadline is None else made.at + request.deadline,
            shrink=shrink,
            is_parked_by_exit=is_parked_by_exit,
            is_now=is_now,
        )
        limits = limits_of(runs, claimed.id, command, adapter, environ=environ, platform=platform)
        runner = Runner(
            runs,
            claimed,
            state,
            work,
            platform=platform,
            view=view,
            stop=context.stop,
            limits=limits,
            tidy=tidy,
        )
        return runner.go()


def _masked(command: tuple[str, ...]) -> str:
    """The command as it may be shown and stored."""
    if all(word.isalnum() and len(word) < _SHORTEST_SECRET for word in command):
        return " ".join(command)  # nothing to quote, and too short to be a secret
    import shlex

    from ..core.redaction import presentable

    return presentable(shlex.join(command))


def _shown(name: str) -> str:
    """The name of a run as it may be shown and stored."""
    if not name or (name.isalnum() and len(name) < _SHORTEST_SECRET):
        return name
    from ..core.redaction import presentable

    return presentable(name)


def limits_of(
    runs: RunStore,
    run: str,
    command: tuple[str, ...],
    adapter: AgentAdapter,
    *,
    environ: Mapping[str, str],
    platform: Platform,
) -> RunLimits | None:
    """What is known of the limits of a run's account; None for a program that nobody knows."""
    given = inherited(command, environ)
    account = adapter.account(command, given)
    if account is None:
        return None
    from .attempt.limit_store import RunLimits

    return RunLimits(
        _shared(environ) or runs.store(),
        account,
        run=run,
        program=adapter.name,
        model=adapter.model(command, given),
        clock=platform.clock,
        roll=platform.roll,
    )


def _shared(environ: Mapping[str, str]) -> Store | None:
    """The store in which limits are shared with other machines; None if none is named."""
    url = environ.get("MULLIGAN_STORE")
    if not url:
        return None
    from ..stores.open import open_store

    return open_store(url)
