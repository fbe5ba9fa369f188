"""Measuring side by side.

Contenders take turns within every round, and a ratio is formed within its round: what the
machine does meanwhile hits both sides of it. The numbers are CPU time of the thread, so a
neighbour who takes the processor away does not count.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import platform
import random
import statistics
import time
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = (
    "Row",
    "Spread",
    "interleave",
    "machine",
    "peer",
    "table",
    "verdict_lines",
    "write",
)

RESULTS = Path(__file__).parent / "results"

# Long enough that reading the clock twice is nothing, short enough that a round is over before
# the machine changes its mind about its frequency.
_BLOCK = 0.004


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)

    def text(self, digits: int) -> str:
        return f"{self.median:,.{digits}f} ({self.low:,.{digits}f}-{self.high:,.{digits}f})"

    def data(self) -> dict[str, float]:
        return {name: float(f"{getattr(self, name):.4g}") for name in ("median", "low", "high")}


@dataclass(slots=True, kw_only=True)
class Row:
    """One question with its baseline, its claim and its verdict.

    Args:
        question: What was measured.
        baseline: What it is held against.
        claim: The bound, in words.
        verdict: ``held``, ``BROKEN``, ``reported`` or ``NOT MEASURED``.
        found: What came out, in words.
        why: What a reader should know about it.
        numbers: The same for machines.
    """

    question: str
    baseline: str
    claim: str
    verdict: str
    found: str
    why: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "baseline": self.baseline,
            "claim": self.claim,
            "found": self.found,
            "verdict": self.verdict,
            **({"why": self.why} if self.why else {}),
            **self.numbers,
        }


def peer(name: str) -> Any:
    """The peer's module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def interleave(
    contenders: Mapping[str, Callable[[int], None]], *, rounds: int
) -> dict[str, list[float]]:
    """Nanoseconds a call of every contender, one number a round.

    Args:
        contenders: Functions that make their call as often as told.
        rounds: How many times everybody has a turn, in an order drawn anew each time.
    """
    calls = {name: _calls_a_block(run) for name, run in contenders.items()}
    found: dict[str, list[float]] = {name: [] for name in contenders}
    order, dice = list(contenders), random.Random(7)
    gc.collect()
    gc.freeze()  # what peers keep alive must not make the collector dearer for the others
    for _ in range(rounds):
        dice.shuffle(order)
        for name in order:
            run, count = contenders[name], calls[name]
            began = time.thread_time_ns()
            run(count)
            found[name].append((time.thread_time_ns() - began) / count)
    gc.unfreeze()
    return found


def _calls_a_block(run: Callable[[int], None]) -> int:
    run(200)  # first calls load modules and let the interpreter specialise
    count = 200
    while True:
        began = time.thread_time()
        run(count)
        took = time.thread_time() - began
        if took > _BLOCK / 4:
            return max(1, int(count * _BLOCK / took))
        count *= 4


def machine(peers: Sequence[str]) -> dict[str, Any]:
    """Where and when, without names of hosts or paths."""
    versions = {}
    for name in peers:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "versions": versions,
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    found = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return found[0] if found else platform.processor()


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns, each as wide as its widest cell; numbers are the caller's to align."""
    body = [list(row) for row in rows]
    widths = [max(len(line[at]) for line in [list(head), *body]) for at in range(len(head))]
    rule = ["─" * width for width in widths]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [list(head), rule, *body]
    ]
    return "\n".join(f"  {line}" for line in lines)


def verdict_lines(rows: Sequence[Row]) -> str:
    """The table of verdicts, the reasons below it, and the sum of it all."""
    head = ("question", "baseline", "found", "claim", "verdict")
    parts = [
        table(head, [(r.question, r.baseline, r.found, r.claim, r.verdict) for r in rows]),
        *(f"  {row.question}: {row.why}" for row in rows if row.why),
    ]
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    parts.append("  " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return "\n\n".join([parts[0], "\n".join(parts[1:-1]), parts[-1]] if parts[1:-1] else parts)


def write(file: Path, data: Mapping[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, indent=2, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")
