"""The page's actions over real HTTP: replay a dead letter, allow a target, resume a parked run."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

import mulligan
from mulligan.testing import status_error

from .serving import running

pytestmark = pytest.mark.real

APP = """
import os
import mulligan

hooks = mulligan.Guard(
    "hooks", store=os.environ["LETTERS"], dead_letters=True, effects="read", attempts=1
)


@mulligan.replayable("deliver")
def deliver(number):
    if not os.path.exists(os.environ["UP"]):
        raise ConnectionRefusedError("nobody listens")
    with open(os.environ["UP"], "a") as log:
        print(number, file=log)


def fill():
    try:
        hooks.call(deliver, 7)
    except ConnectionRefusedError:
        pass
"""


def act(dashboard, action, body):
    status, _, said = dashboard.ask("POST", f"/api/actions/{action}", body, **dashboard.as_page())
    assert status == 200, said
    return said


@pytest.fixture
def letters(home, tmp_path, monkeypatch):
    """The address of a store with one dead letter, and the file that its receiver writes."""
    store, up = f"sqlite:{tmp_path / 'letters.db'}", tmp_path / "received"
    (tmp_path / "deliveries.py").write_text(APP)
    for name, value in {"LETTERS": store, "UP": str(up), "PYTHONPATH": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    made = [sys.executable, "-c", "import deliveries; deliveries.fill()"]
    subprocess.run(made, check=True, timeout=60)
    up.touch()
    return store, up


def test_a_dead_letter_is_replayed_once(letters):
    store, up = letters
    with running(store, app="deliveries") as dashboard:
        (letter,) = dashboard.get("/api/letters")["letters"]
        assert (letter["target"], letter["unfit"]) == ("hooks", "")
        said = act(dashboard, "replay", {"letter": letter["id"]})
        assert said["is_done"], said
        assert up.read_text() == "7\n"
        # What was replayed is not replayed again from a page that still shows it.
        act(dashboard, "replay", {"letter": letter["id"]})
        assert up.read_text() == "7\n"


def test_a_replay_that_takes_long_is_not_killed(letters, monkeypatch):
    store, up = letters
    monkeypatch.setattr("mulligan.dashboard.actions._PATIENCE", 0.0)
    with running(store, app="deliveries") as dashboard:
        (letter,) = dashboard.get("/api/letters")["letters"]
        said = act(dashboard, "replay", {"letter": letter["id"]})
        assert (said["is_done"], "takes longer" in said["said"]) == (True, True), said
        ends_at = time.monotonic() + 20
        while up.read_text() != "7\n":
            assert time.monotonic() < ends_at
            time.sleep(0.05)


def test_a_blocked_target_is_allowed_again_and_calls_go_through(home, tmp_path):
    store = f"sqlite:{tmp_path / 'guards.db'}"
    guard = mulligan.Guard("billing", effects="read", attempts=1, store=store)
    with pytest.raises(Exception, match="500"):
        guard.call(fails)
    with running(store) as dashboard:
        assert act(dashboard, "block", {"target": "billing"})["is_done"]
        assert dashboard.get("/api/targets")["targets"][0]["breaker"] == "blocked"
        said = act(dashboard, "allow", {"target": "billing"})
        assert said["is_done"], said
        assert dashboard.get("/api/targets")["targets"][0]["breaker"] == "allowed"
    again = mulligan.Guard("billing", effects="read", attempts=1, store=store)
    assert again.call(lambda: "paid") == "paid"


def fails():
    raise status_error(500, "broken")


def test_a_parked_run_is_resumed_and_ends(home, dashboard, tmp_path, monkeypatch):
    mark, out = tmp_path / "mark", tmp_path / "out"
    script = (
        f"if [ -e {mark} ]; then echo ${{MULLIGAN_DASHBOARD_TOKEN:-none}} > {out}; "
        f"else touch {mark}; "
        "echo '429 Too Many Requests: rate limit reached, try again in 10 minutes' >&2; exit 1; fi"
    )
    words = ("run", "--park", "exit", "--name", "parked", "--", "sh", "-c", script)
    parked = subprocess.run(
        [sys.executable, "-m", "mulligan", *words],
        env=dict(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert parked.returncode == 75, parked.stderr
    dashboard.sources.refresh()
    (row,) = dashboard.get("/api/runs")["rows"]
    assert (row["name"], row["status"]) == ("parked", "waiting")
    # A resume keeps the limit: it says until when, and starts nothing.
    said = act(dashboard, "resume", {"run": row["id"]})
    assert (said["is_done"], out.exists()) == (True, False), said
    assert said["command"].startswith("mulligan resume --park exit")
    monkeypatch.setenv("MULLIGAN_DASHBOARD_TOKEN", "what an agent must not have")
    assert act(dashboard, "wake", {"run": row["id"]})["is_done"]
    ends_at = time.monotonic() + 20
    while row["status"] != "done":
        assert time.monotonic() < ends_at, row
        time.sleep(0.1)
        dashboard.sources.refresh()
        (row,) = dashboard.get("/api/runs")["rows"]
    assert (out.read_text(), row["attempts"]) == ("none\n", 2)


def test_a_module_in_the_working_folder_is_not_imported(dashboard, tmp_path, monkeypatch):
    (tmp_path / "click.py").write_text("open('imported', 'w').close()")
    monkeypatch.chdir(tmp_path)
    sent = dashboard.as_page()
    _, _, said = dashboard.ask("POST", "/api/actions/cancel", {"run": "nosuchrun"}, **sent)
    assert "no run" in said["said"]
    assert not (tmp_path / "imported").exists()
