"""Which agents of a plan run when, and what becomes of its phases (R-P2)."""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.run.plan.model import Agent, Phase, Plan
from mulligan.run.plan.schedule import AgentProgress, dispatch

# More than any test has agents.
ANY = 1000


def phase_of(name="review", count=3, *, mode="fail_fast", minimum=1, providers=(), **more):
    providers = providers or [""] * count
    agents = tuple(
        Agent(name=str(number), command=("true",), provider=each)
        for number, each in enumerate(providers)
    )
    if mode == "require_minimum":
        more["minimum"] = minimum
    return Phase(name=name, agents=agents, on_failure=mode, **{"needs": (), **more})


def agent_key(phase, agent):
    return f"{phase.name}/{agent.name}"


def plan_of(*phases, slots=None, providers=()):
    return Plan(phases=phases, concurrency=slots or ANY, providers=dict(providers))


def simulate(phases, script, **more):
    """Play a plan in virtual time; `script` has each agent's (duration, end) pairs.

    An end is "succeeded", "failed", a number: it waits so long, then takes its next pair; or
    a tuple of one number: it waits until then.
    """
    left = {key: list(parts) for key, parts in script.items()}
    plan = plan_of(*phases, **more)
    by_key = {agent_key(one, each): each for one in phases for each in one.agents}
    progress = dict.fromkeys(by_key, AgentProgress())
    now, most = 0.0, 0
    running: list[tuple[float, str, Any]] = []
    ran: list[str] = []
    most_by: dict[str, int] = {}
    while True:
        found = dispatch(plan, progress, now=now)
        for key in found.stop:
            running = [each for each in running if each[1] != key]
            progress[key] = AgentProgress("stopped")
        for key in found.start:
            duration, end = left[key].pop(0)
            progress[key] = AgentProgress("running")
            heapq.heappush(running, (now + duration, key, end))
            ran.append(key)
        heapq.heapify(running)
        most = max(most, len(running))
        for name in {by_key[key].provider for _, key, _ in running}:
            count = sum(by_key[key].provider == name for _, key, _ in running)
            most_by[name] = max(most_by.get(name, 0), count)
        if found.is_over:
            return found, progress, now, most, ran, most_by
        if found.stop or found.start:
            continue
        next_end = running[0][0] if running else None
        next_at = min(each for each in (next_end, found.wake_at) if each is not None)
        assert next_at >= now
        now = next_at
        while running and running[0][0] <= now:
            _, key, end = heapq.heappop(running)
            end = max(0, end[0] - now) if isinstance(end, tuple) else end
            progress[key] = (
                AgentProgress("waiting", now + end)
                if isinstance(end, int | float)
                else AgentProgress(end)
            )


def outcomes(mode, is_parallel, ends, **more):
    one = phase_of(count=len(ends), mode=mode, parallel=is_parallel, **more)
    script = {
        agent_key(one, agent): [(10 * (number + 1), end)]
        for number, (agent, end) in enumerate(zip(one.agents, ends, strict=True))
    }
    found, progress, _, _, ran, _ = simulate([one], script)
    return found.phases["review"], [each.status for each in progress.values()], len(ran)


BAD = ["failed", "succeeded", "succeeded"]


@pytest.mark.parametrize(
    ("mode", "is_parallel", "expected"),
    [
        ("fail_fast", True, ("failed", ["failed", "stopped", "stopped"], 3)),
        ("fail_fast", False, ("failed", ["failed", "todo", "todo"], 1)),
        ("continue", True, ("succeeded", BAD, 3)),
        ("continue", False, ("succeeded", BAD, 3)),
    ],
)
def test_three_agents_one_failing(mode, is_parallel, expected):
    assert outcomes(mode, is_parallel, BAD) == expected


@pytest.mark.parametrize("is_parallel", [True, False])
@pytest.mark.parametrize(("minimum", "state"), [(1, "succeeded"), (2, "succeeded"), (3, "failed")])
def test_a_minimum_is_enough(is_parallel, minimum, state):
    found = outcomes("require_minimum", is_parallel, BAD, minimum=minimum)
    assert found[0] == state


def test_a_minimum_that_cannot_be_reached_stops_the_others():
    found = outcomes("require_minimum", is_parallel=False, ends=BAD, minimum=3)
    assert found == ("failed", ["failed", "todo", "todo"], 1)


def test_no_success_at_all_fails_a_phase_that_continues():
    assert outcomes("continue", is_parallel=True, ends=["failed"] * 3)[0] == "failed"


def test_a_phase_waits_for_what_it_needs_and_is_skipped_if_that_failed():
    first, second = phase_of("first", 1), phase_of("second", 1, needs=("first",))
    script = {"first/0": [(5, "failed")], "second/0": [(5, "succeeded")]}
    found, progress, *_ = simulate([first, second], script)
    assert found.phases == {"first": "failed", "second": "skipped"}
    assert progress["second/0"].status == "todo"
    assert found.because["second"] == "it needs first, which failed"


def test_phases_that_need_nothing_of_each_other_run_side_by_side():
    script = {"a/0": [(10, "succeeded")], "b/0": [(10, "succeeded")]}
    found, _, took, *_ = simulate([phase_of("a", 1), phase_of("b", 1)], script)
    assert (found.is_success, took) == (True, 10)


def test_who_waits_holds_no_slot():  # "the concurrency slot held while sleeping"
    script = {
        "review/0": [(10, 1000), (10, "succeeded")],
        "review/1": [(10, "succeeded")],
        "review/2": [(10, "succeeded")],
    }
    _, _, took, most, ran, _ = simulate([phase_of()], script, slots=1)
    assert (took, most) == (1020, 1)
    assert ran == ["review/0", "review/1", "review/2", "review/0"]


def test_one_after_the_other_nobody_overtakes_a_waiting_one():
    script = {
        "review/0": [(10, 100), (10, "succeeded")],
        "review/1": [(10, "succeeded")],
        "review/2": [(10, "succeeded")],
    }
    _, _, _, _, ran, _ = simulate([phase_of(parallel=False)], script)
    assert ran == ["review/0", "review/0", "review/1", "review/2"]


def test_a_provider_s_slots_are_its_own():
    one = phase_of("p", providers=["claude"] * 4 + ["codex"] * 2)
    script = {f"p/{number}": [(10, "succeeded")] for number in range(6)}
    _, _, took, most, _, most_by = simulate([one], script, providers={"claude": 2})
    assert (took, most, most_by) == (20, 4, {"claude": 2, "codex": 2})


def test_when_the_money_is_used_up_nothing_more_is_started():
    plan = plan_of(phase_of())
    progress = {"review/0": AgentProgress("succeeded"), "review/1": AgentProgress("running")}
    found = dispatch(plan, progress, now=0, is_spent=True)
    assert (found.start, found.stop, found.is_over) == ((), (), False)
    progress["review/1"] = AgentProgress("succeeded")
    found = dispatch(plan, progress, now=0, is_spent=True)
    assert found.is_over
    assert found.because["review"].startswith("the cost limit is reached; ")


def test_work_that_is_paid_for_is_verified_and_given_when_the_money_is_used_up():
    progress = {
        "review/0": AgentProgress("waiting", is_free=True),
        "review/1": AgentProgress("waiting"),
        "review/2": AgentProgress("todo"),
    }
    found = dispatch(plan_of(phase_of()), progress, now=0, is_spent=True)
    assert (found.start, found.stop, found.phases) == (("review/0",), (), {"review": "open"})


def test_forty_agents_in_four_slots_with_ten_limited_are_close_to_the_ideal():
    one = phase_of(count=40, mode="continue")
    script = {}
    for number, agent in enumerate(one.agents):
        if number % 4 == 0:  # ten of them meet a limit that resets at 3000
            script[agent_key(one, agent)] = [(60, (3000,)), (540, "succeeded")]
        else:
            script[agent_key(one, agent)] = [(600, "succeeded")]
    found, _, took, most, _, _ = simulate([one], script, slots=4)
    work = sum(duration for parts in script.values() for duration, _ in parts)
    assert found.is_success
    assert most == 4
    assert took <= 1.1 * work / 4


ends = st.sampled_from(["succeeded", "failed"])


@given(
    shape=st.lists(
        st.tuples(
            st.integers(1, 5),
            st.booleans(),
            st.sampled_from(["fail_fast", "continue", "require_minimum"]),
        ),
        min_size=1,
        max_size=4,
    ),
    data=st.data(),
    slots=st.none() | st.integers(1, 4),
)
def test_every_plan_ends_and_nobody_runs_in_a_slot_that_is_not_there(shape, data, slots):
    phases, script = [], {}
    for number, (count, is_parallel, mode) in enumerate(shape):
        before = [f"p{each}" for each in range(number)]
        one = phase_of(
            f"p{number}",
            count,
            parallel=is_parallel,
            mode=mode,
            minimum=data.draw(st.integers(1, count)),
            needs=tuple(data.draw(st.sets(st.sampled_from(before)))) if before else (),
        )
        phases.append(one)
        for agent in one.agents:
            waits = data.draw(st.lists(st.integers(0, 50), max_size=2))
            parts = [(data.draw(st.integers(0, 20)), wait) for wait in waits]
            script[agent_key(one, agent)] = [
                *parts,
                (data.draw(st.integers(0, 20)), data.draw(ends)),
            ]
    found, progress, _, most, ran, _ = simulate(phases, script, slots=slots)
    assert found.is_over
    assert slots is None or most <= slots
    for one in phases:
        successes = sum(progress[agent_key(one, each)].status == "succeeded" for each in one.agents)
        if found.phases[one.name] == "succeeded":
            least = {"fail_fast": len(one.agents), "continue": 1, "require_minimum": one.minimum}
            assert successes >= least[one.on_failure]
        if found.phases[one.name] == "skipped":
            assert not any(key.startswith(f"{one.name}/") for key in ran)


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("fail_fast", "review/1 failed, and the phase fails with the first"),
        ("require_minimum", "3 must succeed, and 1 of 3 failed"),
    ],
)
def test_a_phase_names_who_failed_not_who_was_stopped_for_it(mode, why):
    progress = {
        "review/0": AgentProgress("stopped"),
        "review/1": AgentProgress("failed"),
        "review/2": AgentProgress("stopped"),
    }
    found = dispatch(plan_of(phase_of(mode=mode, minimum=3)), progress, now=0.0)
    assert found.because == {"review": why}


ROWS = [
    [cell.strip(" `") for cell in line.strip("|").split("|")]
    for line in (Path(__file__).parents[3] / "docs" / "failure-modes.md").read_text().splitlines()
    if line.startswith(("| `fail_fast`", "| `continue`", "| `require_minimum`"))
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_the_page_shows_what_becomes_of_three_agents(row):  # R-P2
    mode, _, minimum = row[0].partition("`, ")
    phase = phase_of(mode=mode, minimum=int(minimum or 1), parallel=row[1] == "true")
    ends = {"review/0": "failed", "review/1": "succeeded", "review/2": "succeeded"}
    script = {key: [(60 * at, end)] for at, (key, end) in enumerate(ends.items(), 1)}
    found, progress, *_ = simulate((phase,), script)
    names = {"todo": "not started"}
    statuses = [names.get(each.status, each.status) for each in progress.values()]
    assert [*statuses, found.phases["review"]] == row[2:]
    assert len(ROWS) == 8
