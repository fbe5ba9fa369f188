"""What the server tells a page, over real HTTP."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import mulligan
from mulligan.stores.entries import JournalLine
from mulligan.testing import Scripted, status_error

from . import journals
from .serving import running

pytestmark = pytest.mark.real


def test_with_nothing_there_everything_is_empty_and_nothing_fails(dashboard):
    assert dashboard.get("/api/runs")["rows"] == []
    assert dashboard.get("/api/targets")["targets"] == []
    found = dashboard.get("/api/failures?since=24h")
    assert found["calls"]["failures"] == found["runs"]["runs"] == 0
    assert dashboard.get("/api/letters") == {"letters": []}
    assert dashboard.get("/api/stories") == {"stories": []}


def test_a_run_is_told_with_all_that_the_list_shows(runs, dashboard):
    now = time.time()
    claimed = journals.made(runs, now - 60, name="port", command="claude -p 'Port the module'")
    journals.begun(runs, claimed, now - 50)
    journals.limited(runs, claimed, now - 10, now + 600)
    dashboard.sources.refresh()
    (row,) = dashboard.get("/api/runs")["rows"]
    assert (row["name"], row["prompt"], row["program"]) == ("port", "Port the module", "claude")
    assert (row["status"], row["is_limit"]) == ("waiting", True)
    assert row["until"] == pytest.approx(now + 600)
    assert (row["attempts"], row["cost"], row["tokens"]) == (1, 0.41, 41_200)


def test_a_run_in_detail_tells_attempts_waits_and_reasons(runs, dashboard):
    now = time.time()
    claimed = journals.made(runs, now - 100)
    journals.begun(runs, claimed, now - 90)
    journals.limited(runs, claimed, now - 60, now - 30)
    journals.begun(runs, claimed, now - 29, 2, "resume")
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQ\nabc\n-----END PRIVATE KEY-----"
    journals.log(runs, claimed.id, 2, f"hello api_key=abcdef123456\n{key}\n\x1b[31mred")
    found = dashboard.get(f"/api/runs/{claimed.id}")
    assert [each["tone"] for each in found["segments"]] == ["failed", "limit", "working"]
    first, second = found["steps"]
    assert (first["met"], first["said"]) == ("usage limit", "You've hit your limit · resets 9pm")
    assert (second["how"], second["ended_at"]) == ("resume", None)
    log = dashboard.get(f"/api/runs/{claimed.id}/log?attempt=2")
    assert log["text"] == "hello api_key=[masked]\n[masked]\nred"


def test_a_plan_tells_its_phases_also_those_that_have_not_begun(runs, dashboard):
    now = time.time()
    plan = journals.made(runs, now - 100, name="release", agent="plan", command="release.toml")
    journals.plan_file(runs, plan.id, {"survey": ["api"], "report": ["write"]})
    journals.begun(runs, plan, now - 99)
    agent = journals.made(runs, now - 98, id=f"{plan.id}.survey.api", parent=plan.id)
    journals.begun(runs, agent, now - 97)
    journals.ended(runs, agent, now - 20, code=0)
    dashboard.sources.refresh()
    found = dashboard.get(f"/api/runs/{plan.id}")
    told = {each["name"]: [one["status"] for one in each["agents"]] for each in found["phases"]}
    assert told == {"survey": ["done"], "report": ["not started"]}
    (row,) = dashboard.get("/api/runs")["rows"]
    assert (row["agents_done"], row["agents"]) == (1, 2)


def test_what_is_not_there_is_not_found(runs, dashboard):
    for path in ("/api/runs/nothere", "/api/runs/nothere/log", "/api/runs/..%2f..%2fetc/log"):
        assert dashboard.ask("GET", path)[0] == 404
    claimed = journals.made(runs, time.time())
    dashboard.sources.refresh()
    bad = f"/api/runs/{claimed.id}/log?attempt=1&stream=../../../etc/passwd"
    assert dashboard.ask("GET", bad)[0] == 404


def test_a_run_whose_journal_is_damaged_is_listed_as_unreadable(runs, dashboard):
    claimed = journals.made(runs, time.time())
    runs._journal.append(f"run/{claimed.id}", JournalLine("x", "{", 1))
    dashboard.sources.refresh()
    (row,) = dashboard.get("/api/runs")["rows"]
    assert row["status"] == "unreadable"
    assert "damaged" in row["because"]


def test_runs_are_filtered_searched_and_paged(runs, dashboard):
    now = time.time()
    for number in range(130):
        claimed = journals.made(runs, now - number, name=f"run-{number}")
        journals.begun(runs, claimed, now - number)
        journals.ended(runs, claimed, now - number, code=0)
        runs.release(claimed)
    dashboard.sources.refresh()
    found = dashboard.get("/api/runs?limit=50&offset=100")
    assert (found["total"], len(found["rows"])) == (130, 30)
    assert found["counts"] == {"done": 130}
    assert dashboard.get("/api/runs?q=RUN-129")["rows"][0]["name"] == "run-129"
    assert dashboard.get("/api/runs?status=waiting")["rows"] == []
    assert len(dashboard.get("/api/runs?limit=nonsense&offset=-5")["rows"]) == 100


def events_of(dashboard, count, act):
    """The events that a page gets while `act` is done."""
    connection = http.client.HTTPConnection("127.0.0.1", dashboard.port, timeout=20)
    connection.request("GET", "/api/events")
    answer = connection.getresponse()
    assert answer.getheader("content-type", "").startswith("text/event-stream")
    found: list[tuple[str, dict[str, Any]]] = []
    event, ends_at = "", time.monotonic() + 20
    threading.Timer(0.3, act).start()
    while len(found) < count:
        assert time.monotonic() < ends_at, found
        line = answer.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: ") and event != "targets":
            found.append((event, json.loads(line.removeprefix("data: "))))
    answer.close()
    connection.close()
    return found


def test_a_page_is_told_of_a_new_run_and_of_its_end(runs, dashboard):
    now = time.time()

    def act():
        claimed = journals.made(runs, now, name="fresh")
        journals.begun(runs, claimed, now)
        time.sleep(1.0)
        time.sleep(0.3)
        journals.ended(runs, claimed, now + 1, code=0)
        runs.release(claimed)

    hello, first, *rest = events_of(dashboard, 3, act)
    assert hello[0] == "hello"
    assert [row["name"] for row in first[1]["rows"]] == ["fresh"]
    assert rest[-1][1]["rows"][0]["status"] == "done"
    assert rest[-1][1]["counts"] == {"done": 1}


WAITS_ONCE = """
if [ -e {mark} ]; then echo fine
else
  touch {mark}
  echo '429 Too Many Requests: rate limit reached, try again in 1 hour' >&2
  exit 1
fi
"""


def test_a_run_that_waits_in_a_terminal_is_woken_where_it_is(dashboard, tmp_path):
    script = WAITS_ONCE.format(mark=tmp_path / "mark")
    child = subprocess.Popen(
        [sys.executable, "-m", "mulligan", "run", "--name", "sleepy", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        ends_at = time.monotonic() + 20
        rows: list[dict[str, Any]] = []
        while not rows or rows[0]["status"] != "waiting":
            assert time.monotonic() < ends_at, rows
            time.sleep(0.1)
            dashboard.sources.refresh()
            rows = dashboard.get("/api/runs")["rows"]
        wake = {"run": rows[0]["id"]}
        status, _, said = dashboard.ask("POST", "/api/actions/wake", wake, **dashboard.as_page())
        woken = f"tries again now, in process {child.pid}"
        assert (status, woken in said["said"]) == (200, True), said
        assert child.wait(20) == 0
    finally:
        child.kill()
        output, _ = child.communicate()
    assert output == b"fine\n"


def test_targets_failures_letters_and_stories_come_from_the_store(home, tmp_path):
    store = f"sqlite:{tmp_path / 'guards.db'}"
    listener = mulligan.StoreListener(store)
    fast = mulligan.Policy(
        rules={mulligan.Kind.SERVER: mulligan.Rule(attempts=2, backoff=mulligan.Fixed(wait=0.01))},
        effects=mulligan.Effects.READ,
    )
    guard = mulligan.Guard(
        "billing", policy=fast, listeners=[listener], store=store, dead_letters=store
    )
    with pytest.raises(Exception, match="500"):
        guard.call(Scripted(status_error(500, "broken")))
    assert listener.flush()
    with running(store) as dashboard:
        (target,) = dashboard.get("/api/targets")["targets"]
        assert (target["target"], target["breaker"]) == ("billing", "closed")
        found = dashboard.get("/api/failures")
        assert found["calls"]["kinds"] == {"server": 2}
        assert sum(each.get("server", 0) for each in found["columns"]) == 2
        (story,) = dashboard.get("/api/stories")["stories"]
        assert story["because"] == "attempt 2 of 2 failed with 500 (server)"
        (letter,) = dashboard.get("/api/letters")["letters"]
        assert letter["unfit"] == "its function is not replayable"
        body = {"target": "billing"}
        status, _, said = dashboard.ask("POST", "/api/actions/block", body, **dashboard.as_page())
        assert (status, said["is_done"]) == (200, True)
        assert dashboard.get("/api/targets")["targets"][0]["breaker"] == "blocked"
        dashboard.ask("POST", "/api/actions/reset", body, **dashboard.as_page())
        assert {row["breaker"] for row in dashboard.get("/api/targets")["targets"]} <= {"closed"}


def test_a_store_that_cannot_be_read_is_said_so(home, tmp_path, monkeypatch):
    with running(f"sqlite:{tmp_path / 'guards.db'}") as dashboard:

        def down(machine):
            raise mulligan.StoreDown("sqlite:guards.db", "cannot be read")

        monkeypatch.setattr(dashboard.sources._guards.state, "known", down)
        assert "cannot be read" in dashboard.get("/api/targets")["error"]
        assert "cannot be read" in dashboard.get("/api/failures")["error"]


def test_a_journal_that_is_gone_is_said_so_and_the_server_goes_on(runs, dashboard, home):
    claimed = journals.made(runs, time.time())
    dashboard.sources.refresh()
    for each in home.glob("state*"):
        each.unlink()
    (home / "state.journal.db").mkdir()
    dashboard.sources.index.runs._file.close()
    status, _, body = dashboard.ask("GET", f"/api/runs/{claimed.id}")
    assert status in {404, 503}
    assert body["error"]
    assert dashboard.ask("GET", "/api/about")[0] == 200


def test_the_command_starts_in_a_second_and_prints_a_link(home):
    began = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-m", "mulligan", "dashboard", "--no-open", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stderr is not None
        line = child.stderr.readline()
        took = time.monotonic() - began
        assert line.startswith("mulligan: the dashboard is at http://127.0.0.1:")
        assert took < 10  # a second on an idle machine; this one may be busy
    finally:
        child.send_signal(2)
        assert child.wait(10) in {0, 130}
        if child.stderr is not None:
            child.stderr.close()
