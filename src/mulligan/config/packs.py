"""Pack files: the built-in ones, the user's folder, what `MULLIGAN_PACKS` names.

A file that cannot be read is a problem of its own; the others still load. A user's pack is tried
before the built-in one of the same name, and adds to it: nothing built in is lost.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import FileError

__all__ = ("ENVIRONMENT", "PackFiles", "PackTable", "find_packs")

ENVIRONMENT = "MULLIGAN_PACKS"
_LARGEST = 1_048_576
# Packs of many programs are tried after those of one.
_LAST = ("apis", "generic")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackTable:
    """One pack file, parsed but not yet checked."""

    name: str  # of the file, without its suffix
    file: str  # where it stands, as users see it
    data: Mapping[str, Any]
    is_builtin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PackFiles:
    """All pack files that were found."""

    tables: tuple[PackTable, ...] = ()  # as they are tried: the user's, then built-in ones by name
    problems: tuple[FileError, ...] = ()  # one for each file that could not be read


def find_packs(
    *, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> PackFiles:
    """Read every pack file: those that `environ` names, the user's `folder`, the built-in ones."""
    named = (os.environ if environ is None else environ).get(ENVIRONMENT, "")
    tables: list[PackTable] = []
    problems: list[FileError] = []
    sources = [Path(part).expanduser() for part in named.split(os.pathsep) if part.strip()]
    for source in sources:
        if not source.exists():
            hint = f"{ENVIRONMENT} takes files and folders, separated by {os.pathsep!r}"
            problems.append(FileError("no such file or folder", file=str(source), hint=hint))
    if folder is None:
        from platformdirs import user_config_path

        folder = user_config_path("mulligan") / "packs"
    for path in _files([*sources, folder]):
        try:
            tables.append(
                _read(path.read_bytes(), name=path.stem, file=str(path), is_builtin=False)
            )
        except FileError as problem:
            problems.append(problem)
        except OSError as error:
            problems.append(FileError(f"cannot be read: {error.strerror}", file=str(path)))
    return PackFiles(tables=(*tables, *_builtin()), problems=tuple(problems))


def _files(sources: list[Path]) -> Iterator[Path]:
    for source in sources:
        if source.is_dir():
            yield from sorted(source.glob("*.toml"))
        elif source.exists():
            yield source


@cache
def _builtin() -> tuple[PackTable, ...]:
    folder = files("mulligan.classify") / "packs"
    found = [one for one in folder.iterdir() if one.name.endswith(".toml")]
    names = sorted(one.name.removesuffix(".toml") for one in found)
    names.sort(key=lambda name: _LAST.index(name) + 1 if name in _LAST else 0)
    return tuple(
        _read(
            (folder / f"{name}.toml").read_bytes(), name=name, file=f"{name}.toml", is_builtin=True
        )
        for name in names
    )


def _read(raw: bytes, *, name: str, file: str, is_builtin: bool) -> PackTable:
    if len(raw) > _LARGEST:
        raise FileError(f"a pack has at most {_LARGEST} bytes; got {len(raw)}", file=file)
    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise FileError(f"needs UTF-8; byte {error.start} is not", file=file) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(f"is not TOML: {error}", file=file) from None
    return PackTable(name=name, file=file, data=data, is_builtin=is_builtin)
