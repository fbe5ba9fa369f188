"""A policy is data: compared, changed by copy, refused where it is invalid."""

from __future__ import annotations

import re
from dataclasses import replace
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan import (
    Effects,
    Exponential,
    Failure,
    Fixed,
    Kind,
    Policy,
    Rule,
    SettingError,
    Timeouts,
    preset,
)
from mulligan.core.decide import Call, decide
from mulligan.core.decisions import RetryAfter
from mulligan.core.hint import Hint
from mulligan.core.presets import PRESETS

FIVE = Fixed(wait=5)


def wait(rule, count, unhinted, hint, roll):
    """What is waited after failure `count` of a call, `unhinted` of them since the last hint."""
    rules = {Kind.SERVER: replace(rule, attempts=None)}
    call = Call(Policy(rules=rules, in_place=1e7, patience=1e9), Effects.READ)
    call.counts[Kind.SERVER], call.unhinted[Kind.SERVER] = count, unhinted
    failure = Failure(kind=Kind.SERVER, hint=None if hint is None else Hint(delay=hint))
    decision = decide(call, failure, now=0.0, wall=0.0, roll=roll)
    assert isinstance(decision, RetryAfter)
    return decision.delay


@given(
    hint=st.floats(0.001, 1e6),
    count=st.integers(1, 10**6),
    roll=st.floats(0, 1),
    mode=st.sampled_from(["replace", "at_least"]),
)
def test_no_rule_waits_less_than_the_hint(hint, count, roll, mode):  # E-A9
    rule = Rule(backoff=Exponential(first=1, cap=60), hint=mode)
    assert wait(rule, count, 0, hint, roll) >= hint


def test_replace_takes_the_servers_time_and_adds_nothing():  # R-L2, R-L6
    rule = Rule(backoff=FIVE)
    assert [wait(rule, 1, 0, hint, 0.5) for hint in (0.1, 7.0, 900.0)] == [0.1, 7, 900]


def test_at_least_takes_the_longer_never_the_sum():  # R-B14
    rule = Rule(backoff=FIVE, hint="at_least")
    assert [wait(rule, 1, 0, hint, 0.5) for hint in (0.1, 5.0, 900.0)] == [5, 5, 900]


def test_a_limit_without_a_time_may_have_a_wait_of_its_own():  # R-L3 to R-L5
    rule = Rule(backoff=Exponential(first=1, jitter="none"), missing_hint=FIVE)
    assert wait(rule, 3, 3, None, 0.5) == 5
    assert wait(rule, 3, 0, 2.0, 0.5) == 2


def test_the_hint_of_a_server_is_not_bounded_by_the_cap_of_the_backoff():  # E-A14
    assert wait(Rule(backoff=Exponential(first=1, cap=10)), 1, 0, 500.0, 0.5) == 500


@given(status=st.integers(100, 599))
def test_without_a_list_of_statuses_the_kinds_decide(status):
    assert Policy().retries(status)
    assert Policy(statuses=frozenset({503})).retries(status) == (status == 503)


def test_words_are_understood_as_kinds_effects_and_durations():
    rule = Rule()
    policy = Policy(
        rules={"server": rule},  # type: ignore[dict-item]
        codes={"ORDER_LOCKED": "conditional"},  # type: ignore[dict-item]
        effects="read",  # type: ignore[arg-type]
        deadline="2m",  # type: ignore[arg-type]
        in_place="90s",  # type: ignore[arg-type]
    )
    assert policy.rules == {Kind.SERVER: rule}
    assert policy.codes == {"ORDER_LOCKED": Kind.CONDITIONAL}
    assert policy.effects is Effects.READ
    assert (policy.deadline, policy.in_place) == (120, 90)


def test_the_defaults_are_the_designs():
    policy = Policy()
    assert (policy.in_place, policy.horizon, policy.bound) == (900, 21_600, 900)
    assert (policy.deadline, policy.budget, policy.timeouts) == (None, None, None)


def test_a_wait_that_may_be_slept_through_may_be_waited_at_all():
    assert Policy(in_place=50_000).horizon == 50_000
    assert Policy().but(horizon="1m").in_place == 60  # the longest wait at all


def test_a_policy_that_blocks_for_hours_is_patient_as_long():
    assert Policy(in_place=7200).bound == 7200
    assert Policy().bound == 900


def test_but_changes_bounds_and_leaves_the_original_alone():
    before = preset("default")
    after = before.but(attempts=2, deadline="1m", budget=30, in_place=5, horizon=10)
    assert before == PRESETS["default"]()
    assert {rule.attempts for rule in after.rules.values()} == {2}
    assert (after.deadline, after.budget, after.in_place, after.horizon) == (60, 30, 5, 10)
    assert after.rules.keys() == before.rules.keys()


def test_but_without_changes_is_the_same_policy():
    assert preset("default").but() is preset("default")


def test_policies_with_the_same_settings_are_equal():
    def make():
        return Policy(name="mine", rules={Kind.SERVER: Rule()}, timeouts=Timeouts(total=5))

    assert make() == make()
    assert make() != make().but(deadline=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Rule(attempts=0),
            (
                "Rule.attempts needs a whole number >= 1, or None for a bound in time; got 0 "
                "(attempts are the total, the first one included)"
            ),
        ),
        (
            lambda: Rule(attempts=True),
            (
                "Rule.attempts needs a whole number >= 1, or None for a bound in time; got True "
                "(attempts are the total, the first one included)"
            ),
        ),
        (
            lambda: Rule(attempts=2.5),  # type: ignore[arg-type]
            (
                "Rule.attempts needs a whole number >= 1, or None for a bound in time; got 2.5 "
                "(attempts are the total, the first one included)"
            ),
        ),
        (
            lambda: Rule(hint="sum"),  # type: ignore[arg-type]
            "Rule.hint needs replace or at_least; got 'sum'",
        ),
        (
            lambda: Rule(check="maybe"),  # type: ignore[arg-type]
            "Rule.check needs never, if_given or required; got 'maybe'",
        ),
        (lambda: Policy(deadline=0), "deadline needs more than 0 s; got 0"),
        (
            lambda: Policy(patience=-1),
            "patience needs a finite number of seconds, not negative; got -1",
        ),
        (
            lambda: Policy(horizon=nan),
            "horizon needs a finite number of seconds, not negative; got nan",
        ),
        (
            lambda: Policy().but(attempts=0),
            "attempts needs a whole number >= 1; got 0 (the total, the first one included)",
        ),
        (
            lambda: Policy().but(deadline="soon"),
            'deadline needs a duration such as 90, "90s", "1h30m" or "250ms"; got \'soon\'',
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(make, message):
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        make()
