"""Each preset, held against the table it was published as.

The waits are taken from whole calls, not from the backoff alone: counters, bounds and bands have
their say, too.
"""

from __future__ import annotations

import re

import pytest

import mulligan
from mulligan import (
    Breaker,
    Effects,
    Failure,
    Gate,
    Hint,
    Kind,
    Park,
    Policy,
    RetryAfter,
    SettingError,
    Timeouts,
    preset,
)
from mulligan.core.decide import Call
from mulligan.core.presets import PRESETS
from mulligan.testing import status_error

ALMOST_ONE = 1 - 2**-53


def waits(name, kind, roll, *, hint=None, status=None, most=50):
    """The waits of a call that keeps failing, and what ended it."""
    policy = preset(name)
    call = Call(policy, policy.effects or Effects.READ)
    failure = Failure(kind=Kind(kind), hint=hint and Hint(delay=hint), status=status)
    found: list[float] = []
    now = 0.0
    while len(found) < most:
        decision = call.failed(failure, now=now, wall=now, roll=roll, took=0.0)
        if not isinstance(decision, RetryAfter):
            return found, decision
        call.waited += decision.delay
        call.spent += decision.delay
        found.append(decision.delay)
        now += decision.delay
        call.attempt += 1
    return found, None


FAULTS = ("overloaded", "server", "network", "timeout")
LIMITS = ("rate_limit", "quota")

# (preset, kinds, attempts in total, waits at roll 0, at roll 0.5, at a roll close to 1)
GOLDEN = [
    # Full jitter, first 0.5 s, 10 attempts: where 30 % fail at random, six in a million are lost
    (
        *("default", FAULTS, 10, [0] * 9),
        *([0.25, 0.5, 1, 2, 4, 8, 15, 15, 15], [0.5, 1, 2, 4, 8, 16, 30, 30, 30]),
    ),
    # R-B1: uniform in [0, min(1 * 2**n, 30)], 3 retries
    ("skill", FAULTS + LIMITS, 4, [0, 0, 0], [0.5, 1, 2], [1, 2, 4]),
    # R-B3: 200 ms * 2**n + uniform(0, 100 ms), 5 attempts
    (
        "tools",
        ("overloaded", "server"),
        5,
        [0.2, 0.4, 0.8, 1.6],
        [0.25, 0.45, 0.85, 1.65],
        [0.3, 0.5, 0.9, 1.7],
    ),
    # R-B4: 500 ms * (n + 1), 3 attempts
    ("tools", ("network", "timeout"), 3, [0.5, 1], [0.5, 1], [0.5, 1]),
    # R-L3: 1 s fixed without a header, 3 attempts
    ("tools", LIMITS, 3, [1, 1], [1, 1], [1, 1]),
    # R-B5, R-B10: first 1 s, factor 2, cap 10 s, 3 retries, full jitter
    ("pattern", ("server",), 4, [0, 0, 0], [0.5, 1, 2], [1, 2, 4]),
    # R-B6, R-L4: 5 s fixed, 3 retries
    ("pattern", LIMITS, 4, [5, 5, 5], [5, 5, 5], [5, 5, 5]),
    # R-B7: 1 s + 1 s * n, cap 5 s, 5 retries
    ("pattern", ("overloaded",), 6, [1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
    # R-B8, R-B9: exponential from 2 s, cap 30 s, 5 retries
    ("pattern", ("network", "timeout"), 6, [0] * 5, [1, 2, 4, 8, 15], [2, 4, 8, 16, 30]),
    # R-B11, R-L5: 1 s * 2**n + uniform(0, 1 s), 4 attempts
    ("surface", FAULTS + LIMITS, 4, [1, 2, 4], [1.5, 2.5, 4.5], [2, 3, 5]),
    # R-B13, R-B14: [120, 300, 900, 1800] + uniform(0, 30), 3 retries
    ("pipeline", FAULTS + LIMITS, 4, [120, 300, 900], [135, 315, 915], [150, 330, 930]),
    # R-B19: 2 retries
    ("subagent", FAULTS + LIMITS, 3, [0, 0], [0.5, 1], [1, 2]),
]


@pytest.mark.parametrize(
    ("name", "kind", "attempts", "least", "median", "greatest"),
    [(name, kind, *rest) for name, kinds, *rest in GOLDEN for kind in kinds],
)
def test_waits_and_attempts_are_the_published_ones(
    *, name, kind, attempts, least, median, greatest
):
    for roll, expected in ((0.0, least), (0.5, median), (ALMOST_ONE, greatest)):
        found, end = waits(name, kind, roll)
        assert found == pytest.approx(expected)
        assert len(found) + 1 == attempts
        assert isinstance(end, mulligan.GiveUp)
        assert end.ending == "exhausted"


@pytest.mark.parametrize(
    ("name", "kind", "cap"),
    [
        ("default", "server", 30),
        ("default", "rate_limit", 60),
        ("skill", "server", 30),
        ("pattern", "server", 10),
        ("pattern", "timeout", 30),
        ("pattern", "overloaded", 5),
        ("surface", "server", 60),
        ("pipeline", "quota", 1830),
    ],
)
def test_waits_saturate_at_the_published_cap(name, kind, cap):  # R-B1, R-B5, R-B7, R-B8, R-B11
    backoff = preset(name).rules[Kind(kind)].backoff
    assert backoff.delay(10_000, 1.0) == pytest.approx(cap)


def test_every_transient_kind_of_every_preset_is_in_the_golden_table():
    covered = {(name, kind) for name, kinds, *_ in GOLDEN for kind in kinds}
    there = {
        (name, str(kind))
        for name in PRESETS
        for kind in preset(name).rules
        if kind is not Kind.CONDITIONAL
    }
    assert there - covered == {("default", "rate_limit"), ("default", "quota")}


@pytest.mark.parametrize("kind", LIMITS)
def test_in_default_a_limit_is_bounded_by_time_alone(kind):  # E-C10
    found, end = waits("default", kind, ALMOST_ONE)
    assert found == pytest.approx([1, 2, 4, 8, 16, 32, *[60] * 13])
    assert isinstance(end, mulligan.GiveUp)
    assert end.ending == "deadline"
    assert end.because.endswith("would end more than 15m after the first failure")


@pytest.mark.parametrize("name", ["default", "skill", "tools", "pattern", "surface", "subagent"])
@pytest.mark.parametrize("hint", [0.5, 3, 20])
@pytest.mark.parametrize("roll", [0, 0.5, ALMOST_ONE])
def test_the_header_replaces_the_backoff(name, hint, roll):  # R-L2, R-L6
    found, _ = waits(name, "rate_limit", roll, hint=hint, most=1)
    assert found == [hint]


@pytest.mark.parametrize(
    ("hint", "expected"), [(5, [135, 315, 915]), (600, [600, 600, 915]), (21_600, [21_600] * 3)]
)
def test_pipeline_takes_the_longer_of_schedule_and_reset(hint, expected):  # R-B14
    assert waits("pipeline", "rate_limit", 0.5, hint=hint)[0] == expected


def test_pipeline_makes_no_attempt_before_a_reset_beyond_six_hours():  # R-B14, R-L10
    found, end = waits("pipeline", "quota", 0.5, hint=21_601)
    assert found == []
    assert isinstance(end, mulligan.GiveUp)
    assert (end.ending, end.retry_at) == ("horizon", 21_601)


@pytest.mark.parametrize("name", ["default", "skill", "pattern", "surface", "subagent"])
def test_a_reset_of_hours_parks_the_call(name):  # "30 s budget or 6 h wait"
    found, end = waits(name, "quota", 0.5, hint=3600)
    assert found == []
    assert end == Park(3600, "retry in 1h, as the server says: longer than the 15m slept in place")


@pytest.mark.parametrize("name", PRESETS)
def test_nothing_is_retried_without_end(name):  # R-B2, R-B16
    for kind in Kind:
        for roll in (0.5, ALMOST_ONE):
            assert waits(name, kind, roll, most=1000)[1] is not None


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(
    "kind",
    ["billing", "auth", "context_length", "content_policy", "client", "circuit_open", "unknown"],
)
def test_what_waiting_does_not_cure_is_not_retried(name, kind):  # R-C3, R-C9, R-K6
    assert waits(name, kind, 0.5)[0] == []


# 408 comes from a middleman and 425 asks for one more try (DESIGN, E-G4); both are ours to judge.
FINAL = (400, 401, 402, 403, 404, 405, 409, 410, 422, 501, 505)
SERVER = (500, 502, 503, 504)


def retried(name):
    found = set()
    for status in (*FINAL, 429, *SERVER, 529):
        failure = mulligan.classifier.classify(status_error(status), now=0)
        call = Call(preset(name), Effects.READ)
        if isinstance(call.failed(failure, now=0, wall=0, roll=0.5), RetryAfter):
            found.add(status)
    return found


@pytest.mark.parametrize("name", ["default", "tools", "pattern", "surface", "pipeline", "subagent"])
def test_statuses_are_retried_by_their_family(name):  # R-C5, R-C9, R-C10, E-G4
    assert retried(name) == {429, *SERVER, 529}


def test_skill_retries_four_statuses_only():  # R-C7
    assert preset("skill").statuses == frozenset({429, 502, 503, 504})
    assert retried("skill") == {429, 502, 503, 504}


@pytest.mark.parametrize(
    "error", [ConnectionError("lost"), ConnectionResetError(), TimeoutError(), TimeoutError("slow")]
)
def test_skill_retries_the_exceptions_it_names(error):  # R-C8
    failure = mulligan.classifier.classify(error, now=0)
    call = Call(preset("skill"), Effects.IDEMPOTENT)
    assert isinstance(call.failed(failure, now=0, wall=0, roll=0.5), RetryAfter)


@pytest.mark.parametrize(
    ("name", "effects"),
    [
        ("default", None),
        ("skill", "idempotent"),
        ("tools", None),  # R-B4: a network failure only if safe to repeat
        ("pattern", "idempotent"),
        ("surface", "idempotent"),
        ("pipeline", None),
        ("subagent", None),
    ],
)
def test_presets_say_what_repeating_does_or_leave_it_to_the_caller(name, effects):
    assert preset(name).effects == effects


def test_tools_has_a_budget_of_thirty_seconds():  # R-B18
    assert preset("tools").budget == 30
    found, end = waits("tools", "rate_limit", 0.5, hint=20)
    assert found == [20]
    assert isinstance(end, mulligan.GiveUp)
    assert end.because == "waiting 20s would pass the retry budget, 10s of it left"


def test_a_sub_agent_has_300_seconds_and_loses_a_fifth_of_it_with_each_timeout():  # R-B19
    assert preset("subagent").timeouts == Timeouts(total=300, shrink=0.8)


def test_pattern_asks_a_connection_check_before_it_repeats_after_a_network_failure():  # R-B9
    asked: list[Failure] = []

    def is_online(failure):
        asked.append(failure)
        return False

    call = Call(preset("pattern").but(validator=is_online), Effects.READ)
    failure = Failure(kind=Kind.NETWORK)
    decision = call.failed(failure, now=0, wall=0, roll=0.5)
    assert asked == [failure]
    assert isinstance(decision, mulligan.GiveUp)


@pytest.mark.parametrize(("name", "attempts"), [("default", 2), ("pattern", 4)])
def test_conditional_failures_need_a_validator(name, attempts):  # R-A3
    rule = preset(name).rules[Kind.CONDITIONAL]
    assert (rule.check, rule.attempts) == ("required", attempts)
    assert waits(name, "conditional", 0.5)[0] == []


def test_a_preset_is_built_once():
    assert preset("default") is preset("default")


def test_there_are_seven_presets():
    assert list(PRESETS) == [
        *("default", "skill", "tools", "pattern", "surface", "pipeline", "subagent"),
    ]
    assert [preset(name).name for name in PRESETS] == list(PRESETS)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            "pipelin",
            (
                "no preset 'pipelin'; there are default, skill, tools, pattern, surface, pipeline, "
                "subagent; did you mean 'pipeline'?"
            ),
        ),
        (
            "zzz",
            (
                "no preset 'zzz'; there are default, skill, tools, pattern, surface, pipeline, "
                "subagent"
            ),
        ),
    ],
)
def test_an_unknown_preset_is_answered_with_the_nearest(asked, message):
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        preset(asked)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("skill", Breaker(failures=5, open_for=60, open_at_least=60)),
        ("pattern", Breaker(failures=5, open_for=60, open_at_least=60, successes=2)),
        ("surface", Breaker(failures=5, open_for=30, open_at_least=30)),
        ("pipeline", None),
    ],
)
def test_breakers_are_those_of_their_source(name, wanted):  # R-K1 to R-K4, R-K9
    assert preset(name).breaker == wanted


def test_gates_are_those_of_their_source():  # R-L7, R-L8
    assert preset("surface").gate == Gate(keep=5)
    assert preset("pattern").gate == Gate(low=10, high=20)


def test_what_is_shared_takes_durations_as_people_write_them():
    assert Breaker(open_for="2m", lease="1m30s") == Breaker(open_for=120, lease=90)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"^Breaker.open_for needs a duration such as"):
        Breaker(open_for="long")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"^gate needs a Gate or None; got 5$"):
        Policy(gate=5)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"^breakers\['api'\] needs a Breaker"):
        Policy(breakers={"api": None})  # type: ignore[dict-item]
