"""A plan from a TOML file.

The dataclasses of `plan` are the schema. Reading a file executes nothing, and an invalid plan is
refused before an agent starts.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from ...config.loader import policy_from
from ...config.policy_schema import InvalidKey
from ...config.source import read
from ...config.validate import validated
from ...core.policy import Policy
from ...errors import SettingError
from ..attempt.policy import run_policy
from .model import Plan
from .schema import PHASE_POLICY_WORDS, PLAN_WORDS, policy_table, split_policy
from .validate import problems

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from ...config.lines import KeyPath
    from ...config.source import Source

__all__ = ("load_plan", "plan_data", "plan_from", "plan_from_data")


def load_plan(path: str | os.PathLike[str], *, home: Path | None = None) -> Plan:
    """The plan in the TOML file at `path`.

    Args:
        path: The file. Without a ``name`` in it, the plan is called like the file. Prompt files
            are looked for in its folder.
        home: The folder that its `cwd` starts from; where its file is by default.

    Raises:
        FileError: It cannot be read, is no TOML, or is not a valid plan. The error names the line,
            the key and the nearest known key.
    """
    source = read(path)
    plan = plan_from(source, name=Path(path).stem)
    for problem in problems(plan, folder=Path(path).parent, home=home):
        raise source.error(problem.message, problem.path, hint=problem.hint)
    return plan


def plan_from(source: Source, *, name: str) -> Plan:
    """The plan that `source` describes, called `name` unless it names itself.

    Problems of the whole plan are found by `problems`, not here.
    """
    if "phases" not in source.data:
        hint = "a plan begins with [[phases]]; a policy is read by mulligan explain"
        raise source.error("is not a plan: it has no phases", hint=hint)
    data: dict[str, Any] = {"name": name, **source.data}
    policies: dict[int, Policy] = {}
    places: dict[int, str] = {}
    if isinstance(data["phases"], list):
        data["phases"] = [
            _phase(source, at, phase, policies, places) for at, phase in enumerate(data["phases"])
        ]

    def written(path: KeyPath) -> KeyPath:
        match path:
            case ("phases", int(at), "on_failure") if places.get(at):
                return ("phases", at, *places[at].split("."))
        return path

    plan = validated(source, _adapter(), data, words=PLAN_WORDS, written=written)
    if not policies:
        return plan
    phases = [
        replace(phase, policy=policies.get(at, phase.policy))
        for at, phase in enumerate(plan.phases)
    ]
    return replace(plan, phases=tuple(phases))


def _phase(
    source: Source, at: int, phase: object, policies: dict[int, Policy], places: dict[int, str]
) -> object:
    """A phase with the fields of `Phase`; its policy's table goes into `policies`."""
    if not isinstance(phase, dict):
        return phase
    own = dict(phase)
    path: KeyPath = ("phases", at)
    try:
        table, places[at] = split_policy(own)
        if table is None:
            return own
        path = (*path, "policy")
        whole = policy_table(table)
    except InvalidKey as wrong:
        raise source.error(wrong.message, (*path, *wrong.path), hint=wrong.hint) from None
    name = own.get("name")
    policies[at] = policy_from(
        source,
        name=name if isinstance(name, str) else "phase",
        data=whole,
        at=path,
        words=PHASE_POLICY_WORDS,
        presets=run_policy,
    )
    return own


@cache
def _adapter() -> TypeAdapter[Plan]:
    return TypeAdapter(Plan)


def plan_data(plan: Plan) -> dict[str, Any]:
    """`plan` as dictionaries, lists, text, numbers and None: what a run keeps of it."""
    for phase in plan.phases:
        if isinstance(phase.policy, Policy) and phase.policy.validator is not None:
            name = phase.policy.name
            message = f"policy {name!r} has a validator, which a plan cannot keep; leave it out"
            raise SettingError(message)
    data: dict[str, Any] = _plain(plan)
    return data


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, frozenset):
        return sorted(value)
    return str(value) if isinstance(value, str) else value


def plan_from_data(data: Mapping[str, Any]) -> Plan:
    """The plan that `plan_data` made `data` of, equal to the first."""
    return _adapter().validate_json(json.dumps(data), strict=True)
