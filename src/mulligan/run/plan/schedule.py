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

__all__ = ("Moves", "PhaseState", "ScheduledAgent", "ScheduledPhase", "Standing", "Status", "moves")

Status: TypeAlias = Literal["todo", "running", "waiting", "succeeded", "failed", "stopped"]
PhaseState: TypeAlias = Literal["blocked", "open", "succeeded", "failed", "skipped"]
Mode: TypeAlias = Literal["fail_fast", "continue", "require_minimum"]

_ENDED = frozenset({"succeeded", "failed", "stopped"})


class ScheduledAgent(NamedTuple):
    """An agent as the schedule sees it.

    Args:
        key: Its name in the whole plan.
        provider: Whose slots it needs; empty for none.
    """

    key: str
    provider: str = ""


class ScheduledPhase(NamedTuple):
    """A phase as the schedule sees it.

    Args:
        name: Its name.
        agents: Its agents, in order.
        needs: The phases that must have succeeded.
        is_parallel: Whether its agents run side by side.
        mode: When failures of agents fail the phase.
        minimum: The successes that `require_minimum` needs.
        slots: How many of its agents may run at once; None for any number.
    """

    name: str
    agents: tuple[ScheduledAgent, ...]
    needs: tuple[str, ...] = ()
    is_parallel: bool = True
    mode: Mode = "fail_fast"
    minimum: int = 1
    slots: int | None = None


class Standing(NamedTuple):
    """The status of an agent.

    Args:
        status: Where.
        until: When a waiting one is due.
        is_free: Whether starting it costs nothing, because its work is done.
    """

    status: Status = "todo"
    until: float = 0.0
    is_free: bool = False


class Moves(NamedTuple):
    """What to do now.

    Args:
        start: Agents to start or wake, in this order.
        stop: Agents to stop, because their phase has failed.
        wake_at: When to look again, if nothing happens before; None if only an end changes things.
        phases: The state of each phase.
        because: Why a phase failed or is skipped.
        is_over: Whether nothing runs and nothing will.
    """

    start: tuple[str, ...]
    stop: tuple[str, ...]
    wake_at: float | None
    phases: dict[str, PhaseState]
    because: dict[str, str]
    is_over: bool

    @property
    def is_success(self) -> bool:
        return self.is_over and all(each == "succeeded" for each in self.phases.values())


def moves(
    orders: Sequence[ScheduledPhase],
    standings: Mapping[str, Standing],
    *,
    now: float,
    slots: int | None = None,
    providers: Mapping[str, int] | None = None,
    is_spent: bool = False,
) -> Moves:
    """Decide what to start and what to stop now.

    Args:
        orders: The phases, in order.
        standings: Where each agent stands; one that is not named has not started.
        now: Epoch seconds.
        slots: How many agents may run at once; None for any number.
        providers: The same for the agents of one provider.
        is_spent: Whether the money is used up: nothing that costs any is started.
    """
    start: list[str] = []
    stop: list[str] = []
    states: dict[str, PhaseState] = {}
    because: dict[str, str] = {}
    room = _Room(orders, standings, slots, providers or {})
    wake_at = inf
    for order in orders:
        state, why = _phase(order, standings, states)
        ready, due_at = _ready(order, standings, now) if state == "open" else ([], inf)
        if is_spent:
            ready, due_at = [each for each in ready if _at(standings, each).is_free], inf
        if is_spent and state == "open" and not ready and not _busy(order, standings):
            state, why = "failed", _SPENT
        states[order.name] = state
        if why:
            because[order.name] = why
        if state in {"failed", "skipped"}:
            stop += [each.key for each in order.agents if _at(standings, each).status in _ALIVE]
        wake_at = min(wake_at, due_at)
        start += [each.key for each in ready if room.takes(order, each)]
    is_busy = any(each.status == "running" for each in standings.values())
    is_over = not is_busy and not start and wake_at == inf and "open" not in states.values()
    return Moves(
        tuple(start),
        tuple(stop),
        None if wake_at == inf else wake_at,
        states,
        because,
        is_over,
    )


_ALIVE = frozenset({"running", "waiting"})
_SPENT = "the cost limit is reached; mulligan resume --cost-limit raises it"


def _at(standings: Mapping[str, Standing], agent: ScheduledAgent) -> Standing:
    return standings.get(agent.key, Standing())


def _busy(order: ScheduledPhase, standings: Mapping[str, Standing]) -> bool:
    return any(_at(standings, each).status == "running" for each in order.agents)


def _phase(
    order: ScheduledPhase, standings: Mapping[str, Standing], states: Mapping[str, PhaseState]
) -> tuple[PhaseState, str]:
    """The state of a phase, and why it failed or is skipped."""
    for need in order.needs:
        if states[need] in {"failed", "skipped"}:
            return "skipped", f"it needs {need}, which {_past(states[need])}"
    if any(states[need] != "succeeded" for need in order.needs):
        return "blocked", ""
    return _made_of(order, [(each.key, _at(standings, each).status) for each in order.agents])


def _made_of(order: ScheduledPhase, found: Sequence[tuple[str, Status]]) -> tuple[PhaseState, str]:
    """The state of a phase that follows from its agents."""
    lost = [key for key, status in found if status in {"failed", "stopped"}]
    # Stopped agents do not count: they were stopped because the phase failed.
    failed = [key for key, status in found if status == "failed"] or lost
    successes = sum(status == "succeeded" for _, status in found)
    left = len(found) - successes - len(lost)
    if order.mode == "fail_fast" and lost:
        return "failed", f"{failed[0]} failed, and the phase fails with the first"
    if order.mode == "require_minimum" and successes + left < order.minimum:
        return "failed", f"{order.minimum} must succeed, and {len(failed)} of {len(found)} failed"
    if left:
        return "open", ""
    if not successes:
        return "failed", f"none of its {len(found)} agents succeeded"
    return "succeeded", ""


def _past(state: PhaseState) -> str:
    return "failed" if state == "failed" else "was skipped"


def _ready(
    order: ScheduledPhase, standings: Mapping[str, Standing], now: float
) -> tuple[list[ScheduledAgent], float]:
    """The agents of an open phase that could run, and when the next one could.

    Those that are due again come before those that have not started: what they began is held up.
    """
    due: list[tuple[float, ScheduledAgent]] = []
    new: list[ScheduledAgent] = []
    next_at = inf
    for agent in order.agents:
        status, until, _ = _at(standings, agent)
        if status == "waiting" and until <= now:
            due.append((until, agent))
        elif status == "waiting":
            next_at = min(next_at, until)
        elif status == "todo":
            new.append(agent)
        if not order.is_parallel and status not in _ENDED:
            break  # one after the other
    return [agent for _, agent in sorted(due, key=lambda each: each[0])] + new, next_at


class _Room:
    """The slots that are left."""

    def __init__(
        self,
        orders: Sequence[ScheduledPhase],
        standings: Mapping[str, Standing],
        slots: int | None,
        providers: Mapping[str, int],
    ) -> None:
        self._left = inf if slots is None else float(slots)
        self._phases = {
            order.name: inf if order.slots is None else float(order.slots) for order in orders
        }
        self._providers = {name: float(count) for name, count in providers.items()}
        for order in orders:
            for agent in order.agents:
                if _at(standings, agent).status == "running":
                    self._take(order, agent)

    def takes(self, order: ScheduledPhase, agent: ScheduledAgent) -> bool:
        """Take a slot of each kind that the agent needs; False if one of them is missing."""
        provider = self._providers.get(agent.provider, inf)
        if min(self._left, self._phases[order.name], provider) < 1:
            return False
        self._take(order, agent)
        return True

    def _take(self, order: ScheduledPhase, agent: ScheduledAgent) -> None:
        self._left -= 1
        self._phases[order.name] -= 1
        if agent.provider in self._providers:
            self._providers[agent.provider] -= 1
