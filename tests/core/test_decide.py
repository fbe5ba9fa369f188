"""The one judgement: its questions in their order, and the laws that hold for every answer."""

from __future__ import annotations

from copy import deepcopy
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan import (
    Effects,
    Ending,
    Exponential,
    Failure,
    Fixed,
    GiveUp,
    Hint,
    Kind,
    Linear,
    Park,
    Policy,
    Reach,
    RetryAfter,
    Rule,
    Schedule,
    Verify,
    preset,
)
from mulligan.core.decide import Call, decide
from mulligan.core.hint import Precision
from mulligan.core.presets import PRESETS

SECOND = Rule(attempts=3, backoff=Fixed(wait=1))


def judged(failure, policy=None, effects=Effects.UNSAFE, *, now=0.0, wall=1000.0, **call):
    """What is decided about the first failure of a call."""
    made = Call(policy or Policy(name="plain", rules={Kind.SERVER: SECOND}), effects, **call)
    return made.failed(failure, now=now, wall=wall, roll=0.5)


SERVER = Failure(kind=Kind.SERVER, status=500)
LOST = Failure(kind=Kind.NETWORK, reach=Reach.MAYBE_APPLIED)


# 1. Did somebody state whether it can pass?


def test_an_explicit_no_ends_it():  # E-G7, R-C11
    failure = Failure(kind=Kind.SERVER, status=503, is_retriable=False, because="the body says so")
    assert judged(failure) == GiveUp(
        Ending.FINAL, "503 (server) is not retryable: the body says so"
    )


def test_an_explicit_yes_overrides_a_kind_without_a_rule():  # E-G7, R-C11
    failure = Failure(kind=Kind.CLIENT, status=409, is_retriable=True)
    assert judged(failure) == RetryAfter(1.0)


def test_an_explicit_yes_overrides_the_list_of_statuses():
    failure = Failure(kind=Kind.SERVER, status=500, is_retriable=True)
    assert isinstance(judged(failure, preset("skill")), RetryAfter)


def test_a_422_that_may_pass_may_pass_once_corrected_never_as_it_is():  # "422"
    failure = Failure(kind=Kind.CLIENT, status=422, is_retriable=True)
    assert judged(failure) == GiveUp(
        Ending.FINAL, "422 (client) can succeed only once the call is corrected"
    )


def test_an_explicit_yes_changes_nothing_where_nothing_is_retried():
    failure = Failure(kind=Kind.CLIENT, is_retriable=True)
    assert isinstance(judged(failure, Policy()), GiveUp)


# 2. Does the policy have a rule for this kind?


def test_unknown_is_raised_never_retried():  # R-C3
    assert judged(Failure(kind=Kind.UNKNOWN)) == GiveUp(
        Ending.UNKNOWN, "unknown failures are not retried"
    )


def test_a_kind_without_a_rule_is_final():
    assert judged(Failure(kind=Kind.AUTH, status=401)) == GiveUp(
        Ending.FINAL, "401 (auth) cannot be fixed by waiting (policy 'plain')"
    )


def test_a_status_that_is_not_on_the_list_is_final():  # R-C7
    assert judged(SERVER, preset("skill")) == GiveUp(
        Ending.FINAL, "policy 'skill' does not retry status 500"
    )


@pytest.mark.parametrize("status", [200, 400, 403, 429, 503])
def test_a_limit_is_retried_whatever_its_status(status):  # E-G2
    failure = Failure(kind=Kind.RATE_LIMIT, status=status)
    assert isinstance(judged(failure, preset("skill")), RetryAfter)


def test_a_failure_that_is_final_still_says_when():
    failure = Failure(kind=Kind.BILLING, hint=Hint(delay=60))
    assert judged(failure) == GiveUp(
        Ending.FINAL, "billing cannot be fixed by waiting (policy 'plain')", 1060.0
    )


# 3. Could a repeat do it twice?


def test_what_may_have_been_applied_is_not_repeated_blindly():  # R-I1, E-F10
    decision = judged(LOST, preset("default"), name="pay")
    assert decision == GiveUp(
        Ending.MAYBE_APPLIED,
        "not retried: pay() may have been applied; "
        'if repeating is harmless, set effects="read" or effects="idempotent"',
    )


def test_what_may_have_been_applied_is_verified_where_somebody_can():  # R-I2
    decision = judged(LOST, preset("default"), name="pay", can_verify=True)
    assert decision == Verify("pay() may have been applied (network)")


@pytest.mark.parametrize("reach", [Reach.NEVER_SENT, Reach.ANSWERED])
def test_an_unsafe_call_that_was_not_applied_is_repeated(reach):
    failure = Failure(kind=Kind.NETWORK, reach=reach)
    assert isinstance(judged(failure, preset("default")), RetryAfter)


@pytest.mark.parametrize("effects", ["read", "idempotent", "keyed"])
def test_what_is_safe_to_repeat_is_repeated(effects):
    assert isinstance(judged(LOST, preset("default"), Effects(effects)), RetryAfter)


def test_the_danger_is_named_before_the_attempts_run_out():
    policy = Policy(rules={Kind.NETWORK: Rule(attempts=1)})
    decision = judged(LOST, policy)
    assert isinstance(decision, GiveUp)
    assert decision.ending is Ending.MAYBE_APPLIED


# 4. Are attempts of this kind left?


def test_attempts_are_counted_by_kind():  # E-C11
    call = Call(Policy(rules={Kind.SERVER: SECOND, Kind.NETWORK: SECOND}), Effects.READ)
    kinds = [Kind.SERVER, Kind.NETWORK, Kind.SERVER, Kind.NETWORK, Kind.SERVER]
    decisions = [call.failed(Failure(kind=k), now=0, wall=0, roll=0.5) for k in kinds]
    assert [type(each) for each in decisions] == [RetryAfter] * 4 + [GiveUp]
    assert decisions[-1].because == "attempt 3 of 3 failed with server"


def test_a_single_attempt_reads_as_one():
    decision = judged(SERVER, Policy(rules={Kind.SERVER: Rule(attempts=1)}))
    assert decision == GiveUp(Ending.EXHAUSTED, "the only attempt failed with 500 (server)")


def test_who_runs_out_of_attempts_still_says_when():
    failure = Failure(kind=Kind.SERVER, hint=Hint(delay=5, precision=Precision.SECOND))
    decision = judged(failure, Policy(rules={Kind.SERVER: Rule(attempts=1)}))
    assert isinstance(decision, GiveUp)
    assert decision.retry_at == 1006


# 5. How long?


def test_the_servers_time_comes_before_the_backoff():  # R-L2
    failure = Failure(kind=Kind.SERVER, hint=Hint(delay=7, source="retry-after"))
    decision = judged(failure)
    assert decision == RetryAfter(7, "retry-after")
    assert decision.because == "retry in 7s, as retry-after says"


def test_without_a_time_the_backoff_speaks():
    assert judged(SERVER).because == "retry in 1s, by backoff"


def test_a_hint_from_nowhere_comes_from_the_server():
    assert judged(Failure(kind=Kind.SERVER, hint=Hint(delay=7))) == RetryAfter(7, "the server")


# 6. Does the wait fit deadline, patience and budget?


def test_no_wait_passes_the_deadline():  # E-D3
    decision = judged(SERVER, deadline_at=0.5)
    assert decision == GiveUp(Ending.DEADLINE, "waiting 1s would pass the deadline, 500ms away")


def test_a_deadline_that_has_passed_is_not_told_as_a_negative_time():
    decision = judged(SERVER, now=10.0, deadline_at=5.0)
    assert decision.because == "the deadline passed during attempt 1"


def test_no_attempt_begins_that_cannot_finish():  # E-D3
    call = Call(Policy(rules={Kind.SERVER: SECOND}), Effects.READ, deadline_at=10.0)
    decision = call.failed(SERVER, now=6, wall=6, roll=0.5, took=6)
    assert decision == GiveUp(
        Ending.DEADLINE, "3s would be left for an attempt, and none has taken less than 6s"
    )


def test_no_wait_passes_the_budget_of_the_policy():  # R-B18
    policy = Policy(rules={Kind.SERVER: SECOND}, budget=0.5)
    assert judged(SERVER, policy) == GiveUp(
        Ending.BUDGET, "waiting 1s would pass the retry budget, 500ms of it left"
    )


def test_no_wait_passes_the_budget_of_the_task():  # R-B18
    call = Call(Policy(rules={Kind.SERVER: SECOND}), Effects.READ)
    call.allowance = 0.25
    decision = call.failed(SERVER, now=0, wall=0, roll=0.5)
    assert decision.because == "waiting 1s would pass the retry budget, 250ms of it left"


def test_no_wait_ends_after_the_patience():
    call = Call(Policy(rules={Kind.SERVER: SECOND}, patience=10, in_place=5), Effects.READ)
    assert isinstance(call.failed(SERVER, now=0, wall=0, roll=0.5), RetryAfter)
    assert call.failed(SERVER, now=9.5, wall=9.5, roll=0.5) == GiveUp(
        Ending.DEADLINE, "waiting 1s would end more than 10s after the first failure"
    )


def test_a_deadline_that_ends_a_limit_still_says_when():
    failure = Failure(kind=Kind.SERVER, hint=Hint(delay=60))
    decision = judged(failure, deadline_at=5.0)
    assert isinstance(decision, GiveUp)
    assert (decision.ending, decision.retry_at) == (Ending.DEADLINE, 1060)


# 7. Has the condition changed?

CONDITIONAL = Failure(kind=Kind.CONDITIONAL, status=423)


def conditional(check, validator=None):
    rule = Rule(backoff=Fixed(wait=1), check=check)
    return Policy(rules={Kind.CONDITIONAL: rule}, validator=validator)


def test_a_required_validator_that_is_missing_is_a_no():  # R-A3
    assert judged(CONDITIONAL, conditional("required")) == GiveUp(
        Ending.FINAL,
        "423 (conditional) can succeed only after a change, and no validator reports one",
    )


def test_an_optional_validator_that_is_missing_is_a_yes():
    assert judged(CONDITIONAL, conditional("if_given")) == RetryAfter(1)


@pytest.mark.parametrize("check", ["required", "if_given"])
def test_a_validator_is_believed(check):  # R-A3
    assert judged(CONDITIONAL, conditional(check, lambda _: True)) == RetryAfter(1)
    assert judged(CONDITIONAL, conditional(check, lambda _: False)) == GiveUp(
        Ending.FINAL, "423 (conditional): the validator reports no change"
    )


def test_a_validator_is_not_asked_where_no_rule_wants_it():
    def never(_):
        raise AssertionError

    assert judged(CONDITIONAL, conditional("never", never)) == RetryAfter(1)


def test_a_validator_that_raises_is_a_no():  # E-G8
    def broken(_):
        raise LookupError

    decision = judged(CONDITIONAL, conditional("required", broken))
    assert decision.because == "423 (conditional): the validator raised LookupError"


def test_a_server_that_says_yes_has_answered_for_the_validator():
    failure = Failure(kind=Kind.CONDITIONAL, is_retriable=True)
    assert judged(failure, conditional("required", lambda _: False)) == RetryAfter(1)


def test_a_condition_that_the_server_says_passes_is_waited_for_like_a_fault():  # E-F2
    failure = Failure(kind=Kind.CONDITIONAL, status=409, is_retriable=True)
    patient = Rule(attempts=9, backoff=Fixed(wait=7))
    rules = {Kind.SERVER: patient, **conditional("required").rules}
    assert judged(failure, Policy(rules=rules)) == RetryAfter(7)


# 8. Which band?


def limited(delay, source="retry-after"):
    return Failure(kind=Kind.RATE_LIMIT, status=429, hint=Hint(delay=delay, source=source))


def test_a_short_wait_is_slept_through():
    assert judged(limited(120), preset("default")) == RetryAfter(120, "retry-after")


def test_a_long_wait_parks():
    assert judged(limited(901), preset("default")) == Park(
        1901.0, "retry in 15m1s, as retry-after says: longer than the 15m slept in place"
    )


def test_a_wait_beyond_the_horizon_gives_up_and_says_when():  # R-L10, E-A7
    assert judged(limited(86_400), preset("default")) == GiveUp(
        Ending.HORIZON,
        "retry in 1d, as retry-after says: beyond the horizon of 6h",
        87_400.0,
    )


def test_a_time_that_the_gate_does_not_believe_is_waited_for_at_the_gate():
    call = Call(preset("default"), Effects.READ)
    call.has_gate, call.believes = True, 60.0
    found = call.failed(limited(3600), now=0.0, wall=1000.0, roll=0.5)
    assert found == RetryAfter(0.0, "", is_queued=True)
    assert call.failed(limited(59), now=0.0, wall=1000.0, roll=0.5) == RetryAfter(59, "retry-after")


def test_a_gate_that_believes_longer_waits_than_are_slept_through_changes_nothing():
    call = Call(preset("default"), Effects.READ)
    call.has_gate, call.believes = True, 21_600.0
    found = call.failed(limited(86_400), now=0.0, wall=1000.0, roll=0.5)
    assert isinstance(found, GiveUp)
    assert found.ending is Ending.HORIZON


@pytest.mark.parametrize(
    ("deadline", "roll", "most"),
    [(10.0, 1.0, 2.5), (10.0, 0.5, 1.25), (10.0, 0, 0), (2.0, 1.0, 1.0)],
)
def test_full_jitter_takes_at_most_a_quarter_of_the_time_until_the_deadline_or_a_second(
    deadline, roll, most
):
    call = Call(preset("default"), Effects.READ, deadline_at=deadline)
    call.counts[Kind.SERVER] = call.unhinted[Kind.SERVER] = 7  # the backoff's ceiling is 30 s now
    found = call.failed(SERVER, now=0.0, wall=0.0, roll=roll)
    assert isinstance(found, RetryAfter)
    assert found.delay == most


def test_a_wait_without_jitter_is_what_was_asked_for_whatever_the_deadline():
    rules = {Kind.SERVER: Rule(attempts=3, backoff=Fixed(wait=9))}
    call = Call(Policy(name="plain", rules=rules), Effects.READ, deadline_at=10.0)
    assert call.failed(SERVER, now=0.0, wall=0.0, roll=0.5) == RetryAfter(9.0, "")


# The laws

durations = st.floats(0.001, 1e5)
backoffs = st.one_of(
    st.builds(
        lambda first, more, jitter: Exponential(first=first, cap=first + more, jitter=jitter),
        st.floats(0.001, 100),
        st.floats(0, 1e5),
        st.sampled_from(["none", "full", "equal"]),
    ),
    st.builds(lambda wait: Fixed(wait=wait), durations),
    st.builds(lambda first, step: Linear(first=first, step=step, cap=1e5), durations, durations),
    st.builds(
        lambda waits, spread: Schedule(waits=tuple(waits), jitter="additive", spread=spread),
        st.lists(durations, min_size=1, max_size=5),
        st.floats(0.001, 0.001),
    ),
)
rules = st.builds(
    Rule,
    attempts=st.none() | st.integers(1, 5),
    backoff=backoffs,
    hint=st.sampled_from(["replace", "at_least"]),
    missing_hint=st.none() | backoffs,
    check=st.sampled_from(["never", "if_given", "required"]),
)
policies = st.sampled_from([preset(name) for name in PRESETS]) | st.builds(
    Policy,
    rules=st.dictionaries(st.sampled_from(Kind), rules, max_size=6),
    statuses=st.none() | st.frozensets(st.sampled_from([429, 500, 503]), max_size=3),
    deadline=st.none() | durations,
    patience=durations,
    budget=st.none() | durations,
    in_place=durations,
    horizon=durations,
    validator=st.sampled_from([None, lambda _: True, lambda _: False]),
)
hints = st.builds(
    Hint,
    delay=st.floats(1e-6, 1e9),
    precision=st.sampled_from(Precision),
    source=st.sampled_from(["", "retry-after", "body reset_at"]),
)


def failures(**fixed):
    return st.builds(
        Failure,
        **{
            "kind": st.sampled_from(Kind),
            "reach": st.sampled_from(Reach),
            "hint": st.none() | hints,
            "status": st.none() | st.sampled_from([400, 422, 429, 500, 503]),
            "is_retriable": st.none() | st.booleans(),
            "because": st.just("status 503"),
            **fixed,
        },
    )


@st.composite
def judgements(draw, last=failures(), effects=st.sampled_from(Effects)):  # noqa: B008 -- frozen
    """A call with a past, its latest failure recorded, and the arguments of the judgement."""
    start = draw(st.floats(0, 1e6))
    call = Call(
        draw(policies),
        draw(effects),
        name=draw(st.sampled_from(["", "fetch"])),
        can_verify=draw(st.booleans()),
        deadline_at=draw(st.just(inf) | st.floats(0, 1e6)),
    )
    call.allowance = draw(st.just(inf) | st.floats(0, 100))
    now = start
    for failure in draw(st.lists(failures(), max_size=4)):
        now += draw(st.floats(0, 100))
        call.failed(failure, now=now, wall=now, roll=0.5, took=draw(st.none() | durations))
        call.attempt += 1
    failure = draw(last)
    now += draw(st.floats(0, 100))
    roll = draw(st.floats(0, 1, exclude_max=True))
    call.failed(failure, now=now, wall=now + 1e9, roll=roll, took=draw(st.none() | durations))
    return call, failure, {"now": now, "wall": now + 1e9, "roll": roll}


@given(judgements(last=failures(hint=hints)))
def test_the_next_attempt_never_comes_sooner_than_the_hint(judgement):  # E-A9
    call, failure, when = judgement
    decision = decide(call, failure, **when)
    hint = failure.hint.delay
    match decision:
        case RetryAfter(delay=delay):
            assert delay >= hint
        case Park(until=until):
            assert until >= when["wall"] + hint
        case GiveUp(ending=Ending.HORIZON, retry_at=retry_at):
            assert retry_at is not None
            assert retry_at >= when["wall"] + hint
        case GiveUp(retry_at=retry_at):
            assert retry_at is None or retry_at >= when["wall"] + hint


@given(judgements())
def test_deciding_changes_nothing_and_gives_the_same_answer_again(judgement):
    call, failure, when = judgement
    before = deepcopy({**vars(call), "policy": None})
    first, second = decide(call, failure, **when), decide(call, failure, **when)
    assert first == second == call.tries[-1][1]
    assert {**vars(call), "policy": None} == before


@given(
    judgements(last=failures(reach=st.just(Reach.MAYBE_APPLIED)), effects=st.just(Effects.UNSAFE))
)
def test_what_may_have_been_applied_is_never_repeated_unseen(judgement):  # do no harm
    call, failure, when = judgement
    decision = decide(call, failure, **when)
    assert not isinstance(decision, RetryAfter | Park)
    assert isinstance(decision, GiveUp) or call.can_verify


@given(judgements())
def test_every_decision_has_its_reason_in_one_line(judgement):
    call, failure, when = judgement
    because = decide(call, failure, **when).because
    assert because.strip()
    assert because.isprintable()


@given(judgements())
def test_waits_stay_in_their_bands(judgement):
    call, failure, when = judgement
    policy = call.policy
    match decide(call, failure, **when):
        case RetryAfter(delay=delay):
            assert 0 <= delay <= policy.in_place
        case Park(until=until):
            assert policy.in_place < until - when["wall"] + 1e-3
            assert until - when["wall"] <= policy.horizon + 1e-3
        case _:
            pass


@given(judgements(last=failures(is_retriable=st.sampled_from([False]))))
def test_an_explicit_no_always_ends_it(judgement):  # E-G7
    call, failure, when = judgement
    assert isinstance(decide(call, failure, **when), GiveUp)


@given(judgements())
def test_no_wait_passes_a_bound(judgement):  # E-D3, R-B18
    call, failure, when = judgement
    decision = decide(call, failure, **when)
    if not isinstance(decision, RetryAfter):
        return
    assert when["now"] + decision.delay < call.deadline_at
    assert decision.delay <= call.allowance
    if call.policy.budget is not None:
        assert call.spent + decision.delay <= call.policy.budget + 1e-6
    assert call.first_failed_at is not None
    assert when["now"] - call.first_failed_at + decision.delay <= call.policy.bound + 1e-6


@given(judgements())
def test_attempts_are_never_more_than_the_rule_allows(judgement):
    call, failure, when = judgement
    rule = call.policy.rules.get(failure.kind)
    used = call.counts[failure.kind]
    if rule is not None and rule.attempts is not None and used >= rule.attempts:
        assert not isinstance(decide(call, failure, **when), RetryAfter | Park)
