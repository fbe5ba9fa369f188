"""Runs agent programs through limits, crashes and reboots.

    plan = Plan(phases=(Phase(name="review", agents=(Agent(program="claude", prompt="Review"),)),))
    report = run_plan(plan)

Names are imported at first use, so `mulligan run` of a bare command does not import plans.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api import run_plan
    from .plan.load import load_plan
    from .plan.model import Agent, Phase, Plan
    from .plan.report import AgentReport, Decision, PhaseReport, Report

_HOME = {
    "Agent": "plan.model",
    "AgentReport": "plan.report",
    "Decision": "plan.report",
    "Phase": "plan.model",
    "PhaseReport": "plan.report",
    "Plan": "plan.model",
    "Report": "plan.report",
    "load_plan": "plan.load",
    "run_plan": "api",
}

__all__ = (
    "Agent",
    "AgentReport",
    "Decision",
    "Phase",
    "PhaseReport",
    "Plan",
    "Report",
    "load_plan",
    "run_plan",
)


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
