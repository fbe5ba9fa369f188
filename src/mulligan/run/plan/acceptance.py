"""Acceptance of an agent's work: verified, then delivered. Pure.

    done ──verify──▶ verified ──deliver──▶ succeeded
             │              └──trouble───▶ failed, until its user reopens it
             └─failed──▶ told, one more attempt; then failed, until its user reopens it

If verification cannot run or delivery fails, only that step is repeated, never the agent's work.
Everything follows from the journal, so a supervisor that is killed between two steps loses none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .schedule import Standing

if TYPE_CHECKING:
    from ..journal.state import RunState
    from .model import Agent, Phase

__all__ = ("fell_short", "has_succeeded", "is_good", "is_owed", "lacking", "standing")


def is_good(phase: Phase, state: RunState) -> bool | None:
    """Whether the last attempt passed verification; None if it was not verified."""
    return state.verdict if phase.verify else True


def is_owed(phase: Phase, agent: Agent, state: RunState) -> bool:
    """Whether the agent gets one more attempt, with the output of a failed verification (R-A2)."""
    if state.status != "done" or is_good(phase, state) is not False:
        return False
    can_go_on = bool(state.session) or agent.may_restart
    return can_go_on and len(state.checks) - state.checked_from == 1


def fell_short(state: RunState) -> str:
    """Why a run whose work is done counts as failed, in two words; empty if it does not."""
    if state.status != "done":
        return ""
    if state.verdict is False:
        return "not verified"
    return "not delivered" if state.undelivered else ""


def lacking(phase: Phase, state: RunState) -> str:
    """What finished work lacks to be a success, in a few words; empty if nothing, or not finished.

    It may have failed verification or delivery, or both are still to come.
    """
    if state.status != "done":
        return ""
    if short := fell_short(state):
        return short
    if is_good(phase, state) is None:
        return "to be verified"
    return "" if state.is_delivered else "to be delivered"


def has_succeeded(phase: Phase, state: RunState) -> bool:
    """Whether its work is done, verified and delivered."""
    return state.status == "done" and not lacking(phase, state)


def standing(phase: Phase, agent: Agent, state: RunState | None) -> Standing:  # noqa: PLR0911 -- one a case
    """The schedule's view of an agent that is not running."""
    if state is None:
        return Standing()
    match state.status:
        case "done":
            if is_owed(phase, agent, state):
                return Standing("waiting", is_free=True)
            if fell_short(state):
                return Standing("failed")
            # Done, but perhaps not verified or delivered yet.
            is_open = is_good(phase, state) is None or not state.is_delivered
            return Standing("waiting", is_free=True) if is_open else Standing("succeeded")
        case "failed" | "limited":
            return Standing("failed")
        case "cancelled":
            return Standing("stopped")
        case "waiting":
            return Standing("waiting", state.until or 0.0)
        case _:  # interrupted with the plan, or by a crash
            return Standing("waiting")
