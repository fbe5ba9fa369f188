"""Runs that a worker failed for good because its surroundings were poor, or refused to resume.

Under cron a worker has another PATH and no keys: it started parked runs, they failed for that, and
were lost. And a run whose stdin was a pipe that its caller kept open (Node's spawn, ssh
without a terminal) could never be resumed, though a session that goes on reads no input.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.run.attempt.options import RunOptions
from mulligan.run.drive import make_run
from mulligan.run.journal.entries import RunRescheduled
from tests.run.scripted import Stage
from tests.run.test_worker import look

PAGE = (Path(__file__).parents[2] / "docs" / "a-nights-work.md").read_text(encoding="utf-8")


def parked(stage, **more):
    now, context = stage.clock.wall(), stage.context("ok")
    context = context._replace(environ={**context.environ, **more})
    cwd = str(stage.folder / "work")
    claimed, _, stdin = make_run(context, ("claude", "-p", "x"), RunOptions(), cwd=cwd)
    stdin.close()
    context.stop.close()
    stage.runs.write(claimed, RunRescheduled(now, now - 1, "parked"), "parked")
    stage.runs.release(claimed)
    return claimed.id


@pytest.mark.real
def test_the_line_for_cron_works_as_printed_and_lacks_no_path(tmp_path):
    stage = Stage(tmp_path)
    plain, keyed = parked(stage), parked(stage, ANTHROPIC_API_KEY="k")
    command = tmp_path / ".local" / "bin" / "mulligan"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m mulligan "$@"\n')
    command.chmod(0o755)
    state = tmp_path / ".local" / "state"
    state.mkdir()
    (state / "mulligan").symlink_to(stage.runs.folder)
    (line,) = re.findall(r"^ +\*/5 \* \* \* \* (.*)$", PAGE, re.MULTILINE)
    done = subprocess.run(
        ["/usr/bin/env", "-i", f"HOME={tmp_path}", "PATH=/usr/bin:/bin", "/bin/sh", "-c", line],
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    log = (tmp_path / "mulligan.log").read_text()
    assert (done.returncode, look(stage.runs, plain).status) == (0, "done"), log
    kept = look(stage.runs, keyed)
    assert (kept.status, kept.attempts) == ("waiting", 0), log
    assert "ANTHROPIC_API_KEY was set when the run was created" in kept.remarks[0].text
    stage.runs.close()


def test_a_session_goes_on_without_input_that_was_lost_and_a_new_start_does_not(tmp_path):
    stage = Stage(tmp_path)
    first = stage.run("work limit:60 ok", horizon=10.0)
    (stage.runs.files(first.id) / "stdin.part").write_bytes(b"half")
    claimed = stage.runs.claim(first.id, stage.clock.wall())
    now = stage.clock.wall()
    stage.runs.write(claimed, RunRescheduled(now, now, "resumed by the user"), "resumed")
    again = stage.drive(claimed, "work limit:60 ok", is_now=True)
    assert (again.code, again.state.status) == (0, "done")
    fresh = parked(stage)
    (stage.runs.files(fresh) / "stdin.part").write_bytes(b"half")
    refused = stage.drive(stage.runs.claim(fresh, stage.clock.wall()), "ok")
    assert refused.state.attempts == 0
    assert "before all of its input had arrived" in refused.state.because
    stage.runs.close()
