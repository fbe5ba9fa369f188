"""What silence means, by what the program said before it."""

from __future__ import annotations

import json
from time import monotonic

import pytest

from mulligan.run.agents.adapter import Launch
from mulligan.run.agents.claude import PROGRAM
from mulligan.run.attempt.output import AttemptFacts, AttemptOutput


@pytest.fixture
def tap(tmp_path):
    taps = []

    def make(**options):
        facts = AttemptFacts(1, Launch(argv=("claude",)))
        reader, log = PROGRAM.reader(facts.launch), tmp_path / "attempt-1"
        taps.append(AttemptOutput(facts, reader, log=log, show=lambda *_: None, **options))
        return taps[-1]

    yield make
    for each in taps:
        each.close()


def told(tap, **event):
    tap.take("stdout", json.dumps(event).encode() + b"\n")
    return tap.quiet_until() - monotonic()


def test_a_wait_that_was_announced_is_no_silence(tap):
    left = told(tap(), type="system", subtype="api_retry", retry_delay_ms=90_000)
    assert left == pytest.approx(90, abs=5)


def test_an_event_that_only_repeats_the_session_takes_no_announcement_back(tap):
    quiets: list[float] = []

    def retrying(_reason, quiet):
        quiets.append(quiet)
        return ""

    one = tap(retrying=retrying)
    session = {"type": "system", "session_id": "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"}
    events = (session, {**session, "subtype": "api_retry", "retry_delay_ms": 90_000}, session)
    one.take("stdout", b"".join(json.dumps(each).encode() + b"\n" for each in events))
    assert quiets == [90.0]


def test_nobody_can_announce_silence_for_ever(tap):
    left = told(tap(), type="system", subtype="api_retry", retry_delay_ms=99_999_999_999_999)
    assert left <= 21_600


USE = {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "toolu_1"}]}}


def test_a_tool_may_be_silent_for_an_hour_unless_the_user_said_how_long(tap):
    assert told(tap(), **USE) == pytest.approx(3600, abs=5)
    assert told(tap(is_tool_spared=False), **USE) < 0


def test_a_cost_that_nobody_told_is_not_zero(tap):
    silent, told_ = tap(), tap()
    told(silent, type="result", subtype="success", result="x")
    told(told_, type="result", subtype="success", result="x", total_cost_usd=0)
    assert (silent.facts.cost, told_.facts.cost) == (None, 0.0)
