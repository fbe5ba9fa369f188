"""How an attempt that had to be ended is read."""

from __future__ import annotations

import json
import signal

import pytest

from mulligan.core.failure import Kind
from mulligan.run.agents.catalogue import recognise
from mulligan.run.attempt.outcome import read_attempt
from mulligan.run.attempt.policy import run_policy
from mulligan.run.attempt.recovery import RecoveryTerms
from mulligan.run.journal.entries import AttemptEnd

NOW = 1_800_000_000.0
SESSION = "5e551011-aaaa-4bbb-8ccc-0123456789ab"


@pytest.fixture
def read(tmp_path):
    """What follows from events of codex, after which it was silent for ten minutes."""

    def read(*events: dict[str, object], **ending):
        log = tmp_path / "attempt-1"
        lines = ({"type": "thread.started", "thread_id": SESSION}, {"type": "turn.started"})
        text = "".join(json.dumps(each) + "\n" for each in (*lines, *events))
        log.with_suffix(".out").write_text(text, encoding="utf-8")
        command = ("codex", "exec", "x")
        judged, _ = read_attempt(
            AttemptEnd(NOW, 1, 601.0, silent=600.0, **{"stopped": "idle", **ending}),
            log,
            recognise(command),
            RecoveryTerms(
                policy=run_policy(),
                program="codex",
                can_resume=True,
                is_known=True,
                now=NOW,
                roll=0.5,
            ),
        )
        return judged

    return read


ENDINGS = ({"code": 1}, {"code": 0}, {"signal": signal.SIGINT})


@pytest.mark.parametrize("ending", ENDINGS)
def test_silence_after_a_retry_notice_of_a_limit_is_that_limit(read, ending):
    notice = "Reconnecting... 1/1 (exceeded retry limit, last status: 429 Too Many Requests)"
    verdict = read({"type": "error", "message": notice}, **ending)
    assert verdict.kind == Kind.RATE_LIMIT
    assert "429" in verdict.message
    assert verdict.then == "again"


DONE = {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}


@pytest.mark.parametrize("stopped", ["interrupt", "terminate", "idle", "timeout", "announced"])
def test_a_success_that_answers_our_signal_is_not_read(read, tmp_path, stopped):
    after = (tmp_path / "attempt-1").with_suffix(".after.out")
    after.write_text(json.dumps(DONE) + "\n", encoding="utf-8")
    verdict = read(code=0, stopped=stopped, announced=300.0)
    assert verdict.then in {"again", "pause"}
    verdict = read(DONE, code=0, stopped=stopped)
    assert verdict.then == "done"


@pytest.mark.parametrize("ending", ENDINGS)
def test_silence_after_anything_else_is_a_hang(read, ending):
    verdict = read(**ending)
    assert verdict.kind == Kind.TIMEOUT
    assert verdict.message == "it was idle for 10m, and was stopped"
    notice = "Reconnecting... 1/5 (stream disconnected before completion)"
    verdict = read({"type": "error", "message": notice}, **ending)
    assert verdict.kind == Kind.TIMEOUT
