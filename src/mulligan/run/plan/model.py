"""A plan: phases of agents, as data.

The same classes are what a TOML file is validated against and what Python code writes:

    reviewer = Agent(program="claude", prompt="Review the last commit")
    plan = Plan(name="review", phases=(Phase(name="review", agents=(reviewer,)),))

Nothing here is executed. Invalid values are refused when the object is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...core.policy import FrozenDict, Policy
from ...core.presets import preset
from ...core.schema import Seconds
from ...errors import SettingError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("Agent", "GitMode", "KeptPlan", "Mode", "Phase", "Plan")

Mode = Literal["fail_fast", "continue", "require_minimum"]
GitMode = Literal["off", "commit", "stash", "snapshot", "worktree"]

# Names become parts of file names, references and run ids. Dots divide an id into plan, phase and
# agent, so no name has one.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent of a phase.

    Either `command`, run as it is, or `program` with a prompt, run as that program is run
    unattended. In prompts ``{{name}}`` stands for a variable, ``{{outputs.PHASE}}`` for what the
    agents of an earlier phase printed, ``{{outputs.PHASE.AGENT}}`` for what one of them did. They
    are filled in as text of the one argument that the prompt is, or of stdin; never anywhere else.

    Args:
        name: Its name in the phase: letters, digits, ``_`` and ``-``; the program's by default.
        command: The program with its arguments.
        program: An agent program by name: ``claude``.
        args: Further arguments of the program, before the prompt.
        prompt: What it is asked.
        prompt_file: A file with what it is asked, inside the plan's folder unless absolute.
        input: How the prompt reaches it: as an ``argument``, or on ``stdin``.
        variables: Values for ``{{name}}`` in the prompt, over the phase's and the plan's.
        output: A file for what it prints; ``{{…}}`` has no meaning here. In the run's folder by
            default.
        provider: Whose slots it needs; its program by default.
        env: Variables of its environment, over the plan's.
        cwd: The folder it runs in, from the plan's; that by default.
        timeout: Seconds for each attempt.
        idle: Seconds of silence after which it hangs.
        may_restart: Whether it may be restarted after a crash.
    """

    name: str = ""
    command: tuple[str, ...] = ()
    program: str = ""
    args: tuple[str, ...] = ()
    prompt: str = ""
    prompt_file: str = ""
    input: Literal["argument", "stdin"] = "argument"
    variables: Mapping[str, str] = field(default_factory=dict)
    output: str = ""
    provider: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    timeout: Seconds | None = None
    idle: Seconds | None = None
    may_restart: bool = False

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.program):
            raise SettingError("an agent needs either command or program; got both or neither")
        if self.prompt and self.prompt_file:
            raise SettingError("an agent needs prompt or prompt_file; got both")
        if self.program and not (self.prompt or self.prompt_file):
            raise SettingError(f"program {self.program!r} needs a prompt or a prompt_file")
        if self.args and not self.program:
            raise SettingError("args belong to program; a command has its own")
        if not self.name:
            first = self.program or self.command[0].rpartition("/")[2]
            object.__setattr__(self, "name", re.sub(r"[^A-Za-z0-9]+", "-", first).strip("-")[:40])
        _check_name(self.name, "an agent")
        object.__setattr__(self, "variables", FrozenDict(self.variables))
        object.__setattr__(self, "env", FrozenDict(self.env))


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Agents that run together.

    Args:
        name: Its name in the plan.
        agents: Its agents.
        needs: Phases that must have succeeded; the one before it by default, ``[]`` for none.
        parallel: Whether its agents run side by side, or one after the other.
        on_failure: When failures of agents fail the phase (R-P2).
        minimum: The successes that ``require_minimum`` needs.
        concurrency: How many of its agents may run at once.
        policy: How failures are answered; a policy, or the name of a preset. By default
            ``pipeline``: four attempts, waits of 2, 5, 15 and 30 minutes, of six hours at most for
            a limit (R-P1). Its `deadline` is for each agent from its first start on, its
            `timeouts.total` for each attempt of an agent that has no `timeout`.
        verify: A command that must succeed after each agent that did; if it fails, what it prints
            goes back to the agent for one more attempt (R-A2).
        verify_timeout: Seconds for the command.
        variables: Values for ``{{name}}`` in prompts, over the plan's.
        git: What happens to the tree before a retry.
        merge: In git mode ``worktree``: whether an agent's changes come into the tree, or are kept
            on a branch.
    """

    name: str
    agents: tuple[Agent, ...]
    needs: tuple[str, ...] | None = None
    parallel: bool = True
    on_failure: Mode = "fail_fast"
    minimum: int | None = None
    concurrency: int | None = None
    policy: Policy | str = "pipeline"
    verify: tuple[str, ...] = ()
    verify_timeout: Seconds = 600.0
    variables: Mapping[str, str] = field(default_factory=dict)
    git: GitMode | None = None
    merge: bool = True

    def __post_init__(self) -> None:
        _check_name(self.name, "a phase")
        if not self.agents:
            raise SettingError(f"phase {self.name!r} has no agents")
        names = [each.name for each in self.agents]
        _check_different(names, "agents")
        if isinstance(self.policy, str):
            preset(self.policy)
        if self.on_failure == "require_minimum" and self.minimum is None:
            raise SettingError("on_failure is 'require_minimum', which needs a minimum; got none")
        if self.on_failure != "require_minimum" and self.minimum is not None:
            raise SettingError(
                f"minimum belongs to on_failure = 'require_minimum'; got {self.minimum} with "
                f"{self.on_failure!r}"
            )
        if self.minimum is not None and not 1 <= self.minimum <= len(names):
            raise SettingError(
                f"minimum needs 1 to {len(names)}, as many as there are agents; got {self.minimum}"
            )
        if self.concurrency is not None and self.concurrency < 1:
            raise SettingError(f"concurrency needs at least 1; got {self.concurrency}")
        object.__setattr__(self, "variables", FrozenDict(self.variables))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Phases of agents.

    Args:
        name: For people.
        phases: The phases, in order.
        concurrency: How many agents may run at once.
        providers: How many agents of one provider may run at once: ``{claude = 2}``.
        cost_limit: US dollars after which nothing more is started.
        variables: Values for ``{{name}}`` in prompts.
        env: Variables of every agent's environment.
        cwd: The folder the agents run in, from where the plan's file lies, or from ``--cwd``; that
            by default.
        git: What happens to the tree before a retry; off by default (R-P6).
        commit_prefix: What stands before the message of a commit.
    """

    name: str = "plan"
    phases: tuple[Phase, ...]
    concurrency: int = 4
    providers: Mapping[str, int] = field(default_factory=dict)
    cost_limit: float | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    git: GitMode = "off"
    commit_prefix: str = "mulligan: "

    # Read by pydantic when a file is validated against this class: an unknown key is an error.
    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 -- pydantic's protocol

    def __post_init__(self) -> None:
        if not self.phases:
            raise SettingError("a plan needs phases; got none")
        names = [each.name for each in self.phases]
        _check_different(names, "phases")
        for at, phase in enumerate(self.phases):
            for need in phase.needs or ():
                if need not in names[:at]:
                    before = f"those are {', '.join(names[:at])}" if at else "it is the first"
                    raise SettingError(
                        f"phases[{at}].needs names phases before it ({before}); got {need!r}"
                    )
        if self.concurrency < 1:
            raise SettingError(f"concurrency needs at least 1; got {self.concurrency}")
        if self.cost_limit is not None and self.cost_limit <= 0:
            raise SettingError(f"cost_limit needs more than 0; got {self.cost_limit:g}")
        for name, count in self.providers.items():
            if count < 1:
                raise SettingError(f"providers.{name} needs at least 1; got {count}")
        for each in ("providers", "variables", "env"):
            object.__setattr__(self, each, FrozenDict(getattr(self, each)))

    def needs(self, phase: Phase) -> tuple[str, ...]:
        """The phases that `phase` needs: those it names, else the one before it."""
        if phase.needs is not None:
            return phase.needs
        at = self.phases.index(phase)
        return (self.phases[at - 1].name,) if at else ()

    def agents(self) -> list[tuple[str, Phase, Agent]]:
        """Every agent, with its key ``phase/agent`` and its phase."""
        return [
            (f"{phase.name}/{agent.name}", phase, agent)
            for phase in self.phases
            for agent in phase.agents
        ]


class KeptPlan(NamedTuple):
    """The copy of a plan that its run keeps."""

    plan: Plan  # with the texts of its prompt files
    folder: Path  # that its file lies in
    cwd: Path  # the folder that its agents run in, as far as it does not name one


def _check_different(names: list[str], what: str) -> None:
    for at, name in enumerate(names):
        if (first := names.index(name)) != at:
            raise SettingError(
                f"{what}[{at}].name needs to differ from {what}[{first}].name; both are {name!r}"
            )


def _check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name):
        raise SettingError(
            f"{what} needs a name of at most 40 letters, digits, '_' or '-'; got {name!r}"
        )
