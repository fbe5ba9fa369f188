"""Plain text tables."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("columns",)


def columns(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: str = "") -> list[str]:
    """The lines of a table; on a terminal none is longer than it is wide.

    Args:
        head: The names of the columns.
        rows: Their cells.
        right: The names of those whose cells end under each other, with blanks between.
    """
    table = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(row[at]) for row in table) for at in range(len(head))]
    ends = {at for at, name in enumerate(head) if name in right.split()}
    room = shutil.get_terminal_size().columns if os.isatty(1) else 0
    lines = []
    for row in table:
        cells = [
            cell.rjust(width) if at in ends else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = "  ".join(cells).rstrip()
        lines.append(line if not room or len(line) <= room else f"{line[: room - 1]}…")
    return lines
