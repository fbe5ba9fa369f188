"""Measures every client against every fault, and renders the tables of docs/adapters.md.

Run it to write the page again: ``python tests/adapters/tables.py``. The test beside it compares.
"""

from __future__ import annotations

import gc
import importlib.util
import logging
import re
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import mulligan
from mulligan.testing import FaultServer, virtual_time

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adapters.md"

# Name, script of the server, and whether the answer is streamed. Three attempts are allowed.
FAULTS = {
    "503 twice": ("503x2, ok", False),
    "503 for ever": ("503", False),
    "429, 2 s": ("429(retry-after=2)x2, ok", False),
    "429, no time": ("429x2, ok", False),
    "401": ("auth", False),
    "too long": ("context", False),
    "reset": ("resetx2, ok", False),
    "cut body": ("cut(1)x2, ok", False),
    "lost reply": ("lostx2, ok", False),
    "truncated stream": ("truncate(6)", True),
    "error in stream": ("error-event(6)", True),
    "silent stream": ("stall(6)", True),
}


@dataclass(frozen=True)
class Cell:
    """What came of one call.

    Args:
        client: Who called.
        fault: What the server did.
        requests: How many requests the server counted.
        attempts: How many attempts the story tells of; those made, where the call succeeded.
        ended: The exception's name, or empty.
        waits: What was waited, in seconds.
        because: Why it ended, or empty.
    """

    client: str
    fault: str
    requests: int
    attempts: int
    ended: str
    waits: tuple[float, ...]
    because: str


def clients() -> ModuleType:
    """The clients that bench/layers.py measures, too."""
    place = ROOT / "bench" / "_layer_clients.py"
    spec = importlib.util.spec_from_file_location(place.stem, place)
    assert spec is not None
    assert spec.loader is not None
    found = sys.modules.get(place.stem) or importlib.util.module_from_spec(spec)
    if place.stem not in sys.modules:
        sys.modules[place.stem] = found
        spec.loader.exec_module(found)
    return found


def measure(client: str, fault: str, ask: Any) -> Cell:
    """One call, in virtual time, against a server of its own."""
    script, _ = FAULTS[fault]
    ended, because = "", ""
    made: list[mulligan.Event] = []
    guard = mulligan.Guard("model", attempts=3, listeners=[made.append])
    with FaultServer(script) as server, virtual_time() as clock:
        try:
            ask(server.url, guard)
        except Exception as error:  # noqa: BLE001 -- what it is, is what is measured
            ended = type(error).__name__
            story = mulligan.story(error)
            attempts, because = (
                (0, "no story") if story is None else (story.attempts, story.because)
            )
        else:
            attempts = 1 + sum(isinstance(event, mulligan.Failed) for event in made)
        requests = server.totals.requests
    waits = tuple(round(each, 2) for each in clock.sleeps)
    return Cell(client, fault, requests, attempts, ended, waits, because)


def measured() -> list[Cell]:
    """All cells of the tables."""
    known = clients()
    work = [
        (client, fault, ask)
        for fault, (_, is_streamed) in FAULTS.items()
        for client, ask in (known.STREAMED if is_streamed else known.PLAIN).items()
    ]
    log = logging.getLogger("mulligan")
    level = log.level
    log.setLevel(logging.CRITICAL)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda each: measure(*each), work))
    log.setLevel(level)
    with warnings.catch_warnings():
        # Frameworks leave clients to the collector; what it says about them is not ours to judge.
        warnings.simplefilter("ignore")
        gc.collect()
    return found


def rendered(cells: list[Cell]) -> dict[str, str]:
    """The tables by name, as they stand on the page."""
    found = {}
    for name, is_streamed in (("plain", False), ("streamed", True)):
        faults = [fault for fault, (_, streamed) in FAULTS.items() if streamed is is_streamed]
        rows: dict[str, dict[str, str]] = {}
        for cell in cells:
            if cell.fault in faults:
                text = f"{cell.requests} `{cell.ended}`" if cell.ended else str(cell.requests)
                rows.setdefault(cell.client, {})[cell.fault] = text
        lines = [f"| client | {' | '.join(faults)} |", f"|---{'|---' * len(faults)}|"]
        for client, row in rows.items():
            lines.append(f"| {client} | {' | '.join(row[fault] for fault in faults)} |")
        found[name] = "\n".join(lines)
    lines = ["| fault | the server does | waits | the story says |", "|---|---|---|---|"]
    for fault, (script, _) in FAULTS.items():
        first = next(cell for cell in cells if cell.fault == fault)
        waits = ", ".join(f"{each:g} s" for each in first.waits) or "none"
        lines.append(
            f"| {fault} | `{script}` | {waits} | {general(first.because) or 'recovered'} |"
        )
    found["reasons"] = "\n".join(lines)
    return found


def general(because: str) -> str:
    """A reason without what differs from API to API."""
    because = re.sub(r"\d+ content events?", "N content events", because)
    because = re.sub(r"failed with 503 \(\w+\)", "failed with 503", because)
    return re.sub(r"^4\d\d \(", "4xx (", because)


def page_with(tables: dict[str, str]) -> str:
    """The page with these tables between its markers."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in tables.items():
        before, _, rest = text.partition(f"<!-- table: {name} -->\n")
        after = rest[rest.index("\n<!-- end -->") :]
        text = f"{before}<!-- table: {name} -->\n{table}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page_with(rendered(measured())), encoding="utf-8")
