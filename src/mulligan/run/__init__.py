"""Agent programs that survive limits, crashes, reboots.

    plan = Plan(phases=(Phase(name="review", agents=(Agent(program="claude", prompt="Review"),)),))
    report = run_plan(plan)

Names load when they are first used: `mulligan run` of a bare command pays for none of them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .from_python import run_plan
    from .plan import Agent, Phase, Plan
    from .plan_file import load_plan
    from .plan_report import AgentReport, Decision, PhaseReport, Report

_HOME = {
    "Agent": "plan",
    "AgentReport": "plan_report",
    "Decision": "plan_report",
    "Phase": "plan",
    "PhaseReport": "plan_report",
    "Plan": "plan",
    "Report": "plan_report",
    "load_plan": "plan_file",
    "run_plan": "from_python",
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
