"""The waits a rule would make, and how many of them time allows."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.forecast import attempts_within, distinct_rules, time_for_waits, upcoming
from mulligan.core.backoff import Exponential, Fixed
from mulligan.core.failure import Kind
from mulligan.core.policy import Policy, Rule
from mulligan.core.presets import preset


@given(attempts=st.integers(1, 50))
def test_there_is_one_wait_less_than_attempts(attempts):
    assert [wait.after for wait in upcoming(Rule(attempts=attempts))] == list(range(1, attempts))


def test_without_a_count_waits_have_no_end():
    assert len(list(islice(upcoming(Rule(attempts=None)), 1000))) == 1000


def test_totals_are_the_sums_of_the_rows():
    waits = list(upcoming(Rule(attempts=6, backoff=Exponential(first=1, cap=8))))
    assert [wait.most for wait in waits] == [1, 2, 4, 8, 8]
    assert [wait.total_most for wait in waits] == [1, 3, 7, 15, 23]
    assert [wait.total_median for wait in waits] == [0.5, 1.5, 3.5, 7.5, 11.5]
    assert [wait.total_least for wait in waits] == [0, 0, 0, 0, 0]


def test_a_limit_without_a_time_waits_by_its_missing_hint():
    rule = Rule(attempts=3, backoff=Fixed(wait=9), missing_hint=Fixed(wait=2))
    assert [wait.median for wait in upcoming(rule)] == [2, 2]


@pytest.mark.parametrize(("time", "attempts"), [(0, 1), (9.9, 1), (10, 2), (25, 3), (1e9, 5)])
def test_attempts_start_while_there_is_time(time, attempts):
    assert attempts_within(Rule(attempts=5, backoff=Fixed(wait=10)), time) == attempts


def test_the_tightest_bound_is_the_time_for_waits():
    assert time_for_waits(Policy()) == 900
    assert time_for_waits(Policy(deadline=60)) == 60
    assert time_for_waits(Policy(deadline=60, budget=30)) == 30
    assert time_for_waits(Policy(budget=0)) == 0


def test_kinds_that_share_a_rule_share_a_table():
    shared = [kinds for _, kinds in distinct_rules(preset("tools"))]
    assert shared == [["rate_limit", "quota"], ["overloaded", "server"], ["network", "timeout"]]
    assert [kinds for _, kinds in distinct_rules(Policy(rules={Kind.AUTH: Rule()}))] == [["auth"]]
