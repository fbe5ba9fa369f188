"""Journals of runs as `mulligan run` writes them, made at once."""

from __future__ import annotations

import json
import os
from typing import Any

from mulligan.run.journal.entries import (
    AttemptBegun,
    AttemptEnd,
    RunMade,
    RunRescheduled,
)
from mulligan.run.journal.store import RunStore


def made(runs: RunStore, at: float, *, name="", command="claude -p 'Fix it'", **facts: Any) -> Any:
    """A run that was asked for, held by the process that made it."""
    words = ("claude", "-p", "Fix it")
    id_ = runs.new_folder(words, facts.pop("id", ""))
    step = RunMade(
        at=at,
        agent=facts.pop("agent", "claude"),
        command=command,
        cwd=facts.pop("cwd", "/home/ada/shop"),
        host="laptop",
        user=os.geteuid(),
        name=name,
        terms={},
        variables=[],
        **facts,
    )
    return runs.make(id_, step)[0]


def begun(runs: RunStore, claimed: Any, at: float, attempt: int = 1, how: Any = "start") -> None:
    step = AttemptBegun(at, attempt, how, "", "")
    runs.write(claimed, step, f"begun {attempt}")


def ended(runs: RunStore, claimed: Any, at: float, attempt: int = 1, **facts: Any) -> None:
    step = AttemptEnd(at, attempt, facts.pop("took", 60.0), **facts)
    runs.write(claimed, step, f"ended {attempt}")


def moved(runs: RunStore, claimed: Any, at: float, until: float) -> None:
    runs.write(claimed, RunRescheduled(at, until, "resumed by the user"), f"moved {at}")


def limited(runs: RunStore, claimed: Any, at: float, until: float, attempt: int = 1) -> None:
    ended(
        runs,
        claimed,
        at,
        attempt,
        code=1,
        kind="quota",
        status=429,
        message="You've hit your limit · resets 9pm",
        then="again",
        until=until,
        because="the limit resets then",
        cost=0.41,
        tokens=41_200,
    )


def log(runs: RunStore, id_: str, attempt: int, text: str, stream: str = "out") -> None:
    (runs.folder / "runs" / id_ / f"attempt-{attempt}.{stream}").write_text(text)


def plan_file(runs: RunStore, id_: str, phases: dict[str, list[str]]) -> None:
    """What a plan keeps in its folder."""
    from mulligan.run.plan.load import plan_data
    from mulligan.run.plan.model import Agent, Phase, Plan

    plan = Plan(
        name="release",
        phases=tuple(
            Phase(name=phase, agents=tuple(Agent(name=each, command=("true",)) for each in agents))
            for phase, agents in phases.items()
        ),
    )
    data = {"plan": plan_data(plan), "folder": "/", "cwd": "/"}
    (runs.folder / "runs" / id_ / "plan.json").write_text(json.dumps(data))
