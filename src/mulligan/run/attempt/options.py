"""Options of a run: those stored in its journal, and those of this process alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from ...core.policy import Policy

__all__ = ("WAIT_HERE", "DriveOptions", "RunOptions")


class RunOptions(NamedTuple):
    """How a run is to be run: the options of ``mulligan run``, and the `terms` of its journal.

    Args:
        agent: The adapter, where it is named; empty to go by the command.
        policy: A preset's name or the path of a policy file; empty for the one made for programs.
        attempts: Attempts in total; None for what the policy says.
        horizon: The longest reset to wait for; beyond it the run exits with 75, in seconds.
        idle: Seconds of silence before the program is ended; None for what its adapter says.
        timeout: Seconds for each attempt.
        deadline: Seconds for the whole run.
        own_retries: How often the program may retry by itself.
        may_restart: Whether it may be restarted after a crash.
        is_final_only: Whether the output of attempts that are repeated is held back; None for
            wherever stdout is not a terminal.
        is_notified: Whether a notify command lies in the run's folder.
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

    @classmethod
    def from_journal(cls, terms: dict[str, Any]) -> RunOptions:
        """The options that a run was made with."""
        return cls(**{name: value for name, value in terms.items() if name in cls._fields})

    def load_policy(self) -> Policy:
        """The policy that these options name.

        Raises:
            SettingError: There is no such preset.
            FileError: The file cannot be used.
        """
        from .policy import run_policy

        if self.policy.endswith(".toml"):
            from ...config.loader import policy_from
            from ...config.source import read

            file = Path(self.policy)
            policy = policy_from(read(file), name=file.stem, presets=run_policy)
        else:
            policy = run_policy(self.policy or "default")
        return policy.but(attempts=self.attempts, horizon=self.horizon)


class DriveOptions(NamedTuple):
    """How a run or a plan is driven this time.

    Args:
        park: What to do when the run has to wait: wait here, or return and leave it to a worker.
        is_now: Whether the next attempt ignores the account's limits.
        may_restart: Whether a program may be restarted after a crash, also if the run's options
            do not say so.
    """

    park: Literal["wait", "exit"] = "wait"
    is_now: bool = False
    may_restart: bool = False


WAIT_HERE = DriveOptions()
