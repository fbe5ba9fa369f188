"""docs/run.md says what the code says: lines, events, options, exit codes."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from mulligan.cli.commands.run import command
from mulligan.run.journal.entries import (
    KIND_NAMES,
    AttemptBegun,
    AttemptEnd,
    JournalEntry,
    RunCancelled,
    RunMade,
    RunRescheduled,
)
from mulligan.run.journal.state import state_of
from mulligan.run.process.stop import Stop
from mulligan.run.show.json_events import summary
from mulligan.run.show.plain_view import PlainView
from mulligan.run.show.standard_streams import StandardStreams

PAGE = (Path(__file__).parents[2] / "docs" / "run.md").read_text(encoding="utf-8")
NIGHT = 1_794_880_800.0  # Tue 17 Nov 2026, 02:00 UTC

MADE = RunMade(NIGHT - 720, "claude", "claude -p hello", "/src", "host", 0, "", {}, [])
LIMIT = AttemptEnd(
    NIGHT,
    1,
    720.0,
    cost=0.31,
    kind="quota",
    message="You've hit your session limit · resets 3am (UTC)",
    reset_at=NIGHT + 3600,
    then="again",
    until=NIGHT + 3665,
    because="retry in 1h1m, as resets 3am says",
)
WAKES = NIGHT + 3666
CRASH = AttemptEnd(
    WAKES + 60,
    2,
    60.0,
    signal=9,
    cost=0.1,
    kind="server",
    message="it died by SIGKILL, which mulligan did not send",
    then="again",
    until=WAKES + 62,
    because="retry in 2s, by backoff",
)
STORY: list[JournalEntry] = [
    AttemptBegun(NIGHT - 720, 1, "start", "s", ""),
    LIMIT,
    AttemptBegun(WAKES, 2, "resume", "s", LIMIT.because),
    CRASH,
    AttemptBegun(WAKES + 62, 3, "resume", "s", CRASH.because),
    AttemptEnd(WAKES + 302, 3, 240.0, cost=0.2, tokens=412_000, then="done"),
]
CALM: list[JournalEntry] = [
    *STORY[:3],
    AttemptEnd(WAKES + 300, 2, 300.0, cost=0.2, tokens=412_000, then="done"),
]
OTHERS: list[JournalEntry] = [
    LIMIT._replace(
        kind="timeout",
        stopped="idle",
        cost=None,
        reset_at=None,
        message="it was idle for 10m, and was stopped",
    ),
    LIMIT._replace(
        kind="bad_answer",
        cost=None,
        reset_at=None,
        is_doubt=True,
        message="it exited with 0, but its output ends without the report of its end",
    ),
    LIMIT._replace(
        kind="auth",
        then="stop",
        until=None,
        because="401 (auth) cannot be fixed by waiting (policy 'default')",
        advice="log in with claude or fix its key, then resume the run",
    ),
    LIMIT._replace(
        then="stop",
        until=NIGHT + 28_800,
        because="retry in 8h, as resets 10am says: beyond the horizon of 6h",
    ),
    RunRescheduled(
        NIGHT, NIGHT + 3600, "run k3fqzz met a limit for opus: You've hit your Opus limit"
    ),
]


@pytest.fixture
def lines(monkeypatch):
    """Everything that a view of lines says about these nights."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    reader, writer = os.pipe()
    stop = Stop()
    for steps, notified in (
        (STORY, "mail exited with 1"),
        (STORY[:2], ""),
        (CALM, ""),
        (OTHERS, ""),
    ):
        view = PlainView("k3fqzz", "claude", streams=StandardStreams(stop, writer, writer))
        for step in steps:
            view.step(step)
        view.notified(notified)
        if steps is not OTHERS:
            state = state_of([MADE, *steps])
            assert state is not None
            view.over(state)
    yield os.read(reader, 1 << 16).decode().splitlines()
    for descriptor in (reader, writer):
        os.close(descriptor)
    stop.close()
    monkeypatch.undo()
    time.tzset()


def part(heading: str) -> str:
    return next(
        each for each in re.split(r"^## ", PAGE, flags=re.MULTILINE) if each.startswith(heading)
    )


def test_every_line_on_the_page_is_one_that_is_written(lines):
    shown = re.findall(r"`(mulligan: [^`]+)`", part("What it reports"))
    assert len(shown) == 15
    assert [line for line in shown if line not in lines] == []


def test_every_line_in_the_readme_is_one_that_is_written(lines):
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    (mulligan: .+)$", readme, flags=re.MULTILINE)
    assert len(shown) == 4
    assert [line for line in shown if line not in lines] == []


def test_the_page_lists_the_fields_of_every_event():
    state = state_of([MADE])
    assert state is not None
    kinds = (AttemptBegun, AttemptEnd, RunRescheduled, RunCancelled)
    steps = {KIND_NAMES[kind]: set(kind._fields) for kind in kinds}
    for name, fields in {**steps, "summary": set(summary(state))}.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
        listed = set(re.findall(r"`(\w+)`", row)) - {name}
        assert listed == fields - {"at", "prompt"}, name


def test_the_page_lists_every_option():
    shown = set(re.findall(r"^\| `(--[\w-]+)`", part("Defaults"), flags=re.MULTILINE))
    options = {param.opts[-1] for param in command.params if param.opts[0].startswith("--")}
    assert shown == options
