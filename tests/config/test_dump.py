"""What is written loads again."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.dump import as_toml
from mulligan.config.loader import policy_from
from mulligan.config.source import Source
from mulligan.core.backoff import Exponential, Fixed, Linear, Schedule
from mulligan.core.failure import Effects, Kind
from mulligan.core.policy import Policy, Rule
from mulligan.core.timeouts import Timeouts

_TIMES = st.floats(0.001, 1e6)
_WORDS = st.text("aB_- \"'\\\n\t\x00\x7f\x1f.[]#=\u00e9\U0001f600", max_size=8)
_BACKOFFS = (
    st.builds(Exponential, first=_TIMES, cap=st.just(1e6), factor=st.floats(1, 100))
    | st.builds(Linear, first=_TIMES, step=_TIMES, cap=st.just(1e6))
    | st.builds(Fixed, wait=_TIMES, jitter=st.just("proportional"), spread=st.floats(0.01, 1))
    | st.builds(Schedule, waits=st.lists(_TIMES, min_size=1, max_size=4).map(tuple))
)
_RULES = st.builds(
    Rule,
    attempts=st.none() | st.integers(1, 10**9),
    backoff=_BACKOFFS,
    hint=st.sampled_from(["replace", "at_least"]),
    missing_hint=st.none() | _BACKOFFS,
    check=st.sampled_from(["never", "if_given", "required"]),
)
_POLICIES = st.builds(
    Policy,
    name=_WORDS,
    rules=st.dictionaries(st.sampled_from(Kind), _RULES, max_size=3),
    statuses=st.none() | st.frozensets(st.integers(400, 599), max_size=3),
    effects=st.none() | st.sampled_from(Effects),
    deadline=st.none() | _TIMES,
    patience=_TIMES,
    budget=st.none() | _TIMES,
    in_place=st.floats(0, 1e3),
    horizon=st.floats(1e3, 1e6),
    timeouts=st.none() | st.builds(Timeouts, connect=_TIMES, shrink=st.floats(0.1, 1)),
    codes=st.dictionaries(_WORDS, st.sampled_from(Kind), max_size=3),
    key_ttl=st.none() | _TIMES,
)


@given(policy=_POLICIES)
def test_every_policy_survives_being_written_as_toml(policy):
    text = as_toml(policy)
    source = Source(file="x", text=text, data=tomllib.loads(text))
    assert policy_from(source, name="x") == policy
