"""Tables on stdout: plain columns, and what Rich draws."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

__all__ = ("columns", "drawing")


@contextmanager
def drawing(width: int) -> Iterator[Console]:
    """A console whose text goes to stdout at the end of the block, without trailing blanks.

    Away from a terminal it has this width: a report must not depend on who pipes it.
    """
    from rich.console import Console

    console = Console(highlight=False, width=None if sys.stdout.isatty() else width)
    with console.capture() as capture:
        yield console
    text = "\n".join(line.rstrip() for line in capture.get().split("\n"))
    # What the encoding of stdout does not know becomes a question mark.
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: str = "", is_cut: bool = True
) -> list[str]:
    """The lines of a table, cut to the width of the terminal.

    `right` has the names of right-aligned columns, with blanks between.
    """
    table = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(row[at]) for row in table) for at in range(len(head))]
    ends = {at for at, name in enumerate(head) if name in right.split()}
    room = shutil.get_terminal_size().columns if is_cut and os.isatty(1) else 0
    lines = []
    for row in table:
        cells = [
            cell.rjust(width) if at in ends else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = "  ".join(cells).rstrip()
        lines.append(line if not room or len(line) <= room else f"{line[: room - 1]}…")
    return lines
