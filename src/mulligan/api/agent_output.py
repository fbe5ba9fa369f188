"""Public API for reading agents' output: loads the pattern packs and classifies one output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..classify.output.reader import Outcome, read_output
from ..classify.pattern_packs import PackError, Packs, pack_from
from ..config.packs import PackFiles, find_packs
from ..config.secret_variables import mask_environment_secrets
from ..errors import FileError

if TYPE_CHECKING:
    from ..classify.pattern_packs import Pack

__all__ = ("LoadedPacks", "Outcome", "load_packs", "read_output")

mask_environment_secrets()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPacks:
    """The packs that are in force.

    Args:
        packs: The good ones, in order.
        problems: One for each bad one; the good ones work without it.
    """

    packs: Packs
    problems: tuple[FileError, ...] = ()


def load_packs(found: PackFiles | None = None) -> LoadedPacks:
    """The built-in packs with the user's own in front; a bad one never hides a good one."""
    if found is None:
        found = find_packs()
    packs: list[Pack] = []
    problems = list(found.problems)
    for table in found.tables:
        try:
            pack = pack_from(
                table.data, name=table.name, file=table.file, is_builtin=table.is_builtin
            )
            packs.append(pack)
        except PackError as error:
            problems.append(FileError(error.message, file=table.file, key=error.key))
    return LoadedPacks(packs=Packs(packs=tuple(packs)), problems=tuple(problems))
