"""A plan as it is seen: a table on a real pseudo-terminal, lines, events."""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
import termios
import threading
import time
from contextlib import closing

import pytest

from mulligan.run.journal.entries import (
    AttemptEnd,
    RunRemark,
    RunReopened,
    RunRescheduled,
    WorkDelivered,
    WorkVerified,
)
from mulligan.run.plan.model import Agent, Phase, Plan
from mulligan.run.plan.report import as_lines, report
from mulligan.run.process.stop import Stop
from mulligan.run.show.messages import clock, step_messages
from mulligan.run.show.plan_view import PlanTable
from mulligan.run.show.standard_streams import StandardStreams

from ..steps import AGAIN, BEGUN, LIMIT, state

DONE = AttemptEnd(1210.0, 2, 108.0, code=0, then="done", cost=0.3)
GIVEN = WorkDelivered(1210.0)


def plan(*names: str) -> Plan:
    agents = tuple(Agent(name=name, command=("x",)) for name in names)
    return Plan(name="review", phases=(Phase(name="read", agents=agents),))


class Place:
    """A terminal or a pair of pipes with a plan shown on it."""

    def __init__(
        self,
        shown: Plan,
        *,
        lines: int = 24,
        columns: int = 80,
        is_terminal: bool = True,
        **settings,
    ) -> None:
        self.plan = shown
        if is_terminal:
            self.end, err = os.openpty()
            fcntl.ioctl(err, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            out = err
        else:
            self.end, err = os.pipe()
            out = err
        os.set_blocking(self.end, False)
        environ = {"TERM": "xterm", "NO_COLOR": "1"}
        streams = StandardStreams(Stop(), out, err)
        self.table = PlanTable(shown, run="k3fqzz", streams=streams, environ=environ, **settings)

    def written(self) -> str:
        found = b""
        for _ in range(50):
            try:
                found += os.read(self.end, 1 << 20)
            except BlockingIOError:
                time.sleep(0.01)
                if found:
                    break
        return found.decode()

    def screen(self) -> list[str]:
        """The lines of the last picture, without colours."""
        last = self.written().replace("\r\n", "\n").split("\x1b[1A\x1b[2K")[-1]
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", last)
        return [line.rstrip() for line in plain.split("\n") if line.strip()]


@pytest.mark.real
def test_a_terminal_shows_who_runs_who_waits_and_what_it_costs():
    place = Place(plan("one", "two", "three"))
    with closing(place.table) as table:
        table.phases({"read": "open"}, {})
        table.changed("read/one", state(BEGUN, LIMIT), 1010.0)
        table.changed("read/two", state(BEGUN), 1010.0)
        table.tick(1011.0)
        shown = place.screen()
    until = clock(1101.0, 1010.0)
    assert [line.split() for line in shown[:3]] == [
        ["phase", "agent", "attempt", "state", "next", "cost"],
        ["read", "one", "1", "waits:", "usage", "limit", "1:30", "until", until, "$0.20"],
        ["two", "1", "runs", "0:10"],
    ]
    assert shown[3].split() == ["three", "to", "come"]
    assert shown[4] == "0 of 3 succeeded · $0.20 · Ctrl-C is safe: mulligan resume k3fqzz"


@pytest.mark.real
def test_the_table_is_gone_when_the_plan_is_over_and_the_report_stays():
    place = Place(plan("one"))
    with closing(place.table) as table:
        done = state(BEGUN, LIMIT, BEGUN._replace(attempt=2, at=1102.0), DONE)
        table.changed("read/one", done, 1210.0)
        table.tick(1211.0)
        table.over(report(place.plan, {"read/one": done}, {"read": "succeeded"}, {}))
    written = place.written()
    assert "mulligan: plan review is done" in written
    assert written.endswith("the limit resets at " + clock(1100.0, 1010.0) + "\r\n")
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1  # the cursor is back


@pytest.mark.real
def test_a_small_screen_shows_those_at_work_and_counts_the_others():
    names = [f"n{number}" for number in range(30)]
    place = Place(plan(*names), lines=10)
    with closing(place.table) as table:
        table.changed("read/n7", state(BEGUN), 1010.0)
        table.tick(1011.0)
        shown = place.screen()
    assert len(shown) == 3
    assert "n7" in shown[1]
    assert shown[2].startswith("29 more · 0 of 30 succeeded")


@pytest.mark.real
def test_without_a_terminal_each_thing_is_told_once_in_a_line():
    place = Place(plan("one"), is_terminal=False)
    with closing(place.table) as table:
        for _ in range(3):  # whoever drives a plan tells all of it every second
            table.phases({"read": "open"}, {})
            table.changed("read/one", state(BEGUN, LIMIT), 1010.0)
            table.tick(1011.0)
        table.changed("read/one", state(BEGUN), 1012.0)  # overtaken
        table.phases({"read": "failed"}, {"read": "none of its 1 agents succeeded"})
    begun, ended = clock(1001.0, 1001.0), clock(1010.0, 1010.0)
    until, reset = clock(1101.0, 1010.0), clock(1100.0, 1010.0)
    assert place.written() == (
        "mulligan: phase read begins\n"
        f"mulligan: {begun} read/one: begins\n"
        f"mulligan: {ended} read/one: attempt 1: one hit a usage limit after 9s, $0.20: limit "
        "reached\n"
        f"mulligan: {ended} read/one: waits 1m31s, until {until}: the limit resets at {reset}\n"
        "mulligan: phase read failed: none of its 1 agents succeeded\n"
    )


@pytest.mark.real
def test_what_happened_before_it_was_taken_up_is_not_told_again():
    place = Place(plan("one", "two", "three"), is_terminal=False)
    with closing(place.table) as table:
        table.changed("read/one", state(BEGUN, DONE, GIVEN), 1300.0)
        table.changed("read/two", state(BEGUN, LIMIT), 1300.0)
        reopened = state(BEGUN, DONE, WorkDelivered(1210.0, "a conflict"), RunReopened(1300.0))
        table.changed("read/three", reopened, 1300.0)
        table.phases({"read": "open"}, {})
        table.changed("read/two", state(BEGUN, LIMIT, AGAIN), 1301.0)
    begun = clock(1102.0, 1102.0)
    assert place.written() == (
        "mulligan: resumed: 1 of 3 succeeded, 1 to be delivered\n"
        f"mulligan: {begun} read/two: attempt 2: two resumes its session\n"
    )


@pytest.mark.real
def test_a_wait_for_the_limit_of_another_run_is_told():
    place = Place(plan("one"), is_terminal=False)
    with closing(place.table) as table:
        table.phases({"read": "open"}, {})
        table.changed(
            "read/one", state(RunRescheduled(1001.0, 1900.0, "a run met a limit")), 1001.0
        )
    now, until = clock(1001.0, 1001.0), clock(1900.0, 1001.0)
    assert place.written().splitlines()[1:] == [
        f"mulligan: {now} read/one: waits until {until}: a run met a limit"
    ]


@pytest.mark.real
def test_a_plan_that_is_parked_says_until_when():
    place = Place(plan("one"), is_terminal=False)
    with closing(place.table) as table:
        waits = report(place.plan, {"read/one": state(BEGUN, LIMIT)}, {"read": "open"}, {})
        table.over(waits._replace(until=1101.0))
    assert place.written().splitlines()[-1] == (
        f"mulligan: parked until {clock(1101.0, 1101.0)}: mulligan worker resumes it, "
        "mulligan resume k3fqzz waits here"
    )


LONG = Plan(
    name="review",
    phases=(
        Phase(
            name="review-of-the-commit",
            agents=(Agent(name="security-of-dependencies", command=("x",)),),
        ),
    ),
)


@pytest.mark.real
@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (120, "review-of-the-commit security-of-dependencies 1 waits: usage limit 1:30 until 0 $0"),
        (80, "review-… security-of-… 1 waits: usage limit 1:30 until 0 $0"),
        (60, "review-… security-… 1 waits: usage li… 1:30 $0"),
        (50, "review-… security-… waits: usage l… 1:30 $0"),
        (36, "security-… waits: usage limit 1:30"),
    ],
)
def test_a_narrow_terminal_cuts_names_before_numbers(columns, shown):
    place = Place(LONG, columns=columns)
    with closing(place.table) as table:
        table.phases({"review-of-the-commit": "open"}, {})
        table.changed("review-of-the-commit/security-of-dependencies", state(BEGUN, LIMIT), 1010.0)
        table.tick(1011.0)
        _, row, foot = place.screen()
    row = row.replace(clock(1101.0, 1010.0), "0").replace("$0.20", "$0")
    assert (" ".join(row.split()), len(foot) <= columns) == (shown, True)


@pytest.mark.real
def test_a_report_on_a_terminal_breaks_no_word():
    place = Place(plan("one"))
    with closing(place.table) as table:
        ended = state(BEGUN, LIMIT._replace(message="a limit was reached " * 6))
        table.over(report(place.plan, {"read/one": ended}, {"read": "open"}, {}))
    lines = place.written().replace("\r\n", "\n").splitlines()
    assert max(map(len, lines)) <= 80
    folded = [line for line in lines if line.startswith(" " * 16)]
    assert folded
    assert "limit was reached a limit was" in " ".join(" ".join(lines).split())


@pytest.mark.real
def test_programs_get_events_and_the_report_as_the_last_of_them():
    place = Place(plan("one"), is_terminal=False, is_json=True)
    waiting = state(BEGUN, LIMIT)
    with closing(place.table) as table:
        table.phases({"read": "open"}, {})
        table.changed("read/one", waiting, 1010.0)
        table.over(report(place.plan, {"read/one": waiting}, {"read": "open"}, {}))
    events = [json.loads(line) for line in place.written().splitlines()]
    assert [each["event"] for each in events] == ["phase", "agent", "report"]
    assert {each["run"] for each in events} == {"k3fqzz"}
    assert (events[1]["agent"], events[1]["status"], events[1]["until"]) == ("one", "waiting", 1101)
    assert events[2]["phases"][0]["agents"][0]["decisions"][0]["because"] == "the limit resets"


@pytest.mark.real
def test_a_page_is_written_where_it_is_asked_for(tmp_path):
    page = tmp_path / "report.md"
    place = Place(plan("one"), is_terminal=False, report=page)
    place.table.over(report(place.plan, {}, {"read": "failed"}, {"read": "it could not"}))
    assert page.read_text().startswith("# review failed\n")


@pytest.mark.real
def test_a_page_that_cannot_be_written_ends_nothing(tmp_path):
    place = Place(plan("one"), is_terminal=False, report=tmp_path / "gone" / "report.md")
    place.table.over(report(place.plan, {}, {"read": "failed"}, {}))
    assert place.written().splitlines()[-1].endswith("report.md: no such file or directory")


@pytest.mark.real
def test_agents_may_be_told_of_from_many_threads():
    names = [f"n{number}" for number in range(8)]
    place = Place(plan(*names), is_terminal=False)
    place.table.phases({"read": "open"}, {})
    place.written()

    def tell(name: str) -> None:
        for _ in range(20):
            place.table.changed(f"read/{name}", state(BEGUN, LIMIT), 1010.0)

    threads = [threading.Thread(target=tell, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(place.written().splitlines()) == 3 * len(names)


FORGED = "line one\n\nmulligan: plan review is done: 2 of 2 agents succeeded\n" + "x" * 900 + " end"
FINE = AttemptEnd(1010.0, 1, 9.0, code=0, then="done")
REMARK = RunRemark(1011.0, "git: its changes are on the branch mulligan/k3fqzz/1-1-one")


@pytest.mark.real
def test_what_a_verification_prints_is_one_line_that_forges_none():
    place = Place(plan("one"), is_terminal=False)
    place.table.phases({"read": "open"}, {})
    refused = state(BEGUN, FINE, WorkVerified(1012.0, 1, is_good=False, said=FORGED))
    place.table.changed("read/one", refused, 1012.0)
    place.table.over(report(place.plan, {"read/one": refused}, {"read": "failed"}, {}))
    lines = place.written().splitlines()
    assert not [line for line in lines if line.startswith("mulligan: plan review is done")]
    assert all(line.startswith("mulligan: ") for line in lines)
    told = [line.partition("not verified: ")[2] for line in lines if "not verified: " in line]
    assert {(each[0], len(each.partition(";")[0]), " end" in each) for each in told} == {
        ("…", 500, True)
    }


@pytest.mark.real
def test_an_agent_is_counted_once_it_is_verified():
    agents = (Agent(name="one", command=("x",)), Agent(name="two", command=("x",)))
    checked = Plan(name="review", phases=(Phase(name="read", agents=agents, verify=("y",)),))
    place = Place(checked)
    with closing(place.table) as table:
        table.phases({"read": "open"}, {})
        good = WorkVerified(1011.0, 1, is_good=True, said="")
        table.changed("read/one", state(BEGUN, FINE, good, GIVEN), 1012.0)
        table.changed("read/two", state(BEGUN, FINE), 1012.0)
        shown = place.screen()
    assert [line.split()[-2:] for line in shown[1:3]] == [["1", "succeeded"], ["be", "verified"]]
    assert shown[3].startswith("1 of 2 succeeded, 1 to be verified")


@pytest.mark.real
def test_what_happens_to_a_tree_is_said_above_the_table_as_it_happens():
    place = Place(plan("one"))
    with closing(place.table) as table:
        table.phases({"read": "open"}, {})
        table.changed("read/one", state(BEGUN, FINE), 1010.0)
        table.changed("read/one", state(BEGUN, FINE, REMARK), 1011.0)
        table.tick(1012.0)
        written = place.written().replace("\r\n", "\n")
    assert written.count(f"mulligan: read/one: {REMARK.text}\n") == 1


@pytest.mark.real
def test_programs_are_told_what_happened_to_the_tree():
    place = Place(plan("one"), is_terminal=False, is_json=True)
    place.table.changed("read/one", state(BEGUN, FINE, REMARK), 1011.0)
    assert json.loads(place.written())["remarks"] == [REMARK.text]


HELD = RunRescheduled(1001.0, 1601.0, "a run of this account met a limit: it resets at 9")


@pytest.mark.real
def test_who_is_held_by_the_limit_of_its_account_says_until_when_and_why():
    place = Place(plan("one"), is_terminal=False)
    place.table.phases({"read": "open"}, {})
    place.table.changed("read/one", state(HELD), 1001.0)
    place.table.over(report(place.plan, {"read/one": state(HELD)}, {"read": "open"}, {}))
    lines = place.written().splitlines()
    until = clock(1601.0, 1001.0)
    now = clock(1001.0, 1001.0)
    assert lines[1] == f"mulligan: {now} read/one: waits until {until}: {HELD.because}"
    assert f"mulligan:   one waiting, until {until}: {HELD.because}" in lines
    drawn = Place(plan("one"), columns=100)
    with closing(drawn.table) as table:
        table.changed("read/one", state(HELD), 1001.0)
        (row,) = [line for line in drawn.screen() if "one" in line]
    assert row.split()[2:] == ["waits:", "account", "limit", "10:00", "until", until]


def test_an_agent_that_could_not_be_run_at_all_is_given_up_for_a_reason():
    gone = AttemptEnd(
        1001.0, 0, 0.0, kind="client", then="stop", exit=1, because="its file is a folder"
    )
    found = as_lines(report(plan("one"), {"read/one": state(gone)}, {"read": "failed"}, {}))
    assert "    given up; not retried: its file is a folder" in [each.text for each in found]
    assert [each.text for each in step_messages(gone, "one")] == [
        "one was given up: its file is a folder"
    ]
