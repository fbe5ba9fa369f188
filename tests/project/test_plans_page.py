"""The page about plans says of every field what the code says."""

from __future__ import annotations

import json
import os
import re
from contextlib import closing
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from mulligan.core.policy import Policy
from mulligan.core.presets import preset
from mulligan.run.journal.entries import (
    AttemptEnd,
    JournalEntry,
    RunCancelled,
    RunRemark,
    RunRescheduled,
    WorkDelivered,
    WorkVerified,
)
from mulligan.run.plan.load import load_plan
from mulligan.run.plan.model import Agent, Phase, Plan
from mulligan.run.plan.report import report
from mulligan.run.plan.schema import PHASE_POLICY_WORDS
from mulligan.run.process.stop import Stop
from mulligan.run.show.plan_view import PlanTable
from mulligan.run.show.standard_streams import StandardStreams

from ..run.steps import AGAIN, BEGUN, LIMIT, state

PAGE = (Path(__file__).parents[2] / "docs" / "plans.md").read_text(encoding="utf-8")
WORDS = {
    "str": "text",
    "bool": "boolean",
    "int": "number",
    "int | None": "number",
    "float | None": "number",
    "Seconds": "duration",
    "Seconds | None": "duration",
    "tuple[str, ...]": "list of text",
    "tuple[str, ...] | None": "list of text",
    "tuple[Agent, ...]": "tables",
    "tuple[Phase, ...]": "tables",
    "Mapping[str, str]": "table of text",
    "Mapping[str, int]": "table of numbers",
    "Policy | str": "text or table",
    "Mode": "`fail_fast`, `continue`, `require_minimum`",
    "GitMode": "`off`, `commit`, `stash`, `snapshot`, `worktree`",
    "GitMode | None": "as in the plan",
    "Literal['argument', 'stdin']": "`argument`, `stdin`",
}


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table below a line, by their first cell."""
    below = PAGE.partition(f"\n{heading}")[2].partition("\n| field")[2]
    found = {}
    for line in below.partition("\n\n")[0].splitlines()[2:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
        found[name.strip(" `")] = cells
    return found


HEADINGS = {Plan: "The file:", Phase: "A phase,", Agent: "An agent,"}


@pytest.mark.parametrize("cls", HEADINGS, ids=lambda cls: cls.__name__)
def test_every_field_is_on_the_page_with_its_type_and_its_default(cls):
    rows = table(HEADINGS[cls])
    assert list(rows) == [each.name for each in fields(cls)]
    for each in fields(cls):
        kind, default, meaning = rows[each.name]
        assert kind == WORDS[str(each.type).replace('"', "'")], each.name
        assert meaning
        is_needed = each.default is MISSING and each.default_factory is MISSING
        assert (default == "required") == is_needed, each.name
        if each.name == "name" and cls is Plan:
            assert default == "the file's name"  # where there is a file
        elif isinstance(each.default, bool | int | float) or each.default:
            if each.default is not MISSING:
                assert json.loads(default.strip("`")) == each.default, each.name
        elif not is_needed:
            assert "`" not in default, f"{each.name} has no value by default"


def test_the_names_of_a_pipelines_policy_are_on_the_page(tmp_path):  # R-P1
    rows = table("A policy's table")
    known = PHASE_POLICY_WORDS.known((), "")
    assert set(rows) <= {*known}
    defaults = {name: json.loads(cells[1].strip("`")) for name, cells in rows.items()}
    plans = []
    for name, policy in (("empty", {}), ("said", defaults)):
        lines = [f"{key} = {json.dumps(value)}" for key, value in policy.items()]
        words = '[[phases]]\nname = "a"\nagents = [{command = ["x"]}]\n[phases.policy]\n'
        (tmp_path / name).write_text(words + "\n".join(lines))
        plans.append(load_plan(tmp_path / name).phases[0])
    empty, said = plans
    assert (said.policy, said.on_failure) == (empty.policy, empty.on_failure)
    assert isinstance(said.policy, Policy)
    assert said.policy.rules == preset("pipeline").rules


DONE = AttemptEnd(1200.0, 2, 98.0, then="done", cost=0.11)
CHECKED = WorkVerified(1201.0, 2, is_good=True, said="")
REMARK = RunRemark(1202.0, "git: its changes are on the branch mulligan/k3fqzz/1-2-review-style")
UNGIVEN = WorkDelivered(1203.0, "parser.py conflicts with the tree: it was changed since")
HELD = RunRescheduled(1001.0, 4000.0, "a run of this account met a limit")
FAIL_FAST = "{} failed, and the phase fails with the first"


def lines() -> set[str]:
    """What a plan says in all of its moments."""
    names = ("security", "style", "speed")
    agents = tuple(Agent(name=name, command=("x",)) for name in names)
    one = Phase(name="review", agents=agents)
    plan = Plan(phases=(one, Phase(name="sum", agents=(Agent(name="editor", command=("x",)),))))
    end, err = os.pipe()
    streams, environ = StandardStreams(Stop(), err, err), {"TERM": "dumb"}
    for known in ({}, {"review/security": state(BEGUN, DONE, WorkDelivered(1200.0))}):
        with closing(PlanTable(plan, run="k3fqzz", streams=streams, environ=environ)) as shown:
            for key, each in known.items():
                shown.changed(key, each, 1000.0)
            shown.phases({"review": "open", "sum": "blocked"}, {})
            steps: list[JournalEntry] = []
            for step in (BEGUN, LIMIT, AGAIN, DONE, CHECKED, REMARK, UNGIVEN):
                steps.append(step)
                shown.changed("review/style", state(*steps), step.at)
            shown.changed("review/speed", state(HELD), 1001.0)
            shown.changed(
                "review/speed", state(HELD, RunCancelled(1, FAIL_FAST.format("review/style"))), 1
            )
            why = {
                "review": FAIL_FAST.format("review/speed"),
                "sum": "it needs review, which failed",
            }
            shown.phases({"review": "failed", "sum": "skipped"}, why)
            shown.phases({"review": "succeeded", "sum": "skipped"}, {})
            shown.notified("mail exited with 1")
            shown.over(report(plan, {}, {}, {})._replace(until=1101.0))
    os.close(err)
    with os.fdopen(end, encoding="utf-8") as file:
        return {untimed(line.rstrip()) for line in file}


def untimed(line: str) -> str:
    return re.sub(r"\d\d:\d\d:\d\d", "TIME", line)


def test_every_line_on_the_page_is_one_that_is_said():
    rows = PAGE.partition("Elsewhere, lines on stderr:")[2].partition("At the end")[0]
    shown = {untimed(each) for each in re.findall(r"`(mulligan: [^`]+)`", rows)}
    assert len(shown) == 13
    assert shown <= lines()
    ends = [each[2:] for each in re.findall("`(… [^`]+)`", rows)]
    assert all(any(line.endswith(end) for line in lines()) for end in ends)
