"""`mulligan packs`: list and check pattern packs."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...api.agent_output import LoadedPacks, load_packs
from ...classify.pattern_packs import TEXT_LENGTH
from ...config.packs import ENVIRONMENT, PackFiles, find_packs
from ..ui.tables import columns

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("LIMIT_SECONDS", "command", "slowest")

_HEAD = ("PACK", "VERSION", "ENTRIES", "FILE", "AGENTS")

# Patterns that could take exponential time are refused when a pack is loaded
# (`classify.pattern_cost`); `slowest` finds those that are merely slow. Lengths grow slowly, and
# the first slow one ends the search. Texts repeat the pattern's own words, because a pattern is
# slow on what almost fits it.
LIMIT_SECONDS = 0.05
_LENGTHS = (8, 12, 16, 20, 24, 28, 32, 40, 64, 256, 1000, TEXT_LENGTH)
_SEEDS = ("a", " ", "0", "a ", "0.", "- ", "you've hit your limit ", "(", "aA0_-. ")
_WORDS = re.compile(r"[a-z]{3,}")


@click.group()
def command() -> None:
    """List or check pattern packs.

    A pack is a TOML file with patterns that recognise failures in the output of programs.

    Packs come with Mulligan, from the user's folder of packs, and from MULLIGAN_PACKS (files
    and folders). The user's packs are tried before the built-in ones.
    """


@command.command("list")
def list_() -> None:
    """List all loaded packs, in the order in which they are tried."""
    loaded = load_packs()
    rows = [
        (one.name, str(one.version), str(len(one.entries)), one.file, ", ".join(one.agents))
        for one in loaded.packs.packs
    ]
    for line in columns(_HEAD, rows, is_cut=False):
        click.echo(line)
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


def slowest(pattern: re.Pattern[str]) -> tuple[float, int]:
    """The longest search of `pattern` in seconds, with the length of the text that caused it."""
    worst, at = 0.0, 0
    for seed in _seeds(pattern.pattern):
        for length in _LENGTHS:
            # The last character breaks what the rest has promised.
            text = (seed * (length // len(seed) + 1))[: length - 1] + "!"
            seconds = _search(pattern, text)
            if seconds > LIMIT_SECONDS:
                # A cold or throttled processor is not a slow pattern: the second look decides.
                seconds = min(seconds, _search(pattern, text))
            if seconds > worst:
                worst, at = seconds, length
            if seconds > LIMIT_SECONDS:
                return worst, at
    return worst, at


def _seeds(pattern: str) -> Iterator[str]:
    yield from _SEEDS
    words = list(dict.fromkeys(_WORDS.findall(re.sub(r"\\[a-zA-Z]|\(\?P?<?\w*>?", " ", pattern))))[
        :8
    ]
    yield from (f"{word} " for word in words[:4])
    if words:
        yield " ".join(words) + " "


def _search(pattern: re.Pattern[str], text: str) -> float:
    began = time.thread_time()  # of the processor: other processes do not count
    pattern.search(text)
    return time.thread_time() - began
