"""A run, put into words: what a reader at eight in the morning finds."""

from __future__ import annotations

import time
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan import Kind
from mulligan.run.journal.entries import (
    AttemptBegun,
    AttemptEnd,
    RunCancelled,
    RunMade,
    RunRescheduled,
)
from mulligan.run.journal.state import state_of
from mulligan.run.show.messages import (
    clock,
    decision_text,
    money,
    step_messages,
    summary,
    time_of_day,
    token_text,
)

NIGHT = 1_794_880_800.0  # Tue 17 Nov 2026, 02:00 UTC

# Microseconds where seconds belong, and what else a program or a damaged journal may say.
UNUSABLE = [NIGHT * 1e6, 1e300, -1e300, inf, -inf, nan]

LIMIT = AttemptEnd(
    NIGHT,
    1,
    720.0,
    code=1,
    cost=0.31,
    kind="quota",
    message="You've hit your session limit · resets 3am (UTC)",
    reset_at=NIGHT + 3600,
    then="again",
    until=NIGHT + 3665,
    because="retry in 1h1m, as resets 3am says",
)


@pytest.fixture(autouse=True)
def in_greenwich(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def made(at=NIGHT - 720):
    return RunMade(at, "claude", "claude -p hello", "/src", "host", 0, "", {}, [])


def stands(*steps):
    state = state_of(steps)
    assert state is not None
    return state


def texts(said):
    return [each.text for each in said]


def test_a_limit_is_told_with_its_words_its_cost_the_wait_and_the_reason():
    assert texts(step_messages(LIMIT, "claude")) == [
        f"attempt 1: claude hit a usage limit after 12m, $0.31: {LIMIT.message}",
        "waits 1h1m, until 03:01:05: the limit resets at 03:00:00",
    ]


def test_a_time_on_another_day_has_the_day():
    late = LIMIT._replace(until=NIGHT + 86_400, reset_at=NIGHT + 86_400)
    assert texts(step_messages(late, "claude"))[1] == (
        "waits 1d, until Wed 18 Nov 02:00:00: the limit resets at Wed 18 Nov 02:00:00"
    )


def test_a_policy_that_waits_longer_than_the_limit_says_so():  # R-B14: the later of the two
    step = LIMIT._replace(
        reset_at=NIGHT + 3, until=NIGHT + 122, because="retry in 2m2s, by backoff"
    )
    reset = clock(NIGHT + 3, NIGHT)
    assert texts(step_messages(step, "claude"))[1].endswith(
        f": the limit resets at {reset}, but the policy waits longer"
    )


def test_backoff_is_told_as_backoff():
    step = LIMIT._replace(kind="overloaded", reset_at=None, because="retry in 4s, by backoff")
    assert (
        texts(step_messages(step._replace(until=NIGHT + 4), "codex"))[1]
        == "retry in 4s, by backoff"
    )


def test_what_must_stop_says_why_and_what_to_do():
    step = LIMIT._replace(
        kind="auth",
        message="Invalid API key",
        then="stop",
        until=None,
        reset_at=None,
        because="401 (auth) cannot be fixed by waiting (policy 'default')",
        advice="log in with claude or fix its key, then resume the run",
    )
    assert texts(step_messages(step, "claude")) == [
        "attempt 1: claude failed to authenticate after 12m, $0.31: Invalid API key",
        "not retried: 401 (auth) cannot be fixed by waiting (policy 'default')",
        "hint: log in with claude or fix its key, then resume the run",
    ]


def test_a_program_that_cannot_be_started_is_told_in_one_line_and_a_hint():
    because = "cannot start cluade: not found on the PATH"
    step = AttemptEnd(NIGHT, 1, 0.0, code=127, kind="client", message=because, then="stop")
    assert texts(
        step_messages(step._replace(because=because, advice="check the spelling"), "cluade")
    ) == [
        "attempt 1: cannot start cluade: not found on the PATH",
        "hint: check the spelling",
    ]


def test_an_attempt_that_is_not_made_has_no_number():
    refused = AttemptEnd(
        *(NIGHT, 1, 0.0),
        stopped="refused",
        then="stop",
        because="its deadline has passed",
    )
    assert texts(step_messages(refused, "claude")) == [
        "claude is not started: its deadline has passed"
    ]
    state = stands(made(), AttemptBegun(NIGHT - 720, 1, "start", "s", ""), LIMIT, refused)
    assert texts(summary("k3v9q2", state))[1:3] == [
        f"  1  usage limit      12m   $0.31  {decision_text(LIMIT)}",
        "  -  not started       0s          not retried: its deadline has passed",
    ]


def test_a_limit_beyond_the_horizon_says_when_it_could_go_on():
    step = LIMIT._replace(
        then="stop",
        until=NIGHT + 28_800,
        because="retry in 8h, as resets 10am says: beyond the horizon of 6h",
    )
    assert texts(step_messages(step, "claude"))[1] == (
        "not waiting: it could continue at 10:00:00, in 8h, beyond the horizon of 6h"
    )


def test_a_first_attempt_and_a_success_are_not_told():
    assert step_messages(AttemptBegun(NIGHT, 1, "start", "", ""), "claude") == []
    assert step_messages(LIMIT._replace(then="done", kind=""), "claude") == []
    assert step_messages(RunCancelled(NIGHT, "cancelled by the user"), "claude") == []


def test_a_session_that_goes_on_and_a_start_anew_differ():
    assert texts(step_messages(AttemptBegun(NIGHT, 2, "resume", "s", ""), "pi")) == [
        "attempt 2: pi resumes its session"
    ]
    assert texts(step_messages(AttemptBegun(NIGHT, 2, "restart", "", ""), "pi")) == [
        "attempt 2: pi restarts"
    ]


def test_a_run_that_simply_did_well_has_no_summary():
    well = LIMIT._replace(then="done", kind="", until=None)
    state = stands(made(), AttemptBegun(NIGHT - 720, 1, "start", "", ""), well)
    assert summary("k3fqzz", state) == []


def story():
    """A limit, a crash, a success."""
    wakes = NIGHT + 3666
    crash = AttemptEnd(
        wakes + 60,
        2,
        60.0,
        signal=9,
        cost=0.1,
        kind="server",
        message="it died by SIGKILL, which mulligan did not send",
        then="again",
        until=wakes + 62,
        because="retry in 2s, by backoff",
    )
    return [
        made(),
        AttemptBegun(NIGHT - 720, 1, "start", "s", ""),
        LIMIT,
        AttemptBegun(wakes, 2, "resume", "s", LIMIT.because),
        crash,
        AttemptBegun(wakes + 62, 3, "resume", "s", crash.because),
        AttemptEnd(wakes + 302, 3, 240.0, code=0, cost=0.2, tokens=412_000, then="done"),
    ]


def test_the_summary_counts_failed_attempts_and_gives_each_decision_its_reason():
    assert texts(summary("k3fqzz", stands(*story()))) == [
        "done: 3 attempts in 1h18m, 1h1m of it waiting, $0.61, 412k tokens",
        f"  1  usage limit      12m   $0.31  {step_messages(LIMIT, '')[1].text}",
        "  2  crashed           1m   $0.10  retry in 2s, by backoff",
        "  3  done              4m   $0.20",
    ]


def test_a_parked_run_says_until_when_and_how_to_go_on():
    said = texts(summary("k3fqzz", stands(*story()[:3])))
    assert said == [
        "parked until 03:01:05: 1 attempt in 12m, $0.31",
        "to continue then: mulligan worker, or mulligan resume k3fqzz",
    ]


def test_a_hundred_attempts_are_cut_in_the_middle():
    steps = [made()]
    for number in range(1, 101):
        at = NIGHT + number
        steps += [AttemptBegun(at, number, "resume", "", ""), LIMIT._replace(at=at, attempt=number)]
    said = texts(summary("k3fqzz", stands(*steps)))
    assert len(said) == 14
    assert "  …  89 more: mulligan show k3fqzz" in said


steps = st.builds(
    AttemptEnd,
    at=st.floats(0, 4e9),
    attempt=st.integers(1, 10**6),
    took=st.floats(0, 1e7),
    code=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
    stopped=st.sampled_from(["", "idle", "timeout", "interrupt", "cancelled", "fenced", "pipe"]),
    cost=st.none() | st.floats(0, 1e6),
    tokens=st.none() | st.integers(0, 10**10),
    kind=st.sampled_from(["", "a_kind_of_tomorrow", *map(str, Kind)]),
    message=st.text(max_size=50),
    reset_at=st.none() | st.floats(0, 4e9),
    then=st.sampled_from(["done", "again", "stop", "pause"]),
    until=st.none() | st.floats(0, 4e9),
    because=st.text(max_size=50),
    advice=st.text(max_size=20),
    is_probe=st.booleans(),
)


@given(ended=steps)
def test_every_end_can_be_told_and_summed_up(ended):
    step_messages(ended, "claude")
    begun = AttemptBegun(ended.at, ended.attempt, "start", "", "")
    summary("k3fqzz", stands(made(0), begun, ended, begun, ended))


@given(at=st.floats(0, 4e9), until=st.floats(0, 4e9))
def test_a_time_that_moved_is_told_if_it_lies_ahead(at, until):
    assert bool(step_messages(RunRescheduled(at, until, "another run met a limit"), "claude")) == (
        until > at
    )


@pytest.mark.parametrize("at", UNUSABLE)
def test_a_time_beyond_the_calendar_is_called_unknown(at):
    assert clock(at, NIGHT) == "an unknown time"
    assert clock(NIGHT, at) == "Tue 17 Nov 02:00:00"
    assert time_of_day(at, "Mon 16 Nov") == ("an unknown time", "")


@pytest.mark.parametrize("at", UNUSABLE)
@pytest.mark.parametrize("then", ["again", "stop"])
def test_an_end_with_an_unusable_time_is_told(at, then):
    ended = LIMIT._replace(then=then, reset_at=at, until=at)
    begun = AttemptBegun(at, 1, "start", "", "")
    assert decision_text(ended)
    assert step_messages(ended._replace(at=at, until=NIGHT), "claude")
    assert summary("k3fqzz", stands(made(at), begun, ended, begun, ended))
    step_messages(RunRescheduled(NIGHT, at, "another run met a limit"), "claude")


def test_money_and_tokens_are_short_and_nothing_where_nobody_said():
    assert [money(each) for each in (None, 0.0, 0.0004, 0.31, 12)] == [
        *("", "$0.00", "$0.0004", "$0.31", "$12.00")
    ]
    assert [token_text(each) for each in (None, 0, 950, 12_345, 1_234_567)] == [
        *("", "", "950 tokens", "12k tokens", "1.2M tokens")
    ]
    assert clock(NIGHT, NIGHT) == "02:00:00"
