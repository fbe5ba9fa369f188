"""Runs of scenarios under policies, each measured against its optimum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from .engine import simulate
from .ledger import SimulationLedger
from .metrics import Metrics, measure
from .oracle import optimum
from .scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from .engine import Contender

__all__ = ("Run", "resized", "run")

# A resized scenario with more agents gets so many times its T* to finish.
_TIMES = 4.0


@dataclass(frozen=True, slots=True)
class Run:
    """One policy in one scenario."""

    scenario: Scenario
    policy: str
    seed: int
    metrics: Metrics
    ledger: SimulationLedger


def run(
    scenario: Scenario,
    contender: Contender,
    *,
    seed: int = 0,
    progress: Callable[[float, int], None] | None = None,
) -> Run:
    """Simulate and measure."""
    ledger = simulate(scenario, contender, seed=seed, progress=progress)
    metrics = measure(scenario, ledger, optimum(scenario, seed))
    return Run(scenario, contender.name, seed, metrics, ledger)


def resized(
    scenario: Scenario, *, agents: int | None = None, processes: int | None = None
) -> Scenario:
    """`scenario` with another number of agents, each with as many jobs as before, or processes."""
    if agents is not None:
        each = max(1, scenario.jobs.count // scenario.agents)
        jobs = replace(scenario.jobs, count=agents * each, agents=agents)
        scenario = replace(scenario, jobs=jobs)
        best = optimum(scenario).seconds
        if best is not None and best < inf:
            scenario = replace(scenario, horizon=max(scenario.horizon, _TIMES * best))
    return scenario if processes is None else replace(scenario, processes=processes)
