"""What a runner is given: the world around it, the work to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from ..core.policy import Policy
    from .agents.adapter import Adapter
    from .process import Ended as Exited
    from .recovery import Terms
    from .spool import Spool
    from .steps import Ended
    from .stop import Stop

__all__ = ("ByHand", "Settings", "Times", "Work", "World")


class Times(Protocol):
    """What time it is; a `Clock` says so as well."""

    def now(self) -> float:
        """Seconds on a clock that never goes back; its zero means nothing."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch, as the world's calendars have it."""
        ...


class World(NamedTuple):
    """Time, luck and processes.

    Args:
        clock: Tells the time.
        wait: (stop, seconds) → whether it was stopped; returns after so many seconds.
        roll: Rolls the dice.
        supervise: Runs a program to its end.
        end_leftovers: Ends what a dead supervisor left running, by the mark of its run.
    """

    clock: Times
    wait: Callable[[Stop, float], bool]
    roll: Callable[[], float]
    supervise: Callable[..., Exited]
    end_leftovers: Callable[[str], object]


class Settings(NamedTuple):
    """How a run was asked to be run.

    Args:
        idle: Seconds of silence before the program is ended; None for what its adapter says, 0
            for never.
        timeout: Seconds for each attempt; None for any.
        own_retries: How often the program may retry by itself; None for what is good for it.
        may_restart: Whether it may be started anew after a crash.
        deadline_at: When it must be over, in epoch seconds; None for never.
        shrink: What is left of `timeout` after an attempt that took too long (R-B19).
        is_parked_by_exit: Whether to exit where it would wait.
        is_now: Whether the next attempt is made whatever is known of the account's limits.
    """

    idle: float | None = None
    timeout: float | None = None
    own_retries: int | None = None
    may_restart: bool = False
    deadline_at: float | None = None
    shrink: float = 1.0
    is_parked_by_exit: bool = False
    is_now: bool = False

    def limit(self, ended: Iterable[Ended]) -> float | None:
        """Seconds for the attempt that follows those that have ended; None for any."""
        if self.timeout is None or self.shrink == 1.0:
            return self.timeout
        times = sum(each.stopped == "timeout" for each in ended)
        return self.timeout * float(self.shrink**times)


class ByHand(NamedTuple):
    """How a plan was taken up by its user.

    Args:
        is_now: Whether agents that wait go on at once, whatever is known of their limits.
        may_restart: Whether agents may be started anew after a crash, whatever the plan says.
    """

    is_now: bool = False
    may_restart: bool = False


class Work(NamedTuple):
    """What is to be run.

    Args:
        command: The command as the user gave it.
        cwd: The folder it runs in.
        environ: The environment it inherits.
        program: The command's name, for people.
        adapter: Who knows the program.
        policy: Loads the rules; asked at the first failure.
        settings: How.
        stdin: What the user gave it to read.
    """

    command: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    program: str
    adapter: Adapter
    policy: Callable[[], Policy]
    settings: Settings
    stdin: Spool | None

    def terms(self, session: str, now: float, *, is_end_due: bool = False) -> Terms:
        """What the judgement of an attempt's end goes by."""
        from .recovery import Terms

        return Terms(
            policy=self.policy(),
            program=self.program,
            can_resume=self.adapter.can_resume and bool(session),
            may_restart=self.settings.may_restart,
            is_exit_trusted=self.adapter.is_exit_trusted,
            deadline_at=self.settings.deadline_at,
            is_end_due=is_end_due,
            is_known=self.adapter.name != "generic",
            now=now,
        )
