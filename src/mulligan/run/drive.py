"""Makes a run of a command, and drives it: shared by `run`, `resume`, workers and plans."""

from __future__ import annotations

import os
import shlex
from contextlib import closing
from typing import TYPE_CHECKING

from ..core.redaction import presentable
from ..errors import StoreError
from .agents.adapter import LaunchRequest
from .agents.catalogue import program_name, recognise
from .attempt.options import WAIT_HERE
from .attempt.runner import Runner
from .journal.entries import RunMade
from .process.stdin import StdinSpool

if TYPE_CHECKING:
    from ..core.policy import Policy
    from .attempt.clean_tree import TreeCleaner
    from .attempt.options import DriveOptions, RunOptions
    from .context import RunContext
    from .journal.state import RunState
    from .journal.store import ClaimedRun

__all__ = ("drive_run", "make_run")


def make_run(
    context: RunContext,
    command: tuple[str, ...],
    options: RunOptions,
    *,
    cwd: str,
    name: str = "",
    stdin: int | bytes | None = None,
    id_: str = "",
    parent: str = "",
) -> tuple[ClaimedRun, RunState, StdinSpool]:
    """A new run of `command`, claimed by this process, with its input; nothing is started.

    What `stdin` gives is kept before the run is in the journal: a process that resumes it finds
    all there is, or that some is missing.

    Raises:
        CommandRefused: The command cannot be run unattended.
        SettingError: An option is invalid.
        MissingExtra: The client of the store that limits are shared in is not installed.
        StoreError: That store cannot be used.
    """
    runs, environ = context.runs, context.environ
    adapter = recognise(command, options.agent or None)
    # Refuse before anything is written: a worker would start a run in the journal.
    adapter.start(command, LaunchRequest(environ=environ))
    if adapter.name != "generic" and (url := environ.get("MULLIGAN_STORE")):
        from ..stores.open import open_store

        open_store(url)
    made = RunMade(
        at=context.platform.clock.wall(),
        agent=adapter.name,
        command=presentable(shlex.join(command)),
        cwd=cwd,
        host=os.uname().nodename,
        user=os.geteuid(),
        name=presentable(name),
        terms=options._asdict(),
        variables=sorted(environ),
        parent=parent,
        path=environ.get("PATH", ""),
    )
    try:
        id_ = runs.new_folder(command, id_)
        path = runs.folder / "runs" / id_ / "stdin"
        if isinstance(stdin, bytes):
            path.write_bytes(stdin)
        spool = StdinSpool.open(path, stdin) if isinstance(stdin, int) else StdinSpool.saved(path)
        try:
            return *runs.make(id_, made), spool
        except BaseException:
            spool.close()
            raise
    except OSError as trouble:
        because = f"no run can be kept here: {trouble.strerror or trouble}"
        raise StoreError(
            str(runs.folder), f"{because}; make room, or choose another folder with MULLIGAN_HOME"
        ) from trouble


def drive_run(
    context: RunContext,
    claimed: ClaimedRun,
    *,
    how: DriveOptions = WAIT_HERE,
    state: RunState | None = None,
    stdin: StdinSpool | None = None,
    policy: Policy | None = None,
    cleaner: TreeCleaner | None = None,
) -> int:
    """Drive a run that this process has claimed until it ends, parks or is stopped; the exit code.

    Args:
        context: Its store, environment, clocks, stop and listeners.
        claimed: The run; released at the end.
        how: How it is driven.
        state: Its state, for a caller that has just looked.
        stdin: What the user gave it to read, closed at the end; what was kept of it by default.
        policy: The rules; those that the run was made with by default.
        cleaner: Cleans the tree before a retry; None to leave it alone.
    """
    runs = context.runs
    with (
        context.holding(claimed) as held,
        closing(stdin or StdinSpool.saved(claimed.folder / "stdin")) as spool,
    ):
        state = state or runs.look(claimed.id)
        assert state is not None  # noqa: S101 -- this process holds it
        driven = held
        if context.events:
            from .events import RunEvents

            program = program_name(runs.command(claimed.id))
            told = RunEvents(claimed.id, program, state, context.events)
            driven = held._replace(listeners=(*held.listeners, told))
        runner = Runner(
            driven, claimed, state, how=how, stdin=spool, policy=policy, cleaner=cleaner
        )
        return runner.go()
