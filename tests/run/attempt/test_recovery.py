"""What follows from the end of an attempt."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.classify.output.reader import Outcome
from mulligan.classify.times.server_formats import ResetTime
from mulligan.core.failure import Failure, Kind, Reach
from mulligan.core.hint import Confidence, Hint, Precision
from mulligan.run.attempt.options import RunOptions
from mulligan.run.attempt.policy import run_policy
from mulligan.run.attempt.recovery import HARMLESS, RecoveryTerms, better_ended, judge
from mulligan.run.journal.entries import AttemptBegun, AttemptEnd, RunMade
from mulligan.run.journal.state import state_of

NOW = 1_800_000_000.0
HOUR = 3600.0


def failure(kind, *, after=None, confidence=Confidence.HIGH, precision=Precision.EXACT, **more):
    hint = None
    if after is not None:
        hint = Hint(delay=after, precision=precision, source="resets 7pm", confidence=confidence)
    return Failure(kind=kind, message=f"a {kind}", hint=hint, **more)


def said(failed, *, is_structured=True):
    return Outcome(failure=failed, because="it said so", is_structured=is_structured)


def judged(
    outcome=None,
    *,
    code=1,
    before=(),
    roll=0.0,
    can_resume=True,
    policy=None,
    finished=None,
    **terms,
):
    told = RecoveryTerms(
        policy=policy or run_policy(),
        program="claude",
        can_resume=can_resume,
        now=NOW,
        before=tuple(before),
        roll=roll,
        **terms,
    )
    judged, _ = judge(finished or AttemptEnd(NOW, 1, 10.0, code=code), outcome, told)
    return judged


def past(kind, *, at=NOW - 10, attempt=1, **more):
    return AttemptEnd(at, attempt, 1.0, kind=str(kind), then="again", **more)


def test_a_program_that_ended_well_is_done():
    verdict = judged(said(None), code=0)
    assert (verdict.then, verdict.exit) == ("done", 0)


def test_a_stated_reset_is_waited_for_and_the_session_goes_on():
    verdict = judged(said(failure(Kind.QUOTA, after=2 * HOUR)))
    assert (verdict.then, verdict.until) == ("again", NOW + 2 * HOUR)


def test_a_program_that_says_that_work_is_left_is_done_and_the_run_says_so():
    verdict = judged(replace(said(None), is_work_left=True), code=0)
    assert (verdict.then, verdict.exit) == ("done", 0)
    assert "work is left" in verdict.because


def guessed(kind, **more):
    return replace(said(failure(kind, because="it said quota"), **more), confidence=Confidence.LOW)


def test_a_guessed_limit_gets_one_attempt_after_a_minute_then_the_usual_waits():
    verdict = judged(guessed(Kind.QUOTA))
    assert (verdict.then, verdict.until, verdict.is_probe) == ("again", NOW + 60, True)
    again = judged(guessed(Kind.QUOTA), before=(past(Kind.QUOTA, is_probe=True),))
    assert (again.then, again.is_probe) == ("again", False)


def guessed_with_time(kind, after):
    return replace(guessed(kind), failure=failure(kind, after=after, because="it said quota"))


@pytest.mark.parametrize("after", [10.0, 5 * HOUR, 20 * HOUR])
@pytest.mark.parametrize("kind", [Kind.QUOTA, Kind.RATE_LIMIT, Kind.OVERLOADED])
@pytest.mark.parametrize("how", [{}, {"can_resume": False, "may_restart": True}])
def test_a_guessed_limit_is_probed_after_a_minute_whatever_time_it_states(kind, after, how):
    verdict = judged(guessed_with_time(kind, after), **how)
    assert (verdict.then, verdict.until, verdict.is_probe) == ("again", NOW + 60, True)


def test_the_time_of_a_guessed_limit_is_believed_once_a_probe_has_failed_the_same_way():
    before = (past(Kind.QUOTA, is_probe=True),)
    parked = judged(guessed_with_time(Kind.QUOTA, 5 * HOUR), before=before)
    assert (parked.then, parked.until, parked.is_probe) == ("again", NOW + 5 * HOUR, False)
    limited = judged(guessed_with_time(Kind.QUOTA, 20 * HOUR), before=before)
    assert (limited.then, limited.exit, limited.until) == ("stop", 75, NOW + 20 * HOUR)
    other = judged(guessed_with_time(Kind.RATE_LIMIT, 20 * HOUR), before=before)
    assert (other.until, other.is_probe) == (NOW + 60, True)


@pytest.mark.parametrize(
    ("bound", "because"),
    [
        ({"policy": run_policy().but(attempts=1)}, "the only attempt failed with quota"),
        ({"deadline_at": NOW + 50}, "waiting 1m would pass the deadline, 50s away"),
        ({"policy": replace(run_policy(), budget=50.0)}, "would pass the retry budget"),
    ],
)
@pytest.mark.parametrize("after", [10.0, 20 * HOUR])
def test_a_guessed_limit_that_may_not_be_probed_stops_with_the_program_s_own_exit_code(
    bound, because, after
):
    verdict = judged(guessed_with_time(Kind.QUOTA, after), code=3, **bound)
    assert (verdict.then, verdict.exit, verdict.until, verdict.is_probe) == ("stop", 3, None, False)
    assert because in verdict.because


def test_a_guess_is_recorded_as_one_however_it_ends():
    before = (past(Kind.QUOTA, is_probe=True),)
    for told in ({}, {"before": before}, {"can_resume": False}):
        assert judged(guessed_with_time(Kind.QUOTA, 5 * HOUR), **told).is_guess
    assert not judged(said(failure(Kind.QUOTA, after=5 * HOUR))).is_guess


def test_a_guess_does_not_turn_silence_into_a_limit():
    asleep = AttemptEnd(NOW, 1, 600.0, signal=signal.SIGINT, stopped="idle", silent=600.0)
    verdict = judged(guessed_with_time(Kind.QUOTA, 20 * HOUR), finished=asleep)
    assert (verdict.then, verdict.kind) == ("again", Kind.TIMEOUT)


def test_a_guessed_limit_does_not_restart_a_program_without_a_session():
    verdict = judged(guessed(Kind.RATE_LIMIT), can_resume=False, code=3)
    assert (verdict.then, verdict.exit, verdict.advice) == ("stop", 3, HARMLESS)
    assert judged(guessed(Kind.RATE_LIMIT), can_resume=False, may_restart=True).then == "again"


def test_a_guessed_failure_that_is_no_limit_stops_with_the_program_s_own_exit_code():
    for kind in (Kind.AUTH, Kind.BILLING, Kind.CONTEXT_LENGTH, Kind.NETWORK):
        verdict = judged(guessed(kind), code=3)
        assert (verdict.then, verdict.exit) == ("stop", 3)


def test_a_clock_time_gets_its_margin():
    verdict = judged(said(failure(Kind.QUOTA, after=HOUR, precision=Precision.MINUTE)))
    assert verdict.until == NOW + HOUR + 60


@given(after=st.floats(1, 6 * HOUR - 61), roll=st.floats(0, 1, exclude_max=True))
def test_nobody_comes_back_before_the_reset_and_not_all_at_once(after, roll):
    verdict = judged(said(failure(Kind.QUOTA, after=after)), roll=roll)
    spread = min(30.0, after * 0.05)
    assert NOW + after <= verdict.until <= NOW + after + spread


def test_a_reset_in_five_days_is_not_waited_for_in_slices_of_six_hours():
    verdict = judged(said(failure(Kind.QUOTA, after=5 * 24 * HOUR)))
    assert (verdict.then, verdict.exit) == ("stop", 75)
    assert verdict.until == NOW + 5 * 24 * HOUR
    assert "beyond the horizon of 6h" in verdict.because


def test_a_longer_horizon_waits_for_it():
    policy = run_policy().but(horizon="7d")
    verdict = judged(said(failure(Kind.QUOTA, after=5 * 24 * HOUR)), policy=policy)
    assert verdict.then == "again"


def test_a_time_that_could_be_over_is_tried_once_before_it_is_believed():
    low = failure(Kind.QUOTA, after=5 * HOUR, confidence=Confidence.LOW)
    first = judged(said(low))
    assert first.is_probe
    assert first.until < NOW + 10
    again = judged(said(low), before=[past(Kind.QUOTA, is_probe=True, reset_at=NOW + 5)])
    assert not again.is_probe
    assert again.until == NOW + 5 * HOUR


@pytest.mark.parametrize(
    ("bound", "because"),
    [
        ({"policy": run_policy().but(attempts=1)}, "the only attempt failed with quota"),
        ({"deadline_at": NOW + 1}, "would pass the deadline"),
    ],
)
@pytest.mark.parametrize("after", [5 * HOUR, None])
def test_the_try_before_a_time_is_believed_is_an_attempt_like_others(bound, because, after):
    """Left over from issue 12: `--attempts 1` made two, for the try was not counted."""
    over = ResetTime(
        seconds=0, at=NOW - 5, span=(0, 1), source="resets 7pm", precision=Precision.SECOND
    )
    limit = failure(Kind.QUOTA, after=after, confidence=Confidence.LOW)
    verdict = judged(Outcome(failure=limit, because="it said so", reset=over), **bound)
    assert (verdict.then, verdict.is_probe) == ("stop", False)
    assert because in verdict.because


@pytest.mark.parametrize(
    "kind",
    [Kind.BILLING, Kind.AUTH, Kind.CONTEXT_LENGTH, Kind.CONTENT_POLICY, Kind.CLIENT, Kind.UNKNOWN],
)
def test_what_waiting_does_not_mend_stops_at_once_and_says_what_to_do(kind):
    verdict = judged(said(failure(kind)), code=7)
    assert (verdict.then, verdict.exit) == ("stop", 7)
    assert verdict.advice


@pytest.mark.parametrize(
    ("kind", "attempts"),
    [(Kind.OVERLOADED, 8), (Kind.SERVER, 8), (Kind.NETWORK, 8), (Kind.TIMEOUT, 5)],
)
def test_faults_back_off_a_few_attempts_long(kind, attempts):  # "only rate limits retried"
    before: list[AttemptEnd] = []
    for number in range(1, attempts):
        verdict = judged(said(failure(kind)), before=before, roll=0.99)
        assert verdict.then == "again", number
        assert 2 <= verdict.until - NOW < 4 * 2 ** (number - 1)
        before.append(past(kind))
    verdict = judged(said(failure(kind)), before=before)
    assert (verdict.then, verdict.exit) == ("stop", 1)


@pytest.mark.parametrize("kind", [Kind.OVERLOADED, Kind.NETWORK, Kind.SERVER])
def test_a_quarter_of_a_minute_of_trouble_is_outlived_however_the_dice_fall(kind):
    """Codex met an overload of 15 s, and its five attempts were over in 13."""
    waits = [
        judged(said(failure(kind)), before=[past(kind)] * number, roll=0.0).until - NOW
        for number in range(7)
    ]
    assert sum(waits) > 4 * 60


def test_a_model_that_answered_begins_the_count_anew():
    before = [past(Kind.NETWORK)] * 7
    assert judged(said(failure(Kind.NETWORK)), before=before).then == "stop"
    before[-1] = past(Kind.NETWORK, is_work=True)
    assert judged(said(failure(Kind.NETWORK)), before=before).then == "again"


def test_attempts_in_total_are_never_forgotten():
    policy = run_policy().but(attempts=3)
    before = [past(Kind.NETWORK, is_work=True, attempt=number) for number in (1, 2)]
    assert judged(said(failure(Kind.NETWORK)), before=before, policy=policy).then == "stop"


def test_nothing_goes_on_for_ever():
    before = [past(Kind.QUOTA, reset_at=NOW - 5)] * 49
    verdict = judged(said(failure(Kind.QUOTA, after=60)), before=before)
    assert verdict.then == "stop"
    assert "50 attempts in a row" in verdict.because


def test_a_limit_without_a_time_is_asked_after_ever_more_rarely():
    waits: list[float] = []
    before: list[AttemptEnd] = []
    for _ in range(15):
        verdict = judged(said(failure(Kind.RATE_LIMIT)), before=before, roll=0.999)
        waits.append(verdict.until - NOW)
        before.append(past(Kind.RATE_LIMIT))
    assert waits[0] < 30
    assert waits[-1] > 1700
    assert max(waits) <= 1800


def test_a_plan_that_names_no_time_is_not_asked_again_within_seconds():
    """Gemini exits with its plan's limit, and does not pass on when it ends."""
    verdict = judged(said(failure(Kind.QUOTA)), roll=0.0)
    assert verdict.until - NOW >= 30


def test_a_time_that_is_over_is_tried_once_before_it_is_asked_after_rarely():
    over = ResetTime(
        seconds=0, at=NOW - 5, span=(0, 1), source="resets 7pm", precision=Precision.SECOND
    )
    outcome = Outcome(failure=failure(Kind.QUOTA), because="it said so", reset=over)
    verdict = judged(outcome, roll=0.5)
    assert (verdict.is_probe, verdict.until - NOW) == (True, 1.5)
    assert verdict.because.startswith("resets 7pm has passed")
    again = judged(outcome, before=[past(Kind.QUOTA, is_probe=True)])
    assert not again.is_probe
    assert again.until - NOW >= 30


def test_the_cap_leaves_the_jitter_alone():  # "the cap that removed all jitter"
    before = [past(Kind.RATE_LIMIT)] * 20
    waits = {
        judged(said(failure(Kind.RATE_LIMIT)), before=before, roll=roll / 10).until
        for roll in range(10)
    }
    assert len(waits) == 10
    assert max(waits) - min(waits) > 800


def test_a_limit_without_a_time_ends_with_the_horizon():
    before = [past(Kind.RATE_LIMIT, at=NOW - 6 * HOUR)]
    assert judged(said(failure(Kind.RATE_LIMIT)), before=before, roll=0.5).then == "stop"


def test_waiting_for_a_stated_reset_costs_no_patience():
    before = [past(Kind.QUOTA, at=NOW - 5.9 * HOUR, reset_at=NOW - 60)]
    assert judged(said(failure(Kind.NETWORK)), before=before, roll=0.5).then == "again"


def test_exit_code_zero_with_a_report_of_failure_is_a_failure():
    verdict = judged(said(failure(Kind.AUTH)), code=0)
    assert (verdict.then, verdict.exit) == ("stop", 1)


def test_words_alone_prove_nothing_against_exit_code_zero():
    outcome = said(failure(Kind.QUOTA, after=60), is_structured=False)
    assert judged(outcome, code=0).then == "done"
    assert judged(outcome, code=0, is_exit_trusted=False).then == "again"
    assert judged(outcome, code=1).then == "again"


def test_who_was_silent_from_its_start_has_done_nothing_and_starts_anew():
    """opencode names its session when a model answers: one that hangs before has none."""
    mute = AttemptEnd(
        NOW, 1, 600.0, signal=signal.SIGINT, stopped="idle", silent=600.0, is_mute=True
    )
    verdict = judged(None, finished=mute, can_resume=False)
    assert verdict.then == "again"
    assert judged(None, finished=mute._replace(is_mute=False), can_resume=False).then == "stop"
    crash = AttemptEnd(NOW, 1, 0.1, signal=signal.SIGSEGV, is_mute=True)
    assert judged(None, finished=crash, can_resume=False).then == "again"


def test_who_sleeps_through_a_limit_has_met_a_limit():
    """Codex says that it was refused with 429, then sleeps as long as it was told to."""
    asleep = AttemptEnd(NOW, 1, 600.0, signal=signal.SIGINT, stopped="idle", silent=600.0)
    verdict = judged(said(failure(Kind.RATE_LIMIT)), finished=asleep)
    assert verdict.kind == Kind.RATE_LIMIT
    assert verdict.until - NOW >= 15
    quoted = said(failure(Kind.RATE_LIMIT), is_structured=False)
    assert judged(quoted, finished=asleep).kind == Kind.TIMEOUT
    assert judged(said(failure(Kind.AUTH)), finished=asleep).kind == Kind.TIMEOUT


def test_a_doubt_is_no_failure_of_the_network_and_never_starts_anew():
    vague = AttemptEnd(NOW, 1, 5.0, code=0, is_unreported=True)
    verdict = judged(said(None), finished=vague)  # the session is one that we chose
    assert (verdict.then, verdict.exit, verdict.is_doubt) == ("stop", 1, True)
    assert verdict.kind == Kind.BAD_ANSWER
    named = vague._replace(is_session_named=True)
    first = judged(said(None), finished=named)
    assert (first.then, first.is_doubt) == ("again", True)
    again = judged(said(None), finished=named, before=[past(Kind.BAD_ANSWER, is_doubt=True)])
    assert again.then == "stop"
    allowed = judged(said(None), finished=vague, can_resume=False, may_restart=True)
    assert allowed.then == "again"
    only = judged(said(None), finished=named, policy=run_policy().but(attempts=1))
    assert (only.then, only.is_doubt) == ("stop", True)


def test_words_of_a_failure_explain_output_that_lacks_its_end():
    quoted = said(failure(Kind.OVERLOADED), is_structured=False)
    vague = AttemptEnd(NOW, 1, 5.0, code=0, is_unreported=True)
    assert judged(quoted, finished=vague).kind == Kind.OVERLOADED


def test_an_announced_wait_is_the_hint_unless_the_server_named_a_longer_one():
    asleep = AttemptEnd(NOW, 1, 5.0, signal=signal.SIGINT, stopped="announced", announced=HOUR)
    verdict = judged(said(failure(Kind.QUOTA, after=60)), finished=asleep)
    assert HOUR <= verdict.until - NOW <= HOUR + 1
    verdict = judged(said(failure(Kind.QUOTA, after=2 * HOUR)), finished=asleep)
    assert verdict.until == NOW + 2 * HOUR
    verdict = judged(None, finished=asleep)  # why is not known
    assert verdict.kind == Kind.OVERLOADED
    assert HOUR <= verdict.until - NOW <= HOUR + 1


def asked(outcome, *, quiet=0.0, row=1, is_mute=False, **terms):
    told = RecoveryTerms(policy=run_policy(), program="claude", **{"can_resume": True, **terms})
    return better_ended(outcome, told, quiet=quiet, row=row, is_mute=is_mute)


def test_a_program_that_tries_again_is_let_unless_that_is_long_or_vain():
    limit, key = said(failure(Kind.QUOTA)), said(failure(Kind.AUTH))
    assert asked(limit, quiet=119) == ""
    assert asked(limit, quiet=121) == "announced"
    assert asked(limit, quiet=121, can_resume=False) == ""
    assert asked(limit, quiet=121, can_resume=False, is_mute=True) == "announced"
    assert asked(key, row=1) == ""  # its key may be renewed
    assert asked(key, row=2) == "final"
    assert asked(said(failure(Kind.BILLING)), row=1) == "final"
    assert asked(said(failure(Kind.SERVER)), row=9) == ""


def test_a_program_that_was_ended_for_going_nowhere_goes_on_with_its_session():
    endless = AttemptEnd(NOW, 1, 5.0, signal=signal.SIGINT, stopped="futile")
    verdict = judged(None, finished=endless)
    assert verdict.then == "again"
    assert "cut off" in verdict.message
    verdict = judged(None, finished=endless, can_resume=False)
    assert (verdict.then, verdict.advice) == ("stop", HARMLESS)


@pytest.mark.parametrize("stopped", ["idle", "futile", "timeout"])
def test_how_a_program_answered_our_own_signal_is_not_the_exit_code(stopped):
    """130 says that a user interrupted the run."""
    for ending in ({"signal": signal.SIGINT}, {"code": 130}, {"code": 0}):
        finished = AttemptEnd(NOW, 1, 5.0, stopped=stopped, **ending)
        assert judged(None, finished=finished, can_resume=False).exit == 1


def test_a_crash_resumes_where_the_program_can():
    crash = AttemptEnd(NOW, 1, 5.0, signal=signal.SIGSEGV)
    verdict = judged(None, finished=crash)
    assert verdict.then == "again"
    assert "SIGSEGV" in verdict.message


def test_a_crash_of_a_program_that_cannot_resume_stops_unless_told():
    crash = AttemptEnd(NOW, 1, 5.0, signal=signal.SIGKILL)
    verdict = judged(None, finished=crash, can_resume=False)
    assert (verdict.then, verdict.exit) == ("stop", 128 + signal.SIGKILL)
    assert "--restart" in verdict.advice
    verdict = judged(None, finished=crash, can_resume=False, may_restart=True)
    assert verdict.then == "again"


def test_a_limit_lets_a_program_that_cannot_resume_start_anew():
    verdict = judged(said(failure(Kind.QUOTA, after=60)), can_resume=False)
    assert verdict.then == "again"


def test_silence_is_a_timeout_and_says_how_long():
    verdict = judged(
        None, finished=AttemptEnd(NOW, 1, 700.0, signal=15, stopped="idle", silent=600.0)
    )
    assert verdict.then == "again"
    assert verdict.kind == Kind.TIMEOUT
    assert verdict.message == "it was idle for 10m, and was stopped"


def test_who_is_interrupted_pauses():
    verdict = judged(None, finished=AttemptEnd(NOW, 1, 1.0, signal=2, stopped="interrupt"))
    assert (verdict.then, verdict.exit) == ("pause", 130)


@pytest.mark.parametrize("reason", ["terminate", "hangup"])
def test_a_machine_that_shuts_down_does_not_end_the_night(reason):
    ended = AttemptEnd(NOW, 1, 1.0, signal=15, stopped=reason)
    verdict = judged(None, finished=ended)
    assert (verdict.then, verdict.until, verdict.exit) == ("again", NOW, 75)
    alone = judged(None, finished=ended, can_resume=False)
    assert (alone.then, alone.exit) == ("pause", {"terminate": 143, "hangup": 129}[reason])


def test_a_program_that_is_not_there_is_not_looked_for_twice():
    missing = AttemptEnd(NOW, 1, 0.0, code=127, error="cannot start clod: not found on the PATH")
    verdict = judged(None, finished=missing)
    assert (verdict.then, verdict.exit) == ("stop", 127)
    assert "not found on the PATH" in verdict.because


def test_a_deadline_ends_it_before_a_wait_that_would_pass_it():
    verdict = judged(said(failure(Kind.QUOTA, after=HOUR)), deadline_at=NOW + 60)
    assert verdict.then == "stop"
    assert "deadline" in verdict.because


@pytest.mark.parametrize("can_resume", [True, False])
def test_a_reported_server_error_is_repeated_however_far_its_request_came(can_resume):
    """A session goes on, and whoever wraps a command permits it to be started again."""
    crashed = failure(Kind.SERVER, status=500, reach=Reach.MAYBE_APPLIED)
    verdict = judged(said(crashed), can_resume=can_resume)
    assert verdict.then == "again"


def test_a_budget_counts_the_waits_and_the_attempts_after_the_first():
    policy = replace(run_policy("pipeline"), budget=600)
    failed = said(failure(Kind.OVERLOADED))
    first = judged(failed, policy=policy)
    later = judged(failed, policy=policy, before=(past(Kind.OVERLOADED, at=NOW - 500),))
    assert (first.then, later.then) == ("again", "stop")
    assert "would pass the retry budget" in later.because


def test_what_was_judged_to_go_on_is_not_refused_when_its_time_has_come():
    made = RunMade(0.0, "opencode", "opencode run x", "/src", "host", 0, "", {}, [])
    begun = AttemptBegun(1.0, 1, "start", "", "")
    mute = AttemptEnd(21.0, 1, 20.0, stopped="idle", kind="timeout", then="again", until=24.0)
    stop = mute._replace(then="stop", until=None)
    refused = stop._replace(stopped="final", kind="auth", signal=signal.SIGINT)
    doubt = stop._replace(stopped="", kind="bad_answer", code=0, is_doubt=True)
    for ended, is_cut_off in ((mute, False), (stop, True), (refused, False), (doubt, True)):
        state = state_of([made, begun, ended])
        assert state is not None
        assert state.is_cut_off is is_cut_off


def test_a_file_builds_on_the_preset_for_programs(tmp_path):
    file = tmp_path / "slow.toml"
    file.write_text('preset = "default"')
    policy = RunOptions(policy=str(file)).load_policy()
    assert policy.name == "slow"
    assert policy.rules == run_policy().rules
