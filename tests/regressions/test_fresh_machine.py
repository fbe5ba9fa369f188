"""Machines that are not ours: no git identity, SIGINT ignored, signals blocked.

`make test` failed where git has no identity (``env -i HOME=empty``), and 18 tests failed or hung
where SIGINT is ignored: under ``nohup make test &`` and in CI systems that start jobs that way. The
tests were right. A child inherits the signals that its parent ignores, so an agent of
``mulligan run … &`` in a script never saw our interrupt: SIGTERM ended it after the grace, without
a chance to save its session. Agents, verification, notifications and git (with its hooks) now
start with default signals and an empty mask, from whichever thread.
"""

# mypy: ignore-errors

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mulligan.run.git import Tree, set_aside
from mulligan.run.process.spawn import spawn
from mulligan.run.process.stop import Stop, signals
from mulligan.run.show.notify import send

ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)

# What a program finds when it starts; handlers that Python itself installs count as the default.
REPORT = """
import json, signal, sys
found = {
    "ignored": [n for n in (2, 3, 15) if signal.getsignal(n) is signal.SIG_IGN],
    "blocked": sorted(int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, ())),
}
open(sys.argv[1], "w").write(json.dumps(found))
"""
CLEAN = {"ignored": [], "blocked": []}


@pytest.fixture
def hostile():
    """This process as a background job has it: ignoring what ends it, with signals blocked."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in ENDING}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for each, old in before.items():
        signal.signal(each, old)


@pytest.fixture
def reported(tmp_path):
    """An argv that reports what its process has inherited, and a look at the report."""
    place = tmp_path / "report.json"
    look = lambda: json.loads(place.read_text())  # noqa: E731
    return [sys.executable, "-c", REPORT, str(place)], look


@pytest.mark.real
def test_a_child_starts_with_default_signals_where_we_ignore_or_block_them(hostile, reported):
    argv, look = reported
    assert spawn(argv).wait() == 0
    assert look() == CLEAN
    assert all(signal.getsignal(each) is signal.SIG_IGN for each in ENDING)  # ours are as they were
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= {signal.SIGUSR1, signal.SIGTERM}


@pytest.mark.real
def test_a_child_of_another_thread_starts_with_default_signals(hostile, reported):
    argv, look = reported
    stop = Stop()
    with signals(stop):
        thread = threading.Thread(target=lambda: spawn(argv).wait())
        thread.start()
        thread.join()
        os.kill(os.getpid(), signal.SIGINT)  # nohup: we ourselves still ignore it
        assert not stop.wait(0.05)
    stop.close()
    assert look() == CLEAN


@pytest.mark.real
def test_a_signal_that_waits_for_us_is_not_delivered_by_starting_a_child(reported):
    argv, look = reported
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        assert spawn(argv).wait() == 0
        assert not seen
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGUSR1, before)
    assert look()["ignored"] == []


@pytest.mark.real
def test_a_notification_starts_with_default_signals(hostile, reported):
    argv, look = reported
    stop = Stop()
    assert send(tuple(argv), {}, stop=stop, environ=os.environ) == ""
    stop.close()
    assert look() == CLEAN


@pytest.mark.real
def test_hooks_of_git_start_with_default_signals(hostile, reported, tmp_path):
    argv, look = reported
    folder = tmp_path / "repo"
    folder.mkdir()
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    for line in (["init", "-q"], [*who, "commit", "-qm", "first", "--allow-empty"]):
        subprocess.run(["git", *line], cwd=folder, check=True)  # noqa: S607
    hook = folder / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    script = tmp_path / "report.py"
    script.write_text(REPORT)
    hook.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{script}' '{argv[-1]}'\n")
    hook.chmod(0o755)
    (folder / "a.txt").write_text("a\n")
    assert set_aside(Tree.find(folder), "commit", "run", author="Ada <ada@example.com>")
    assert look() == CLEAN


# A shell cannot trap what was ignored when it started; Python and node would.
AGENT = """#!/bin/sh
trap 'touch "$1/SIGINT"; exit 1' INT
trap 'touch "$1/SIGTERM"; exit 1' TERM
touch "$1/started"
while :; do sleep 0.1; done
"""


@pytest.mark.real
@pytest.mark.parametrize("what", ["run", "plan"])
def test_a_run_in_the_background_interrupts_its_agent_before_it_ends_it(tmp_path, what):
    agent = tmp_path / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    words = [str(agent), str(tmp_path)]
    argv = ["run", "--", *words]
    if what == "plan":
        plan = tmp_path / "plan.toml"
        agents = f'agents = [{{ name = "one", command = {json.dumps(words)} }}]'
        plan.write_text(f'name = "night"\n[[phases]]\nname = "work"\n{agents}\n')
        argv = ["run", str(plan)]
    script = 'trap "" INT QUIT; exec "$@"'  # what a shell does to a job in the background
    child = subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", sys.executable, "-m", "mulligan", *argv],
        cwd=tmp_path,
        env={**os.environ, "MULLIGAN_HOME": str(tmp_path / "home")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    _until(lambda: (tmp_path / "started").exists() or child.poll() is not None)
    child.send_signal(signal.SIGTERM)
    said = child.communicate(timeout=60)[0].decode()
    assert (tmp_path / "SIGINT").exists(), said
    assert not (tmp_path / "SIGTERM").exists(), said


def _until(condition) -> None:
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)


OFFLINE = Path(__file__).parents[2] / ".ci" / "offline"
TALK = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
print("loopback")
"""


@pytest.mark.real
def test_ci_runs_its_tests_without_a_network_but_with_loopback():
    assert _offline([]).stdout == "loopback\n"


@pytest.mark.real
def test_ci_runs_its_tests_where_no_namespace_can_be_made():
    forbidding = ["unshare", "-Ur", "sh", "-c"]
    script = "echo 0 > /proc/sys/user/max_net_namespaces"
    argv = [*forbidding, script]
    can_forbid = shutil.which("unshare") and not subprocess.run(argv, check=False).returncode
    done = _offline([*forbidding, f'{script}; exec "$@"', "sh"] if can_forbid else [])
    assert done.stdout == "loopback\n"
    assert not can_forbid or "proxies point to nowhere" in done.stderr


def _offline(before: list[str]) -> subprocess.CompletedProcess[str]:
    argv = [*before, sys.executable, str(OFFLINE), sys.executable, "-c", TALK]
    return subprocess.run(argv, capture_output=True, text=True, check=False)
