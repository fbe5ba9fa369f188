"""The environment of a resumed run: what it was made with, and what is missing now.

Of the environment that a run was made in, its journal keeps the PATH and the names of all
variables, never another value. A process that resumes it elsewhere, such as a worker under cron,
gives it the same PATH, so that it finds the same programs, and reports which of its keys are
missing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from .spawn import CannotStart, find

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ..agents.adapter import AgentAdapter
    from ..journal.entries import RunMade
    from ..plan.model import Plan

__all__ = ("credentials", "environment_of", "lacking", "lacking_of_plan")

_SECRET = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS")


def environment_of(made: RunMade, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with the PATH that the run was made with, followed by our own."""
    own = made.path.split(os.pathsep) if made.path else []
    ours = environ.get("PATH", os.defpath).split(os.pathsep)
    return {**environ, "PATH": os.pathsep.join(dict.fromkeys([*own, *ours]))}


def credentials(names: Collection[str]) -> set[str]:
    """Those of `names` that look like credentials."""
    return {each for each in names if each.endswith(_SECRET)}


def lacking(
    made: RunMade, command: tuple[str, ...], adapter: AgentAdapter, environ: Mapping[str, str]
) -> str:
    """What a run of `command` needs and does not find in `environ`, in words; empty for nothing."""
    if missing := _missing(made, [adapter], environ):
        return missing
    try:
        find(command[0], cwd=Path(made.cwd), environ=environ)
    except CannotStart as trouble:
        return str(trouble)
    return ""


def lacking_of_plan(made: RunMade, plan: Plan, home: Path, environ: Mapping[str, str]) -> str:
    """What a plan needs and does not find in `environ`, in words; empty for nothing."""
    from ...config.lines import path_text
    from ..agents.catalogue import recognise
    from ..plan.validate import machine_problems

    agents = [agent for phase in plan.phases for agent in phase.agents]
    adapters = [
        recognise((agent.command or (agent.program,)), agent.program or None) for agent in agents
    ]
    given = {**environ, **plan.env, **{name: "" for agent in agents for name in agent.env}}
    if missing := _missing(made, adapters, given):
        return missing
    problem = next(machine_problems(plan, home=home, environ=environ), None)
    return "" if problem is None else f"{path_text(problem.path)}: {problem.message}"


def _missing(made: RunMade, adapters: Iterable[AgentAdapter], environ: Mapping[str, str]) -> str:
    """Variables that were set when a run was made and are not in `environ`, in words.

    The adapter of a known program names the variables of its keys and sessions. For any other
    program every variable that looks like a key is needed.
    """
    needed: set[str] = set()
    for adapter in adapters:
        is_known = adapter.name != "generic"
        needed |= set(adapter.variables) if is_known else credentials(made.variables)
    missing = sorted(needed & set(made.variables) - environ.keys())
    if not missing:
        return ""
    verb, it = ("was", "it") if len(missing) == 1 else ("were", "them")
    return f"{', '.join(missing)} {verb} set when the run was created; set {it} for the worker"
