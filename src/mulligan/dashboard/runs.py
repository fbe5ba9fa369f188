"""Runs for the page: an index that is kept up to date, and one run in detail.

This is the only module of the dashboard that reads the journal of runs. A look at all of them costs
as much as there are runs, so each refresh looks at those that a process drives, at folders that
are new, and at a slice of the others.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter, OrderedDict
from contextlib import suppress
from itertools import islice
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..core.redaction import clean, mask, printable
from ..errors import MulliganError
from ..run.journal.entries import PLAN
from ..run.journal.store import RunStore, UnreadableRun
from ..run.plan.acceptance import rejection
from ..run.plan.drive import kept_plan
from ..run.show.messages import decision_text, ending_name, seconds_waited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..run.journal.entries import AttemptEnd
    from ..run.journal.state import RunState

__all__ = ("RunIndex", "run_failures", "run_figures")

# Runs that nothing is known to happen to, of which so many are looked at in each refresh.
_SLICE = 50

# Runs that are read before the page is first answered; the others follow in the background.
_FIRST = 120

# Seconds of each refresh that go to runs which were not read yet.
_READING = 0.5

# Refreshes for which a folder without a run in the journal is looked at again.
_PATIENCE = 30

_LOG_TAIL = 64 * 1024
_LIMITS = frozenset({"quota", "rate_limit"})


class RunIndex:
    """The runs of this user, newest change first; `folder` as of `RunStore`."""

    def __init__(self, folder: Path | None = None) -> None:
        self.runs = RunStore(folder)
        self._folder = self.runs.folder / "runs"
        self._lock = RLock()
        self._states: dict[str, RunState] = {}
        self._unreadable: dict[str, str] = {}
        self._order: OrderedDict[str, None] = OrderedDict()  # plans and runs that stand alone
        self._agents: dict[str, dict[str, None]] = {}
        self._counts: Counter[str] = Counter()
        self._standing: dict[str, str] = {}
        self._sizes: dict[str, int] = {}  # agents of plans
        self._folder_seen = 0
        self._waiting: dict[str, int] = {}  # folders whose run is not in the journal yet
        self._unread: list[str] = []
        self._ring: list[str] = []
        self._leased: frozenset[str] = frozenset()
        self._found: set[str] = set()

    # Keeping up to date

    @property
    def is_whole(self) -> bool:
        """Whether every run has been read once."""
        return not self._unread

    def load(self) -> None:
        """Read the runs that changed last; `refresh` reads the others."""
        with self._lock:
            if self._folder_seen:
                return
            self._look_for_new()
            names = sorted(self._waiting, key=self._changed_at, reverse=True)
            self._waiting.clear()
            for name in names[:_FIRST]:
                self._look(name)
            self._unread = names[_FIRST:][::-1]
            self._sort()

    def refresh(self) -> list[str]:
        """Look at what may have changed; the ids of what has, agents under their plan's id."""
        self.load()
        self._read_on()
        with self._lock:
            changed = set()
            self._look_for_new()
            leased = self.runs.leased()
            running = {name for name, status in self._standing.items() if status in _MOVING}
            watched = leased | self._leased | running
            self._leased = leased
            for name in (*self._waiting, *watched, *self._slice()):
                if self._look(name):
                    changed.add(name)
            return sorted({name.partition(".")[0] for name in changed})

    def _read_on(self) -> None:
        """Read some of the runs that were not read yet; requests are answered in between."""
        ends_at = monotonic() + _READING
        while self._unread and monotonic() < ends_at:
            with self._lock:
                for _ in range(min(_SLICE, len(self._unread))):
                    self._look(self._unread.pop(), is_old=True)
                if not self._unread:
                    self._sort()

    def touch(self, id_: str) -> None:
        """Look at one run now."""
        with self._lock:
            self._look(id_)

    def _sort(self) -> None:
        """Bring what was read in any order into its own; what changes later goes to the front."""
        states = self._states
        at = {name: states[name].at if name in states else 0.0 for name in self._order}
        self._order = OrderedDict.fromkeys(sorted(at, key=lambda each: -at[each]))

    def _slice(self) -> list[str]:
        if not self._ring:
            self._ring = list(self._states)
        some, self._ring = self._ring[-_SLICE:], self._ring[:-_SLICE]
        return some

    def _look_for_new(self) -> None:
        try:
            seen = self._folder.stat().st_mtime_ns
        except OSError:
            self._folder_seen = self._folder_seen or 1
            return
        if seen == self._folder_seen:
            return
        self._folder_seen = seen
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name not in self._found:
                    self._found.add(entry.name)
                    self._waiting[entry.name] = 0

    def _changed_at(self, name: str) -> float:
        try:
            return (self._folder / name).stat().st_mtime
        except OSError:
            return 0.0

    def _look(self, name: str, *, is_old: bool = False) -> bool:
        """Read what was written about a run since the last look; whether that was anything."""
        before = self._states.get(name)
        try:
            state = self.runs.look(name, before)
        except UnreadableRun as wrong:
            self._waiting.pop(name, None)
            if name in self._unreadable:
                return False
            self._unreadable[name] = wrong.because
            self._place(name, "unreadable", is_old=is_old)
            return True
        if state is None:
            return self._forget(name, was_known=before is not None)
        self._waiting.pop(name, None)
        standing: str = state.status
        if standing in _MOVING and self.runs.standing(name) == "free":
            standing = "cut off"  # its supervisor died
        is_same = before is not None and state.steps == before.steps
        if is_same and self._standing.get(name) == standing:
            return False
        self._states[name] = state
        self._place(name, standing, is_old=is_old)
        return True

    def _place(self, name: str, standing: str, *, is_old: bool) -> None:
        plan, dot, _ = name.partition(".")
        if dot:
            self._agents.setdefault(plan, {})[name] = None
        else:
            if name in self._standing:
                self._counts[self._standing[name]] -= 1
            self._counts[standing] += 1
            self._order[name] = None
            self._order.move_to_end(name, last=is_old)
        self._standing[name] = standing

    def _forget(self, name: str, *, was_known: bool) -> bool:
        if not was_known:
            if name in self._waiting:
                self._waiting[name] += 1
                if self._waiting[name] > _PATIENCE:
                    del self._waiting[name]
            return False
        self._found.discard(name)
        del self._states[name]
        standing = self._standing.pop(name)
        if name in self._order:
            del self._order[name]
            self._counts[standing] -= 1
        self._agents.pop(name, None)
        return True

    # Rows

    def counts(self) -> dict[str, int]:
        """How many runs stand where."""
        with self._lock:
            return {status: count for status, count in self._counts.items() if count > 0}

    def page(
        self, *, limit: int, offset: int = 0, status: str = "", words: str = ""
    ) -> tuple[list[dict[str, Any]], int]:
        """Some runs, the newest change first, and how many there are altogether.

        With `status` only runs of that status, ``active`` for all that have not ended; with `words`
        only runs whose id, name or command contains them.
        """
        self.load()
        with self._lock:
            if not status and not words:
                names = list(islice(self._order, offset, offset + limit))
                total = len(self._order)
            else:
                fitting = [each for each in self._order if self._fits(each, status, words.lower())]
                names, total = fitting[offset : offset + limit], len(fitting)
            return [self.row(each) for each in names], total

    def _fits(self, name: str, status: str, words: str) -> bool:
        standing = self._standing[name]
        if status and standing not in _GROUPS.get(status, {status}):
            return False
        if not words:
            return True
        state = self._states.get(name)
        said = name if state is None else f"{name} {state.made.name} {state.made.command}"
        return words in said.lower()

    def __contains__(self, name: object) -> bool:
        with self._lock:
            return name in self._standing

    def row(self, name: str) -> dict[str, Any]:
        """A run in the list, as plain data."""
        with self._lock:
            state, standing = self._states.get(name), self._standing[name]
            if state is None:
                return {"id": name, "status": "unreadable", "because": self._unreadable[name]}
            made, last = state.made, state.ended[-1] if state.ended else None
            is_plan = made.agent == PLAN
            program, prompt = _program_and_prompt(made.command)
            found = {
                "id": name,
                "name": clean(made.name, 120),
                "is_plan": is_plan,
                "program": program if made.agent in {"", "generic"} else clean(made.agent, 40),
                "prompt": prompt,
                "command": clean(made.command, 1_000),
                "folder": clean(made.cwd, 300),
                "status": standing,
                "fell_short": rejection(state),
                "attempts": state.attempts,
                "until": state.until,
                "is_limit": state.waits_for_limit,
                "because": clean(state.undelivered if rejection(state) else state.because),
                "kind": "" if last is None else last.kind,
                "advice": "" if last is None else clean(last.advice),
                "cost": state.cost,
                "tokens": state.tokens,
                "made_at": made.at,
                "at": state.at,
                "began_at": state.begun[-1].at if state.begun else None,
            }
            if is_plan:
                found |= self._of_agents(name)
            return found

    def _of_agents(self, plan: str) -> dict[str, Any]:
        agents = [self._states[each] for each in self._agents.get(plan, ()) if each in self._states]
        costs = [each.cost for each in agents if each.cost is not None]
        tokens = [each.tokens for each in agents if each.tokens is not None]
        untils = [each.until for each in agents if each.status == "waiting" and each.until]
        if plan not in self._sizes:
            try:
                phases = kept_plan(self.runs, plan).plan.phases
                self._sizes[plan] = sum(len(each.agents) for each in phases)
            except MulliganError:  # its folder is gone: what began is still in the journal
                self._sizes[plan] = 0
        return {
            "agents": max(len(agents), self._sizes[plan]),
            "agents_done": sum(each.status == "done" for each in agents),
            "attempts": sum(each.attempts for each in agents),
            "cost": sum(costs) if costs else None,
            "tokens": sum(tokens) if tokens else None,
            "next_at": min(untils, default=None),
        }

    # One run

    def detail(self, name: str) -> dict[str, Any] | None:
        """A run with its attempts and waits; a plan with its phases. None if there is none."""
        with self._lock:
            self._look(name)
            if name not in self._standing:
                return None
            found = self.row(name)
            state = self._states.get(name)
            if state is None:
                return found
            found |= {
                "session": clean(state.session, 100),
                "host": clean(state.made.host, 100),
                "segments": list(_segments(state)),
                "steps": [_step(state, at) for at in range(state.attempts)],
                "unmade": [
                    {"at": each.at, "met": ending_name(each), "because": clean(each.because)}
                    for each in state.ended
                    if _is_unmade(each)
                ],
                "remarks": [{"at": each.at, "text": clean(each.text)} for each in state.remarks],
            }
            if state.made.agent == PLAN:
                found["phases"] = self._phases(name)
            return found

    def _phases(self, plan: str) -> list[dict[str, Any]]:
        """Phases in their order, each with its agents; those that have not begun, too."""
        known: dict[str, list[str]] = {}
        with suppress(MulliganError):  # its folder is gone: what began is still in the journal
            for phase in kept_plan(self.runs, plan).plan.phases:
                known[phase.name] = [f"{plan}.{phase.name}.{agent.name}" for agent in phase.agents]
        for name in self._agents.get(plan, ()):
            phase_name = name.split(".")[1]
            if name not in known.setdefault(phase_name, []):
                known[phase_name].append(name)
        return [
            {"name": phase, "agents": [self._agent(name) for name in names]}
            for phase, names in known.items()
        ]

    def _agent(self, name: str) -> dict[str, Any]:
        label = name.rpartition(".")[2]
        state = self._states.get(name)
        if state is None:
            return {"id": name, "label": label, "status": "not started", "segments": []}
        return {**self.row(name), "label": label, "segments": list(_segments(state))}

    def log(self, name: str, attempt: int, stream: str) -> dict[str, Any] | None:
        """The end of what an attempt printed; None if there is no such log."""
        if name not in self or stream not in {"out", "err"} or attempt < 1:
            return None
        path = self._folder / name / f"attempt-{attempt}.{stream}"
        try:
            with path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _LOG_TAIL))
                data = file.read(_LOG_TAIL)
        except OSError:
            return None
        text = data.decode("utf-8", "replace")
        if size > _LOG_TAIL:  # the first line is cut; half a secret would not be masked
            text = text.partition("\n")[2]
        text = mask(printable(text))
        return {"text": text, "size": size, "is_cut": size > _LOG_TAIL}

    # Figures

    def since(self, at: float) -> Iterator[tuple[str, RunState]]:
        """The runs that stand alone and the agents of plans that changed after `at`."""
        with self._lock:
            for name in list(self._order):
                state = self._states.get(name)
                if state is None:
                    continue
                if state.made.agent != PLAN and state.at >= at:
                    yield name, state
                for agent in self._agents.get(name, ()):
                    if agent in self._states and self._states[agent].at >= at:
                        yield agent, self._states[agent]

    def close(self) -> None:
        self.runs.close()


_MOVING = frozenset({"running", "new"})
_GROUPS = {
    "active": {"new", "running", "waiting", "paused", "cut off"},
    "running": {"new", "running"},
    "waiting": {"waiting", "limited", "paused"},
    "failed": {"failed", "cut off", "unreadable"},
}


def _program_and_prompt(command: str) -> tuple[str, str]:
    """The program of a command, and its prompt: its longest argument of several words."""
    try:
        words = shlex.split(command)
    except ValueError:  # it was cut
        words = [*command.split()[:1], *command.split("'")[1:]]
    program = os.path.basename(words[0]) if words else ""  # noqa: PTH119 -- no path of ours
    prompts = [each for each in words[1:] if " " in each.strip()]
    return clean(program, 40), clean(max(prompts, key=len, default=""), 1_000)


def _segments(state: RunState) -> Iterator[dict[str, Any]]:
    """What a run did when: worked, waited for a limit, or waited for a retry."""
    ends = {each.attempt: each for each in _made(state)}
    is_waiting = state.status in {"waiting", "limited"}
    for at, begun in enumerate(state.begun):
        end = ends.get(begun.attempt)
        follows = state.begun[at + 1].at if at + 1 < len(state.begun) else None
        if end is None:
            yield _segment("working", begun.at, None, begun.attempt, "")
            continue
        is_done = end.then == "done"
        tone = "done" if is_done else "failed"
        yield _segment(tone, begun.at, end.at, begun.attempt, ending_name(end))
        if is_done or (follows is None and not is_waiting):
            continue
        tone = "limit" if end.kind in _LIMITS else "retry"
        until, because = (state.until, state.because) if follows is None else (follows, end.because)
        yield _segment(tone, end.at, until, begun.attempt, clean(because))
    if not state.begun and is_waiting:
        yield _segment("limit", state.made.at, state.until, 0, clean(state.because))


def _segment(
    tone: str, begin: float, end: float | None, attempt: int, label: str
) -> dict[str, Any]:
    return {"tone": tone, "from": begin, "to": end, "attempt": attempt, "label": label}


def _is_unmade(step: AttemptEnd) -> bool:
    return step.stopped == "refused" or not step.attempt


def _made(state: RunState) -> list[AttemptEnd]:
    """The ends of attempts that were made."""
    return [each for each in state.ended if not _is_unmade(each)]


def _step(state: RunState, at: int) -> dict[str, Any]:
    """An attempt: how it began, how it ended, what follows and why."""
    begun = state.begun[at]
    end = next((each for each in _made(state) if each.attempt == begun.attempt), None)
    found: dict[str, Any] = {
        "attempt": begun.attempt,
        "how": begun.how,
        "began_at": begun.at,
        "why": clean(begun.because),
        "ended_at": None,
    }
    if end is not None:
        found |= {
            "ended_at": end.at,
            "took": end.took,
            "is_good": end.then == "done",
            "met": ending_name(end),
            "code": end.code,
            "signal": end.signal,
            "kind": end.kind,
            "status": end.status,
            "said": clean(end.message),
            "read": clean(end.reading),
            "then": decision_text(end),
            "because": clean(end.because) if end.then != "done" else "",
            "advice": clean(end.advice),
            "until": end.until,
            "cost": end.cost,
            "tokens": end.tokens,
            "retries": end.retries,
        }
    found["checks"] = [
        {"is_good": each.is_good, "said": clean(each.said, 2_000)}
        for each in state.checks
        if each.attempt == begun.attempt
    ]
    return found


def run_figures(index: RunIndex, *, since: float) -> dict[str, Any]:
    """Figures of the runs that changed after `since`, as plain data (R-X4)."""
    runs = recovered = failed = retries = 0
    attempts: list[int] = []
    kinds: Counter[str] = Counter()
    lost, spent, waits = 0.0, 0.0, 0.0
    for _, state in index.since(since):
        runs += 1
        bad = [each for each in _made(state) if each.then != "done"]
        kinds.update(each.kind or "unknown" for each in bad if each.at >= since)
        retries += sum(each.then == "again" for each in bad)
        recovered += state.status == "done" and bool(bad)
        failed += state.status in {"failed", "limited"}
        attempts += [state.attempts] * bool(bad)
        lost += sum(each.cost or 0.0 for each in bad)
        spent += state.cost or 0.0
        waits += seconds_waited(state)
    return {
        "runs": runs,
        "recovered": recovered,
        "failed": failed,
        "retries": retries,
        "success_after_retry": round(recovered / (recovered + failed), 4)
        if recovered + failed
        else None,
        "attempts_per_call": round(sum(attempts) / len(attempts), 2) if attempts else None,
        "waited": round(waits, 1),
        "cost": round(spent, 4),
        "cost_of_failed": round(lost, 4),
        "kinds": dict(kinds.most_common()),
    }


def run_failures(index: RunIndex, *, since: float) -> Iterator[tuple[float, str]]:
    """When attempts of runs failed, and with which kind."""
    for _, state in index.since(since):
        for each in _made(state):
            if each.at >= since and each.then != "done":
                yield each.at, each.kind or "unknown"
