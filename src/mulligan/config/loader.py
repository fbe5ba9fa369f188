"""A policy from a TOML file.

The dataclasses of the core are the schema: there is no second list of keys to keep in step.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from ..core.policy import Policy
from .lines import line_of
from .problems import problems
from .shape import Misshapen, resolve
from .source import Source, read

if TYPE_CHECKING:
    import os

    from ..errors import FileError

__all__ = ("load_policy", "policy_from")


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """The policy in the TOML file at `path`.

    Args:
        path: The file. Without a ``name`` in it, the policy is called like the file.

    Raises:
        FileError: It cannot be read, is no TOML, or says something that cannot be meant. The
            error names the line, the key and the nearest known key.
    """
    return policy_from(read(path), name=Path(path).stem)


def policy_from(source: Source, *, name: str) -> Policy:
    """The policy that `source` describes, called `name` unless it names itself."""
    try:
        data = resolve(source.data)
    except Misshapen as wrong:
        raise source.error(wrong.message, wrong.path, hint=wrong.hint) from None
    if "name" not in source.data:
        data["name"] = name
    try:
        # Strict, and as JSON: no "4" for 4 and no true for 1, but lists for tuples and words
        # for enums, which strict Python input would refuse.
        policy = _adapter().validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise _first(source, error, data) from None
    if {"in_place", "horizon"} <= source.data.keys() and policy.horizon == policy.in_place:
        _refuse_short_horizon(source, policy)
    return policy


@cache
def _adapter() -> TypeAdapter[Policy]:
    return TypeAdapter(Policy)


def _first(source: Source, error: ValidationError, data: dict[str, object]) -> FileError:
    """The problem that stands first in the file."""
    found = problems(error, data)
    path, message, hint = min(
        found, key=lambda problem: line_of(source.text, problem[0]) or len(source.text)
    )
    return source.error(message, path, hint=hint)


def _refuse_short_horizon(source: Source, policy: Policy) -> None:
    """`Policy` lifts the horizon to `in_place`; somebody who wrote both did not ask for that."""
    data = {key: source.data[key] for key in ("in_place", "horizon")}
    wanted = Policy(in_place=0, horizon=data["horizon"]).horizon
    if wanted < policy.in_place:
        raise source.error(
            f"needs at least in_place; got horizon={wanted:g}, in_place={policy.in_place:g}",
            ("horizon",),
            hint="a wait that may be slept through may be waited at all",
        )
