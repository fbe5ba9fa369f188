"""Prints dead letters."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ...core.duration import duration_text, moment_text
from ...core.redaction import clean, presentable
from .tables import drawing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...core.dead_letter import Mark, Record

__all__ = ("as_json", "letter_sheet", "letter_table", "outcome_lines")

_STYLES = {"waiting": "yellow", "replayed": "green", "failed": "red", "refused": "red"}
_WORDS = {"failed": "failed again"}


def as_json(record: Record) -> dict[str, Any]:
    """A letter, its state, and what was done about it."""
    return {
        **asdict(record.letter),
        "state": record.state,
        "spooled": record.spooled,
        "marks": [asdict(mark) for mark in record.marks],
    }


def letter_table(found: Sequence[Record], url: str) -> None:
    """One line per letter, on stdout."""
    if not found:
        click.echo(f"no dead letters in {clean(url)}")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("id", "age", "state", "target", "function"):
        table.add_column(name, no_wrap=True, justify="right" if name == "age" else "left")
    table.add_column("because", overflow="fold", ratio=1)
    now = time.time()
    for record in found:
        letter = record.letter
        state = f"{record.state}, in a file" if record.spooled else record.state
        words = record.marks[-1].because if record.marks else ""
        table.add_row(
            letter.id,
            duration_text(max(now - letter.at, 0.0)),
            Text(state, style=_STYLES.get(record.state, "")),
            clean(letter.target, 30),
            clean(letter.name or letter.function.rpartition(".")[2], 30),
            Text(clean(words or letter.because, 160)),
        )
    with drawing(100) as console:
        console.print(table)


def letter_sheet(record: Record) -> None:
    """One letter, whole, on stdout."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for label, words in _sheet(record):
        table.add_row(label, Text(words))
    with drawing(100) as console:
        console.print(table)


def _sheet(record: Record) -> Iterable[tuple[str, str]]:
    letter = record.letter
    failure = letter.kind if letter.status is None else f"{letter.kind} {letter.status}"
    yield "letter", letter.id
    yield "written", moment_text(letter.at) + (", in a file on this machine" * record.spooled)
    yield "state", record.state
    yield "target", clean(letter.target) or "none"
    yield "function", clean(letter.function)
    yield "replayable", f"no: {clean(letter.unfit)}" if letter.unfit else f"as {clean(letter.name)}"
    if letter.arguments is not None:
        yield "arguments", presentable(json.dumps(letter.arguments, ensure_ascii=False), 2000)
    if letter.secrets:
        yield "secrets", f"{', '.join(map(clean, letter.secrets))}: not stored; needed at replay"
    if letter.under is not None:
        yield "key", clean(letter.under.key)
    yield "failed with", clean(f"{failure}: {letter.message}" if letter.message else failure)
    yield "because", clean(letter.because)
    yield "attempts", str(letter.attempts)
    if letter.retry_at is not None:
        yield "could succeed at", moment_text(letter.retry_at)
    for mark in record.marks:
        words = f"{moment_text(mark.at)}: {_WORDS.get(mark.state, mark.state)}"
        yield "", clean(f"{words}: {mark.because}" if mark.because else words)


def outcome_lines(
    results: Sequence[tuple[Record, Mark | None]], *, is_json: bool, left: int
) -> None:
    """What came of each letter on stdout, and a sum on stderr, with how many are left."""
    counts: dict[str, int] = {}
    for record, mark in results:
        state = "taken" if mark is None else mark.state
        because = "another replay is running" if mark is None else mark.because
        counts[state] = counts.get(state, 0) + 1
        if is_json:
            click.echo(json.dumps({"id": record.letter.id, "state": state, "because": because}))
        else:
            words = f"{record.letter.id} {_WORDS.get(state, state)}"
            click.echo(clean(f"{words}: {because}" if because else words))
    if not is_json:
        parts = [f"{number} {_WORDS.get(state, state)}" for state, number in counts.items()]
        if left:
            parts.append(f"{left} not replayed")
        click.echo(", ".join(parts) or "nothing to replay", err=True)
