"""A clock time that has just passed.

Codex said "try again at 4:43 PM" at 16:44. That was read as tomorrow, and the account's gate shut
every other run out for six hours. The time that was meant is over: it is tried, with growing waits.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mulligan.core.hint import Confidence
from mulligan.run.agents.catalogue import recognise
from mulligan.run.attempt.outcome import read_attempt
from mulligan.run.attempt.policy import run_policy
from mulligan.run.attempt.recovery import RecoveryTerms
from mulligan.run.journal.entries import AttemptEnd

COMMAND = ("codex", "exec", "x")
LIMIT = "ERROR: You've hit your usage limit. Upgrade to Pro, or try again at {} UTC.\n"
NOW = datetime(2026, 11, 16, 16, 44, tzinfo=UTC).timestamp()


def reading(tmp_path, said, before=(), now=NOW):
    log = tmp_path / "attempt-1"
    log.with_suffix(".out").write_bytes(b"")
    log.with_suffix(".err").write_text(said)
    terms = RecoveryTerms(
        policy=run_policy(), program="codex", can_resume=True, now=now, before=before, roll=0.5
    )
    adapter = recognise(COMMAND)
    return read_attempt(AttemptEnd(now, 1, 1.0, code=1), log, adapter, terms)


def test_a_time_that_has_just_passed_is_tried_with_growing_waits(tmp_path):
    before: list[AttemptEnd] = []
    now, waits = NOW, []
    for attempt in range(1, 6):
        verdict, failure = reading(tmp_path, LIMIT.format("4:43 PM"), tuple(before), now)
        assert (verdict.then, failure.hint) == ("again", None)
        waits.append(verdict.until - now)
        step = AttemptEnd(
            now, attempt, 1.0, code=1, kind="quota", then="again", until=verdict.until
        )
        before.append(step._replace(is_probe=verdict.is_probe))
        now = verdict.until + 1
    assert waits[0] < 3
    assert waits == sorted(waits)
    assert now < NOW + 3600


def test_a_time_to_come_is_waited_for(tmp_path):
    verdict, failure = reading(tmp_path, LIMIT.format("5:43 PM"))
    assert failure.hint.confidence is Confidence.HIGH
    assert verdict.until - NOW == pytest.approx(3600, abs=120)
