"""The report of a plan: the results of its phases and agents.

A pure function of the states of its agents: every attempt with how it ended, what followed, and
why. The report can be rendered as lines for a terminal, as Markdown, or as plain data.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.duration import duration_text
from ...core.redaction import clean
from ..attempt.recovery import AGAIN
from ..show.messages import (
    StatusText,
    clock,
    decision_text,
    ending_with_duration,
    money,
    one_line,
    seconds_waited,
    token_text,
)
from .acceptance import outstanding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..journal.state import RunState
    from ..show.messages import Tone
    from .model import Phase, Plan
    from .schedule import PhaseState

__all__ = (
    "AgentReport",
    "Decision",
    "PhaseReport",
    "Report",
    "as_data",
    "as_lines",
    "as_markdown",
    "count_outstanding",
    "report",
)

_STATUSES = {
    "new": "not started",
    "running": "running",
    "waiting": "waiting",
    "paused": "interrupted",
    "done": "succeeded",
    "failed": "failed",
    "limited": "limited",
    "cancelled": "stopped",
}
# What finished work may lack, in the words of `acceptance.outstanding`.
_LACKS = ("not verified", "not delivered", "to be verified", "to be delivered")
_TONES: dict[str, Tone] = {
    "succeeded": "good",
    **dict.fromkeys(("failed", "not verified", "not delivered", "stopped", "limited"), "bad"),
}


class Decision(NamedTuple):
    """How an attempt ended, and what was decided.

    Args:
        at: When, in epoch seconds.
        attempt: Its number, counted from 1.
        ended: How it ended, in a word or two.
        said: The words that decided it.
        then: What followed.
        because: Why.
    """

    at: float
    attempt: int
    ended: str
    said: str
    then: str
    because: str


class AgentReport(NamedTuple):
    """The result of an agent.

    Args:
        name: Its name in the phase.
        status: Where it stands.
        attempts: The attempts that were begun.
        took: Seconds from its beginning to its end.
        waited: Seconds of that between attempts.
        cost: US dollars; None if it did not say.
        tokens: Tokens; None if it did not say.
        until: When it is due, or could go on.
        because: Why it has this status.
        advice: What the user can do about it.
        decisions: What was decided on the way.
        remarks: Remarks for the user, about its tree and its files.
        tree: The folder of its own work tree, where that was kept because it was not taken back.
    """

    name: str
    status: str
    attempts: int = 0
    took: float = 0.0
    waited: float = 0.0
    cost: float | None = None
    tokens: int | None = None
    until: float | None = None
    because: str = ""
    advice: str = ""
    decisions: tuple[Decision, ...] = ()
    remarks: tuple[str, ...] = ()
    tree: str = ""


class PhaseReport(NamedTuple):
    """The result of a phase.

    Args:
        name: Its name.
        state: Its state.
        because: Why it failed, or was skipped.
        agents: The results of its agents.
    """

    name: str
    state: PhaseState
    because: str
    agents: tuple[AgentReport, ...]


class Report(NamedTuple):
    """The result of a plan.

    Args:
        name: The plan's name.
        is_success: Whether every phase succeeded.
        is_over: Whether nothing more happens.
        began_at: When its first agent was made; None if none was.
        took: Seconds from then to the last entry of the journal.
        waited: Seconds that its agents waited, added up.
        cost: US dollars of all attempts; None if unknown.
        tokens: Tokens of all attempts; None if unknown.
        phases: The results of its phases, in order.
        until: When it goes on by itself, if it is parked.
        run: The id of its run.
        aside: What git has set aside and not given back after the end, in sentences.
    """

    name: str
    is_success: bool
    is_over: bool
    began_at: float | None
    took: float
    waited: float
    cost: float | None
    tokens: int | None
    phases: tuple[PhaseReport, ...]
    until: float | None = None
    run: str = ""
    aside: tuple[str, ...] = ()


def report(
    plan: Plan,
    states: Mapping[str, RunState],
    phases: Mapping[str, PhaseState],
    because: Mapping[str, str],
    trees: Mapping[str, str] | None = None,
) -> Report:
    """The report of `plan`, from the states of its agents and phases.

    Agents are named ``phase/agent``; `trees` has the folders of their own work trees.
    """

    def phase_report(phase: Phase) -> PhaseReport:
        agents = []
        for agent in phase.agents:
            key = f"{phase.name}/{agent.name}"
            agents.append(_agent(phase, agent.name, states.get(key), (trees or {}).get(key, "")))
        state, why = phases.get(phase.name, "blocked"), because.get(phase.name, "")
        return PhaseReport(phase.name, state, why, tuple(agents))

    reports = tuple(map(phase_report, plan.phases))
    found = {each.state for each in reports}
    began = min((state.made.at for state in states.values()), default=None)
    ended = max((state.at for state in states.values()), default=0.0)
    costs = [state.cost for state in states.values() if state.cost is not None]
    tokens = [state.tokens for state in states.values() if state.tokens is not None]
    return Report(
        name=clean(plan.name, 80),
        is_success=found == {"succeeded"},
        is_over=not {"open", "blocked"} & found,
        began_at=began,
        took=0.0 if began is None else max(0.0, ended - began),
        waited=sum([seconds_waited(state) for state in states.values()]),
        cost=sum(costs) if costs else None,
        tokens=sum(tokens) if tokens else None,
        phases=reports,
    )


def _agent(phase: Phase, name: str, state: RunState | None, tree: str) -> AgentReport:
    if state is None:
        return AgentReport(name, "not started")
    last = state.ended[-1] if state.ended else None
    return AgentReport(
        name=name,
        status=outstanding(phase, state) or _STATUSES[state.status],
        attempts=state.attempts,
        took=max(0.0, state.at - state.made.at),
        waited=seconds_waited(state),
        cost=state.cost,
        tokens=state.tokens,
        until=state.until,
        because=state.undelivered if state.status == "done" else state.because,
        # The plan's own line says whether there is something to resume.
        advice="" if last is None or state.status == "done" else last.advice.removesuffix(AGAIN),
        decisions=tuple(_decisions(state)),
        remarks=tuple(each.text for each in state.remarks),
        tree="" if state.is_open else tree,
    )


def _decisions(state: RunState) -> Iterator[Decision]:
    for step in state.ended:
        ended, then = ending_with_duration(step), decision_text(step)
        yield Decision(step.at, step.attempt, ended, step.message, then, step.because)
        for check in state.checks:
            if check.attempt != step.attempt:
                continue
            if check.is_good:
                yield Decision(check.at, check.attempt, "verified", "", "", "")
                continue
            is_last = check.attempt == state.attempts and not state.is_open
            then = "not tried again" if is_last else "the agent gets its output"
            said = one_line(check.said)
            yield Decision(check.at, check.attempt, "not verified", said, then, then)


def as_data(found: Report) -> dict[str, Any]:
    """The report as plain data, for programs."""
    phases = [
        {
            **phase._asdict(),
            "agents": [
                {**agent._asdict(), "decisions": [each._asdict() for each in agent.decisions]}
                for agent in phase.agents
            ],
        }
        for phase in found.phases
    ]
    return {**found._asdict(), "phases": phases}


def as_lines(found: Report) -> list[StatusText]:
    """The report for a terminal: a headline, each phase, each agent with what was decided."""
    tone: Tone = "good" if found.is_success else "bad" if found.is_over else "wait"
    said = [StatusText(f"plan {found.name} {_verdict(found)}: {_spent(found)}", tone)]
    for phase in found.phases:
        why = _some(phase) or (f": {phase.because}" if phase.because else "")
        tone = _TONES.get(phase.state, "plain")
        said.append(StatusText(f"phase {phase.name} {_PAST[phase.state]}{why}", tone))
        for agent in phase.agents:
            said.append(
                StatusText(f"  {agent.name} {_headline(agent)}", _TONES.get(agent.status, "plain"))
            )
            said += [StatusText(f"    {_told(each)}") for each in agent.decisions if each.then]
            said += [StatusText(f"    {each}") for each in _beside(agent)]
    return [*said, *(StatusText(f"git: {each}") for each in found.aside)]


def _some(phase: PhaseReport) -> str:
    """How many agents of a succeeded phase succeeded, unless all did."""
    good = sum(agent.status == "succeeded" for agent in phase.agents)
    is_whole = phase.state != "succeeded" or good == len(phase.agents)
    return "" if is_whole else f" with {good} of {len(phase.agents)} agents"


def _beside(agent: AgentReport) -> Iterator[str]:
    yield from agent.remarks
    if agent.tree and not any(agent.tree in each for each in agent.remarks):
        yield f"git: its work tree is kept: {agent.tree}; see mulligan git list"
    if agent.advice:
        yield f"hint: {agent.advice}"


_PAST = {
    "blocked": "has not started",
    "open": "goes on",
    "succeeded": "succeeded",
    "failed": "failed",
    "skipped": "was skipped",
}


def _verdict(found: Report) -> str:
    if found.is_success:
        return "is done"
    return "failed" if found.is_over else "is not over"


def _spent(found: Report) -> str:
    agents = [agent for phase in found.phases for agent in phase.agents]
    good = sum(agent.status == "succeeded" for agent in agents)
    attempts = sum(agent.attempts for agent in agents)
    parts = [
        f"{good} of {len(agents)} agents succeeded",
        *count_outstanding(agent.status for agent in agents),
        f"{attempts} attempt{'s' if attempts != 1 else ''} in {duration_text(found.took)}",
    ]
    if found.waited >= 1:
        parts.append(f"{duration_text(found.waited)} of waiting")
    return ", ".join([*parts, *filter(None, (money(found.cost), token_text(found.tokens)))])


def count_outstanding(statuses: Iterable[str]) -> list[str]:
    """How many agents have finished their work and not succeeded, by what it lacks."""
    counts = Counter(statuses)
    return [f"{counts[status]} {status}" for status in _LACKS if counts[status]]


def _headline(agent: AgentReport) -> str:
    parts = [agent.status]
    if agent.attempts:
        number = f"{agent.attempts} attempt{'s' if agent.attempts != 1 else ''}"
        parts.append(f"{number} in {duration_text(agent.took)}")
        parts += filter(None, (money(agent.cost), token_text(agent.tokens)))
    if agent.until is not None and agent.status in {"waiting", "limited"}:
        parts.append(f"until {clock(agent.until, agent.until)}")
    is_told = agent.status in {"stopped", "waiting", "not delivered"} and agent.because
    if agent.decisions and agent.decisions[-1].because == agent.because:
        is_told = ""  # the line below says so
    return ", ".join(parts) + (f": {agent.because}" if is_told else "")


def _told(decision: Decision, escaped: Callable[[str], str] = str) -> str:
    which = f"attempt {decision.attempt} " if decision.attempt else ""
    said = f": {escaped(decision.said)}" if decision.said else ""
    after = decision.then.removesuffix(f": {decision.said}")  # a reason that repeats the message
    # "interrupted after 2s; interrupted" says one thing twice.
    then = f"; {escaped(after)}" if after and not decision.ended.startswith(after) else ""
    return f"{which}{decision.ended}{said}{then}"


def as_markdown(found: Report) -> str:
    """The report as a page."""
    began = "" if found.began_at is None else f", begun {clock(found.began_at, 0)}"
    lines = [f"# {_plain(found.name)} {_verdict(found)}", "", f"{_spent(found)}{began}.", ""]
    lines += ["| phase | agent | status | attempts | time | cost |", "|---|---|---|---:|---:|---:|"]
    for phase in found.phases:
        for agent in phase.agents:
            took = duration_text(agent.took) if agent.attempts else ""
            row = (phase.name, agent.name, agent.status, agent.attempts, took, money(agent.cost))
            lines.append("| " + " | ".join(_plain(str(cell)) for cell in row) + " |")
    for phase in found.phases:
        why = _some(phase) or (f": {_plain(phase.because)}" if phase.because else "")
        lines += ["", f"## {_plain(phase.name)} {_PAST[phase.state]}{why}", ""]
        for agent in phase.agents:
            lines.append(f"- **{_plain(agent.name)}** {_plain(_headline(agent))}")
            for each in agent.decisions:
                when = clock(each.at, found.began_at or each.at)
                lines.append(f"  - {when} {_told(each, _plain)}")
            lines += [f"  - {_plain(each)}" for each in _beside(agent)]
    if found.aside:
        lines += ["", *(f"- git: {_plain(each)}" for each in found.aside)]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text of others, escaped for Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|!~$&])", r"\\\1", text)
