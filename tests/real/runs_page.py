"""The table of `runs.py` in the page that shows it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = ("HEADS", "PAGE", "Row", "kept", "rows_of", "write")

PAGE = Path(__file__).parents[2] / "docs" / "run-under-faults.md"
HEADS = (
    *("program", "fault", "outcome", "exit", "requests", "too early", "attempts"),
    *("goes on by", "effects", "spent", "took"),
)
BEGIN, END = "<!-- runs: begin -->", "<!-- runs: end -->"


class Row(NamedTuple):
    """One line: a program under a fault."""

    program: str
    fault: str
    outcome: str
    exit: str
    requests: str
    early: str
    attempts: str
    goes_on: str
    effects: str
    spent: str
    took: str


def rows_of(page: str) -> list[Row]:
    """The rows that stand in the page."""
    block = page.partition(BEGIN)[2].partition(END)[0]
    lines = [line.strip().strip("|") for line in block.splitlines() if line.startswith("| ")]
    return [Row(*(cell.strip() for cell in line.split("|"))) for line in lines[1:]]


def kept(fresh: Iterable[Row]) -> list[Row]:
    """`fresh` rows, with those of the page that nobody measured anew."""
    found = {(row.program, row.fault): row for row in rows_of(PAGE.read_text(encoding="utf-8"))}
    return list((found | {(row.program, row.fault): row for row in fresh}).values())


def write(rows: Iterable[Row]) -> None:
    """Put the rows where those before them stood."""
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    behind = rest.partition(END)[2]
    lines = [
        "| " + " | ".join(HEADS) + " |",
        "|" + "---|" * len(HEADS),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    PAGE.write_text(f"{head}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{behind}", encoding="utf-8")
