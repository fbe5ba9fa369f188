"""Acceptance of an agent's work: verified, then delivered. Pure.

    done ──verify──▶ verified ──deliver──▶ succeeded
             │              └──trouble───▶ failed, until its user reopens it
             └─failed──▶ told, one more attempt; then failed, until its user reopens it

If verification cannot run or delivery fails, only that step is repeated, never the agent's work.
Everything follows from the journal, so a supervisor that is killed between two steps loses none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .schedule import AgentProgress

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..journal.state import RunState
    from .model import Agent, Phase, Plan

__all__ = (
    "gets_another_attempt",
    "has_succeeded",
    "is_verified",
    "outstanding",
    "progress_of",
    "rejection",
)

_REJECTED = frozenset({"not verified", "not delivered"})


def is_verified(phase: Phase, state: RunState) -> bool | None:
    """Whether the last attempt passed verification; None if it was not verified."""
    return state.verdict if phase.verify else True


def gets_another_attempt(phase: Phase, agent: Agent, state: RunState) -> bool:
    """Whether the agent is told the output of a failed verification, and tries again (R-A2)."""
    if state.status != "done" or is_verified(phase, state) is not False:
        return False
    can_go_on = bool(state.session) or agent.may_restart
    return can_go_on and len(state.checks) - state.checked_from == 1


def rejection(state: RunState) -> str:
    """``not verified`` or ``not delivered`` for finished work that was rejected; else empty."""
    if state.status != "done":
        return ""
    if state.verdict is False:
        return "not verified"
    return "not delivered" if state.undelivered else ""


def outstanding(phase: Phase, state: RunState) -> str:
    """What finished work lacks to be a success; empty if nothing, or if it is not finished.

    It may have failed verification or delivery, or both are still to come.
    """
    if state.status != "done":
        return ""
    verified = is_verified(phase, state)
    if verified is False:
        return "not verified"
    if state.undelivered:
        return "not delivered"
    if verified is None:
        return "to be verified"
    return "" if state.is_delivered else "to be delivered"


def has_succeeded(phase: Phase, state: RunState) -> bool:
    """Whether its work is done, verified and delivered."""
    return state.status == "done" and not outstanding(phase, state)


def progress_of(
    plan: Plan, states: Mapping[str, RunState], running: Collection[str]
) -> dict[str, AgentProgress]:
    """The progress of every agent of a plan, for the schedule.

    `states` has those that were started, `running` those that this process drives now.
    """
    found = {}
    for key, phase, agent in plan.agents():
        if key in running:
            found[key] = AgentProgress("running")
        else:
            state = states.get(key)
            found[key] = AgentProgress() if state is None else _progress(phase, agent, state)
    return found


def _progress(  # noqa: PLR0911 -- one a case
    phase: Phase, agent: Agent, state: RunState
) -> AgentProgress:
    match state.status:
        case "done":
            lack = outstanding(phase, state)
            if not lack:
                return AgentProgress("succeeded")
            if lack in _REJECTED and not gets_another_attempt(phase, agent, state):
                return AgentProgress("failed")
            return AgentProgress("waiting", is_free=True)  # its work is done already
        case "failed" | "limited":
            return AgentProgress("failed")
        case "cancelled":
            return AgentProgress("stopped")
        case "waiting":
            return AgentProgress("waiting", state.until or 0.0)
        case _:  # interrupted with the plan, or by a crash
            return AgentProgress("waiting")
