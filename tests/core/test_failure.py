"""One vocabulary: each kind has one family and one place in the three-way view."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan import Effects, Failure, Family, Hint, Kind, Reach, Retryability
from mulligan.testing import status_error

# R-C3, R-C6; DESIGN, failure kinds.
VOCABULARY = {
    "rate_limit": ("rate_limit", "retryable_with_backoff"),
    "quota": ("rate_limit", "retryable_with_backoff"),
    "billing": ("client", "non_retryable"),
    "overloaded": ("server", "retryable"),
    "server": ("server", "retryable"),
    "network": ("network", "retryable"),
    "timeout": ("network", "retryable"),
    "auth": ("client", "non_retryable"),
    "context_length": ("client", "non_retryable"),
    "content_policy": ("client", "non_retryable"),
    "client": ("client", "non_retryable"),
    "conditional": ("client", "non_retryable"),
    "bad_answer": ("server", "retryable"),
    "circuit_open": ("client", "non_retryable"),  # R-K6
    "unknown": ("unknown", "non_retryable"),
}


def test_the_vocabulary_is_complete():
    assert {str(kind) for kind in Kind} == VOCABULARY.keys()
    assert [str(family) for family in Family] == [
        "network",
        "rate_limit",
        "server",
        "client",
        "unknown",
    ]


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_has_its_family_and_its_view(kind):  # R-C3, R-C6
    failure = Failure(kind=kind)
    assert (kind.family, kind.retryability) == VOCABULARY[kind]
    assert (failure.family, failure.retryability) == VOCABULARY[kind]


@pytest.mark.parametrize("kind", Kind)
def test_an_explicit_no_is_final_whatever_the_kind(kind):  # R-C11, E-G7
    assert Failure(kind=kind, is_retriable=False).retryability is Retryability.NON_RETRYABLE


@pytest.mark.parametrize("kind", Kind)
def test_an_explicit_yes_is_retryable_whatever_the_kind(kind):  # R-C11, E-G7
    expected = Retryability.RETRYABLE_WITH_BACKOFF if kind.is_limit else Retryability.RETRYABLE
    assert Failure(kind=kind, is_retriable=True).retryability is expected


@pytest.mark.parametrize(
    ("error", "retryability"),
    [
        (status_error(500), "retryable"),
        (status_error(503), "retryable"),
        (ConnectionError(), "retryable"),
        (TimeoutError(), "retryable"),
        (OSError(104, "reset by peer"), "retryable"),
        (OSError(111, "refused"), "retryable"),
        (status_error(429), "retryable_with_backoff"),
        (status_error(400), "non_retryable"),
        (status_error(404), "non_retryable"),
        (ValueError(), "non_retryable"),
        (TypeError(), "non_retryable"),
    ],
    ids=repr,
)
def test_the_three_classes_are_the_published_ones(error, retryability):  # R-C6
    assert mulligan.classifier.classify(error, now=0).retryability == retryability


def test_only_limits_end_by_time_alone():
    assert [kind for kind in Kind if kind.is_limit] == [Kind.RATE_LIMIT, Kind.QUOTA]


@pytest.mark.parametrize("kind", Kind)
def test_kinds_and_their_words_are_the_same_key(kind):
    assert {kind: 1}[str(kind)] == 1
    assert {str(kind): 1}[kind] == 1


def test_only_unsafe_calls_must_not_be_repeated():
    assert [each for each in Effects if not each.is_safe_to_repeat] == [Effects.UNSAFE]


def test_a_failure_was_answered_unless_somebody_says_otherwise():
    assert Failure(kind=Kind.SERVER).reach is Reach.ANSWERED


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (
            Failure(kind=Kind.RATE_LIMIT, status=429, message="slow down"),
            "429 (rate_limit): slow down",
        ),
        (Failure(kind=Kind.NETWORK, message="reset"), "network: reset"),
        (Failure(kind=Kind.SERVER, status=500), "500 (server)"),
        (Failure(kind=Kind.UNKNOWN), "unknown"),
    ],
)
def test_a_failure_reads_as_one_short_line(failure, text):
    assert str(failure) == text


@given(
    kind=st.sampled_from(Kind),
    reach=st.sampled_from(Reach),
    status=st.none() | st.integers(100, 599),
    statement=st.none() | st.booleans(),
    delay=st.none() | st.floats(0.001, 1e6),
)
def test_a_failure_is_a_value(kind, reach, status, statement, delay):
    def make():
        return Failure(
            kind=kind,
            reach=reach,
            status=status,
            is_retriable=statement,
            hint=None if delay is None else Hint(delay=delay),
        )

    one = make()
    assert one == make()
    assert hash(one) == hash(make())
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 -- our own bytes
    assert copy.copy(one) == one
