"""`mulligan packs`: list and check pattern packs."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ...api.agent_output import LoadedPacks, load_packs
from ...classify.pattern_packs import TEXT_LENGTH
from ...config.packs import ENVIRONMENT, PackFiles, find_packs
from ..pack_timing import LIMIT_SECONDS, slowest

__all__ = ("command",)


@click.group()
def command() -> None:
    """List or check pattern packs.

    Packs come with Mulligan, from the user's folder of packs, and from MULLIGAN_PACKS (files
    and folders). The user's packs are tried before the built-in ones.
    """


@command.command("list")
def list_() -> None:
    """List all loaded packs, in the order in which they are tried."""
    loaded = load_packs()
    heads = ("PACK", "VERSION", "ENTRIES", "FILE", "AGENTS")
    rows = [
        heads,
        *(
            (one.name, str(one.version), str(len(one.entries)), one.file, ", ".join(one.agents))
            for one in loaded.packs.packs
        ),
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(heads) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[-1]]).rstrip())
    _warn(loaded)


@command.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
def check(files: tuple[Path, ...]) -> None:
    """Load all packs, or only FILES, and time each pattern on hostile input.

    Exits with 1 if a pack cannot be loaded or a pattern is slow.
    """
    loaded = _only(files) if files else load_packs()
    _warn(loaded)
    is_bad, count = bool(loaded.problems), 0
    for pack in loaded.packs.packs:
        for entry in pack.entries:
            count += 1
            seconds, length = slowest(entry.match)
            if seconds > LIMIT_SECONDS:
                is_bad = True
                took = f"{seconds * 1000:.0f} ms on {length} hostile characters"
                most = f"at most {LIMIT_SECONDS * 1000:.0f} ms"
                click.echo(f"error: {pack.file}: {entry.id}: {took}; {most}", err=True)
    packs = len(loaded.packs.packs)
    click.echo(f"{packs} packs, {count} entries, timed on up to {TEXT_LENGTH} hostile characters")
    if is_bad:
        click.get_current_context().exit(1)


def _only(files: tuple[Path, ...]) -> LoadedPacks:
    named = {ENVIRONMENT: os.pathsep.join(str(file) for file in files)}
    found = find_packs(environ=named, folder=Path(os.devnull, "none"))
    own = tuple(table for table in found.tables if not table.is_builtin)
    return load_packs(PackFiles(tables=own, problems=found.problems))


def _warn(loaded: LoadedPacks) -> None:
    for problem in loaded.problems:
        click.echo(f"error: {problem}", err=True)
