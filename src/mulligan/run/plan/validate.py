"""Problems of a whole plan, found before it starts, when no agent has cost money yet.

For example an unknown name in a prompt, a missing file, agents that share a tree.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...core.policy import Policy
from ...core.redaction import mask
from ...errors import SettingError
from ..agents.catalogue import asking
from ..git.worktrees import sharing_problem
from .artifacts import output_path
from .prompts import prompt_of, references, unknown_name, variables_of
from .schema import WITHOUT_EFFECT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...config.lines import KeyPath
    from .model import Agent, Phase, Plan

__all__ = (
    "EXCLUSIVE",
    "Problem",
    "available_outputs",
    "machine_problems",
    "missing_programs",
    "problems",
)

# Modes that set aside or commit every change in the tree, whichever agent has made it.
EXCLUSIVE = frozenset({"commit", "snapshot", "stash"})

# `TOKENIZERS_PARALLELISM=false` is not a secret.
_SHORTEST_SECRET = 8
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")


class Problem(NamedTuple):
    """Something that keeps a plan from being started."""

    path: KeyPath  # the key it is about
    message: str  # what was found, in a clause that follows the key
    hint: str = ""
    is_certain: bool = True  # no earlier agent of the plan could fix it


def problems(plan: Plan, *, folder: Path, home: Path | None = None) -> Iterator[Problem]:
    """What keeps `plan` from being started, in the order of its keys.

    Its file is in `folder`; its `cwd` starts from `home`, by default the same.
    """
    home = home or folder
    nulls = [path for path, text in _texts(plan, ()) if "\0" in text]
    for path in nulls:
        yield Problem(path, "contains a null character, which arguments cannot contain")
    if nulls:
        return
    yield from _variables(plan.variables, ())
    yield from _environment(plan.env, ())
    for at, phase in enumerate(plan.phases):
        yield from _variables(phase.variables, ("phases", at))
        yield from _policy(phase, ("phases", at, "policy"))
        yield from _sharing(plan, at, home)
        outputs = available_outputs(plan, phase)
        for number, agent in enumerate(phase.agents):
            path = ("phases", at, "agents", number)
            yield from _variables(agent.variables, path)
            yield from _environment(agent.env, path)
            yield from _agent(plan, phase, agent, path, folder=folder, outputs=outputs)
    yield from _outputs(plan, home)


def machine_problems(plan: Plan, *, home: Path, environ: Mapping[str, str]) -> Iterator[Problem]:
    """What this machine lacks, and no earlier agent of the plan could provide.

    In a phase that tolerates failed agents, a missing program fails only its agent. `home` is the
    folder that the plan's `cwd` starts from, `environ` what its agents inherit.
    """
    search = {**environ, **plan.env}.get("PATH", os.defpath)
    for at, phase in enumerate(plan.phases):
        if phase.verify:
            found = _unfound(phase.verify[0], home / plan.cwd, search, ("phases", at, "verify"))
            yield from (each for each in found if each.is_certain)
        absent = missing_programs(plan, at, home=home, environ=environ)
        lacking = [each for each in absent if each.is_certain]
        is_first = not plan.needs(phase)
        least = {"fail_fast": len(phase.agents), "continue": 1}
        if len(phase.agents) - len(lacking) < least.get(phase.on_failure, phase.minimum or 1):
            yield from lacking
        for number, agent in enumerate(phase.agents):
            place = home / plan.cwd / agent.cwd
            if is_first and not place.is_dir():
                yield Problem(
                    ("phases", at, "agents", number, "cwd") if agent.cwd else ("cwd",),
                    f"there is no folder {str(place)!r} here",
                    "make it, or name another",
                )


def missing_programs(
    plan: Plan, at: int, *, home: Path, environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Programs of the agents of the phase at `at` that are not here."""
    for number, agent in enumerate(plan.phases[at].agents):
        key = "command" if agent.command else "program"
        with suppress(SettingError):  # an unknown program is reported elsewhere
            first = agent.command[0] if agent.command else asking(agent.program).asked[0]
            search = {**environ, **plan.env, **agent.env}.get("PATH", os.defpath)
            path: KeyPath = ("phases", at, "agents", number, key)
            yield from _unfound(first, home / plan.cwd / agent.cwd, search, path)


def _unfound(first: str, place: Path, search: str, path: KeyPath) -> Iterator[Problem]:
    """That the program `first` is not here, if it is not."""
    if "/" not in first:
        folders = (str(place / folder) for folder in search.split(os.pathsep))
        if not shutil.which(first, path=os.pathsep.join(folders)):
            message = f"there is no {first} on the PATH here"
            yield Problem(path, message, "install it, or write its path")
    elif not shutil.which((place := place.absolute()) / first):
        # An agent that works in the folder may create it.
        is_certain = Path(first).is_absolute() and not Path(first).is_relative_to(place)
        hint = "" if is_certain else "an earlier agent may make it; else write where it is"
        yield Problem(path, f"there is no program {first} here", hint, is_certain)


def available_outputs(plan: Plan, phase: Phase) -> dict[str, dict[str, str]]:
    """The outputs that a prompt of `phase` may name, each with a text in its place."""
    found = _before(plan, phase)
    return {
        each.name: {agent.name: f"[what {each.name}/{agent.name} prints]" for agent in each.agents}
        for each in plan.phases
        if each.name in found
    }


def _before(plan: Plan, phase: Phase) -> set[str]:
    """The phases that have ended when `phase` begins: those it needs, and those they need."""
    needed = {*plan.needs(phase)}
    for each in reversed(plan.phases):  # a phase only needs phases before it
        if each.name in needed:
            needed.update(plan.needs(each))
    return needed


def _sharing(plan: Plan, at: int, home: Path) -> Iterator[Problem]:
    """Agents in the same tree whose changes a retry in this phase would set aside as its own."""
    phase = plan.phases[at]
    mode = phase.git or plan.git
    if mode not in EXCLUSIVE:
        return
    for agent in phase.agents:
        tree = _tree_of(home / plan.cwd / agent.cwd)
        others = [
            other
            for other in plan.phases
            for each in other.agents
            if each is not agent
            and _are_at_once(plan, phase, other)
            and ((other.git or plan.git) != "worktree" or other.merge)
            and _tree_of(home / plan.cwd / each.cwd) == tree
        ]
        if others:
            sharing = sharing_problem(mode, is_parallel=True, agents=len(others) + 1)
            far = next((each for each in others if each is not phase), None)
            yield Problem(("phases", at, "git"), sharing, _apart(plan, phase, far))
            return


def _apart(plan: Plan, phase: Phase, far: Phase | None) -> str:
    """How to keep agents from being at work at the same time."""
    if far is None:
        return "or parallel = false"
    first, second = sorted((phase, far), key=plan.phases.index)
    needs = ", ".join(f'"{each}"' for each in (*plan.needs(second), first.name))
    return f"or let phase {second.name!r} need {first.name!r}: needs = [{needs}]"


def _are_at_once(plan: Plan, one: Phase, other: Phase) -> bool:
    """Whether agents of both can run at the same time; one that waits counts."""
    if one is other:
        return one.parallel
    return one.name not in _before(plan, other) and other.name not in _before(plan, one)


def _tree_of(folder: Path) -> str:
    """The work tree that `folder` is in, as far as that can be told without git."""
    place = folder.resolve()
    inside = (each for each in (place, *place.parents) if (each / ".git").exists())
    return str(next(inside, place))


def _policy(phase: Phase, path: KeyPath) -> Iterator[Problem]:
    """Settings of a policy from Python code that do not apply to programs."""
    if isinstance(phase.policy, Policy):
        # The others differ from preset to preset, and were not set by the user.
        for field in ("store", "codes", "key_ttl"):
            if getattr(phase.policy, field):
                yield Problem(
                    (*path, field), f"has no effect on programs: it is {WITHOUT_EFFECT[field]}"
                )


def _variables(variables: Mapping[str, str], path: KeyPath) -> Iterator[Problem]:
    for name in variables:
        if not _VARIABLE.fullmatch(name) or name == "outputs":
            yield Problem(
                (*path, "variables", name),
                f"a variable needs a name of letters, digits, '_' or '-', other than outputs; "
                f"got {name!r}",
            )


def _texts(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Every text in a plan, with its key."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, tuple):
        for at, each in enumerate(value):
            yield from _texts(each, (*path, at))
    elif isinstance(value, dict):
        for name, each in value.items():
            yield (*path, name), name
            yield from _texts(each, (*path, name))
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts(getattr(value, field.name), (*path, field.name))


def _environment(env: Mapping[str, str], path: KeyPath) -> Iterator[Problem]:
    for name, value in env.items():
        here = (*path, "env", name)
        if not name or "=" in name:
            yield Problem(here, f"a variable needs a name without '='; got {name!r}")
        elif _is_secret(name, value):
            yield Problem(
                here,
                "looks like a secret, and a plan is a file that is shared and kept",
                "set it in the environment of mulligan run instead; agents inherit it",
            )


def _is_secret(name: str, value: str) -> bool:
    """Whether `value` could be a credential; a switch, a number or the path of a file is not."""
    if len(value) < _SHORTEST_SECRET or value.startswith(("/", "./", "~")):
        return False
    return mask(f"{name}={value}") != f"{name}={value}"


def _agent(
    plan: Plan,
    phase: Phase,
    agent: Agent,
    path: KeyPath,
    *,
    folder: Path,
    outputs: Mapping[str, Mapping[str, str]],
) -> Iterator[Problem]:
    if agent.program:
        try:
            how = asking(agent.program)
        except SettingError as wrong:
            yield Problem((*path, "program"), str(wrong).removeprefix("program "))
        else:
            if agent.input == "stdin" and not how.asked_on_stdin:
                yield Problem(
                    (*path, "input"),
                    f"{agent.program} reads no prompt from stdin",
                    'write input = "argument"',
                )
    key = "prompt_file" if agent.prompt_file else "prompt"
    try:
        used = list(references(prompt_of(agent, folder)))
    except SettingError as wrong:
        yield Problem((*path, key), str(wrong).removeprefix(f"{key} "))
        return
    variables = variables_of(plan, phase, agent)
    names = {*variables, *(f"outputs.{each}" for each in outputs)}
    names |= {f"outputs.{each}.{who}" for each, agents in outputs.items() for who in agents}
    for name in used:
        if name not in names:
            near = get_close_matches(name, sorted(names), n=1)
            braces = r"write \{{ for braces that mean nothing"
            guess = f"did you mean {{{{{near[0]}}}}}?" if near else braces
            hint = _why(plan, phase, name) or guess
            yield Problem((*path, key), unknown_name(name, variables, outputs), hint)
            break


def _why(plan: Plan, phase: Phase, name: str) -> str:
    """What to do about a name that is unknown in this phase."""
    other = next((each.name for each in plan.phases if name.startswith(f"outputs.{each.name}")), "")
    if other == phase.name:
        return "agents of one phase do not see each other's outputs; ask in a later phase"
    if other:
        needs = ", ".join(f'"{each}"' for each in (*plan.needs(phase), other))
        return f"phase {phase.name!r} does not need {other!r}: write needs = [{needs}]"
    return ""


def _outputs(plan: Plan, home: Path) -> Iterator[Problem]:
    """Files that cannot be written, and two agents that write to one, however it is spelt."""
    seen: dict[Path, str] = {}
    for at, phase in enumerate(plan.phases):
        for number, agent in enumerate(phase.agents):
            if not agent.output:
                continue
            path: KeyPath = ("phases", at, "agents", number, "output")
            try:
                file = output_path(home / plan.cwd / agent.cwd, agent.output)
            except SettingError as wrong:
                yield Problem(path, str(wrong).removeprefix("output "))
                continue
            for other, place in seen.items():
                if file == other:
                    same = f"{agent.output!r} is the file of {place} as well"
                    yield Problem(path, same, "give each agent a file of its own")
                elif file.is_relative_to(other) or other.is_relative_to(file):
                    inside = f"{agent.output!r} and the file of {place} lie one inside the other"
                    yield Problem(path, inside, "one of them would have to be a folder")
            seen.setdefault(file, f"{phase.name}/{agent.name}")
