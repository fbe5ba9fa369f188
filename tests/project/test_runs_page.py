"""The page about real programs under faults shows what was measured, whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = {"claude", "codex", "gemini", "opencode", "qwen", "copilot", "pi"}
# They try again by themselves, and have no option that bounds it.
UNBOUNDED = {"opencode", "qwen", "copilot", "pi"}
# What the page says of them: qwen hides its limit in retries of its own and was stopped after four
# minutes; pi takes half an answer for a whole one, and reports success.
KNOWN = {("qwen", "plan limit for 5 h"), ("pi", "truncated for ever")}
# Only these two pass such an answer on as a limit.
LONG = "429 for 5 h"


@pytest.fixture(scope="module")
def rows():
    sys.path.insert(0, str(ROOT / "tests" / "real"))
    try:
        from runs_page import PAGE, rows_of
    finally:
        sys.path.pop(0)
    return rows_of(PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def faults():
    """The faults that the page describes."""
    page = (ROOT / "docs" / "run-under-faults.md").read_text(encoding="utf-8")
    table = page.partition("## Defaults")[2].partition("## What it reports")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return {line.split("|")[1].strip() for line in lines[1:]}


def test_every_program_was_measured_under_every_fault_once(rows, faults):
    pairs = [(row.program, row.fault) for row in rows]
    assert len(pairs) == len(set(pairs))
    wanted = {(program, fault) for program in PROGRAMS for fault in faults if fault != LONG}
    assert set(pairs) == wanted | {("claude", LONG), ("gemini", LONG)}


def test_no_effect_happened_twice_in_any_of_them(rows):
    wanted = {"none", "tool, then plan limit", "tool, then hang"}
    assert {row.effects for row in rows if row.fault in wanted} == {"1"}
    assert {row.effects for row in rows if row.fault not in wanted} == {"0"}


def test_who_can_be_bounded_asked_nothing_inside_a_closed_window(rows):
    """Each start of ours is outside, whatever the program then does; runs.py asserts that."""
    assert {row.early for row in rows if row.program not in UNBOUNDED} == {"0"}


def test_the_exit_codes_are_those_of_the_design(rows):
    stops = {"401", "billing", "context too long", "truncated for ever"}
    for row in rows:
        if (row.program, row.fault) in KNOWN:
            continue
        if row.fault in {"plan limit for 5 h", LONG}:
            assert row.exit == "75", row
        elif row.fault in stops:
            assert (row.outcome, row.exit not in {"0", "75", "130"}) == ("failed", True), row
        else:
            assert (row.outcome, row.exit) == ("done", "0"), row
