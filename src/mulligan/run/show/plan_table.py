"""A live table of a plan on a terminal.

It is redrawn in place, and removed when the plan ends; the report stays. Where the screen has fewer
lines than the plan has agents, those that run or wait are shown, the others counted.
"""

from __future__ import annotations

import io
import os
from typing import IO, TYPE_CHECKING, cast

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..plan.acceptance import outstanding, rejection
from .messages import clock, ending_name, is_held, money
from .plan_view import PlanWriter
from .status_line import ticking

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import JustifyMethod

    from ..journal.state import RunState
    from ..plan.report import Report
    from ..plan.schedule import PhaseState
    from .plan_view import PlanProgress, _Lines
    from .standard_streams import StandardStreams

__all__ = ("DrawnTable",)

_COLUMNS = ("phase", "agent", "attempt", "state", "next", "cost")
# Terminal widths from which a column is shown, and the time of day beside a countdown.
_FROM, _FROM_UNTIL = {"phase": 44, "attempt": 56, "cost": 44}, 72
# What is cut first where there is not enough room, and what it is cut to.
_CUTS = (
    *(("phase", 12), ("agent", 16), ("phase", 8), ("agent", 10), ("state", 12)),
    *(("phase", 4), ("agent", 6), ("state", 6)),
)
_GAP = 2

# Lines beside the agents': the head, the counts, the foot, one for the shell's prompt.
_OTHERS = 4

_STATES = {
    "new": ("starts", "dim"),
    "running": ("runs", ""),
    "waiting": ("waits", "yellow"),
    "paused": ("interrupted", "yellow"),
    "done": ("succeeded", "green"),
    "failed": ("failed", "red"),
    "limited": ("limited", "red"),
    "cancelled": ("stopped", "red"),
}


class _Screen(io.TextIOBase):
    """The file that rich writes to: our own stream, which does not block after a stop request."""

    def __init__(self, streams: StandardStreams) -> None:
        self._streams = streams

    def write(self, text: str) -> int:
        self._streams.draw(text)
        return len(text)

    def isatty(self) -> bool:
        return True


class DrawnTable(PlanWriter):
    """The table. `lines` tells the report, once the table is gone; `environ` has ``NO_COLOR``."""

    def __init__(
        self,
        progress: PlanProgress,
        lines: _Lines,
        *,
        run: str,
        streams: StandardStreams,
        environ: Mapping[str, str],
    ) -> None:
        self._progress, self._lines, self._run = progress, lines, run
        lines.width = self._width
        self._descriptor = streams.descriptors["stderr"]
        self._console = Console(
            file=cast("IO[str]", _Screen(streams)),
            force_terminal=True,
            no_color=bool(environ.get("NO_COLOR")),
            highlight=False,
            emoji=False,
            markup=False,
            legacy_windows=False,
        )
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._now = 0.0
        self._unheard = ""

    def agent(self, key: str, before: RunState | None, state: RunState, now: float) -> None:
        self.tick(now)
        for remark in state.remarks[len(before.remarks) if before else 0 :]:
            self._say(f"{key}: {remark.text}")

    def phase(self, name: str, state: PhaseState, because: str) -> None:  # noqa: ARG002 -- the pen's
        if self._now:
            self.tick(self._now)

    def tick(self, now: float) -> None:
        self._now = now
        try:
            columns, lines = os.get_terminal_size(self._descriptor)
        except OSError:
            return  # the terminal is gone
        # Some terminals do not know how large they are.
        self._console.size = ConsoleDimensions(columns or 80, lines or 24)
        if not self._live.is_started:
            self._live.start()
        self._live.update(self._drawn(), refresh=True)

    def held(self, key: str, because: str) -> None:
        self._say(f"{key}: {because}")

    def _say(self, words: str) -> None:
        """Above the table, where it stays."""
        self._console.print(Text(f"mulligan: {words}"), soft_wrap=True)

    def notified(self, error: str) -> None:
        """Printed after the table was removed, because the table would overwrite it."""
        self._unheard = error or self._unheard

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._descriptor).columns
        except OSError:
            return 0  # the terminal is gone

    def over(self, report: Report) -> None:
        self.close()
        self._lines.notified(self._unheard)
        self._lines.over(report)

    def close(self) -> None:
        if self._live.is_started:
            self._live.stop()

    def _drawn(self) -> Group:
        progress = self._progress
        keys = [(phase.name, agent.name, key) for key, phase, agent in progress.plan.agents()]
        shown, room = keys, self._console.height - _OTHERS
        if len(keys) > room:
            states = progress.agents
            alive = [each for each in keys if each[2] in states and states[each[2]].is_open]
            shown = alive[: max(1, room)]
        # What there is room for, in order.
        columns = [name for name in _COLUMNS if self._console.width >= _FROM.get(name, 0)]
        rows, before = [], ""
        for phase, agent, key in shown:
            cells = (phase if phase != before else "", agent, *self._cells(phase, key))
            rows.append({name: cells[at] for at, name in enumerate(_COLUMNS) if name in columns})
            before = phase
        widths = _widths(columns, rows, self._console.width)
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
        for name in columns:
            justify: JustifyMethod = "right" if name in {"attempt", "cost"} else "left"
            table.add_column(
                name, justify=justify, width=widths[name], no_wrap=True, overflow="ellipsis"
            )
        for row in rows:
            table.add_row(*row.values())
        return Group(table, *self._foot(len(keys) - len(shown)))

    def _cells(self, phase: str, key: str) -> tuple[str | Text, ...]:
        """Attempt, state, what comes next, cost."""
        state = self._progress.agents.get(key)
        if state is None:
            found = self._progress.phases.get(phase, "blocked")
            words = {"skipped": "skipped", "failed": "not started"}.get(found, "to come")
            return "", Text(words, style="dim"), "", ""
        words, style = _STATES[state.status]
        phases = self._progress.plan.phases
        if short := next(outstanding(each, state) for each in phases if each.name == phase):
            words, style = short, "red" if rejection(state) else ""
        elif state.status == "running" and state.begun:
            words = f"runs {ticking(max(0.0, self._now - state.begun[-1].at))}"
        elif is_held(state):
            words = "waits: account limit"
        elif state.ended and state.status in {"waiting", "failed", "limited"}:
            why = ending_name(state.ended[-1])
            words = words if why == words else f"{words}: {why}"
        due = ""
        if state.until is not None and state.status in {"waiting", "limited"}:
            left = ticking(max(0.0, state.until - self._now))
            due = left
            if self._console.width >= _FROM_UNTIL:
                due = f"{left} until {clock(state.until, self._now)}"
        return str(state.attempts or ""), Text(words, style=style), due, money(state.cost)

    def _foot(self, hidden: int) -> list[Text]:
        progress = self._progress
        parts = [progress.counted]
        if hidden:
            parts.insert(0, f"{hidden} more")
        if progress.cost is not None:
            parts.append(money(progress.cost))
        resume = f"mulligan resume {self._run}"
        words = " · ".join([*parts, f"Ctrl-C is safe: {resume}"])
        if len(words) > self._console.width:
            words = " · ".join([*parts, resume])
        return [Text(words, style="dim", no_wrap=True, overflow="ellipsis")]


def _widths(columns: list[str], rows: list[dict[str, str | Text]], room: int) -> dict[str, int]:
    """The width of each column; those that stay readable when cut are cut first."""
    found = {
        name: max([cell_len(name), *(cell_len(str(row[name])) for row in rows)]) for name in columns
    }
    excess = sum(found.values()) + _GAP * (len(columns) - 1) - room
    for name, least in _CUTS:
        if name in found:
            cut = max(0, min(excess, found[name] - least))
            found[name], excess = found[name] - cut, excess - cut
    return found
