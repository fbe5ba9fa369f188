from __future__ import annotations

import pytest

import mulligan
from mulligan import Exponential, Fixed, Kind, Linear, Policy, Rule, preset
from mulligan.core.adaptive import adapted
from mulligan.testing import Scripted, VirtualClock, status_error

DEFAULT = preset("default")


def rule(kind: Kind, seen: int, policy: Policy = DEFAULT) -> Rule:
    return adapted(policy, {kind: seen}).rules[kind]


def test_five_timeouts_raise_the_first_delay_to_two_seconds():  # R-B15
    assert rule(Kind.TIMEOUT, 4) == DEFAULT.rules[Kind.TIMEOUT]
    assert rule(Kind.TIMEOUT, 5).backoff == Exponential(first=2, cap=30)


def test_three_rate_limits_switch_to_a_fixed_delay():  # R-B15
    assert rule(Kind.RATE_LIMIT, 2) == DEFAULT.rules[Kind.RATE_LIMIT]
    assert rule(Kind.RATE_LIMIT, 3).missing_hint == Fixed(wait=5)


def test_many_server_errors_use_an_exponential_backoff():  # R-B15
    steady = Policy(rules={Kind.SERVER: Rule(backoff=Linear())})
    assert isinstance(rule(Kind.SERVER, 5, steady).backoff, Exponential)


def test_many_network_errors_allow_more_attempts():  # R-B15
    assert rule(Kind.NETWORK, 5).attempts == 12


def test_nothing_becomes_retried_that_was_not():
    seen = dict.fromkeys(Kind, 100)
    assert adapted(Policy(), seen) == Policy()
    assert adapted(DEFAULT, seen).rules.keys() == DEFAULT.rules.keys()


def test_a_guard_learns_from_the_failures_of_its_earlier_calls_and_forgets_them():
    clock = VirtualClock()
    guard = mulligan.Guard(adaptive=True, clock=clock, dice=None)
    limited = status_error(429)
    assert guard.call(Scripted(limited, limited, limited, "ok")) == "ok"
    clock.sleeps.clear()
    assert guard.call(Scripted(limited, "ok")) == "ok"
    assert clock.sleeps == [5]
    clock.advance(301)
    clock.sleeps.clear()
    assert guard.call(Scripted(limited, "ok")) == "ok"
    assert clock.sleeps[0] < 1


def test_a_guard_that_was_not_told_to_does_not_learn():
    clock = VirtualClock()
    guard = mulligan.Guard(clock=clock)
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            guard.call(Scripted(ConnectionRefusedError()))
    assert len(clock.sleeps) == 3 * 9
