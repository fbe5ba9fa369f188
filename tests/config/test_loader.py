"""Policies from files: what overrides what, and what is refused in which words."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.dump import as_data, as_toml
from mulligan.config.loader import load_policy, policy_from
from mulligan.config.source import Source
from mulligan.core.backoff import Exponential, Fixed, Linear, Schedule
from mulligan.core.failure import Effects, Kind
from mulligan.core.policy import Policy, Rule
from mulligan.core.presets import PRESETS, preset
from mulligan.core.timeouts import SERVICE_TIMEOUTS, Timeouts
from mulligan.errors import FileError, SettingError


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load the words as a file called policy.toml in the current folder."""
    monkeypatch.chdir(tmp_path)

    def load(words: str) -> Policy:
        (tmp_path / "policy.toml").write_text(words, encoding="utf-8")
        return load_policy("policy.toml")

    return load


@pytest.mark.parametrize("name", PRESETS)
def test_a_file_with_nothing_but_a_preset_is_the_preset(load, name):
    assert load(f'preset = "{name}"\nname = "{name}"') == preset(name)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_being_written_as_toml(load, name):
    assert load(as_toml(preset(name))) == preset(name)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_being_written_as_json(name):
    data = json.loads(json.dumps(as_data(preset(name))))
    assert policy_from(Source(file="x", text="", data=data), name="x") == preset(name)


def test_a_policy_without_a_name_is_called_like_its_file(load):
    assert load('preset = "skill"').name == "policy"


def test_a_rule_overrides_only_the_keys_it_names(load):
    rules = load('preset = "skill"\n[rules.server]\nmax_retries = 1').rules
    assert rules[Kind.SERVER] == Rule(attempts=2, backoff=Exponential(first=1, cap=30))
    assert rules[Kind.NETWORK] == preset("skill").rules[Kind.NETWORK]


def test_a_backoff_overrides_only_the_keys_it_names(load):
    rules = load('preset = "default"\n[rules.rate_limit]\nbackoff = { first = "2s" }').rules
    assert rules[Kind.RATE_LIMIT].backoff == Exponential(first=2, cap=60)
    assert rules[Kind.RATE_LIMIT].attempts is None


def test_a_backoff_of_another_shape_starts_afresh(load):
    words = 'preset = "tools"\n[rules.server]\nbackoff = { shape = "linear", cap = 9 }'
    assert load(words).rules[Kind.SERVER].backoff == Linear(first=1, step=1, cap=9)


def test_another_jitter_leaves_the_old_spread_behind(load):
    words = 'preset = "tools"\n[rules.server]\nbackoff = { jitter = "full" }'
    assert load(words).rules[Kind.SERVER].backoff == Exponential(first=0.2, cap=30)


def test_a_longer_fixed_wait_is_not_held_under_the_preset_s_cap(load):
    words = 'preset = "pattern"\n[rules.rate_limit]\nbackoff = { wait = "20s" }'
    assert load(words).rules[Kind.RATE_LIMIT].backoff == Fixed(wait=20)


def test_attempts_at_the_top_hold_for_every_kind_but_those_with_their_own(load):
    policy = load('preset = "default"\nattempts = 3\n[rules.server]\nattempts = 7')
    assert {kind: rule.attempts for kind, rule in policy.rules.items()} == {
        **dict.fromkeys(preset("default").rules, 3),
        Kind.SERVER: 7,
    }


def test_max_retries_is_attempts_less_one(load):  # "Where sources disagree"
    assert load("max_retries = 3\n[rules.server]").rules[Kind.SERVER].attempts == 4
    assert load("[rules.server]\nmax_retries = 0").rules[Kind.SERVER].attempts == 1


def test_any_number_of_attempts_means_that_time_is_the_bound(load):
    assert load('preset = "skill"\nattempts = "any"').rules[Kind.SERVER].attempts is None


def test_a_kind_that_is_switched_off_keeps_none_of_the_preset_s_waits(load):
    rules = load('preset = "pattern"\n[rules.rate_limit]\nattempts = 1').rules
    assert rules[Kind.RATE_LIMIT] == Rule(attempts=1)


def test_without_a_preset_only_the_named_kinds_are_retried(load):
    policy = load("[rules.network]\nattempts = 3")
    assert policy == Policy(name="policy", rules={Kind.NETWORK: Rule(attempts=3)})


def test_an_empty_table_of_rules_is_a_policy_that_retries_nothing(load):
    assert load("[rules]").rules == {}


def test_a_service_brings_its_timeouts(load):  # R-B20
    words = 'preset = "skill"\n[timeouts]\nservice = "{}"'
    for name, limits in SERVICE_TIMEOUTS.items():
        assert load(words.format(name)).timeouts == limits


def test_a_service_s_timeouts_can_be_overridden_one_by_one(load):
    words = 'preset = "subagent"\n[timeouts]\nservice = "redis"\nread = "8s"'
    assert load(words).timeouts == Timeouts(connect=2, read=8, total=10)


def test_timeouts_override_the_preset_s_one_by_one(load):  # R-B19
    words = 'preset = "subagent"\n[timeouts]\nconnect = 5'
    assert load(words).timeouts == Timeouts(connect=5, total=300, shrink=0.8)


def test_a_file_can_say_everything_a_policy_knows(load):  # R-P1
    policy = load("""
        name = "all of it"
        statuses = [429, 503]
        effects = "keyed"
        deadline = "1h30m"
        patience = "2h"
        budget = 90
        in_place = "250ms"
        horizon = "6h"
        key_ttl = "1d"
        [rules.quota]
        attempts = 4
        hint = "at_least"
        check = "if_given"
        missing_hint = { shape = "fixed", wait = "5s" }
        [rules.quota.backoff]
        shape = "schedule"
        waits = [120, "5m", "15m", "30m"]
        jitter = "additive"
        spread = "30s"
        [codes]
        ORDER_LOCKED = "conditional"
    """)
    waits = Schedule(waits=(120, 300, 900, 1800), jitter="additive", spread=30)
    assert policy == Policy(
        name="all of it",
        rules={
            Kind.QUOTA: Rule(
                attempts=4,
                backoff=waits,
                hint="at_least",
                check="if_given",
                missing_hint=Fixed(wait=5),
            )
        },
        statuses=frozenset({429, 503}),
        effects=Effects.KEYED,
        deadline=5400,
        patience=7200,
        budget=90,
        in_place=0.25,
        horizon=21600,
        key_ttl=86400,
        codes={"ORDER_LOCKED": Kind.CONDITIONAL},
    )


def test_any_status_is_how_a_file_lifts_the_preset_s_restriction(load):
    assert load('preset = "skill"\nstatuses = "any"').statuses is None


def test_the_environment_has_no_say(load, monkeypatch):
    monkeypatch.setenv("MULLIGAN_DEADLINE", "5")
    policy = load('preset = "skill"\nname = "$HOME"')
    assert (policy.name, policy.deadline) == ("$HOME", None)


_KINDS = (
    "rate_limit, quota, billing, overloaded, server, network, timeout, auth, context_length, "
    "content_policy, client, conditional, bad_answer, circuit_open, unknown"
)
_PRESET = 'preset = "skill"\n'
_SERVER = f"{_PRESET}[rules.server]\n"

REFUSED = {
    # What stands in the file: what is said about it, after "policy.toml".
    "": ': is empty: nothing is set; start with preset = "default", or give rules such as '
    "[rules.server]",
    "# later\n": ': is empty: nothing is set; start with preset = "default", or give rules such '
    "as [rules.server]",
    'deadline = "2m"': ": has neither a preset nor rules: nothing would be retried; start with "
    'preset = "default", or give rules such as [rules.server]',
    "deadline = 2m": ":1: is not TOML: expected newline or end of document after a statement; a "
    'duration with a unit is text: write "2m"',
    "\npreset = skill": ':2: is not TOML: invalid value; text needs quotes: write "skill"',
    "a = 1\nb = [\n\n": ":2: is not TOML: invalid value",
    "[rules.server]\nbackoff = {\n": ":2: is not TOML: invalid initial character for a key part; "
    "an inline table { … } stands on one line",
    "x = 1\nx = 2\ny = 3": ":2: is not TOML: cannot overwrite a value; a key or a table stands in "
    "the file twice; keep one",
    "x = " + "9" * 5000: ": is not TOML: a number in it is too long to be read",
    'preset = "skil"': ":1: preset: needs one of default, skill, tools, pattern, surface, "
    "pipeline, subagent; got 'skil'; did you mean 'skill'?",
    f"{_PRESET}attempts = 3\nmax_retries = 2": ":3: max_retries: given together with attempts, "
    "and both count the same; keep one: attempts is the total, max_retries is attempts - 1",
    f"{_SERVER}max_retries = 2\nattempts = 3": ":3: rules.server.max_retries: given together with "
    "attempts, and both count the same; keep one: attempts is the total, max_retries is "
    "attempts - 1",
    f"{_SERVER}attempts = 0": ':3: rules.server.attempts: needs a whole number >= 1, or "any" '
    "where time is the bound; got 0; attempts are the total, the first one included",
    f"{_PRESET}max_retries = -1": ':2: max_retries: needs a whole number >= 0, or "any" where '
    "time is the bound; got -1",
    f"{_PRESET}attempts = true": ':2: attempts: needs a whole number >= 1, or "any" where time '
    "is the bound; got true; attempts are the total, the first one included",
    f"{_PRESET}[rules.rate-limit]": ":2: rules.rate-limit: is not a kind of failure; the kinds are "
    f"{_KINDS}; did you mean 'rate_limit'?",
    f'{_SERVER}backoff = {{ frist = "1s" }}': ":3: rules.server.backoff.frist: unknown key; did "
    "you mean 'first'?",
    f"{_SERVER}\n[rules.server.backoff]\ncap = 9\nmultiplier = 3": ":6: rules.server.backoff"
    ".multiplier: unknown key; mulligan's word is 'factor'",
    f'{_SERVER}backoff = {{ wait = "1s" }}': ":3: rules.server.backoff.wait: unknown key; 'wait' "
    "belongs to shape fixed; exponential takes cap, factor, first, jitter, shape, spread",
    f'{_SERVER}backoff = {{ first = "1x" }}': ":3: rules.server.backoff.first: needs a duration "
    'such as 90, "90s", "1h30m" or "250ms"; got \'1x\'',
    f'{_SERVER}backoff = {{ first = "50s" }}': ":3: rules.server.backoff: Exponential needs "
    "0 < first <= cap; got first=50, cap=30",
    f'{_SERVER}backoff = {{ shape = "fibonacci" }}': ":3: rules.server.backoff.shape: needs one "
    "of exponential, linear, fixed, schedule; got 'fibonacci'",
    f'{_SERVER}backoff = "5s"': ":3: rules.server.backoff: needs a table; got '5s'",
    f'{_SERVER}backoff = {{ shape = "schedule", waits = [1, "x"] }}': ":3: rules.server.backoff"
    '.waits[1]: needs a duration such as 90, "90s", "1h30m" or "250ms"; got \'x\'',
    f'{_SERVER}hint = "atleast"': ":3: rules.server.hint: needs one of replace, at_least; got "
    "'atleast'; did you mean 'at_least'?",
    f"{_SERVER}cap = 3": ":3: rules.server.cap: unknown key; 'cap' belongs in a backoff, "
    "backoff = { … }",
    f"{_PRESET}[rules]\nserver = 3": ":3: rules.server: needs a table; got 3",
    "rules = 3": ":1: rules: needs a table; got 3",
    f"{_PRESET}max_attempts = 3": ":2: max_attempts: unknown key; mulligan's word is 'attempts'",
    f"{_PRESET}max_wait = 3": ":2: max_wait: unknown key; mulligan's word is 'horizon'",
    f"{_PRESET}deadlin = 3": ":2: deadlin: unknown key; did you mean 'deadline'?",
    f"{_PRESET}backoff = 3": ":2: backoff: unknown key; 'backoff' belongs in a rule, [rules.KIND]",
    f'{_PRESET}"odd key" = 3': ":2: 'odd key': unknown key; known here: attempts, breaker, "
    "breakers, budget, codes, deadline, effects, gate, horizon, in_place, key_ttl, max_retries, "
    "most_attempts, name, patience, preset, rules, statuses, store, timeouts, tokens, when_open",
    f'{_PRESET}store = "redis://me:secret@host"': (
        ":2: store: carries a password, and a policy must not contain one; leave it out "
        "and give the address as MULLIGAN_STORE"
    ),
    f"{_PRESET}breaker = false": ':2: breaker: needs a table, or "off"; got false',
    f"{_PRESET}[breaker]\nthreshold = 3": ":3: breaker.threshold: unknown key; mulligan's word is "
    "'failures'",
    f"{_PRESET}[gate]\nopen_for = 3": ":3: gate.open_for: unknown key; 'open_for' belongs in "
    "[breaker]",
    f"{_PRESET}[tokens]\ncapacity = -1": ":3: tokens.capacity: needs a number >= 0; got -1.0",
    f"{_PRESET}[breakers.acme]\nfailures = 0": ":3: breakers.acme.failures: needs a whole number "
    ">= 1; got 0",
    f"{_PRESET}deadline = 0": ":2: deadline: needs more than 0 s; got 0",
    f"{_PRESET}patience = inf": ":2: patience: needs a finite number of seconds, not negative; "
    "got inf",
    f"{_PRESET}name = 7": ":2: name: needs text; got 7",
    f"{_PRESET}name = 2026-11-15": ":2: name: is a date or a time (2026-11-15); text needs quotes",
    f'{_PRESET}effects = "reed"': ":2: effects: needs one of read, idempotent, keyed, unsafe; "
    "got 'reed'; did you mean 'read'?",
    f'{_PRESET}statuses = ["429"]': ":2: statuses[0]: needs a whole number; got '429'",
    f"{_PRESET}statuses = 429": ":2: statuses: needs an array; got 429",
    f'{_PRESET}in_place = "10m"\nhorizon = "5m"': ":3: horizon: needs at least in_place; got "
    "horizon=300, in_place=600; a wait that may be slept through may be waited at all",
    f'{_PRESET}[timeouts]\nservice = "olama"': ":3: timeouts.service: needs one of ollama, "
    "anthropic, postgresql, redis, external; got 'olama'; did you mean 'ollama'?",
    f"{_PRESET}[timeouts]\ntotal = 0": ":3: timeouts.total: needs more than 0 s; got 0.0",
    f"{_PRESET}[timeouts]\nshrink = true": ":3: timeouts.shrink: needs a number; got true",
    f'{_PRESET}[codes]\nX = "conditionall"': f":3: codes.X: needs one of {_KINDS}; got "
    "'conditionall'; did you mean 'conditional'?",
    f'{_PRESET}validator = "os.system"': ":2: validator: a validator is a Python function and "
    "cannot be set from a file; load the file, then load_policy(…).but(validator=has_changed)",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_place_and_what_to_do(load, words):
    with pytest.raises(FileError, match="^" + re.escape(f"policy.toml{REFUSED[words]}") + "$"):
        load(words)


def test_of_several_mistakes_the_first_in_the_file_is_named(load):
    with pytest.raises(FileError) as caught:
        load('preset = "skill"\nzone = 1\n[timeouts]\nx = 1\n[codes]\nA = "b"')
    assert (caught.value.line, caught.value.key) == (2, "zone")


def test_a_secret_under_a_wrong_key_is_not_repeated(load):
    with pytest.raises(FileError) as caught:
        load('preset = "api_key=sk-live-0123456789abcdef0123"')
    assert "0123456789abcdef" not in str(caught.value)


_NASTY = st.text("aZ_.-[ \x07\x1b\n\u202e\u00e9\U0001f600", max_size=5)
_WORDS = st.sampled_from(
    ["any", "skill", "full", "90s", "at_least", "required", "schedule", "fixed", "server", "read"]
)
_FIELDS = sorted(
    {"max_retries", "service", "shape", "server", "rate_limit"}.union(
        *(each.__dataclass_fields__ for each in (Rule, Exponential, Linear, Schedule, Timeouts))
    )
)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers() | st.floats() | _NASTY | _WORDS | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(_FIELDS) | _NASTY, inner, max_size=4)
    ),
    max_leaves=8,
)
_TOP = st.sampled_from([*Policy.__dataclass_fields__, "preset", "attempts", "max_retries", "x"])


@given(data=st.dictionaries(_TOP, _VALUES, max_size=5), start=st.sampled_from(["", *PRESETS]))
def test_whatever_a_file_says_it_is_a_policy_or_an_error_of_ours(data, start):
    if start:
        data = {"preset": start, **data}
    try:
        found: object = policy_from(Source(file="x.toml", text="", data=data), name="x")
    except SettingError as error:
        found = str(error)
    assert isinstance(found, Policy) or re.fullmatch(r"x\.toml: [^\n\x1b\u202e]+", str(found))


@pytest.mark.parametrize("start", ['preset = "default"', 'preset = "pipeline"', "[rules.server]"])
def test_a_horizon_alone_bounds_what_is_slept_through(tmp_path, start):
    file = tmp_path / "short.toml"
    file.write_text(f'horizon = "1m"\n{start}\n')
    policy = load_policy(file)
    assert (policy.horizon, policy.in_place) == (60.0, 60.0)
