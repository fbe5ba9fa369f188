"""A run, put into words."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ..core.duration import duration_text
from .steps import Begun, Ended, Moved

if TYPE_CHECKING:
    from .state import RunState
    from .steps import Step

__all__ = ("clock", "money", "summed_up", "told")


def clock(at: float, now: float) -> str:
    """A time as a person here reads it: with the day where that is another one."""
    there, here = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    day = "" if there.date() == here.date() else f"{there:%a} {there.day} {there:%b} "
    return f"{day}{there:%H:%M:%S}"


def money(cost: float | None) -> str:
    """US dollars, for people; nothing where nobody said."""
    return "" if cost is None else f"${cost:.2f}" if cost >= 0.005 or not cost else f"${cost:.4f}"


def told(step: Step, program: str) -> list[str]:
    """What there is to say about a step; nothing about a first attempt, or one that did well."""
    if isinstance(step, Begun):
        if step.attempt == 1:
            return []
        how = "resumes its session" if step.how == "resume" else "starts anew"
        return [f"attempt {step.attempt}: {program} {how}"]
    if isinstance(step, Moved):
        return [f"{step.because}; waiting until {clock(step.until, step.at)}"]
    if not isinstance(step, Ended) or step.then == "done":
        return []
    lines = [f"attempt {step.attempt} failed: {step.kind or 'cut off'}: {step.message}"]
    if step.then == "again" and step.until is not None:
        wait = duration_text(max(0.0, step.until - step.at))
        lines.append(f"{step.because}; next at {clock(step.until, step.at)} (in {wait})")
    elif step.then == "stop":
        when = "" if step.until is None else f"; it could go on at {clock(step.until, step.at)}"
        lines.append(f"{step.because}{when}")
        if step.advice:
            lines.append(f"hint: {step.advice}")
    return lines


def summed_up(id_: str, state: RunState) -> list[str]:
    """The end of a run, or of our part in it; nothing about one that simply did well."""
    if state.status == "done" and state.attempts <= 1:
        return []
    last = state.ended[-1].at if state.ended else state.made.at
    took = duration_text(max(0.0, last - state.made.at))
    cost = f", {money(state.cost)}" if state.cost is not None else ""
    tries = f"{state.attempts} attempt{'s' if state.attempts != 1 else ''} in {took}{cost}"
    if state.status == "done":
        return [f"done: {tries}"]
    if state.status in {"failed", "cancelled"}:
        return [f"{state.status}: {tries} (run {id_})"]
    return [f"{state.status}: {tries}; take it up again with: mulligan resume {id_}"]
