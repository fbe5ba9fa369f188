"""`mulligan explain`: print a policy and its waits."""

from __future__ import annotations

import json
from dataclasses import asdict
from os.path import exists  # unlike Path.exists it has an answer for every name
from typing import TYPE_CHECKING, Any

import click

from ...config.dump import as_data, as_toml
from ...config.forecast import distinct_rules, upcoming
from ...config.lint import lint
from ...core.duration import duration_text
from ...core.presets import PRESETS, preset
from ...core.redaction import clean
from .. import Unusable
from ..ui.policy import ABOUT, attempts_text, backoff_text, sheet
from ..ui.tables import drawing

if TYPE_CHECKING:
    from rich.console import Console

    from ...config.forecast import ForecastWait
    from ...config.lint import PolicyFinding
    from ...core.policy import Policy, Rule

__all__ = ("command",)

# Rows of a table of waits: on a screen, and in JSON.
_FEW, _MANY = 8, 1000

# What is waited for certain, up to the median, at most.
_INKS, _PLAIN_INKS = "█▓░", "#=-"


@click.command(
    "explain",
    epilog=(
        "Presets are given by name, files by path: write ./skill for a file named like a "
        "preset. Nothing is executed, and no other file is read."
    ),
)
@click.argument("policy", default="default", metavar="[PRESET | FILE.toml]")
@click.option("--list", "is_list", is_flag=True, help="List the presets, one line each.")
@click.option("--json", "is_json", is_flag=True, help="Print policy, waits and warnings as JSON.")
@click.option("--toml", "is_toml", is_flag=True, help="Print the policy as a file to start from.")
def command(policy: str, *, is_list: bool, is_json: bool, is_toml: bool) -> None:
    """Print a policy: what is retried, how often, how long the waits are.

    \b
    mulligan explain                  the default policy
    mulligan explain pipeline         a preset
    mulligan explain policy.toml      your own, with warnings about contradictions
    mulligan explain skill --toml > policy.toml
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    if is_json and is_toml:
        raise Unusable("--json and --toml exclude each other", "keep one")
    if is_list:
        rows = [{"name": name, "about": about} for name, about in ABOUT.items()]
        lines = [f"{row['name']:<10}{row['about']}" for row in rows]
        click.echo(json.dumps(rows) if is_json else "\n".join(lines))
        return
    found = _find(policy)
    findings = lint(found)
    if is_json:
        click.echo(json.dumps(_as_json(found, findings), indent=2))
        return
    if is_toml:
        click.echo(as_toml(found), nl=False)
    else:
        _draw(found, ABOUT.get(policy) or f"from {clean(policy)}")
    _warn(findings)


def _find(name: str) -> Policy:
    """The preset `name`, or the policy in the file `name`."""
    if name in PRESETS:
        return preset(name)
    if not (name.endswith(".toml") or "/" in name or exists(name)):  # noqa: PTH110 -- pathlib is not loaded for a preset
        from ...config.suggestions import guess

        known = f"presets are {', '.join(PRESETS)}; a file is given by its path"
        raise Unusable(f"no preset and no file {clean(name)!r}", guess(name, PRESETS) or known)
    from ...config.loader import load_policy

    return load_policy(name)


def _as_json(policy: Policy, findings: tuple[PolicyFinding, ...]) -> dict[str, Any]:
    waits = []
    for rule, kinds in distinct_rules(policy):
        rows, goes_on = _rows(rule)
        # To the microsecond: 0.1 + 0.2 is a fact about floats, not about waits.
        rounded = [{key: round(n, 6) for key, n in row._asdict().items()} for row in rows]
        about = {"kinds": kinds, "attempts": rule.attempts}
        waits.append({**about, "rows": rounded, "goes_on": goes_on})
    warnings = [asdict(each) for each in findings]
    return {"policy": as_data(policy), "waits": waits, "warnings": warnings}


def _rows(rule: Rule) -> tuple[list[ForecastWait], bool]:
    """The waits of `rule`, and whether more follow.

    Where attempts have no number, the rows end when they no longer change.
    """
    rows: list[ForecastWait] = []
    for wait in upcoming(rule):
        is_same = rows and (wait.least, wait.most) == (rows[-1].least, rows[-1].most)
        if len(rows) == _MANY or (is_same and rule.attempts is None):
            return rows, True
        rows.append(wait)
    return rows, False


def _draw(policy: Policy, origin: str) -> None:
    from rich.table import Table
    from rich.text import Text

    with drawing(80) as console:
        console.print(Text(clean(policy.name), style="bold"))
        console.print(Text(origin, style="dim"))
        console.print()
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(style="cyan", no_wrap=True)
        table.add_column(max_width=84)
        for label, words in sheet(policy):
            table.add_row(label, Text("\n".join(map(clean, words.split("\n")))))
        console.print(table)
        rules = [(rule, kinds) for rule, kinds in distinct_rules(policy) if rule.attempts != 1]
        if rules:
            console.print()
            console.print("Waits after each failed attempt, if the server names no time")
        for rule, kinds in rules:
            console.print()
            _draw_waits(console, policy, rule, kinds)
        if rules:
            console.print()
            certain, likely, possible = tuple(_inks(console))
            legend = (
                f"{certain} always waited   {likely} up to the median   {possible} at most\n"
                "in all: the waits so far, at the median; at most: the same at worst"
            )
            console.print(Text(legend, style="dim"))


def _draw_waits(console: Console, policy: Policy, rule: Rule, kinds: list[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print(Text(", ".join(kinds), style="bold"))
    words = f"{attempts_text(policy, rule)}; {backoff_text(rule.missing_hint or rule.backoff)}"
    console.print(Text(words, style="dim"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("after", "least", "median", "most", "in all", "at most"):
        table.add_column(name, justify="right", no_wrap=True, min_width=5 if name == "after" else 7)
    table.add_column("", no_wrap=True)
    rows, goes_on = _rows(rule)
    # Of a long table the beginning, and the end where there is one.
    shown: list[ForecastWait | None] = list(rows)
    if len(rows) > _FEW:
        shown = [*rows[: _FEW - 1], None, *([] if goes_on else rows[-1:])]
    elif goes_on:
        shown.append(None)
    longest, room = max(row.most for row in rows), max(0, min(40, console.width - 56))
    for row in shown:
        if row is None:
            table.add_row("...")
            continue
        times = (row.least, row.median, row.most, row.total_median, row.total_most)
        bar = _bar(row, longest, room, _inks(console))
        table.add_row(str(row.after), *map(_cell, times), Text(bar, style="green"))
    console.print(table)


def _cell(value: float) -> str:
    """A duration for a column: seconds to the hundredth, so that rows can be added up."""
    return f"{value:.2f}".rstrip("0").rstrip(".") + "s" if 1 <= value < 60 else duration_text(value)


def _inks(console: Console) -> str:
    return _INKS if console.encoding.lower().startswith("utf") else _PLAIN_INKS


def _bar(row: ForecastWait, longest: float, room: int, inks: str) -> str:
    """A wait as a bar: what is certain, what is likely, what is possible."""
    ends = [round(room * value / longest) for value in (row.least, row.median, row.most)]
    if not ends[2]:  # too short to be seen, and still a wait
        return (inks[0] if row.least == row.most else inks[2]) * min(room, 1)
    lengths = (ends[0], ends[1] - ends[0], ends[2] - ends[1])
    return "".join(ink * length for ink, length in zip(inks, lengths, strict=True))


def _warn(findings: tuple[PolicyFinding, ...]) -> None:
    if not findings:
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        console.print()
    for each in findings:
        label = Text("warning:", style="bold red" if each.is_grave else "bold yellow")
        # On a terminal lines break between words; in a log each warning is one line.
        console.print(label, Text(clean(str(each), 1000)), soft_wrap=not console.is_terminal)
