"""Fault scripts in TOML files.

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
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ..errors import FileError, SettingError
from .limits import ClientLimits
from .rest import check_names
from .script import Script, ScriptRule

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("FaultSettings", "read_toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSettings:
    """The settings in a file; None for a setting that it does not contain."""

    rules: tuple[ScriptRule, ...] = ()  # in the order of the file
    rest: Script | None = None  # the script for what no rule covers
    limits: ClientLimits | None = None
    seed: int | None = None
    text: str | None = None  # what a good answer says
    resources: tuple[str, ...] | None = None  # the REST collections
    honours_keys: bool | None = None  # whether they honour `Idempotency-Key`

    @property
    def script(self) -> Script | None:
        """The rules, then the script for the rest."""
        if not self.rules and self.rest is None:
            return None
        return Script(rules=(*self.rules, *(self.rest.rules if self.rest else ())))


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


def read_toml(text: str, *, file: str) -> FaultSettings:
    """The settings that `text` writes; a FileError names the key and the nearest known one."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"not TOML: {error}", file=file) from None
    _check(data, _TOP, file, "")
    rules = [
        _rule(each, file, f"rules[{index}]") for index, each in enumerate(data.get("rules", ()))
    ]
    return FaultSettings(
        rules=tuple(rules),
        rest=Script(rules=_parsed(data["script"], file, "script")) if "script" in data else None,
        limits=_limits(data["limits"], file) if "limits" in data else None,
        seed=data.get("seed"),
        text=data.get("text"),
        resources=_resources(data["resources"], file) if "resources" in data else None,
        honours_keys=data.get("honours_keys"),
    )


@contextmanager
def _at(file: str, key: str) -> Iterator[None]:
    """Raise an invalid setting inside as a FileError that names its key."""
    try:
        yield
    except SettingError as error:
        raise FileError(str(error), file=file, key=key) from None


def _limits(table: Any, file: str) -> ClientLimits:
    _check(table, _LIMITS, file, "limits")
    with _at(file, "limits"):
        return ClientLimits.parse(**table)


def _resources(names: list[Any], file: str) -> tuple[str, ...]:
    with _at(file, "resources"):
        return check_names(map(str, names))


def _rule(table: Any, file: str, key: str) -> ScriptRule:
    _check(table, _RULE, file, key)
    if "steps" not in table:
        raise FileError("a rule needs steps", file=file, key=key, hint='steps = "429x2, ok"')
    selector = [table.get("method", "").upper(), table.get("path", "")]
    selector += [f"@{table['client']}"] if "client" in table else []
    written = " ".join(filter(None, selector))
    return _parsed(f"{written} -> {table['steps']}", file, f"{key}.steps")[0]


def _parsed(text: str, file: str, key: str) -> tuple[ScriptRule, ...]:
    with _at(file, key):
        return Script.parse(text).rules


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
