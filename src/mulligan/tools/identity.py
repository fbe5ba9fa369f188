"""Identity of tool calls: a form of their arguments that is equal if they mean the same."""

from __future__ import annotations

import json
from typing import Any

from ..errors import SettingError
from ..once.fingerprint import canonical

__all__ = ("identity", "jsonable")


def identity(value: object, *, name: str) -> Any:
    """`value` as nested lists of strings that are equal if two values mean the same.

    What has no canonical form, such as a URL of pydantic or a very long list, is known by its JSON,
    and what has neither by its type.
    """
    try:
        return canonical(value, name=name)
    except SettingError:
        pass
    try:
        return ["json", json.dumps(jsonable(value), sort_keys=True)]
    except Exception:  # noqa: BLE001 -- whatever a foreign object raises when it is looked at
        return canonical(value, name=name, is_strict=False)


def jsonable(value: Any) -> Any:
    """`value` as JSON has it: models, dates, sets and bytes included.

    Raises:
        ValueError: It has no such form.
    """
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)
