"""Events as numbers."""

from __future__ import annotations

import pytest

import mulligan
from mulligan import Counters, Exponential, Kind, Policy, Rule
from mulligan.testing import Scripted, status_error, virtual_time

STEADY = Policy(
    rules=dict.fromkeys(
        (Kind.SERVER, Kind.NETWORK), Rule(attempts=3, backoff=Exponential(jitter="none"))
    ),
    effects=mulligan.Effects.READ,
)


def run(counters, target, *outcomes, policy=STEADY):
    with virtual_time():
        guard = mulligan.Guard(target, policy=policy, effects="read", listeners=[counters])
        try:
            guard.call(Scripted(*outcomes))
        except Exception as error:  # noqa: BLE001 -- counted
            return error
    return None


def test_an_exhaustion_is_counted_by_target_and_kind():  # R-X1
    counters = Counters()
    run(counters, "acme", status_error(500))
    run(counters, "acme", ConnectionRefusedError())
    run(counters, "other", status_error(500))
    assert counters.totals["retry_exhausted_total", "acme", "server"] == 1
    assert counters.totals["retry_exhausted_total", "acme", "network"] == 1
    assert counters.total("retry_exhausted_total") == 3
    assert counters.totals["retry_ended_total", "acme", "exhausted"] == 2


def test_retries_are_attempts_that_were_followed_by_another():  # R-X4
    counters = Counters()
    run(counters, "acme", status_error(500), ConnectionRefusedError(), "ok")
    assert counters.totals == {
        ("retry_failures_total", "acme", "server"): 1,
        ("retry_failures_total", "acme", "network"): 1,
        ("retries_total", "acme", "server"): 1,
        ("retries_total", "acme", "network"): 1,
        ("retry_recovered_total", "acme", ""): 1,
    }


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (status_error(401), "final"),
        (KeyError("typo"), "unknown"),
        (status_error(429, headers={"retry-after": "3600"}), "parked"),
    ],
    ids=["final", "unknown", "parked"],
)
def test_what_is_no_exhaustion_is_not_counted_as_one(error, ending):
    counters = Counters()
    run(counters, "acme", error, policy="default")
    assert counters.totals["retry_ended_total", "acme", ending] == 1
    assert counters.total("retry_ended_total") == 1
    assert counters.total("retry_exhausted_total") == counters.total("retries_total") == 0


def test_a_call_that_succeeds_at_once_counts_nothing():
    counters = Counters()
    run(counters, "acme", "ok")
    assert counters.totals == {}


def test_an_unknown_counter_is_zero():
    assert Counters().total("retry_exhausted_total") == 0


def test_one_listener_counts_for_many_guards(drive):
    counters = Counters()
    for target in ("a", "b"):
        with pytest.raises(Exception, match="status 500"):
            drive([status_error(500)], STEADY, target=target, listeners=[counters])
    assert counters.total("retry_exhausted_total") == 2
    assert counters.total("retries_total") == 4
