"""Which agents of a plan may run now.

Pure: from the phases, the state of each agent and the time it computes what to start, what to stop
and when to look again. An agent that waits holds no slot.

    todo ──slot──▶ running ──▶ succeeded │ failed
                    │   ▲
                limit   due, and a slot
                    ▼   │
                   waiting

What a phase makes of its agents (R-P2): `fail_fast` fails with the first failure, stopping the
others; `continue` lets all of them run, failing if none succeeds; `require_minimum` needs so many
successes, stopping as soon as they cannot be reached.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .model import Agent, Phase, Plan

__all__ = ("AgentProgress", "AgentStatus", "Dispatch", "PhaseState", "dispatch")

AgentStatus: TypeAlias = Literal["todo", "running", "waiting", "succeeded", "failed", "stopped"]
PhaseState: TypeAlias = Literal["blocked", "open", "succeeded", "failed", "skipped"]

_ENDED = frozenset({"succeeded", "failed", "stopped"})


class AgentProgress(NamedTuple):
    """How far an agent is."""

    status: AgentStatus = "todo"
    until: float = 0.0  # when a waiting one is due
    is_free: bool = False  # starting it costs nothing, because its work is done


class Dispatch(NamedTuple):
    """What to start and stop now."""

    start: tuple[str, ...]  # agents to start or wake, in this order
    stop: tuple[str, ...]  # agents to stop, because their phase has failed
    wake_at: float | None  # when to look again at the latest; None if only an end changes things
    phases: dict[str, PhaseState]
    because: dict[str, str]  # why a phase failed or is skipped
    is_over: bool  # nothing runs and nothing will

    @property
    def is_success(self) -> bool:
        return self.is_over and all(each == "succeeded" for each in self.phases.values())


def dispatch(
    plan: Plan, progress: Mapping[str, AgentProgress], *, now: float, is_spent: bool = False
) -> Dispatch:
    """Decide what to start and what to stop now.

    `progress` has each agent that was started, by ``phase/agent``. If the money is spent, nothing
    that costs any is started.
    """
    start: list[str] = []
    stop: list[str] = []
    states: dict[str, PhaseState] = {}
    because: dict[str, str] = {}
    needs = {phase.name: plan.needs(phase) for phase in plan.phases}
    agents = [
        _Agent(key, phase, agent, progress.get(key, _NEW)) for key, phase, agent in plan.agents()
    ]
    slots = _FreeSlots(plan, agents)
    wake_at = inf
    for phase in plan.phases:
        own = [each for each in agents if each.phase is phase]
        state, why = _phase_state(phase, needs[phase.name], own, states)
        ready, due_at = _ready(phase, own, now) if state == "open" else ([], inf)
        if is_spent:
            ready, due_at = [each for each in ready if each.progress.is_free], inf
            is_busy = any(each.status == "running" for each in own)
            if state == "open" and not ready and not is_busy:
                state, why = "failed", _SPENT
        states[phase.name] = state
        if why:
            because[phase.name] = why
        if state in {"failed", "skipped"}:
            stop += [each.key for each in own if each.status in _ALIVE]
        wake_at = min(wake_at, due_at)
        start += [each.key for each in ready if slots.take(each)]
    is_busy = any(each.status == "running" for each in agents)
    is_over = not is_busy and not start and wake_at == inf and "open" not in states.values()
    next_at = None if wake_at == inf else wake_at
    return Dispatch(tuple(start), tuple(stop), next_at, states, because, is_over)


_NEW = AgentProgress()
_ALIVE = frozenset({"running", "waiting"})
_SPENT = "the cost limit is reached; mulligan resume --cost-limit raises it"


class _Agent(NamedTuple):
    key: str
    phase: Phase
    agent: Agent
    progress: AgentProgress

    @property
    def status(self) -> AgentStatus:
        return self.progress.status

    @property
    def provider(self) -> str:
        """Whose slots it needs."""
        return self.agent.provider or self.agent.program


def _phase_state(  # noqa: PLR0911 -- one a case
    phase: Phase,
    needs: Sequence[str],
    agents: Sequence[_Agent],
    states: Mapping[str, PhaseState],
) -> tuple[PhaseState, str]:
    """The state of a phase, and why it failed or is skipped."""
    for need in needs:
        if states[need] in {"failed", "skipped"}:
            past = "failed" if states[need] == "failed" else "was skipped"
            return "skipped", f"it needs {need}, which {past}"
    if any(states[need] != "succeeded" for need in needs):
        return "blocked", ""
    lost = [each for each in agents if each.status in {"failed", "stopped"}]
    # Stopped agents do not count: they were stopped because the phase failed.
    failed = [each for each in agents if each.status == "failed"] or lost
    successes = sum(each.status == "succeeded" for each in agents)
    left, minimum = len(agents) - successes - len(lost), phase.minimum or 1
    if phase.on_failure == "fail_fast" and lost:
        return "failed", f"{failed[0].key} failed, and the phase fails with the first"
    if phase.on_failure == "require_minimum" and successes + left < minimum:
        return "failed", f"{minimum} must succeed, and {len(failed)} of {len(agents)} failed"
    if left:
        return "open", ""
    if not successes:
        return "failed", f"none of its {len(agents)} agents succeeded"
    return "succeeded", ""


def _ready(phase: Phase, agents: Sequence[_Agent], now: float) -> tuple[list[_Agent], float]:
    """The agents of an open phase that could run, and when the next one could.

    Those that are due again come before those that have not started: what they began is held up.
    """
    due: list[_Agent] = []
    new: list[_Agent] = []
    next_at = inf
    for each in agents:
        if each.status == "waiting" and each.progress.until <= now:
            due.append(each)
        elif each.status == "waiting":
            next_at = min(next_at, each.progress.until)
        elif each.status == "todo":
            new.append(each)
        if not phase.parallel and each.status not in _ENDED:
            break  # one after the other
    return [*sorted(due, key=lambda each: each.progress.until), *new], next_at


class _FreeSlots:
    """The slots that are left: of the plan, of each phase and of each provider."""

    def __init__(self, plan: Plan, agents: Sequence[_Agent]) -> None:
        self._left = {("plan", ""): plan.concurrency}
        for phase in plan.phases:
            if phase.concurrency is not None:
                self._left["phase", phase.name] = phase.concurrency
        self._left |= {("provider", name): count for name, count in plan.providers.items()}
        for each in agents:
            if each.status == "running":
                self.take(each)

    def take(self, agent: _Agent) -> bool:
        """Take a slot of each kind that the agent needs; False if one of them is missing."""
        needed = (("plan", ""), ("phase", agent.phase.name), ("provider", agent.provider))
        kinds = [each for each in needed if each in self._left]
        if agent.status != "running" and any(self._left[each] < 1 for each in kinds):
            return False
        for each in kinds:
            self._left[each] -= 1
        return True
