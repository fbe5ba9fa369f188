"""Loads a policy from a TOML file.

The dataclasses of the core are the schema: there is no second list of keys to keep in step.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from ..core.policy import Policy
from ..core.presets import preset
from .policy_schema import InvalidKey, resolve
from .source import Source, read
from .suggestions import POLICY_WORDS
from .validate import validated

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from .lines import KeyPath
    from .suggestions import FileKeys

__all__ = ("load_policy", "policy_from")


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """The policy in the TOML file at `path`.

    Args:
        path: The file. Without a ``name`` in it, the policy is called like the file.

    Raises:
        FileError: It cannot be read, is not TOML, or has an invalid setting. The
            error names the line, the key and the nearest known key.
    """
    return policy_from(read(path), name=Path(path).stem)


def policy_from(
    source: Source,
    *,
    name: str,
    data: Mapping[str, Any] | None = None,
    at: KeyPath = (),
    words: FileKeys = POLICY_WORDS,
    presets: Callable[[str], Policy] = preset,
) -> Policy:
    """The policy that `source` describes, called `name` unless it names itself.

    A part of the file is given as `data`, with the path `at` which it stands. `words` are the names
    of its keys, and `presets` gives the policy that the name of a preset means there.
    """
    own = source.data if data is None else data
    try:
        whole = resolve(own, presets)
    except InvalidKey as wrong:
        raise source.error(wrong.message, (*at, *wrong.path), hint=wrong.hint) from None
    if "name" not in own:
        whole["name"] = name
    policy = validated(source, _adapter(), whole, at=at, words=words)
    if {"in_place", "horizon"} <= own.keys():
        # `Policy` would raise a horizon below in_place without a word.
        wanted = Policy(in_place=0, horizon=own["horizon"]).horizon
        if wanted < policy.in_place:
            raise source.error(
                f"needs at least in_place; got horizon={wanted:g}, in_place={policy.in_place:g}",
                (*at, "horizon"),
                hint="a wait that may be slept through may be waited at all",
            )
    return policy


@cache
def _adapter() -> TypeAdapter[Policy]:
    return TypeAdapter(Policy)
