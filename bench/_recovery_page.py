"""The table of docs/recovery.md, made from a result of the recovery benchmark."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ("page_with", "table_of", "update")

_MARKS = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)


def table_of(result: Mapping[str, Any]) -> str:
    """Means first, then RQ of every contender in every scenario, in Markdown."""
    quality = result["quality"]
    plain = [name for name in quality if not name.endswith(", patient")]
    plain.sort(key=lambda name: -quality[name]["mean"])
    lines = [
        f"| RQ | {' | '.join(plain)} |",
        f"|---|{'---|' * len(plain)}",
        _row("**geometric mean**", [quality[name]["mean"] for name in plain]),
        _row(
            "told not to give up",
            [quality.get(f"{name}, patient", {}).get("mean") for name in plain],
        ),
    ]
    scenarios = [each for each in quality[plain[0]] if each != "mean"]
    lines += [_row(each, [quality[name][each] for name in plain]) for each in scenarios]
    return "\n".join(lines)


def _row(head: str, values: list[float | None]) -> str:
    cells = ["-" if value is None else f"{value:.0f}" for value in values]
    return f"| {head} | {' | '.join(cells)} |"


def page_with(page: str, result: Mapping[str, Any]) -> str:
    """`page` with the table and the circumstances of `result` between its marks."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    seeds = ", ".join(map(str, result["seeds"]))
    fresh = ", ".join(map(str, result["fresh_seeds"])) or "none"
    patient = ", ".join(map(str, result["patient_peer_seeds"]))
    broken = [row["question"] for row in result["verdicts"] if row["verdict"] == "BROKEN"]
    claims = f"Claims that do not hold yet: {'; '.join(broken)}." if broken else "All claims hold."
    setting = (
        f"Measured on {result['date']} with Python {result['python']}; {versions}. Seeds {seeds}; "
        f"drawn for this run: {fresh}; for libraries told not to give up: {patient}."
    )
    wrapped = [textwrap.fill(each, 119, break_on_hyphens=False) for each in (setting, claims)]
    text = f"{wrapped[0]}\n\n{table_of(result)}\n\n{wrapped[1]}\n"
    return _MARKS.sub(lambda found: f"{found[1]}{text}{found[2]}", page)


def update(file: Path, result: Mapping[str, Any]) -> None:
    """Write what `result` says into the page `file`."""
    page = file.read_text(encoding="utf-8")
    file.write_text(page_with(page, result), encoding="utf-8")
