"""Plots simulations: policies side by side, as one SVG.

Above: requests over time, those that were served and those that were not, with the server's
capacity. Below: the jobs that are done, with the best that any client could do. Written by hand:
the picture is a few rectangles and lines, and needs no library.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from html import escape
from math import ceil, floor, inf, log10
from textwrap import wrap
from typing import TYPE_CHECKING

from ..core.duration import duration_text
from .oracle import completions
from .server import limiter_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .compare import Run
    from .scenario import Scenario, ServerLimit, ServerQueue

__all__ = ("as_html", "as_png", "as_svg")

# Colours that people with any colour vision can tell apart, also in print.
_SERVED, _REJECTED, _CAPACITY = "#2a9d8f", "#e4572e", "#1f2933"
_DONE, _BEST, _TEXT, _FAINT = "#1d4ed8", "#7b8794", "#1f2933", "#d9dee3"

# Sizes in pixels.
_WIDTH, _ABOVE, _BELOW, _GAP, _LEFT, _TOP = 340, 150, 110, 30, 52, 92

# Bars in one panel at most, and what each may stand for in seconds; panels side by side.
_BINS, _COLUMNS = 85, 3
_SPANS = (
    *(0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1800),
    *(3600, 7200, 14_400),
)

# A policy that takes longer than so many times the best is cut off there, and the picture says so.
_LONGEST = 4.0


@dataclass(frozen=True, slots=True)
class _Axes:
    """What all panels share: the end of time, the width of a bar, the height of the bars."""

    end: float
    width: float
    top: float
    jobs: int

    @property
    def bins(self) -> int:
        return ceil(self.end / self.width)


def as_svg(runs: Sequence[Run]) -> str:
    """The picture of runs of one scenario."""
    scenario = runs[0].scenario
    axes = _axes(runs)
    capacity = _capacity(scenario, axes)
    best = completions(scenario)
    columns = min(len(runs), _COLUMNS)
    rows = ceil(len(runs) / _COLUMNS)
    panel = _ABOVE + _BELOW + 2 * _GAP + 52
    legend = sum(44 + 6.4 * len(label) for label, *_ in _LEGEND)
    width = max(_LEFT + columns * (_WIDTH + _LEFT - 12) + 8, _LEFT + legend)
    height = _TOP + rows * panel + 34
    fonts = "DejaVu Sans, Helvetica, Arial, sans-serif"
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    # Lines of about the width of the picture, two at most.
    shows = wrap(scenario.shows, max(20, int((width - 2 * _LEFT) / 5.8)), break_on_hyphens=False)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{fonts}" fill="{_TEXT}">',
        f"<title>{escape(scenario.name)}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(_LEFT, 26, scenario.name, size=16, weight="bold"),
        *(_text(_LEFT, 44 + 15 * at, line) for at, line in enumerate(shows[:2])),
        _legend(_LEFT, height - 16),
    ]
    for at, each in enumerate(runs):
        x = _LEFT + (at % _COLUMNS) * (_WIDTH + _LEFT - 12)
        y = _TOP + (at // _COLUMNS) * panel
        parts.append(_panel(each, axes, capacity, best, x=x, y=y))
    return "\n".join([*parts, "</svg>\n"])


def as_html(runs: Sequence[Run]) -> str:
    """The picture as a page of its own."""
    title = escape(runs[0].scenario.name)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<style>svg {{ max-width: 100%; height: auto }}</style>\n{as_svg(runs)}</html>\n"
    )


def as_png(runs: Sequence[Run]) -> bytes:
    """The picture as PNG, twice as large.

    Raises:
        ImportError: resvg is not installed.
    """
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=as_svg(runs), zoom=2))


def _axes(runs: Sequence[Run]) -> _Axes:
    scenario = runs[0].scenario
    best = runs[0].metrics.best_seconds
    if best is not None and scenario.queue is not None:
        best += scenario.queue.slow_until
    last = max((at for each in runs for at in (*_done(each), *_sent(each))), default=0.0)
    latest = (scenario.jobs.count / scenario.jobs.rate) if scenario.jobs.rate else 0.0
    if best is not None and best < inf:
        last = min(last, max(_LONGEST * best, latest * 1.2))
        last = max(last, best)
    width = next((each for each in _SPANS if each >= max(last, 1.0) * 1.03 / _BINS), 86_400.0)
    axes = _Axes(width * ceil(max(last, 1.0) * 1.03 / width), width, inf, scenario.jobs.count)
    sent = [count for each in runs for count in _binned(_sent(each), axes)]
    usual = sorted(count for count in sent if count)
    capacity = _capacity(scenario, axes)
    usable = sorted(min(count, scenario.jobs.count) for count in capacity[1:] if count > 0)
    # The first burst is cut off, and labelled: beside it nothing else could be seen.
    often = usual[int(0.93 * (len(usual) - 1))] if usual else 1
    typical = usable[len(usable) // 2] if usable else 0
    top = max(often, typical * 1.5 if typical < scenario.jobs.count else 0, 2)
    return replace(axes, top=min(top * 1.15, max([*sent, 2])))


def _sent(run: Run) -> list[float]:
    return [request.sent_at for request in run.ledger.requests]


def _done(run: Run) -> list[float]:
    return sorted(job.ended_at for job in run.ledger.jobs if job.verdict == "done")


def _binned(times: Sequence[float], axes: _Axes) -> list[int]:
    bins = [0] * axes.bins
    for time in times:
        at = int(time / axes.width)
        if at < axes.bins:
            bins[at] += 1
    return bins


def _capacity(scenario: Scenario, axes: _Axes) -> list[float]:
    """Requests that the server would take in each bar's time, if it were asked without end."""
    found = []
    limits = [_Taking(limit, scenario) for limit in scenario.limits if not limit.model]
    for at in range(axes.bins):
        begin, end = at * axes.width, (at + 1) * axes.width
        down = sum(
            max(0.0, min(end, fault.end or inf) - max(begin, fault.start)) * fault.share
            for fault in scenario.faults
        )
        if down >= axes.width - 1e-9:
            found.append(0.0)
        elif scenario.queue is not None:
            found.append(_served(scenario.queue, begin, end))
        else:
            found.append(min([each.between(begin, end) for each in limits], default=inf))
    return found


class _Taking:
    """What one limit takes from a client that never stops asking."""

    def __init__(self, limit: ServerLimit, scenario: Scenario) -> None:
        self._limit, self._service = limit, scenario.latency.service
        self._cost = scenario.jobs.tokens if limit.unit == "tokens" else 1.0
        self._limiter = limiter_of(limit)
        self._level = float(limit.quota)  # what a bucket has saved

    def between(self, begin: float, end: float) -> float:
        match self._limit.kind:
            case "bucket":
                # As a flow: whole requests would make the line jump from bar to bar.
                saved, self._level = self._level, 0.0
                return (saved + (end - begin) * self._limit.quota / self._limit.per) / self._cost
            case "concurrency":
                seconds = (end - begin) / self._service if self._service else inf
                return self._limit.quota * seconds
            case "window" | "sliding":
                count = 0
                while self._limiter.ask(end, self._cost).passes:
                    count += 1
                return count


def _served(queue: ServerQueue, begin: float, end: float) -> float:
    """Requests that a queue serves between two times."""
    slow = max(0.0, min(end, queue.slow_until) - max(begin, queue.slow_from))
    return queue.rate * (end - begin - slow) + queue.slow_rate * slow


def _panel(
    run: Run, axes: _Axes, capacity: list[float], best: list[float], *, x: float, y: float
) -> str:
    metrics = run.metrics
    stretch = ""
    if metrics.stretch is not None and metrics.completion >= 1:
        stretch = f" · {metrics.stretch:.2f} times T*"
    head = [
        _text(x, y, run.policy, size=13, weight="bold"),
        _text(x + _WIDTH, y, f"RQ {metrics.quality:.0f}", size=13, weight="bold", anchor="end"),
        _text(
            x,
            y + 16,
            f"{len(_done(run)):,} of {len(run.ledger.jobs):,} done · "
            f"{metrics.requests:,} requests, best {metrics.best_requests:,.0f}{stretch}",
            size=10,
        ),
    ]
    above = y + 38
    below = above + _ABOVE + _GAP
    return "\n".join(
        [
            *head,
            _bars(run, axes, x, above),
            _line_of_capacity(axes, capacity, x, above),
            _curve(run, axes, best, x, below),
        ]
    )


def _bars(run: Run, axes: _Axes, x: float, y: float) -> str:
    served = _binned(
        [r.sent_at for r in run.ledger.requests if r.ending in {"answered", "verify"}], axes
    )
    sent = _binned(_sent(run), axes)
    step = _WIDTH / axes.bins
    parts = [_frame(x, y, _ABOVE, axes.top, f"requests in {duration_text(axes.width)}")]
    for at, (good, total) in enumerate(zip(served, sent, strict=True)):
        height = min(total / axes.top, 1.0) * _ABOVE
        if not total:
            continue
        own = height * good / total
        left = x + at * step
        parts.append(_rect(left, y + _ABOVE - own, step * 0.86, own, _SERVED))
        parts.append(_rect(left, y + _ABOVE - height, step * 0.86, height - own, _REJECTED))
    for first, last in _cut(sent, axes.top):
        # One label for neighbours: theirs would lie on top of each other.
        most = max(sent[first : last + 1])
        right = x + (last + 1) * step
        if last > 0.8 * axes.bins:
            parts.append(_text(x + first * step - 2, y + 9, f"{most:,} ↑", size=9, anchor="end"))
        else:
            parts.append(_text(right, y + 9, f"{most:,} ↑", size=9))
    return "\n".join(parts)


def _cut(sent: list[int], top: float) -> list[tuple[int, int]]:
    """The first and last bar of each group that is higher than the picture."""
    groups: list[tuple[int, int]] = []
    for at, total in enumerate(sent):
        if total <= top:
            continue
        # A label takes the room of about eight bars.
        if groups and at - groups[-1][1] <= 8:
            groups[-1] = (groups[-1][0], at)
        else:
            groups.append((at, at))
    return groups


def _line_of_capacity(axes: _Axes, capacity: list[float], x: float, y: float) -> str:
    if all(each == inf for each in capacity):
        return ""
    step = _WIDTH / axes.bins
    points = []
    for at, each in enumerate(capacity):
        height = y + _ABOVE - min(each / axes.top, 1.0) * _ABOVE
        points += [f"{x + at * step:.1f},{height:.1f}", f"{x + (at + 1) * step:.1f},{height:.1f}"]
    return _polyline(points, f'stroke="{_CAPACITY}" stroke-width="1.4" stroke-dasharray="4 3"')


def _curve(run: Run, axes: _Axes, best: list[float], x: float, y: float) -> str:
    done = _done(run)
    parts = [_frame(x, y, _BELOW, axes.jobs, "jobs done"), _ticks(axes, x, y + _BELOW)]
    if best:
        style = f'stroke="{_BEST}" stroke-width="1.4" stroke-dasharray="4 3"'
        parts.append(_steps(best, axes, x, y, style))
    parts.append(_steps(done, axes, x, y, f'stroke="{_DONE}" stroke-width="2.4"'))
    late = sum(each > axes.end for each in done)
    if late:
        text = f"{late:,} later, the last after {duration_text(round(done[-1]))}"
        parts.append(_text(x + _WIDTH, y + _BELOW - 6, text, size=9, anchor="end"))
    return "\n".join(parts)


def _steps(times: list[float], axes: _Axes, x: float, y: float, style: str) -> str:
    points = []
    for at in range(_WIDTH + 1):
        share = bisect_right(times, axes.end * at / _WIDTH) / axes.jobs
        points.append(f"{x + at},{y + _BELOW * (1 - share):.1f}")
    return _polyline(points, style)


def _polyline(points: list[str], style: str) -> str:
    return f'<polyline points="{" ".join(points)}" fill="none" {style}/>'


def _frame(x: float, y: float, height: float, top: float, label: str) -> str:
    step = _nice(top / 3)
    parts = [_text(x, y - 5, label, size=9, colour=_BEST)]
    value = 0.0
    while value <= top + 1e-9:
        at = y + height * (1 - value / top)
        parts.append(_line(x, at, x + _WIDTH, at, _FAINT))
        parts.append(_text(x - 6, at + 3.5, f"{value:,.4g}", size=9, anchor="end"))
        value += step
    parts.append(_line(x, y, x, y + height, _BEST))
    return "\n".join(parts)


def _ticks(axes: _Axes, x: float, y: float) -> str:
    step, parts, time = _nice_time(axes.end / 5), [_line(x, y, x + _WIDTH, y, _BEST)], 0.0
    while time <= axes.end:
        at = x + _WIDTH * time / axes.end
        parts.append(_line(at, y, at, y + 4, _BEST))
        shown = duration_text(round(time, 1) if time < 10 else round(time))
        parts.append(_text(at, y + 15, shown, size=9, anchor="middle"))
        time += step
    return "\n".join(parts)


_LEGEND = (  # label, colour, dashes, whether it is a box
    ("served", _SERVED, "", True),
    ("failed or rejected", _REJECTED, "", True),
    ("capacity", _CAPACITY, "4 3", False),
    ("jobs done", _DONE, "", False),
    ("the best any client could do", _BEST, "4 3", False),
)


def _legend(x: float, y: float) -> str:
    parts, at = [], x
    for label, colour, dash, is_box in _LEGEND:
        if is_box:
            parts.append(_rect(at, y - 9, 18, 10, colour))
        else:
            parts.append(_line(at, y - 4, at + 18, y - 4, colour, width=2.2, dash=dash))
        parts.append(_text(at + 24, y, label))
        at += 44 + 6.4 * len(label)
    return "\n".join(parts)


def _nice(value: float) -> float:
    """The nearest 1, 2 or 5 times a power of ten above `value`."""
    power: float = 10.0 ** floor(log10(max(value, 1e-9)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value)


def _nice_time(value: float) -> float:
    """A step that clocks have."""
    steps = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
    return next((step for step in steps if step >= value), 86400.0)


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 11,
    weight: str = "",
    anchor: str = "",
    colour: str = "",
) -> str:
    given = {"font-weight": weight, "text-anchor": anchor, "fill": colour}
    extra = "".join(f' {name}="{value}"' for name, value in given.items() if value)
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{extra}>{escape(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    if height <= 0:
        return ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
    )


def _line(
    x: float, y: float, x2: float, y2: float, colour: str, *, width: float = 1, dash: str = ""
) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"{dashed}/>'
    )
