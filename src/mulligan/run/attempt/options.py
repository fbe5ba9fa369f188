"""What a runner is given: the platform it runs on, the work to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...core.policy import Policy
    from ..agents.adapter import AgentAdapter
    from ..journal.entries import AttemptEnd
    from ..process.stdin import StdinSpool
    from ..process.stop import Stop
    from ..process.supervise import ProcessExit as Exited
    from .recovery import RecoveryTerms

__all__ = (
    "ManualResume",
    "Platform",
    "PlatformClock",
    "RunRequest",
    "RunWork",
    "policy_of",
    "request_of",
)


class PlatformClock(Protocol):
    """What time it is; a `Clock` says so as well."""

    def now(self) -> float:
        """Seconds on a clock that never goes back; its zero means nothing."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch, as calendars have it."""
        ...


class Platform(NamedTuple):
    """Clocks, random generator and processes.

    Args:
        clock: Tells the time.
        wait: (stop, seconds) → whether it was stopped; returns after so many seconds.
        roll: Rolls the dice.
        supervise: Runs a program to its end.
        end_leftovers: Ends what a dead supervisor left running, by the mark of its run.
    """

    clock: PlatformClock
    wait: Callable[[Stop, float], bool]
    roll: Callable[[], float]
    supervise: Callable[..., Exited]
    end_leftovers: Callable[[str], object]


class RunRequest(NamedTuple):
    """How a run is to be run; journaled, so plain data.

    Args:
        agent: The adapter, where it is named; empty to go by the command.
        policy: A preset's name or the path of a policy file; empty for the one made for programs.
        attempts: Attempts in total; None for what the policy says.
        horizon: The longest reset to wait for; beyond it the run exits with 75, in seconds.
        idle: Seconds of silence before the program is ended; None for what its adapter says.
        timeout: Seconds for each attempt.
        deadline: Seconds for the whole run.
        own_retries: How often the program may retry by itself.
        may_restart: Whether it may be started anew after a crash.
        is_final_only: Whether the output of attempts that are repeated is held back; None for
            wherever stdout is not a terminal.
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
    is_final_only: bool | None = None
    is_notified: bool = False


def policy_of(request: RunRequest) -> Policy:
    """The policy that a request names.

    Raises:
        SettingError: There is no such preset.
        FileError: The file cannot be used.
    """
    from .recovery import run_policy

    if request.policy.endswith(".toml"):
        from ...config.loader import policy_from
        from ...config.source import read

        file = Path(request.policy)
        policy = policy_from(read(file), name=file.stem, presets=run_policy)
    else:
        policy = run_policy(request.policy or "default")
    return policy.but(attempts=request.attempts, horizon=request.horizon)


def request_of(terms: dict[str, Any]) -> RunRequest:
    """The request that a run was made with, from its journal."""
    return RunRequest(
        **{name: value for name, value in terms.items() if name in RunRequest._fields}
    )


class ManualResume(NamedTuple):
    """How a plan was taken up by its user.

    Args:
        is_now: Whether agents that wait go on at once, whatever is known of their limits.
        may_restart: Whether agents may be started anew after a crash, whatever the plan says.
    """

    is_now: bool = False
    may_restart: bool = False


class RunWork(NamedTuple):
    """What is run, and how.

    Args:
        command: The command as the user gave it.
        cwd: The folder it runs in.
        environ: The environment it inherits.
        program: The command's name, for people.
        adapter: The adapter of the program.
        policy: Loads the rules; asked at the first failure.
        request: How it was asked to be run.
        stdin: What the user gave it to read.
        folder: Where its logs are kept.
        deadline_at: When it must be over, in epoch seconds; None for never.
        shrink: What is left of the timeout after an attempt that took too long.
        is_parked_by_exit: Whether to exit where it would wait.
        is_now: Whether the next attempt is made whatever is known of the account's limits.
    """

    command: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    program: str
    adapter: AgentAdapter
    policy: Callable[[], Policy]
    request: RunRequest
    stdin: StdinSpool | None
    folder: Path
    deadline_at: float | None = None
    shrink: float = 1.0
    is_parked_by_exit: bool = False
    is_now: bool = False

    @property
    def idle(self) -> float | None:
        """Seconds of silence before the program is stopped; None for any."""
        asked = self.request.idle
        return self.adapter.idle if asked is None else asked or None

    def timeout(self, ended: Iterable[AttemptEnd], now: float) -> float | None:
        """Seconds for the next attempt: its own, and what the deadline leaves; None for any."""
        own = self.request.timeout
        if own is not None and self.shrink != 1.0:
            own *= float(self.shrink ** sum(each.stopped == "timeout" for each in ended))
        if self.deadline_at is None:
            return own
        left = max(0.01, self.deadline_at - now)
        return left if own is None else min(left, own)

    def terms(self, session: str, now: float) -> RecoveryTerms:
        """What the judgement of an attempt's end goes by."""
        from .recovery import RecoveryTerms

        return RecoveryTerms(
            policy=self.policy(),
            program=self.program,
            can_resume=self.adapter.can_resume and bool(session),
            may_restart=self.request.may_restart,
            is_exit_trusted=self.adapter.is_exit_trusted,
            deadline_at=self.deadline_at,
            is_known=self.adapter.name != "generic",
            now=now,
        )
