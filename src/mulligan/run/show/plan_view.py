"""The view of a plan while it runs: a live table, plain lines, or events.

Agents of a plan print into files, so the terminal is free for a live table on stderr. If stderr is
not a capable terminal, plain lines are printed; with `is_json`, events on stdout. A state is shown
once, although the conductor reports all states each time that one changes, from several threads.
"""

from __future__ import annotations

from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any

from ..listeners import PlanListener
from ..plan.acceptance import has_succeeded, outstanding
from ..plan.report import as_data, as_lines, as_markdown, count_outstanding
from .json_events import print_event, summary
from .messages import StatusText, clock, money, one_line, step_messages
from .standard_streams import can_draw
from .status_line import TONES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..journal.entries import AttemptBegun, AttemptEnd
    from ..journal.state import RunState
    from ..plan.model import Plan
    from ..plan.report import Report
    from ..plan.schedule import PhaseState
    from .messages import Tone
    from .standard_streams import StandardStreams

__all__ = ("PlanProgress", "PlanTable", "PlanWriter")

_MARK = "mulligan: "
# A terminal of fewer columns breaks lines as it likes.
_NARROW = 20


class PlanProgress:
    """The last reported states of a plan's agents and phases."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.agents: dict[str, RunState] = {}
        self.phases: dict[str, PhaseState] = {}
        self.because: dict[str, str] = {}

    @property
    def counted(self) -> str:
        """How many agents have succeeded, and how many are done without having."""
        known = [(phase, self.agents.get(key)) for key, phase, _ in self.plan.agents()]
        begun = [(phase, state) for phase, state in known if state is not None]
        done = sum(has_succeeded(phase, state) for phase, state in begun)
        short = count_outstanding(outstanding(phase, state) for phase, state in begun)
        return ", ".join([f"{done} of {len(known)} succeeded", *short])

    @property
    def cost(self) -> float | None:
        costs = [state.cost for state in self.agents.values() if state.cost is not None]
        return sum(costs) if costs else None


class PlanWriter:
    """One way to show a plan."""

    def agent(self, key: str, before: RunState | None, state: RunState, now: float) -> None: ...
    def phase(self, name: str, state: PhaseState, because: str) -> None: ...
    def tick(self, now: float) -> None: ...
    def held(self, key: str, because: str) -> None: ...
    def notified(self, error: str) -> None: ...
    def over(self, report: Report) -> None: ...
    def close(self) -> None: ...


class PlanTable(PlanListener):
    """Shows a plan while it runs; as events, for a program, with `is_json`.

    `report` is a file for the report as a page; ``TERM`` and ``NO_COLOR`` of `environ` say how to
    draw.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        run: str,
        streams: StandardStreams,
        environ: Mapping[str, str],
        is_json: bool = False,
        report: Path | None = None,
    ) -> None:
        self._lock = RLock()
        self._progress = PlanProgress(plan)
        self._streams, self._report = streams, report
        #: Whether there was a report to write, and it could not be.
        self.is_unreported = False
        lines = _Lines(run, streams, is_coloured=not environ.get("NO_COLOR"))
        self._lines = lines
        self._pen: PlanWriter = lines
        if is_json:
            self._pen = _Events(run, streams)
        elif can_draw(streams.descriptors["stderr"], environ):
            from .plan_table import DrawnTable

            self._pen = DrawnTable(self._progress, lines, run=run, streams=streams, environ=environ)
        else:
            lines.is_coloured = False

    def changed(self, key: str, state: RunState, now: float) -> None:
        with self._lock:
            before = self._progress.agents.get(key)
            if before is not None and before.steps >= state.steps:
                return  # shown already, or another thread showed a newer state
            self._progress.agents[key] = state
            if self._progress.phases or self._pen is not self._lines:
                self._pen.agent(key, before, state, now)

    def phases(self, states: Mapping[str, PhaseState], because: Mapping[str, str]) -> None:
        with self._lock:
            before = dict(self._progress.phases)
            is_taken_up = not before and bool(self._progress.agents)
            self._progress.phases, self._progress.because = dict(states), dict(because)
            if is_taken_up and self._pen is self._lines:
                # Earlier steps were shown by the process that took them.
                self._lines.say(StatusText(f"resumed: {self._progress.counted}"))
                return
            for name, state in states.items():
                if before.get(name, "blocked") != state:
                    self._pen.phase(name, state, because.get(name, ""))

    def tick(self, now: float) -> None:
        with self._lock:
            self._pen.tick(now)

    def held(self, key: str, because: str) -> None:
        with self._lock:
            self._pen.held(key, because)

    def notified(self, error: str) -> None:
        with self._lock:
            self._pen.notified(error)

    def over(self, report: Report) -> None:
        with self._lock:
            self._pen.over(report)
            if self._report is not None:
                try:
                    self._report.write_text(as_markdown(report), encoding="utf-8")
                except OSError as error:
                    self.is_unreported = True
                    why = (error.strerror or str(error)).lower()
                    self._lines.say(
                        StatusText(
                            f"the report could not be written to {self._report}: {why}", "bad"
                        )
                    )

    def close(self) -> None:
        """Nothing is shown any more; the terminal is as it was."""
        with self._lock:
            self._pen.close()


class _Lines(PlanWriter):
    """Prints a plan as lines on stderr."""

    def __init__(self, run: str, streams: StandardStreams, *, is_coloured: bool) -> None:
        self._run, self._streams = run, streams
        self.is_coloured = is_coloured
        self.width: Callable[[], int] = lambda: 0

    def agent(self, key: str, before: RunState | None, state: RunState, now: float) -> None:
        name = key.rpartition("/")[2]
        old, new = before.begun if before else (), state.begun
        for begun in new[len(old) :]:
            if begun.attempt == 1:
                self.say(StatusText(f"{key}: begins"), at=begun.at)
            else:
                self._tell(key, begun, name)
        for ended in state.ended[len(before.ended) if before else 0 :]:
            if ended.then != "done":
                self._tell(key, ended, name)
        self._beside(key, before, state)
        self._moved(key, before, state, now)
        if before is not None and before.status == state.status:
            return
        if state.status == "done":
            attempts, cost = state.attempts, state.cost
            spent = f", {money(cost)}" if cost is not None else ""
            self.say(StatusText(f"{key}: done, attempt {attempts}{spent}", "good"), at=now)
        elif state.status == "cancelled":
            self.say(StatusText(f"{key}: stopped: {state.because}", "bad"), at=now)

    def _tell(self, key: str, step: AttemptBegun | AttemptEnd, name: str) -> None:
        said = [StatusText(f"{key}: {each.text}", each.tone) for each in step_messages(step, name)]
        if said:
            self.say(*said, at=step.at)

    def _beside(self, key: str, before: RunState | None, state: RunState) -> None:
        """How it was verified, and what happened to its tree."""
        for check in state.checks[len(before.checks) if before else 0 :]:
            words = "verified" if check.is_good else f"not verified: {one_line(check.said)}"
            tone: Tone = "good" if check.is_good else "wait"
            self.say(StatusText(f"{key}: {words}", tone), at=check.at)
        if state.undelivered and not (before and before.undelivered):
            self.say(StatusText(f"{key}: not delivered: {state.undelivered}", "bad"), at=state.at)
        for remark in state.remarks[len(before.remarks) if before else 0 :]:
            self.say(StatusText(f"{key}: {remark.text}"), at=remark.at)

    def _moved(self, key: str, before: RunState | None, state: RunState, now: float) -> None:
        """A wait that no attempt has led to: for the limit of an account, met by another run."""
        ended, until = (len(before.ended), before.until) if before else (0, None)
        is_new = len(state.ended) == ended and state.until != until
        if state.status == "waiting" and is_new and state.until is not None and state.until > now:
            words = f"waits until {clock(state.until, now)}: {state.because}"
            self.say(StatusText(f"{key}: {words}", "wait"), at=now)

    def phase(self, name: str, state: PhaseState, because: str) -> None:
        why = f": {because}" if because else ""
        tones = {"succeeded": "good", "failed": "bad", "skipped": "bad"}
        verb = {"open": "begins", "skipped": "is skipped"}.get(state, state)
        self.say(StatusText(f"phase {name} {verb}{why}", tones.get(state, "plain")))  # type: ignore[arg-type]

    def held(self, key: str, because: str) -> None:
        self.say(StatusText(f"{key}: {because}", "wait"))

    def notified(self, error: str) -> None:
        if error:
            self.say(StatusText(f"the notify command failed: {error}", "bad"))

    def over(self, report: Report) -> None:
        said = list(as_lines(report))
        if report.until is not None:
            until = clock(report.until, report.until)
            resume = f"mulligan resume {self._run} waits here"
            words = f"parked until {until}: mulligan worker resumes it, {resume}"
            said.append(StatusText(words, "wait"))
        elif not report.is_success:
            once = "once fixed" if report.is_over else "to go on"
            said.append(StatusText(f"{once}: mulligan resume {self._run}"))
        self.say(*said)

    def say(self, *said: StatusText, at: float | None = None) -> None:
        """Lines; with the time, where they are about a moment."""
        width, lines = self.width() - len(_MARK), []
        when = "" if at is None else f"{clock(at, at)} "
        for each in said:
            ink, plain = (TONES[each.tone], "\x1b[0m") if self.is_coloured else ("", "")
            text = f"{when}{each.text}"
            if len(text) > width >= _NARROW:
                text = _folded(text, width)
            lines.append(f"{ink}{_MARK.rstrip()}{plain} {text}")
        self._streams.say("\n".join(lines))


def _folded(text: str, width: int) -> str:
    """`text` in lines that a terminal does not break in the middle of a word."""
    from textwrap import wrap

    indent = " " * (len(text) - len(text.lstrip()))
    lines = [
        line
        for part in text.splitlines()
        for line in wrap(part, width, subsequent_indent=f"{indent}  ", break_on_hyphens=False)
    ]
    return f"\n{' ' * len(_MARK)}".join(lines)


class _Events(PlanWriter):
    """Prints a plan as JSON lines on stdout."""

    def __init__(self, run: str, streams: StandardStreams) -> None:
        self._run, self._streams = run, streams

    def agent(self, key: str, before: RunState | None, state: RunState, now: float) -> None:  # noqa: ARG002 -- the pen's
        phase, _, agent = key.partition("/")
        remarks = [each.text for each in state.remarks]
        fields = summary(state)
        # The agent is that of the plan here; what it runs is its program.
        fields |= {"program": fields.pop("agent"), "remarks": remarks}
        self._tell("agent", phase=phase, agent=agent, at=now, **fields)

    def phase(self, name: str, state: PhaseState, because: str) -> None:
        self._tell("phase", phase=name, state=state, because=because)

    def held(self, key: str, because: str) -> None:
        phase, _, agent = key.partition("/")
        self._tell("held", phase=phase, agent=agent, because=because)

    def notified(self, error: str) -> None:
        self._tell("notified", error=error)

    def over(self, report: Report) -> None:
        self._tell("report", **{**as_data(report), "run": self._run})

    def _tell(self, event: str, **fields: Any) -> None:
        with suppress(BrokenPipeError):  # closed stdout: do not stop agents for that
            print_event(self._streams, {"event": event, "run": self._run, **fields})
