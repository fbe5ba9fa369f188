"""Lint for plans: settings that are refused, harmful or without effect.

A grave finding keeps the plan from being started, or does harm. Others are allowed but do not do
what the author expects: a limit that is never reached, a setting without effect, a file that is
missing on this machine.
"""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from ...config.lines import path_text
from ...config.lint import PolicyFinding, lint
from ...core.duration import duration_text
from ...core.policy import Policy
from ...core.redaction import mask
from ...errors import SettingError
from ..agents.catalogue import askable
from .model import Phase, Plan
from .prompts import LONGEST_ARGUMENT, LONGEST_OUTPUT, prompt_of, references
from .trees import tree_problems
from .validate import available_outputs, machine_problems, missing_programs, problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ...config.lines import KeyPath
    from .model import Agent
    from .validate import Problem

__all__ = ("lint_plan",)

_DEFAULTS = {each.name: each.default for cls in (Plan, Phase) for each in fields(cls)}

# Programs that do not report their cost, so that a cost limit has no effect (docs/programs.md).
_SILENT = frozenset({"codex", "gemini", "qwen", "copilot", "continue", "cn"})


def lint_plan(plan: Plan, *, folder: Path, home: Path | None = None) -> list[PolicyFinding]:
    """The findings, grave ones first.

    The file of the plan is in `folder`; its `cwd` starts from `home`, by default the same.
    """
    home = home or folder
    found = [_found(each, is_grave=True) for each in problems(plan, folder=folder, home=home)]
    found += [_found(each, is_grave=True) for each in tree_problems(plan, home)]
    # A program that is not on this machine is no error of the plan; the run is refused here.
    found += [
        _found(each, is_grave=each.path[-1] == "cwd")
        for each in machine_problems(plan, home=home, environ=os.environ)
    ]
    found += _plan(plan)
    used: set[str] = set()
    for at, phase in enumerate(plan.phases):
        path = ("phases", at)
        found += _phase(plan, phase, path)
        found += _policy(phase, path)
        found += [
            _found(each, is_grave=False)
            for each in missing_programs(plan, at, home=home, environ=os.environ)
        ]
        named: set[str] = set()
        for number, agent in enumerate(phase.agents):
            here = (*path, "agents", number)
            names = _names(agent, folder)
            named |= names
            found += _agent(plan, agent, here)
            found += _length(plan, phase, agent, names, here)
            found += _unused(agent.variables, names, here)
        found += _unused(phase.variables, named, path)
        used |= named
    found += _unused(plan.variables, used, ())
    return sorted(dict.fromkeys(found), key=lambda finding: not finding.is_grave)


def _found(problem: Problem, *, is_grave: bool) -> PolicyFinding:
    hint = problem.hint or "the plan does not start until this is fixed"
    return _of(problem.path, problem.message, hint, is_grave=is_grave)


def _of(path: KeyPath, message: str, hint: str, *, is_grave: bool = False) -> PolicyFinding:
    return PolicyFinding(key=path_text(path), message=message, hint=hint, is_grave=is_grave)


def _plan(plan: Plan) -> Iterator[PolicyFinding]:
    modes = {phase.git or plan.git for phase in plan.phases}
    if plan.commit_prefix != _DEFAULTS["commit_prefix"] and "commit" not in modes:
        yield _of(
            ("commit_prefix",),
            "nothing is committed, so nothing gets the prefix",
            'write git = "commit", or leave it out',
        )
    if plan.git != "off" and all(phase.git is not None for phase in plan.phases):
        yield _of(("git",), "every phase has a mode of its own", "leave it out")
    providers = {agent.provider or agent.program for phase in plan.phases for agent in phase.agents}
    for name in plan.providers:
        if name not in providers:
            known = ", ".join(sorted(filter(None, providers))) or "none"
            yield _of(
                ("providers", name),
                f"no agent is of this provider; there are {known}",
                "name it in an agent's provider, or leave it out",
            )
    programs = {agent.program for phase in plan.phases for agent in phase.agents if agent.program}
    if plan.cost_limit is not None and (silent := sorted(programs & _SILENT)):
        yield _of(
            ("cost_limit",),
            f"not reported by {', '.join(silent)}: what they cost is not counted",
            "set a limit at the provider as well",
        )
    yield from _secrets(tuple(plan.variables.values()), ("variables",))


def _phase(plan: Plan, phase: Phase, path: KeyPath) -> Iterator[PolicyFinding]:
    count, slots = len(phase.agents), phase.concurrency
    if slots is not None and not phase.parallel:
        yield _of(
            (*path, "concurrency"), "its agents run one after the other anyway", "leave it out"
        )
    elif slots is not None and slots > min(count, plan.concurrency):
        most = min(count, plan.concurrency)
        why = "as many as there are" if most == count else f"as the plan's concurrency is {most}"
        yield _of(
            (*path, "concurrency"), f"{most} run at once at most, {why}", f"write {most} or less"
        )
    if count == 1 and phase.on_failure != "fail_fast":
        yield _of(
            (*path, "on_failure"),
            f"with one agent {phase.on_failure} is the same as fail_fast",
            "leave it out, or add agents",
        )
    if not phase.merge and (phase.git or plan.git) != "worktree":
        yield _of(
            (*path, "merge"),
            "there is nothing to merge or to keep without worktrees",
            'write git = "worktree", or leave it out',
        )
    if not phase.verify and phase.verify_timeout != _DEFAULTS["verify_timeout"]:
        yield _of(
            (*path, "verify_timeout"), "there is nothing to verify", "add verify, or leave it out"
        )
    yield from _secrets(phase.verify, (*path, "verify"))
    yield from _secrets(tuple(phase.variables.values()), (*path, "variables"))


def _policy(phase: Phase, path: KeyPath) -> Iterator[PolicyFinding]:
    if isinstance(phase.policy, Policy):
        for each in lint(phase.policy):
            yield replace(each, key=f"{path_text(path)}.policy.{each.key}")


def _agent(plan: Plan, agent: Agent, path: KeyPath) -> Iterator[PolicyFinding]:
    if agent.idle is not None and agent.timeout is not None and agent.idle >= agent.timeout:
        yield _of(
            (*path, "idle"),
            f"{duration_text(agent.idle)} of silence are never reached, because an attempt ends "
            f"after {duration_text(agent.timeout)}",
            "lower idle, or raise timeout",
        )
    if agent.input == "stdin" and not (agent.prompt or agent.prompt_file):
        yield _of((*path, "input"), "there is no prompt to give", "add prompt, or leave it out")
    known = {*plan.providers, *askable()}
    if agent.provider and agent.provider not in known:
        yield _of(
            (*path, "provider"),
            f"{agent.provider} has no limit in providers, so this does nothing",
            f"add providers = {{ {agent.provider} = … }}, or leave it out",
        )
    yield from _secrets(agent.command, (*path, "command"))
    yield from _secrets(agent.args, (*path, "args"))
    yield from _secrets((agent.prompt,), (*path, "prompt"))
    yield from _secrets(tuple(agent.variables.values()), (*path, "variables"))


def _secrets(words: tuple[str, ...], path: KeyPath) -> Iterator[PolicyFinding]:
    for word in words:
        if mask(word) != word:
            yield _of(
                path,
                "there seems to be a secret in it, and a plan is a file that is shared and kept",
                "set it in the environment of mulligan run instead; agents inherit it",
            )
            break


def _names(agent: Agent, folder: Path) -> set[str]:
    try:
        return set(references(prompt_of(agent, folder)))
    except SettingError:
        return set()  # already reported as grave


def _unused(
    variables: Mapping[str, str], names: set[str], path: KeyPath
) -> Iterator[PolicyFinding]:
    for name in variables:
        if name not in names:
            yield _of(
                (*path, "variables", name),
                f"no prompt below says {{{{{name}}}}}",
                "use it, or leave it out",
            )


def _length(
    plan: Plan, phase: Phase, agent: Agent, names: set[str], path: KeyPath
) -> Iterator[PolicyFinding]:
    """Outputs that together may be longer than an argument can be."""
    if agent.input == "stdin":
        return
    outputs = available_outputs(plan, phase)
    count = sum(
        len(agents) if f"outputs.{name}" in names else 0 for name, agents in outputs.items()
    ) + sum(f"outputs.{name}.{who}" in names for name, agents in outputs.items() for who in agents)
    if count * LONGEST_OUTPUT > LONGEST_ARGUMENT:
        program = askable().get(agent.program)
        reads = not agent.program or (program is not None and program.asked_on_stdin)
        yield _of(
            (*path, "prompt_file" if agent.prompt_file else "prompt"),
            f"the outputs of {count} agents can be longer than the {LONGEST_ARGUMENT} bytes of an "
            f"argument",
            'write input = "stdin"' if reads else "name fewer of them",
        )
