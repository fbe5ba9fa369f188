"""`mulligan stats`: how often calls and runs failed, recovered and gave up."""

from __future__ import annotations

import json
import os
from contextlib import closing
from time import time
from typing import TYPE_CHECKING, Any

import click

from ...core.duration import duration_text
from ...core.redaction import clean
from ...dashboard.runs import RunIndex
from ...dashboard.sources import failures_of
from ...run.show.messages import money
from ...stores.home import home
from ...telemetry.figures import summary
from ...telemetry.store import figures, figures_store
from .. import Unusable
from ..store_options import ENVIRONMENT, opened, store_option
from ..ui.manual import Manual
from ..ui.types import DURATION

if TYPE_CHECKING:
    from ...core.ports import Store

__all__ = ("command", "store_of_figures")

_BARS = " ▁▂▃▄▅▆▇█"
_MONTH = 31 * 86_400.0

_SECTIONS = {
    "Figures": [
        ("failures", "attempts that failed; retries are those that another followed"),
        ("success after retry", "of the calls that failed at least once, how many recovered"),
        ("attempts per call", "of calls that failed at least once"),
        ("delay", "waits before a retry or an admission"),
        ("breaker", "how often breakers opened and closed"),
    ],
    "Examples": [
        ("mulligan stats", "the last hour"),
        ("mulligan stats --since 7d --target anthropic", ""),
        ("mulligan stats --json --store redis://state.example.com", ""),
    ],
}


@click.command(
    cls=Manual,
    sections=_SECTIONS,
    epilog="Exit codes: 0 done, also if there is nothing to show, 1 the store cannot be read, 2 "
    "wrong usage.",
)
@click.option(
    "--since",
    type=DURATION,
    default="1h",
    show_default=True,
    metavar="TIME",
    help="How far to look back: up to 2h by the minute, up to 31d by the hour.",
)
@click.option("--target", metavar="NAME", help="Only calls to this target; runs are left out.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
@store_option
def command(since: float, target: str | None, url: str | None, *, is_json: bool) -> int:
    """Show how often calls and runs failed, recovered and gave up.

    Calls are counted by guards that have a mulligan.StoreListener; runs are those of this user.
    """
    if not 60 <= since <= _MONTH:
        raise Unusable(
            f"--since needs 1m to 31d; got {duration_text(since)}", "mulligan stats --since 24h"
        )
    now = time()
    store = store_of_figures(url)
    with closing(RunIndex()) as index:
        index.load()
        while not index.is_whole:
            index.refresh()
        found = failures_of(store, index, since=since, now=now)
    if target is not None:
        chosen = () if store is None else figures(store, since=since, now=now, target=target)
        found |= {"calls": summary(chosen), "runs": None}
        numbers = found["targets"].get(clean(target, 200), ())
        found["columns"] = [{"failures": failed} if failed else {} for failed, _ in numbers]
    if is_json:
        shown = {"since": since, "target": target, "calls": found["calls"], "runs": found["runs"]}
        click.echo(json.dumps({**shown, "columns": found["columns"]}))
        return 0
    if not found["calls"]["failures"] and not (found["runs"] or {}).get("runs"):
        about = "" if target is None else f" of {clean(target, 80)}"
        click.echo(
            f"nothing was counted{about} in the last {duration_text(since)}\n\nhint: give guards "
            "listeners=[mulligan.StoreListener()], or start a run with mulligan run -- COMMAND",
            err=True,
        )
        return 0
    for line in _lines(found, since):
        click.echo(line)
    return 0


def store_of_figures(url: str | None) -> Store | None:
    """The store that guards count in; None if there is none yet."""
    if url or os.environ.get(ENVIRONMENT):
        return opened(url)
    return figures_store() if (home() / "mulligan.db").exists() else None


def _lines(found: dict[str, Any], since: float) -> list[str]:
    calls, runs = found["calls"], found["runs"]
    heights = [sum(each.values()) for each in found["columns"]]
    lines = [f"failures in the last {duration_text(since)}  {_chart(heights)}  {sum(heights)}"]
    if calls["failures"]:
        lines += ["", "calls", *_facts(_of_calls(calls)), *_distribution(calls["kinds"])]
    if runs and runs["runs"]:
        lines += ["", "runs", *_facts(_of_runs(runs)), *_distribution(runs["kinds"])]
    return lines


def _of_calls(calls: dict[str, Any]) -> list[tuple[str, str]]:
    delay = _time(calls["delay_mean"])
    if delay:
        delay = f"{delay} on average, 95 % below {_time(calls['delay_p95_below'])}"
    opened_, closed = calls["breaker_opened"], calls["breaker_closed"]
    return [
        ("failures", f"{calls['failures']:,}, {calls['retries']:,} of them retried"),
        ("success after retry", _share(calls)),
        ("gave up", f"{calls['exhausted']:,} of {calls['ended']:,} that ended without success"),
        ("attempts per call", _number(calls["attempts_per_call"])),
        ("delay", delay),
        ("breaker", f"opened {opened_}, closed {closed}" if opened_ or closed else ""),
        ("gate shut", str(calls["gate_shut"] or "")),
        ("limits without a time", str(calls["silent_limits"] or "")),
    ]


def _of_runs(runs: dict[str, Any]) -> list[tuple[str, str]]:
    lost = f"{money(runs['cost_of_failed'])} of {money(runs['cost'])} for failed attempts"
    return [
        ("runs", f"{runs['runs']:,}, {runs['failed']:,} failed"),
        ("success after retry", _share(runs)),
        ("retries", str(runs["retries"])),
        ("attempts per run", _number(runs["attempts_per_call"])),
        ("waited", _time(runs["waited"] or None)),
        ("cost", lost if runs["cost"] else ""),
    ]


def _facts(rows: list[tuple[str, str]]) -> list[str]:
    return [f"  {label:<22} {text}" for label, text in rows if text]


def _distribution(kinds: dict[str, int]) -> list[str]:
    whole = sum(kinds.values())
    return [
        f"  {clean(kind, 20):<22} {'█' * max(1, round(20 * count / whole)):<20} {count:,}"
        for kind, count in kinds.items()
    ]


def _chart(heights: list[int]) -> str:
    most = max(heights, default=0)
    if not most:
        return ""
    return "".join(_BARS[-(-8 * each // most)] for each in heights)


def _share(found: dict[str, Any]) -> str:
    share = found["success_after_retry"]
    return "" if share is None else f"{share:.0%}, {found['recovered']:,} recovered"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _time(seconds: float | None) -> str:
    return "" if seconds is None else duration_text(round(seconds, 2))
