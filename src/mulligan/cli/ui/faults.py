"""Prints the fault server's address, ledger and menu.

Paths, clients and models are other people's words: they pass `presentable` before a terminal sees
them.
"""

from __future__ import annotations

import queue
import shlex
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ...core.redaction import presentable
from ...faults.client_settings import POINTERS, direct, environment, pointer_of, settings
from ...faults.fault_names import COMMON_OPTIONS, MENU, REFUSAL_OPTIONS, STATUSES
from ...faults.remote import address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import JustifyMethod

    from ...faults.ledger import LedgerEntry, Totals

__all__ = (
    "WIDE",
    "PrinterThread",
    "everywhere",
    "ledger_table",
    "menu_table",
    "pointers",
    "request_line",
    "shell_lines",
    "totals_line",
)

# Of lines in a pipe, which has no width; cut text would be lost.
WIDE = 160
# The shortest cut of a path that can still be recognised.
_LEAST = 12
_COLUMNS = ("#", "after", "client", "request", "model", "try", "status", "outcome", "notes")
_GIVES_WAY = {"request": _LEAST, "model": 8, "client": 6, "try": 3, "notes": 9}
# A burst of a thousand clients fits many times; a pipe without a reader costs a few megabytes.
_MOST_LINES = 10_000
# Columns that are left out where cutting is not enough.
_LEAVES = ("try", "model", "client", "after")
# What Rich puts between two columns.
_GAP = 2


def pointers(url: str, key: str, script: str) -> Iterator[str]:
    """How to point each SDK and program at the server, ready to be pasted."""
    yield f"fault server on {url}"
    yield f"script          {presentable(script, 10_000)}"
    yield ""
    where = "" if url == address() else f" --url {url}"
    same: dict[tuple[str, ...], list[str]] = {}
    for pointer in POINTERS:
        lines: tuple[str, ...] = (f'eval "$(mulligan faults env {pointer.name}{where})"',)
        if pointer.is_simple:
            variables = ((pointer.url, url + pointer.suffix), (pointer.key, key))
            lines = tuple(f"export {name}={shlex.quote(value)}" for name, value in variables)
        same.setdefault(lines, []).append(pointer.name)
    for lines, names in same.items():
        yield f"# {', '.join(names)}"
        yield from lines
    yield "# anything else"
    yield f"curl -d '{{\"eur\": 7}}' {url}/invoices"
    yield ""
    yield f"mulligan faults env claude{where}  # what claude needs"
    yield f"mulligan faults set 529x3,ok{where}  # another script"
    yield f"mulligan faults ledger{where}  # requests so far"
    yield "mulligan faults menu  # every fault there is"
    yield ""


def everywhere(port: int, names: tuple[str, ...]) -> str:
    """The warning of a server that other machines can reach."""
    if names:
        reached = ", ".join(f"http://{name}:{port}" for name in names)
        return f"listening on every address: anyone who can reach {reached} can use it"
    return "listening on every address, answering to loopback names alone; add --allow-host NAME"


def shell_lines(program: str, url: str, key: str) -> Iterator[str]:
    """What a shell evaluates to point `program` at the server."""
    pointer = pointer_of(program)
    if pointer.without:
        yield f"unset {' '.join(pointer.without)}"
    for name, value in environment(program, url=url, key=key).items():
        yield f"export {name}={shlex.quote(value)}"
    for name in ("NO_PROXY", "no_proxy"):
        yield f'export {name}={shlex.quote(direct(url))}"${{{name}:+,${name}}}"'
    if pointer.home:
        file = f'"${pointer.home}/{pointer.file}"'
        yield f'export {pointer.home}="$(mktemp -d)"; mkdir -p "$(dirname {file})"'
        yield f"printf %s {shlex.quote(settings(program, url))} >{file}"


def request_line(entry: LedgerEntry, width: int = WIDE) -> str:
    """One request, in a line of `width`: the path is cut first, the outcome never.

    Where that is not enough, the client goes, then the time.
    """
    at = datetime.fromtimestamp(entry.at, UTC).astimezone().strftime("%H:%M:%S")
    tail = f"{_status(entry)}  {_shown(entry.outcome, 60)}"
    tail += f"  {notes}" if (notes := _notes(entry)) else ""
    number, who = f"{entry.number:>4}  ", f"{_shown(entry.client, 20):<12} "
    room = 0
    for lead in (f"[dim]{at}[/] {number}{who}", f"[dim]{at}[/] {number}", number):
        room = width - _width(lead) - _width(tail) - 1
        if room >= _LEAST:
            break
    room = max(room, _LEAST)
    what = _shown(f"{entry.method} {entry.path}", min(60, room))
    return f"{lead}{what}{' ' * (min(34, room) - _width(what))} {tail}"


def ledger_table(entries: Iterable[LedgerEntry], width: int = WIDE) -> Table:
    """All requests in a table of `width`, without the columns in which nothing stands."""
    rows = [_cells(entry) for entry in entries]
    widths = {
        name: max([len(name), *(_width(row[name]) for row in rows)])
        for name in _COLUMNS
        if not rows or any(row[name] for row in rows)
    }
    # The outcome is what the table is read for, so everything that can be guessed gives way.
    excess = sum(widths.values()) + _GAP * (len(widths) - 1) - width
    for name, least in _GIVES_WAY.items():
        given = max(0, min(excess, widths.get(name, 0) - least))
        excess -= given
        if given:
            widths[name] -= given
    for name in _LEAVES:
        if excess > 0 and name in widths:
            excess -= widths.pop(name) + _GAP
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, wide in widths.items():
        side: JustifyMethod = "right" if name in {"#", "after"} else "left"
        table.add_column(
            name, justify=side, no_wrap=True, overflow="ellipsis", min_width=wide, max_width=wide
        )
    for row in rows:
        table.add_row(*(row[name] for name in widths))
    return table


def _cells(entry: LedgerEntry) -> dict[str, str]:
    attempt = next(iter(entry.attempt.values()), "")
    cells = (
        str(entry.number),
        f"{entry.after:.2f}s",
        _shown(entry.client, 20),
        _shown(f"{entry.method} {entry.path}", 60),
        _shown(entry.model, 24),
        _shown(attempt, 12),
        _status(entry),
        _shown(entry.outcome, 40),
        _notes(entry),
    )
    return dict(zip(_COLUMNS, cells, strict=True))


def _width(markup: str) -> int:
    return Text.from_markup(markup).cell_len


def totals_line(totals: Totals) -> str:
    """The ledger in numbers, in a line."""
    parts = [
        _count(totals.requests, "request"),
        _count(totals.effects, "effect"),
        _count(totals.duplicates, "duplicate"),
        f"{totals.early} inside a closed window",
    ]
    if totals.rekeyed:
        parts.append(f"{totals.rekeyed} with the same body and another key")
    if totals.left:
        parts.append(f"{totals.left} given up by the client")
    return " · ".join(parts)


def menu_table() -> Table:
    """Every fault with its options."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("fault", "what the client sees", "options"):
        table.add_column(name)
    group, shared = "", {*COMMON_OPTIONS, *REFUSAL_OPTIONS}
    for fault_type in MENU.values():
        if fault_type.group != group:
            group = fault_type.group
            table.add_row(f"\n[bold]{group}[/]")
        options = ", ".join(name for name in fault_type.options if name not in shared)
        name = STATUSES.get(fault_type.name, fault_type.name)
        table.add_row(f"  {name}", escape(fault_type.help), f"[dim]{options}[/]")
    table.add_row("\n[bold]options[/]")
    table.add_row("  of all", f"{', '.join(COMMON_OPTIONS)}: delay=0.5s, applied=yes for a write")
    table.add_row("  of refusals", f"{', '.join(REFUSAL_OPTIONS)}, header.NAME")
    return table


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shown(text: str, limit: int) -> str:
    return escape(presentable(text, limit))


def _status(entry: LedgerEntry) -> str:
    if entry.status is None:
        return "[red]---[/]"
    colour = "green" if entry.status < 400 else "yellow" if entry.status < 500 else "red"
    return f"[{colour}]{entry.status}[/]"


def _notes(entry: LedgerEntry) -> str:
    notes = []
    if entry.is_early:
        notes.append("[magenta]too early[/]")
    if entry.effect:
        notes.append(f"[cyan]{_shown(entry.effect, 40)}[/]")
    if entry.is_duplicate:
        notes.append("[red]duplicate[/]")
    if entry.is_rekeyed:
        notes.append("[magenta]same body, other key[/]")
    if entry.ending == "left":
        notes.append("[dim]client left[/]")
    if entry.ending == "reset":
        notes.append("[dim]broken off by the server[/]")
    return ", ".join(notes)


class PrinterThread:
    """Prints lines in another thread, and drops those beyond the `most` that may wait.

    A program that starts the server may not read its output, and a full pipe blocks the writer.
    """

    def __init__(self, most: int = _MOST_LINES) -> None:
        self._waiting: queue.Queue[Callable[[], object] | None] = queue.Queue(most)
        self._thread = threading.Thread(target=self._print, name="mulligan-lines", daemon=True)
        self._thread.start()
        self.dropped = 0

    def add(self, show: Callable[[], object]) -> None:
        """Queue a line; never blocks."""
        try:
            self._waiting.put_nowait(show)
        except queue.Full:
            self.dropped += 1

    def close(self, seconds: float = 1.0) -> bool:
        """Print what is queued; returns whether that took at most `seconds`."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=seconds)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _print(self) -> None:
        while (show := self._waiting.get()) is not None:
            # The reader may have closed the pipe; the server goes on.
            with suppress(BrokenPipeError):
                show()
