from __future__ import annotations

from math import isfinite

import httpx2
import multidict
import pytest
import requests.structures
from hypothesis import given
from hypothesis import strategies as st

from mulligan.classify.quotas import Quota, Unit, exhausted, quotas

NOW = 1_794_772_800.0  # 2026-11-15 20:00 UTC


def by_dimension(headers: object) -> dict[str, Quota]:
    return {quota.dimension: quota for quota in quotas(headers, now=NOW)}


OPENAI = {
    "x-ratelimit-limit-requests": "3000",
    "x-ratelimit-limit-tokens": "250000",
    "x-ratelimit-remaining-requests": "2999",
    "x-ratelimit-remaining-tokens": "0",
    "x-ratelimit-reset-requests": "20ms",
    "x-ratelimit-reset-tokens": "6m0s",
}


def test_openai_states_two_dimensions_in_go_durations():
    found = by_dimension(OPENAI)
    assert (found["requests"].limit, found["requests"].remaining) == (3000, 2999)
    assert found["requests"].reset_in == 0.02
    assert found["tokens"].unit is Unit.TOKENS
    assert found["tokens"].is_exhausted
    assert found["tokens"].reset_in == 360


def test_the_used_up_dimension_gives_the_hint():
    rejecting = exhausted(quotas(OPENAI, now=NOW))
    assert rejecting is not None
    assert rejecting.dimension == "tokens"
    assert rejecting.hint is not None
    assert rejecting.hint.source == "x-ratelimit-reset-tokens"


def test_no_dimension_rejects_while_all_have_something_left():
    plenty = {**OPENAI, "x-ratelimit-remaining-tokens": "1200"}
    assert exhausted(quotas(plenty, now=NOW)) is None


def test_anthropic_states_instants():
    found = by_dimension(
        {
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2026-11-15T20:00:37Z",
            "anthropic-ratelimit-input-tokens-remaining": "48120",
        }
    )
    assert found["requests"].reset_in == 37
    assert found["input-tokens"].unit is Unit.TOKENS
    assert found["input-tokens"].remaining == 48120


def test_anthropics_unified_window_is_a_share_of_a_plan():
    found = by_dimension(
        {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": str(int(NOW) + 7200),
            "anthropic-ratelimit-unified-5h-utilization": "0.75",
            "anthropic-ratelimit-unified-overage-status": "rejected",
        }
    )
    assert found["unified"].is_exhausted
    assert found["unified"].reset_in == 7200
    assert found["unified-5h"].remaining == 0.25
    assert (found["unified-5h"].unit, found["unified-5h"].window) == (Unit.SHARE, 18000)
    assert set(found) == {"unified", "unified-5h"}


def test_a_window_that_lets_us_pass_is_not_the_one_that_rejected():
    headers = {
        "anthropic-ratelimit-unified-status": "allowed",
        "anthropic-ratelimit-unified-reset": str(int(NOW) + 7200),
    }
    assert quotas(headers, now=NOW) == ()


def test_github_states_an_epoch():
    found = by_dimension(
        {
            "X-RateLimit-Limit": "60",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(int(NOW) + 31),
            "X-RateLimit-Used": "60",
            "X-RateLimit-Resource": "core",
        }
    )
    assert list(found) == ["default"]
    assert found["default"].reset_in == 31


@pytest.mark.parametrize(
    ("headers", "dimension", "reset_in", "window"),
    [
        ({"X-Rate-Limit-Remaining": "0", "X-Rate-Limit-Reset": "9"}, "default", 9, None),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "1.5"}, "default", 1.5, None),
        (
            {
                "x-ratelimit-remaining-requests-day": "0",
                "x-ratelimit-reset-requests-day": "33011.38",
            },
            "requests-day",
            33011.38,
            86400,
        ),
        ({"X-RateLimit-Remaining-Minute": "0", "X-RateLimit-Reset-Minute": "7"}, "minute", 7, 60),
    ],
)
def test_other_spellings_are_understood(headers, dimension, reset_in, window):
    (quota,) = quotas(headers, now=NOW)
    assert (quota.dimension, quota.reset_in, quota.window) == (dimension, reset_in, window)
    assert quota.is_exhausted


def test_codex_uses_the_window_at_a_hundred_percent():
    rejecting = exhausted(
        quotas(
            {
                "X-Codex-Primary-Used-Percent": "100",
                "X-Codex-Primary-Reset-At": str(int(NOW) + 900),
                "X-Codex-Primary-Window-Minutes": "300",
                "X-Codex-Secondary-Used-Percent": "41.5",
                "X-Codex-Secondary-Reset-After-Seconds": "500000",
            },
            now=NOW,
        )
    )
    assert rejecting is not None
    assert rejecting.dimension == "codex-primary"
    assert (rejecting.reset_in, rejecting.window) == (900, 18000)


def test_the_draft_joins_policy_with_state():
    found = by_dimension(
        {
            "RateLimit-Policy": '"burst";q=100;w=60, "daily";q=1000;w=86400, '
            '"up";q=9;qu="content-bytes"',
            "RateLimit": '"burst";r=0;t=30, "daily";r=412;t=50000',
        }
    )
    assert found["burst"].is_exhausted
    assert (found["burst"].limit, found["burst"].window, found["burst"].reset_in) == (100, 60, 30)
    assert found["daily"].remaining == 412
    assert found["up"].unit is Unit.BYTES


@pytest.mark.parametrize(
    "value",
    [
        '"default";r=-1;t=5',
        '"default";r=1e3',
        '"default";t=5',
        '"default',
        "r=5;t",
        ";;;",
        '"a";r=\uff11;t=5',
        "",
    ],
)
def test_a_malformed_field_of_the_draft_is_ignored(value):
    assert quotas({"RateLimit": value}, now=NOW) == ()


def test_the_draft_is_ignored_on_an_answer_from_a_cache():
    assert quotas({"RateLimit": '"default";r=0;t=30', "Age": "12"}, now=NOW) == ()


def test_earlier_drafts_are_understood():
    (old,) = quotas({"RateLimit": "limit=100, remaining=0, reset=5"}, now=NOW)
    assert (old.limit, old.remaining, old.reset_in) == (100, 0, 5)
    (older,) = quotas(
        {"RateLimit-Limit": "100, 100;w=60", "RateLimit-Remaining": "3", "RateLimit-Reset": "9"},
        now=NOW,
    )
    assert (older.limit, older.remaining, older.reset_in) == (100, 3, 9)


def test_a_duration_of_the_draft_is_never_taken_for_an_epoch():
    (quota,) = quotas({"RateLimit": '"d";r=0;t=200000000'}, now=NOW)
    assert quota.reset_in == 200_000_000


@pytest.mark.parametrize(
    "headers",
    [
        dict(OPENAI),
        list(OPENAI.items()),
        [(k.encode(), v.encode()) for k, v in OPENAI.items()],
        httpx2.Headers(OPENAI),
        requests.structures.CaseInsensitiveDict(OPENAI),
        multidict.CIMultiDict(OPENAI),
        {k.upper(): [v] for k, v in OPENAI.items()},
    ],
    ids=lambda headers: type(headers).__name__,
)
def test_every_clients_headers_read_alike(headers):
    assert {quota.dimension for quota in quotas(headers, now=NOW)} == {"requests", "tokens"}


@pytest.mark.parametrize("headers", [None, {}, [], 5, object(), "text", [1, 2], {"x": object()}])
def test_what_is_no_headers_states_nothing(headers):
    assert quotas(headers, now=NOW) == ()


NAMES = st.sampled_from(
    [
        *OPENAI,
        *("ratelimit", "ratelimit-policy", "x-ratelimit-reset", "x-codex-primary-reset-at"),
        *("anthropic-ratelimit-unified-reset", "anthropic-ratelimit-tokens-reset", "date", "age"),
    ]
)


@given(headers=st.dictionaries(NAMES | st.text(max_size=12), st.text(max_size=30), max_size=12))
def test_no_headers_make_it_raise_or_state_a_reset_that_is_no_future(headers):
    for quota in quotas(headers, now=NOW):
        assert quota.reset_in is None or (isfinite(quota.reset_in) and quota.reset_in > 0)
        assert quota.remaining is None or quota.remaining >= 0
