"""A script in a file, where a line of text is not enough.

seed = 7
script = "503:0.1, ok"          # for what no rule below covers

[[rules]]
path = "/v1/messages"
client = "team-a"
steps = "429(retry-after=2)x2, ok"

[limits]
requests = "50/60s"
tokens = "40000/60s"
counting = "sliding"
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from ..errors import FileError, SettingError
from .limits import Limits
from .script import Rule, Script

__all__ = ("Settings", "read_toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a file says.

    Args:
        script: Rules in the order of the file, then the script for the rest.
        limits: What each client may use.
        seed: The same seed, the same luck; None if the file does not say.
        text: What a good answer says; None if the file does not say.
        resources: The REST collections.
        honours_keys: Whether they honour ``Idempotency-Key``.
    """

    script: Script
    limits: Limits = field(default_factory=Limits)
    seed: int | None = None
    text: str | None = None
    resources: tuple[str, ...] = ("invoices",)
    honours_keys: bool = True


_TOP: dict[str, type] = {
    "script": str,
    "seed": int,
    "text": str,
    "resources": list,
    "honours_keys": bool,
    "rules": list,
    "limits": dict,
}
_RULE: dict[str, type] = {"method": str, "path": str, "client": str, "steps": str}
_LIMITS: dict[str, type] = {
    "requests": str,
    "tokens": str,
    "counting": str,
    "counts_refusals": bool,
}
_NAMES = {str: "a string", int: "a number", bool: "true or false", list: "a list", dict: "a table"}


def read_toml(text: str, *, file: str) -> Settings:
    """The settings that `text` writes; a FileError names the key and the nearest known one."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"not TOML: {error}", file=file) from None
    _check(data, _TOP, file, "")
    rules = [
        _rule(each, file, f"rules[{index}]") for index, each in enumerate(data.get("rules", ()))
    ]
    rest = _parsed(data["script"], file, "script") if "script" in data else ()
    limits = data.get("limits", {})
    _check(limits, _LIMITS, file, "limits")
    try:
        known = Limits.parse(**limits)
    except SettingError as error:
        raise FileError(str(error), file=file, key="limits") from None
    return Settings(
        script=Script(rules=(*rules, *rest)),
        limits=known,
        seed=data.get("seed"),
        text=data.get("text"),
        resources=tuple(map(str, data.get("resources", ("invoices",)))),
        honours_keys=data.get("honours_keys", True),
    )


def _rule(table: Any, file: str, key: str) -> Rule:
    _check(table, _RULE, file, key)
    if "steps" not in table:
        raise FileError("a rule needs steps", file=file, key=key, hint='steps = "429x2, ok"')
    selector = [table.get("method", "").upper(), table.get("path", "")]
    selector += [f"@{table['client']}"] if "client" in table else []
    written = " ".join(filter(None, selector))
    return _parsed(f"{written} -> {table['steps']}", file, f"{key}.steps")[0]


def _parsed(text: str, file: str, key: str) -> tuple[Rule, ...]:
    try:
        return Script.parse(text).rules
    except SettingError as error:
        raise FileError(str(error), file=file, key=key) from None


def _check(table: Any, known: dict[str, type], file: str, key: str) -> None:
    if not isinstance(table, dict):
        raise FileError(f"needs a table; got {table!r}", file=file, key=key)
    for name, value in table.items():
        path = f"{key}.{name}" if key else name
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise FileError("no such key", file=file, key=path, hint=hint)
        # bool is an int to Python, but not to a reader of the file.
        if type(value) is not known[name]:
            raise FileError(f"needs {_NAMES[known[name]]}; got {value!r}", file=file, key=path)
