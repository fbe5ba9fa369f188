"""Contradictions, each in the words people read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.lint import lint
from mulligan.core.backoff import Exponential, Fixed, Schedule
from mulligan.core.failure import Effects, Kind
from mulligan.core.policy import Policy, Rule
from mulligan.core.presets import PRESETS, preset
from mulligan.core.shared_settings import Gate, Tokens
from mulligan.core.timeouts import Timeouts

DEFAULT = preset("default")


def only(kind: Kind, rule: Rule, **settings: object) -> Policy:
    return Policy(rules={kind: rule}, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PRESETS)
def test_no_preset_contradicts_itself(name):
    assert lint(preset(name)) == ()


CONTRADICTIONS = {
    "rules: there are none, so nothing is retried; start with preset = "
    '"default", or add rules such as [rules.server]': Policy(),
    "patience: no wait of more than 1m40s is slept through, though in_place is 15m; lower in_place "
    "to 1m40s, or leave patience out": replace(DEFAULT, patience=100),
    "key_ttl: a key is forgotten after 1m, but a repeat may come 6h later and would then be a "
    "second effect; raise key_ttl to 6h, or lower horizon and patience": replace(
        DEFAULT, key_ttl=60
    ),
    "effects: with unsafe, network and timeout failures are repeated only if nothing was sent "
    "(refused, no such host, connect timeout); a lost reply, 408, 502 and 504 are not; write "
    "idempotent, keyed or read if repeating is harmless": replace(DEFAULT, effects=Effects.UNSAFE),
    "statuses: 404 is never retried for its status alone; leave it out, or give the application's "
    "own code a kind in [codes]": replace(DEFAULT, statuses=frozenset({404, 429, 503})),
    "statuses: 4290 is not an HTTP status; leave it out": replace(
        DEFAULT, statuses=frozenset({4290})
    ),
    "timeouts.read: 2m is never reached, because an attempt ends after 1m in total; lower read, "
    "or raise timeouts.total": replace(DEFAULT, timeouts=Timeouts(read=120, total=60)),
    "timeouts.total: 2m is never reached, because the whole call ends after 1m; lower "
    "timeouts.total so that a second attempt fits, or raise deadline": replace(
        DEFAULT.but(attempts=5), deadline=60, timeouts=Timeouts(total=120)
    ),
    "timeouts.shrink: there is no timeout that could shrink; set timeouts.total, or leave shrink "
    "out": replace(DEFAULT, timeouts=Timeouts(shrink=0.5)),
    "timeouts.shrink: timeouts are not retried, so none ever shrinks; add [rules.timeout], or "
    "leave shrink out": only(Kind.SERVER, Rule(), timeouts=Timeouts(total=9, shrink=0.5)),
    "gate.high: calls are never spaced out, so there is nothing to end above it; set gate.low, "
    "too, or leave gate.high out": replace(DEFAULT, gate=Gate(high=20)),
    "tokens.capacity: a retry costs up to 14, more than there can be: only the 3 of tokens.floor "
    "are ever made at a time; raise tokens.capacity": replace(DEFAULT, tokens=Tokens(capacity=10)),
    "rules.server.backoff: with attempts = 1 nothing is repeated, so no wait is ever made; raise "
    "attempts, or leave the backoff out": only(
        Kind.SERVER, Rule(attempts=1, backoff=Fixed(wait=2))
    ),
    "rules.conditional.check: the condition is not looked at, so the same refusal is asked for "
    'again; write check = "required" and give the policy a validator in Python': only(
        Kind.CONDITIONAL, Rule()
    ),
    "rules.server.missing_hint: servers name a time for limits, hardly ever for server, so this "
    "takes the place of backoff nearly always; write it as backoff": only(
        Kind.SERVER, Rule(missing_hint=Fixed(wait=2))
    ),
    "budget: 100ms is shorter than the usual first wait, 250ms, after server: often not retried; "
    "raise budget, or shorten rules.server.backoff": only(Kind.SERVER, Rule(), budget=0.1),
    "budget: 30s is shorter than the shortest first wait, 1m, after quota: never retried; raise "
    "budget, or shorten rules.quota.missing_hint": only(
        Kind.QUOTA, Rule(missing_hint=Fixed(wait=60)), budget=30
    ),
    "deadline: 4s is shorter than the shortest first wait, 5s, after server: never retried; raise "
    "deadline, or shorten rules.server.backoff": only(
        Kind.SERVER, Rule(backoff=Fixed(wait=5)), deadline=4
    ),
    "in_place: 1m is shorter than the usual first wait, 1m30s, after server, network: a plain "
    "call parks instead of waiting; raise in_place, or shorten rules.server.backoff": Policy(
        rules=dict.fromkeys((Kind.SERVER, Kind.NETWORK), Rule(backoff=Fixed(wait=90))), in_place=60
    ),
    "rules.server.attempts: time usually ends it first, for server: about 16 of 20 attempts start "
    "in 15m; lower attempts to 16, or raise patience, deadline or budget": only(
        Kind.SERVER, Rule(attempts=20, backoff=Fixed(wait=60))
    ),
    "rules.server.backoff: waits this short let more than 100 attempts of one call start in 5m, "
    "for server: a storm, not a retry; lengthen the waits, or lower attempts": only(
        Kind.SERVER, Rule(attempts=None, backoff=Fixed(wait=0.01))
    ),
    "rules.quota.backoff.cap: a wait of 1h never ends inside the 15m that a call may take; lower "
    "the cap, or raise patience, deadline or budget": only(
        Kind.QUOTA, Rule(attempts=None, backoff=Exponential(first=1, cap=3600))
    ),
}


@pytest.mark.parametrize("words", CONTRADICTIONS)
def test_a_contradiction_is_named_with_what_to_do(words):
    assert [str(found) for found in lint(CONTRADICTIONS[words])] == [words]


@pytest.mark.parametrize(
    "kind",
    [
        Kind.BILLING,
        Kind.AUTH,
        Kind.CONTEXT_LENGTH,
        Kind.CONTENT_POLICY,
        Kind.CLIENT,
        Kind.CIRCUIT_OPEN,  # R-K6
        Kind.UNKNOWN,  # R-C3
    ],
)
def test_retrying_what_fails_again_is_grave(kind):  # R-C9, R-C10
    (found,) = lint(only(kind, Rule(attempts=2)))
    assert (found.key, found.is_grave) == (f"rules.{kind}", True)
    assert found.message.startswith("repeating does not help: ")


def test_a_kind_that_is_switched_off_is_no_contradiction():
    assert lint(only(Kind.BILLING, Rule(attempts=1))) == ()


def test_a_key_must_outlive_the_whole_of_a_long_patience():  # E-F8
    found = lint(replace(preset("pipeline"), key_ttl=21_600))
    assert [each.key for each in found] == ["key_ttl"]
    assert lint(replace(preset("pipeline"), key_ttl=86_400)) == ()


def test_a_deadline_longer_than_patience_is_meant():
    assert lint(DEFAULT.but(deadline="1h")) == ()


def test_grave_findings_come_first():
    policy = replace(DEFAULT, patience=100, rules={**DEFAULT.rules, Kind.AUTH: Rule()})
    assert [each.key for each in lint(policy)] == ["rules.auth", "patience"]


_TIMES = st.floats(0.001, 1e9)


@given(
    kind=st.sampled_from(Kind),
    attempts=st.none() | st.integers(1, 10**9),
    waits=st.lists(_TIMES, min_size=1, max_size=4),
    times=st.tuples(_TIMES, _TIMES, st.none() | _TIMES, st.none() | _TIMES),
)
def test_every_policy_can_be_linted(kind, attempts, waits, times):
    patience, in_place, deadline, budget = times
    rule = Rule(attempts=attempts, backoff=Schedule(waits=tuple(waits)))
    policy = Policy(
        rules={kind: rule},
        patience=patience,
        in_place=in_place,
        deadline=deadline,
        budget=budget,
    )
    assert all(found.key and found.message and found.hint for found in lint(policy))
