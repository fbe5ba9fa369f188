"""Scenarios from TOML files: those that ship with Mulligan, and users' own.

The dataclasses of `scenario` are the schema: there is no second list of keys to keep in step.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from ..config.source import read
from ..config.suggestions import FileKeys, guess, names
from ..config.validate import validated
from ..errors import FileError
from .scenario import FaultPeriod, Hints, Jobs, Latency, Scenario, ServerLimit, ServerQueue

if TYPE_CHECKING:
    import os
    from collections.abc import Collection

    from ..config.lines import KeyPath

__all__ = ("find_scenario", "load_scenario", "shipped")

_TABLES = {
    "jobs": Jobs,
    "limits": ServerLimit,
    "faults": FaultPeriod,
    "queue": ServerQueue,
    "hints": Hints,
    "latency": Latency,
}


def _known(path: KeyPath, _shape: str) -> Collection[str]:
    match path:
        case ():
            return names(Scenario)
        case (str(table),) | (str(table), int()) if table in _TABLES:
            return names(_TABLES[table])
    return ()


_WORDS = FileKeys(
    known=_known,
    synonyms={
        "rate": ("quota",),
        "size": ("quota",),
        "window": ("per",),
        "n": ("count",),
        "duration": ("end",),
        "until": ("end",),
        "from": ("start",),
        "probability": ("share",),
        "p": ("share",),
        "description": ("shows",),
        "timeout": ("horizon",),
    },
    homes=tuple((f"[{table}]", names(cls)) for table, cls in _TABLES.items()),
)


def load_scenario(path: str | os.PathLike[str]) -> Scenario:
    """The scenario in the TOML file at `path`.

    Raises:
        FileError: It cannot be read, is not TOML, or has an invalid setting. The
            error names the line, the key and the nearest known key.
    """
    source = read(path)
    if "jobs" not in source.data:
        raise source.error(
            "is not a scenario: it has no [jobs]",
            hint="begin with a table [jobs] that has count = 100",
        )
    data = {"name": Path(path).stem, **source.data}
    return validated(source, _adapter(), data, words=_WORDS)


@cache
def _adapter() -> TypeAdapter[Scenario]:
    return TypeAdapter(Scenario)


@cache
def shipped() -> tuple[str, ...]:
    """The names of the scenarios that ship with Mulligan, in RECOVERY's order."""
    folder = files("mulligan.sim") / "scenarios"
    found = [each.name[:-5] for each in folder.iterdir() if each.name.endswith(".toml")]
    return tuple(sorted(found, key=_place))


def _place(name: str) -> list[tuple[int, str]]:
    """Numbers in a name are compared as numbers: s2 stands before s10."""
    return [
        (int(number or 0), word)
        for number, word in re.findall(r"(\d*)(\D*)", name)
        if number or word
    ]


def find_scenario(name: str) -> Scenario:
    """The scenario called `name`: one of ours, or a file's path.

    Raises:
        FileError: There is none, or it is invalid.
    """
    if name in shipped():
        return load_scenario(str(files("mulligan.sim") / "scenarios" / f"{name}.toml"))
    if name.endswith(".toml") or "/" in name or Path(name).exists():
        return load_scenario(name)
    raise FileError(
        "no scenario of this name, and no file",
        file=name,
        hint=guess(name, shipped()) or "mulligan simulate --list prints the names",
    )
