"""A run put together: what was asked, who knows the program, the world around it.

What every way to run something shares: a new command, a run taken up again, a worker that wakes
what is due.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import Fenced, SettingError, StoreError
from .agents.catalogue import recognise
from .agents.launchers import inherited
from .process import supervise
from .runner import Runner
from .spool import Spool
from .steps import Made
from .stop import Stop
from .work import Settings, Work, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..core.policy import Policy
    from ..core.ports import Store
    from .desk import Claimed, Desk
    from .limits import Limits
    from .tidy import Tidy
    from .view import View

__all__ = ("Asked", "asked_of", "go", "holding", "machine", "make", "policy_of")

# How often a holder shows that it is alive, and looks whether its run is still its own.
_GLANCE = 1.0


class Asked(NamedTuple):
    """How a run is to be run; journaled, so plain data.

    Args:
        agent: The adapter, where it is named; empty to go by the command.
        policy: A preset's name or the path of a policy file; empty for the one made for programs.
        attempts: Attempts in total; None for what the policy says.
        horizon: How far ahead a reset may lie to be waited for, in seconds.
        idle: Seconds of silence before the program is ended; None for what its adapter says.
        timeout: Seconds for each attempt.
        deadline: Seconds for the whole run.
        own_retries: How often the program may retry by itself.
        may_restart: Whether it may be started anew after a crash.
        is_final_only: Whether the output of attempts that are repeated is held back.
        is_notified: Whether somebody is told of it; by what lies in the run's folder.
    """

    agent: str = ""
    policy: str = ""
    attempts: int | None = None
    horizon: float | None = None
    idle: float | None = None
    timeout: float | None = None
    deadline: float | None = None
    own_retries: int | None = None
    may_restart: bool = False
    is_final_only: bool = False
    is_notified: bool = False


def machine(stop_wait: Callable[[Stop, float], bool] | None = None) -> World:
    """The world as it is."""
    return World(
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
    from .leftovers import end_leftovers

    end_leftovers(token)


class _Clock:
    """The machine's clocks; drivers have one as well, and much else that is not needed here."""

    @staticmethod
    def now() -> float:
        return time.monotonic()

    @staticmethod
    def wall() -> float:
        return time.time()


def make(
    desk: Desk,
    command: tuple[str, ...],
    asked: Asked,
    *,
    cwd: str,
    environ: Mapping[str, str],
    now: float,
    name: str = "",
    stdin: int | bytes | None = None,
    id_: str = "",
    parent: str = "",
) -> tuple[Claimed, Spool]:
    """A new run of `command`, in our hand; nothing is started.

    What `stdin` gives is kept before the run is known to anybody: whoever takes it up later finds
    all there is, or that some is missing.

    Raises:
        Refused: The command cannot be run unattended.
        SettingError: Something was asked for that cannot be meant.
        MissingExtra: The client of the store that limits are shared in is not installed.
        StoreError: That store cannot be used.
    """
    from .agents.adapter import Wish

    adapter = recognise(command, asked.agent or None)
    # Refused here, before anything is written: a worker would start what is.
    adapter.start(command, Wish(environ=environ))
    if adapter.name != "generic":
        _shared(environ)
    made = Made(
        at=now,
        agent=adapter.name,
        command=_masked(command),
        cwd=cwd,
        host=os.uname().nodename,
        user=os.geteuid(),
        name=_shown(name),
        terms=asked._asdict(),
        variables=sorted(environ),
        parent=parent,
    )
    try:
        id_ = desk.room(command, id_)
        path = desk.files(id_) / "stdin"
        if isinstance(stdin, bytes):
            path.write_bytes(stdin)
        spool = Spool.open(path, stdin) if isinstance(stdin, int) else Spool.saved(path)
        return desk.make(id_, made), spool
    except OSError as trouble:
        because = f"no run can be kept here: {trouble.strerror or trouble}"
        raise StoreError(
            str(desk.folder), f"{because}; make room, or choose another folder with MULLIGAN_HOME"
        ) from trouble


def go(
    desk: Desk,
    claimed: Claimed,
    *,
    environ: Mapping[str, str],
    view: View,
    stop: Stop,
    world: World,
    stdin: Spool | None = None,
    is_parked_by_exit: bool = False,
    may_restart: bool = False,
    is_now: bool = False,
    policy: Policy | None = None,
    tidy: Tidy | None = None,
) -> int:
    """Drive the run in our hand until it ends, is parked, or is stopped; the exit code.

    Args:
        desk: Where runs are kept.
        claimed: The run.
        environ: The environment it inherits.
        view: Told of everything that a user wants to see.
        stop: Set to interrupt it.
        world: Time, luck and processes.
        stdin: What the user gave it to read; what was kept of it by default.
        is_parked_by_exit: Whether to return where it would wait.
        may_restart: Whether it may be started anew after a crash, whatever was said before.
        is_now: Whether the next attempt is made whatever is known of the account's limits.
        policy: The rules; those that the run was made with by default.
        tidy: Cleans the tree before a retry; None to leave it alone.
    """
    state = desk.look(claimed.id)
    assert state is not None  # noqa: S101 -- it is in our hand
    if stdin is None:
        stdin = Spool.saved(desk.files(claimed.id) / "stdin")
        if not stdin.is_complete:
            desk.release(claimed)
            raise SettingError(
                f"run {claimed.id} was killed before all of its input had arrived, and cannot go "
                f"on without the rest; run it anew"
            )
    made = state.made
    asked = asked_of(made.terms)
    adapter = recognise(desk.command(claimed.id), made.agent)
    timeout, deadline = asked.timeout, asked.deadline
    shrink = 1.0
    if policy is not None:
        deadline = policy.deadline if deadline is None else deadline
        if policy.timeouts is not None and timeout is None:
            timeout, shrink = policy.timeouts.total, policy.timeouts.shrink
    settings = Settings(
        idle=asked.idle,
        timeout=timeout,
        shrink=shrink,
        own_retries=asked.own_retries,
        may_restart=asked.may_restart or may_restart,
        deadline_at=None if deadline is None else made.at + deadline,
        is_parked_by_exit=is_parked_by_exit,
        is_now=is_now,
    )
    work = Work(
        command=desk.command(claimed.id),
        cwd=Path(made.cwd),
        environ=environ,
        program=desk.program(claimed.id),
        adapter=adapter,
        policy=lambda: policy_of(asked) if policy is None else policy,
        settings=settings,
        stdin=stdin,
    )
    limits = _limits(desk, work, world) if adapter.name != "generic" else None
    with closing(Stop(stop)) as own, holding(desk, claimed, own):
        runner = Runner(
            desk, claimed, work, world=world, view=view, stop=own, limits=limits, tidy=tidy
        )
        return runner.go()


def policy_of(asked: Asked) -> Policy:
    """The rules that were asked for.

    Raises:
        SettingError: There is no such preset.
        FileError: The file cannot be used.
    """
    from .recovery import run_policy

    if asked.policy.endswith(".toml"):
        from ..config.loader import policy_from
        from ..config.source import read

        file = Path(asked.policy)
        policy = policy_from(read(file), name=file.stem, presets=run_policy)
    else:
        policy = run_policy(asked.policy or "default")
    return policy.but(attempts=asked.attempts, horizon=asked.horizon)


def asked_of(terms: dict[str, Any]) -> Asked:
    """What was asked of a run, from its journal."""
    return Asked(**{name: value for name, value in terms.items() if name in Asked._fields})


def _masked(command: tuple[str, ...]) -> str:
    """The command as it may be shown and stored."""
    if all(word.isalnum() and len(word) <= 12 for word in command):
        return " ".join(command)  # nothing to quote, and too short to be a secret
    import shlex

    from ..core.text import presentable

    return presentable(shlex.join(command))


def _shown(name: str) -> str:
    """The name of a run as it may be shown and stored."""
    if not name or (name.isalnum() and len(name) <= 12):
        return name
    from ..core.text import presentable

    return presentable(name)


def _limits(desk: Desk, work: Work, world: World) -> Limits:
    from .limits import Limits

    store = _shared(work.environ) or desk.store()
    adapter = work.adapter
    account = adapter.account(inherited(work.command, work.environ))
    return Limits(store, adapter.name, account, world.clock, world.roll)


def _shared(environ: Mapping[str, str]) -> Store | None:
    """The store in which limits are shared with other machines; None if none is named."""
    url = environ.get("MULLIGAN_STORE")
    if not url:
        return None
    from ..stores.url import open_store

    return open_store(url)


@contextmanager
def holding(desk: Desk, claimed: Claimed, stop: Stop) -> Iterator[None]:
    """Keep the run in our hand, and stop when somebody takes or cancels it."""
    done = Event()

    def hold() -> None:
        while not done.wait(_GLANCE):
            try:
                desk.renew(claimed)
                state = desk.look(claimed.id)
            except (StoreError, OSError):  # busy or full: the lease outlives a few of these
                continue
            if state is None or state.status == "cancelled":
                stop.set("cancelled")
            elif state.epoch != claimed.epoch:
                stop.set("fenced")
            else:
                continue
            return

    thread = Thread(target=hold, name=f"hold {claimed.id}", daemon=True)
    thread.start()
    try:
        yield
    except Fenced as fenced:
        raise SettingError(f"run {claimed.id} was taken over by another process") from fenced
    finally:
        done.set()
        thread.join()
        desk.release(claimed)
