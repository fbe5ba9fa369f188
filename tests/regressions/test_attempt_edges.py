"""What a simpler run must still do: lift limits, end announced silences, heed an early Ctrl-C.

Seen in a review: the time of an attempt was taken before its tree was prepared, an event that only
repeats the session no longer ended an announced wait, and Ctrl-C before the claim of a resume let
the run be claimed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mulligan.core.failure import Failure, Kind
from mulligan.core.hint import Hint
from mulligan.run.agents.accounts import AgentAccount
from mulligan.run.agents.adapter import LaunchRequest
from mulligan.run.agents.catalogue import recognise
from mulligan.run.attempt.account_limits_client import RunLimits
from mulligan.run.attempt.output import AttemptFacts, AttemptOutput
from mulligan.run.journal.store import RunStore


def test_an_answer_lifts_a_limit_that_is_older_than_its_attempt():
    now = 0.0
    clock = SimpleNamespace(now=lambda: now, wall=lambda: 0.0)
    runs = RunStore()
    store = runs.store()

    def limits(run):
        account = AgentAccount("anthropic", "key", "ANTHROPIC_API_KEY")
        return RunLimits(store, account, run=run, program="claude", clock=clock, roll=lambda: 0.0)

    first, second = limits("first"), limits("second")
    assert first.held() is None
    now = 100.0  # its tree is being prepared
    limit = Failure(kind=Kind.QUOTA, message="limit", hint=Hint(delay=3600.0))
    second.ended(limit, is_success=False)
    assert second.is_limited()
    now = 200.0
    first.began()
    first.answered()
    assert not second.is_limited()
    store.close()
    runs.close()


def test_an_event_ends_an_announced_silence(tmp_path):
    command = ("gemini", "-p", "x", "--output-format", "stream-json")
    adapter = recognise(command, None)
    launch = adapter.start(command, LaunchRequest(environ={}))
    facts = AttemptFacts(1, launch)
    output = AttemptOutput(
        facts, adapter.reader(launch), log=tmp_path / "attempt-1", show=lambda *_: None
    )
    session = "11111111-1111-4111-8111-111111111111"

    def event(kind):
        return json.dumps({"type": kind, "session_id": session}).encode() + b"\n"

    output.take("stdout", event("init"))
    output.take("stderr", b"Attempt 1 failed with status 429. Retrying after 500000ms...\n")
    assert output.quiet_until() > 0
    output.take("stdout", event("thought"))
    assert output.quiet_until() == 0
    output.close()


INTERRUPTED = """
import signal, sys
from mulligan.cli import run_resume, script
real = run_resume.environment_of
def interrupted(*args):
    signal.raise_signal(signal.SIGINT)
    return real(*args)
run_resume.environment_of = interrupted
sys.argv = ["mulligan", "resume", *sys.argv[1:]]
script()
"""


@pytest.mark.real
def test_a_resume_that_is_interrupted_before_its_claim_changes_nothing():
    def mulligan(*words):
        argv = [sys.executable, "-m", "mulligan", *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    assert mulligan("run", "--", "sh", "-c", "exit 3").returncode == 3
    (before,) = [json.loads(line) for line in mulligan("runs", "--json").stdout.splitlines()]
    # A shell that ignores SIGINT hands that on.
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, before["run"]],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.returncode == 130, done.stderr
    (after,) = [json.loads(line) for line in mulligan("runs", "--json").stdout.splitlines()]
    assert after["status"] == before["status"] == "failed"
