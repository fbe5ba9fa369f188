"""`mulligan simulate`: how policies recover from a server that fails, in virtual time."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...core.duration import duration_text
from ...core.redaction import clean
from ...errors import MissingExtra, SettingError
from .. import Unusable
from ..ui.tables import columns

if TYPE_CHECKING:
    from ...sim.compare import Run
    from ...sim.engine import Contender
    from ...sim.scenario import Scenario

__all__ = ("command",)

_HEAD = (
    *("policy", "RQ", "done", "time", "/T*", "requests", "/R*", "V", "peak", "lag", "DUP"),
    *("LOST", "TW", "LA", "TR", "F"),
)


@click.command(
    "simulate",
    epilog="RQ 100 is the best that any client could do: T* and R* are its time and requests. "
    "V: requests into a window that was declared closed. peak: the most requests in a second over "
    "the most jobs that began in one. lag: seconds until goodput is back. DUP, LOST: work done "
    "twice, reported but absent. TW: tokens billed over needed. LA: requests begun too late. TR: "
    "true verdicts. F: fairness. Exit codes: 0 done, 2 wrong usage.",
)
@click.argument("scenarios", metavar="SCENARIO…", nargs=-1)
@click.option(
    "-p",
    "--policy",
    "policies",
    metavar="FILE|PRESET",
    multiple=True,
    help=(
        "default, patient (never gives up), none (no retries), a preset or a TOML file; "
        "repeatable.  [default: default]"
    ),
)
@click.option("--agents", type=click.IntRange(1), metavar="N", help="Number of agents.")
@click.option(
    "--processes",
    type=click.IntRange(1),
    metavar="K",
    help="Number of processes that share the agents.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random numbers.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the policies side by side: a .svg, .png or .html file; one scenario only.",
)
@click.option(
    "--json", "is_json", is_flag=True, help="Print one JSON object per run, one per line."
)
@click.option("--list", "is_list", is_flag=True, help="List the scenarios that ship with Mulligan.")
def command(
    scenarios: tuple[str, ...],
    *,
    policies: tuple[str, ...],
    agents: int | None,
    processes: int | None,
    seed: int,
    plot: Path | None,
    is_json: bool,
    is_list: bool,
) -> int:
    """Run real guards against a simulated server, in virtual time.

    \b
    mulligan simulate --list                                the scenarios that ship with it
    mulligan simulate s6-outage-120s -p default -p none     policies side by side
    mulligan simulate s6-outage-120s --plot outage.svg      a picture of it
    mulligan simulate all                                   every scenario
    mulligan simulate mine.toml --agents 10000              your own

    A scenario is one of the list, a TOML file, or all.
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    from ...sim.compare import resized, run

    if is_list:
        from ...sim.scenario_file import find_scenario, shipped

        rows = [(name, find_scenario(name).shows) for name in shipped()]
        click.echo("\n".join(columns(("scenario", "what it shows"), rows)))
        return 0
    if not scenarios:
        raise Unusable("no scenario given", "mulligan simulate --list prints their names")
    contenders = _contenders(policies)
    found = _found(scenarios)
    if plot is not None:
        _check_plot(plot, len(found))
    runs = []
    for scenario in found:
        sized = resized(scenario, agents=agents, processes=processes)
        for contender in contenders:
            progress = _Progress(f"{sized.name}, {contender.name}", sized.jobs.count)
            runs.append(run(sized, contender, seed=seed, progress=progress))
            progress.clear()
            if is_json:
                click.echo(json.dumps(_data(runs[-1])))
    if not is_json:
        click.echo(_one(runs) if len(found) == 1 else _many(runs))
    if plot is not None:
        _draw(plot, runs)
    return 0


def _check_plot(file: Path, scenarios: int) -> None:
    """Refuse a plot that cannot be written, before anything is simulated."""
    if scenarios > 1:
        raise Unusable(f"--plot draws one scenario; got {scenarios}", "name one of them")
    if file.suffix not in {".svg", ".png", ".html"}:
        raise Unusable(
            f"--plot writes .svg, .png or .html; got {clean(file.name, 80)!r}",
            "the file's extension selects the format",
        )
    if not file.parent.is_dir():
        raise Unusable(f"no folder {clean(str(file.parent), 200)!r} for --plot", "make it first")
    if file.suffix == ".png":
        from importlib.util import find_spec

        if find_spec("resvg_py") is None:
            raise MissingExtra("--plot to a .png", "plot")


def _draw(file: Path, runs: list[Run]) -> None:
    from ...sim.plot import as_html, as_png, as_svg

    if file.suffix == ".png":
        file.write_bytes(as_png(runs))
    else:
        text = as_html(runs) if file.suffix == ".html" else as_svg(runs)
        file.write_text(text, encoding="utf-8")
    click.echo(f"wrote {file}", err=True)


def _contenders(policies: tuple[str, ...]) -> list[Contender]:
    from ...sim.policies import named

    try:
        return [named(each) for each in dict.fromkeys(policies or ("default",))]
    except SettingError as error:
        raise Unusable(str(error), "give --policy a name of these, or a file") from None


def _found(names: tuple[str, ...]) -> list[Scenario]:
    from ...sim.scenario_file import find_scenario, shipped

    wanted = [each for name in names for each in (shipped() if name == "all" else (name,))]
    return [find_scenario(each) for each in dict.fromkeys(wanted)]


def _one(runs: list[Run]) -> str:
    scenario, seed, metrics = runs[0].scenario, runs[0].seed, runs[0].metrics
    counts = {"job": scenario.jobs.count, "agent": scenario.agents, "process": scenario.processes}
    size = ", ".join(_many_of(count, noun) for noun, count in counts.items())
    seconds = "no T*" if metrics.best_seconds is None else f"T* {metrics.best_seconds:.1f} s"
    lines = [
        f"{scenario.name}: {clean(scenario.shows, 500)}" if scenario.shows else scenario.name,
        *([clean(scenario.optimum, 500)] if scenario.optimum else []),
        f"{size}, seed {seed}; {seconds}, R* {metrics.best_requests:,.0f}",
        "",
        *columns(_HEAD, [(each.policy, *_cells(each)) for each in runs], right=" ".join(_HEAD[1:])),
    ]
    return "\n".join(lines)


def _many(runs: list[Run]) -> str:
    from ...sim.metrics import geometric_mean

    rows = [(each.scenario.name, each.policy, *_cells(each)) for each in runs]
    lines = columns(("scenario", *_HEAD), rows, right=" ".join(_HEAD[1:]))
    lines.append("")
    for policy in dict.fromkeys(each.policy for each in runs):
        scores = [each.metrics.quality for each in runs if each.policy == policy]
        worst = min((e for e in runs if e.policy == policy), key=lambda e: e.metrics.quality)
        lines.append(
            f"{policy}: geometric mean of RQ {geometric_mean(scores):.1f}, "
            f"worst {worst.metrics.quality:.1f} ({worst.scenario.name})"
        )
    return "\n".join(lines)


def _many_of(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith('s') else 's'}"


def _cells(run: Run) -> tuple[str, ...]:
    m = run.metrics
    lag = "-" if m.lag is None else "never" if m.lag == float("inf") else f"{m.lag:.1f}"
    return (
        f"{m.quality:.1f}",
        f"{m.completion:.3f}",
        duration_text(round(m.seconds, 1)) if m.completion else "-",
        # The time of a policy that gave up says nothing about how fast it is.
        "-" if m.stretch is None or m.completion < 1 else f"{m.stretch:.2f}",
        f"{m.requests:,}",
        f"{m.overhead:.2f}",
        f"{m.violations}",
        f"{m.peak:.2f}",
        lag,
        f"{m.duplicates}",
        f"{m.lost}",
        f"{m.token_waste:.2f}",
        f"{m.late}",
        f"{m.truth:.2f}",
        f"{m.fairness:.2f}",
    )


def _data(run: Run) -> dict[str, Any]:
    return {
        "scenario": run.scenario.name,
        "policy": run.policy,
        "seed": run.seed,
        "jobs": run.scenario.jobs.count,
        "agents": run.scenario.agents,
        "processes": run.scenario.processes,
        **run.metrics.data(),
    }


class _Progress:
    """A line on a terminal's stderr while a long simulation runs."""

    def __init__(self, what: str, jobs: int) -> None:
        self._what, self._jobs = what, jobs
        self._is_shown = sys.stderr.isatty()
        self._is_there = False

    def __call__(self, now: float, ended: int) -> None:
        if self._is_shown:
            self._is_there = True
            text = f"{self._what}: {ended:,} of {self._jobs:,} jobs, {duration_text(round(now))}"
            click.echo(f"\r\x1b[K{text}", err=True, nl=False)

    def clear(self) -> None:
        if self._is_there:
            click.echo("\r\x1b[K", err=True, nl=False)
