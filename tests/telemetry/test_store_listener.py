"""Events counted in a store: batched, bounded, added up over processes."""

from __future__ import annotations

import time
from typing import Any

import pytest

import mulligan
from mulligan import StoreListener
from mulligan.stores.memory import Memory
from mulligan.stores.open import open_store
from mulligan.telemetry.figures import summary
from mulligan.telemetry.store import figures, stories
from mulligan.testing import Scripted, status_error

pytestmark = pytest.mark.real  # a thread writes

FAST = mulligan.Policy(
    rules=dict.fromkeys(
        (mulligan.Kind.OVERLOADED, mulligan.Kind.SERVER),
        mulligan.Rule(attempts=3, backoff=mulligan.Fixed(wait=0.001)),
    ),
    effects=mulligan.Effects.READ,
)


ALONE: Any = {"breaker": False, "gate": False, "tokens": False}


def guard(listener, target="acme"):
    return mulligan.Guard(target, policy=FAST, listeners=[listener], **ALONE)


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    if request.param == "memory":
        return Memory()
    return open_store(f"sqlite:{tmp_path / 'state.db'}")


def found(store, **chosen):
    return summary(figures(store, since=3_600, now=time.time(), **chosen))


def test_the_figures_that_a_dashboard_needs_can_be_computed(store):  # R-X4
    listener = StoreListener(store, successes=True)
    acme = guard(listener)
    acme.call(Scripted("well"))
    for _ in range(3):
        acme.call(Scripted(status_error(503, "no capacity"), "well"))
    for _ in range(2):
        with pytest.raises(Exception, match="500"):
            acme.call(Scripted(status_error(500)))
    assert listener.flush()
    numbers = found(store)
    assert numbers["failures"] == 3 + 2 * 3
    assert numbers["retries"] == 3 + 2 * 2
    assert (numbers["recovered"], numbers["ended"], numbers["exhausted"]) == (3, 2, 2)
    assert numbers["success_after_retry"] == 0.6
    assert numbers["attempts_per_call"] == 2.4
    assert numbers["attempts"] == {"2": 3, "3": 2}
    assert numbers["succeeded_at_once"] == 1
    assert numbers["waits"] == 7
    assert numbers["delay_p95_below"] == 0.1
    assert numbers["kinds"] == {"server": 6, "overloaded": 3}
    assert numbers["endings"] == {"exhausted": 2}


def test_two_listeners_add_up_and_targets_stay_apart(store):
    listeners = [StoreListener(store) for _ in range(2)]
    for each in listeners:
        guard(each).call(Scripted(status_error(503), "well"))
        guard(each, "other").call(Scripted(status_error(503), "well"))
        assert each.flush()
    assert found(store)["recovered"] == 4
    assert found(store, target="acme")["recovered"] == 2
    assert found(store, target="nobody")["recovered"] == 0


def test_the_hours_tell_what_the_minutes_told(store):
    listener = StoreListener(store)
    guard(listener).call(Scripted(status_error(503), "well"))
    assert listener.flush()
    days = figures(store, since=7 * 86_400, now=time.time())
    assert [each.length for each in days] == [3_600]
    assert summary(days)["recovered"] == 1


def test_the_newest_stories_are_kept_with_every_reason(store):
    listener = StoreListener(store)
    for number in range(25):
        with pytest.raises(Exception, match="500"):
            guard(listener).call(Scripted(status_error(500, f"number {number}")))
    assert listener.flush()
    kept = stories(store)
    assert len(kept) == 20
    assert kept[0]["tries"][0]["message"] == "number 24"
    assert [each["decision"] for each in kept[0]["tries"]] == ["RetryAfter", "RetryAfter", "GiveUp"]
    assert kept[0]["because"] == "attempt 3 of 3 failed with 500 (server)"


def test_counts_of_a_store_that_was_down_are_written_later(caplog):
    store = Memory()
    listener, transact = StoreListener(store), store.state.transact
    broken = True

    def flaky(key, step):
        if broken:
            raise mulligan.StoreDown("memory:", "no answer")
        return transact(key, step)

    store.state.transact = flaky  # type: ignore[method-assign]
    guard(listener).call(Scripted(status_error(503), "well"))
    assert listener.flush()
    assert "the counts are kept and written later" in caplog.text
    broken = False
    guard(listener).call(Scripted(status_error(503), "well"))
    assert listener.flush()
    assert found(store)["recovered"] == 2
    assert listener.dropped == 0


def test_more_targets_than_it_may_tell_apart_are_counted_together():
    store = Memory()
    listener = StoreListener(store, targets=3)
    for number in range(10):
        guard(listener, f"target-{number}").call(Scripted(status_error(503), "well"))
    assert listener.flush()
    buckets = figures(store, since=3_600, now=time.time())
    assert {each.target for each in buckets} == {"target-0", "target-1", "target-2", "other"}
    assert summary(buckets)["recovered"] == 10
