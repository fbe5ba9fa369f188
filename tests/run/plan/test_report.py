"""What came of a plan, with every decision's reason."""

from __future__ import annotations

import json

import pytest

from mulligan.run.journal.entries import (
    AttemptEnd,
    RunCancelled,
    RunRemark,
    RunReopened,
    WorkDelivered,
    WorkVerified,
)
from mulligan.run.plan.model import Agent, Phase, Plan
from mulligan.run.plan.report import as_data, as_lines, as_markdown, report
from mulligan.run.show.messages import clock

from ..steps import AGAIN, BEGUN, state
from ..steps import LIMIT as LIMITED

LIMIT = LIMITED._replace(message="5-hour limit *reached* <b>")
DONE = AttemptEnd(1210.0, 2, 108.0, code=0, then="done", cost=0.3, tokens=5000)
GIVEN = WorkDelivered(1210.0)
REFUSED = AttemptEnd(
    1011.0,
    1,
    10.0,
    code=1,
    kind="auth",
    message="no key",
    then="stop",
    exit=1,
    because="auth never passes",
    advice="log in",
)


def agents(*names: str) -> tuple[Agent, ...]:
    return tuple(Agent(name=name, command=("x",)) for name in names)


PLAN = Plan(
    name="review",
    phases=(
        Phase(name="read", agents=agents("one", "two", "three")),
        Phase(name="sum", agents=agents("four")),
    ),
)
STATES = {
    "read/one": state(BEGUN, LIMIT, AGAIN, DONE, GIVEN),
    "read/two": state(BEGUN, REFUSED),
    "read/three": state(
        BEGUN, RunCancelled(1012.0, "two failed, and the phase fails with the first")
    ),
}
WHY = {"read": "read/two failed, and the phase fails with the first", "sum": "it needs read"}
FAILED = report(PLAN, STATES, {"read": "failed", "sum": "skipped"}, WHY)


def test_a_report_sums_up_what_its_agents_did():
    assert (FAILED.is_success, FAILED.is_over) == (False, True)
    assert (FAILED.took, FAILED.waited, FAILED.cost, FAILED.tokens) == (210.0, 92.0, 0.5, 5000)
    statuses = [agent.status for phase in FAILED.phases for agent in phase.agents]
    assert statuses == ["succeeded", "failed", "stopped", "not started"]


def test_every_decision_is_told_with_its_reason():
    until, reset = clock(1101.0, 1010.0), clock(1100.0, 1010.0)
    assert "\n".join(said.text for said in as_lines(FAILED)) == (
        "plan review failed: 1 of 4 agents succeeded, 4 attempts in 3m30s, 1m32s of waiting, "
        "$0.50, 5,000 tokens\n"
        "phase read failed: read/two failed, and the phase fails with the first\n"
        "  one succeeded, 2 attempts in 3m30s, $0.50, 5,000 tokens\n"
        "    attempt 1 usage limit after 9s: 5-hour limit *reached* <b>; waits 1m31s, until "
        f"{until}: the limit resets at {reset}\n"
        "  two failed, 1 attempt in 11s\n"
        "    attempt 1 auth error after 10s: no key; not retried: auth never passes\n"
        "    hint: log in\n"
        "  three stopped, 1 attempt in 12s: two failed, and the phase fails with the first\n"
        "phase sum was skipped: it needs read\n"
        "  four not started"
    )


def test_what_a_check_printed_is_one_line_of_its_end():
    printed = "\n".join(f"test {number} passed" for number in range(99)) + "\n1 failed\n"
    checked = state(
        BEGUN, DONE._replace(attempt=1), WorkVerified(1211.0, 1, is_good=False, said=printed)
    )
    found = report(PLAN, {"read/one": checked}, {"read": "failed"}, {})
    said = found.phases[0].agents[0].decisions[-1].said
    assert said.startswith("… ")
    assert said.endswith("test 98 passed 1 failed")
    assert len(said) <= 500


def test_a_reason_that_was_said_is_not_said_again():
    missing = REFUSED._replace(message="cannot start x", because="cannot start x", kind="client")
    found = report(PLAN, {"read/one": state(BEGUN, missing)}, {"read": "failed"}, {})
    assert [said.text for said in as_lines(found)][3] == (
        "    attempt 1 cannot work after 10s: cannot start x; not retried"
    )


def test_a_page_takes_no_orders_from_what_agents_said():
    page = as_markdown(FAILED)
    assert r"5-hour limit \*reached\* \<b\>" in page
    assert page.startswith("# review failed\n\n1 of 4 agents succeeded")
    assert "| read | one | succeeded | 2 | 3m30s | \\$0.50 |" in page
    assert "## sum was skipped: it needs read" in page


def test_a_report_is_plain_data():
    data = json.loads(json.dumps(as_data(FAILED)))
    first = data["phases"][0]["agents"][0]
    assert (first["name"], first["attempts"], first["cost"]) == ("one", 2, 0.5)
    assert first["decisions"][0]["because"] == "the limit resets"


def test_a_plan_that_was_interrupted_is_not_over():
    waits = report(PLAN, {"read/one": state(BEGUN, LIMIT)}, {"read": "open", "sum": "blocked"}, {})
    assert (waits.is_over, as_lines(waits)[0].tone) == (False, "wait")
    assert as_lines(waits)[0].text.startswith("plan review is not over: 0 of 4 agents succeeded")


@pytest.mark.parametrize("is_good", [True, False])
def test_what_was_verified_counts_as_verified(is_good):  # R-A2
    done = DONE._replace(attempt=1)
    plan = Plan(phases=(Phase(name="read", agents=agents("one"), verify=("pytest",)),))
    checked = state(BEGUN, done, WorkVerified(1211.0, 1, is_good, "1 failed"), GIVEN)
    found = report(plan, {"read/one": checked}, {"read": "open"}, {})
    agent = found.phases[0].agents[0]
    assert agent.status == ("succeeded" if is_good else "not verified")
    assert agent.decisions[-1].ended == ("verified" if is_good else "not verified")
    assert agent.decisions[-1].said == ("" if is_good else "1 failed")


def test_what_is_done_and_was_not_delivered_is_told_apart():
    done, trouble = DONE._replace(attempt=1), WorkDelivered(1211.0, "a.txt conflicts with the tree")
    plan = Plan(name="edit", phases=(Phase(name="edit", agents=agents("one", "two", "three")),))
    states = {
        "edit/one": state(BEGUN, done, GIVEN),
        "edit/two": state(BEGUN, done, trouble),
        "edit/three": state(BEGUN, done, trouble, RunReopened(1300.0)),
    }
    found = report(plan, states, {"edit": "succeeded"}, {})
    lines = [said.text for said in as_lines(found)]
    assert lines[0].startswith(
        "plan edit is done: 1 of 3 agents succeeded, 1 not delivered, 1 to be delivered, 3 attempts"
    )
    assert lines[1] == "phase edit succeeded with 1 of 3 agents"
    statuses = [line.split(", 1 attempt")[0] for line in lines[2:]]
    assert statuses == ["  one succeeded", "  two not delivered", "  three to be delivered"]
    assert "\n## edit succeeded with 1 of 3 agents\n" in as_markdown(found)


def test_a_folder_that_stays_is_named_once():
    left = RunRemark(
        1211.0, "git: its folder stays: /trees/one; mulligan git drop --force x removes it"
    )
    plan = Plan(phases=(Phase(name="edit", agents=agents("one")),))
    for steps in ((), (left,)):
        states = {"edit/one": state(BEGUN, DONE._replace(attempt=1), GIVEN, *steps)}
        found = report(plan, states, {"edit": "succeeded"}, {}, {"edit/one": "/trees/one"})
        assert sum("/trees/one" in said.text for said in as_lines(found)) == 1


def test_a_plan_that_never_began_has_a_report():
    empty = report(PLAN, {}, {}, {})
    assert (
        as_lines(empty)[0].text
        == "plan review is not over: 0 of 4 agents succeeded, 0 attempts in 0s"
    )
    assert as_markdown(empty)
