"""Plans that Python code runs, with real programs."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from mulligan.errors import SettingError
from mulligan.run import Agent, Phase, Plan, run_plan
from mulligan.run.journal.store import RunStore

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def plan(*command, **more):
    agent = Agent(name="one", command=command, **more)
    return Plan(name="night", phases=(Phase(name="a", agents=(agent,)),))


def test_what_came_of_a_plan_is_what_is_returned(home):
    report = run_plan(plan("echo", "yes", output="out.md"), folder=home, is_shown=False)
    assert (report.is_success, report.phases[0].agents[0].status) == (True, "succeeded")
    assert (home / "out.md").read_text() == "yes\n"
    assert [(id_, state.status) for id_, state in RunStore().all()] == [(report.run, "done")]


def test_a_plan_that_fails_is_no_exception(home, capfd):
    report = run_plan(plan("false"), folder=home)
    assert (report.is_success, report.is_over) == (False, True)
    assert f"once fixed: mulligan resume {report.run}" in capfd.readouterr().err


def test_a_plan_that_cannot_be_meant_is_refused_before_anything_is_kept(home):
    with pytest.raises(SettingError, match=r"^phases\[0\]\.agents\[0\]\.prompt: names \{\{x\}\}"):
        run_plan(plan("echo", prompt="Do {{x}}"), folder=home, is_shown=False)
    assert RunStore().ids() == ()


def test_a_plan_runs_in_any_thread(home):
    found = []
    thread = threading.Thread(
        target=lambda: found.append(run_plan(plan("true"), folder=home, is_shown=False))
    )
    thread.start()
    thread.join(20)
    assert found[0].is_success


def test_an_interrupted_plan_is_a_keyboard_interrupt_and_can_be_resumed(home):
    alarm = f"kill -INT {os.getpid()}; sleep 30"
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan("sh", "-c", alarm), folder=home, is_shown=False)
    runs = RunStore()
    ((_, state),) = runs.all()
    assert (state.status, signal.getsignal(signal.SIGINT)) == ("paused", handler)
