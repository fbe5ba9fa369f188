"""What a key promises when processes are killed, stopped and slow: real ones, on real stores."""

from __future__ import annotations

import os
import signal
import time

import pytest

from mulligan import Guard, Once
from mulligan.errors import StoreDown

pytestmark = pytest.mark.real


def do(store, lease=0.5):
    """Do order-17 here, as the worker would."""

    def work():
        return "here"

    work.__module__, work.__qualname__ = "__main__", "once.<locals>.work"
    return Guard("bank", store=store).once(Once("order-17", lease=lease), work)


def test_a_holder_that_is_killed_loses_its_key_after_the_lease_and_not_before(
    common, workers, within
):
    url, store = common
    victim = workers("once", url, "victim", 0.5, "wait")
    assert victim.hear() == "running"
    # It lives, so the key is renewed: half a second later it is still its own.
    heir = workers("once", url, "heir", 0.5)
    time.sleep(0.9)
    assert victim.killed() == []
    with within(10 * 0.5):
        assert [heir.hear(), heir.hear()] == ["running", "heir"]
    assert do(store) == "heir"


def test_those_who_waited_get_what_the_first_one_got(common, workers):
    url, store = common
    first = workers("once", url, "first", 0.5, "wait")
    assert first.hear() == "running"
    others = [workers("once", url, f"other {n}", 0.5) for n in range(2)]
    time.sleep(0.8)  # longer than the lease: a slow call is renewed
    first.go()
    assert first.hear() == "first"
    assert [other.hear() for other in others] == ["first", "first"]
    assert do(store) == "first"


def stop_outside_of_a_write(worker, store):
    """Stop it while it renews nothing: whoever sleeps with SQLite's lock in hand locks all out."""
    for number in range(10):
        os.kill(worker.process.pid, signal.SIGSTOP)
        try:
            assert Guard("other", store=store).once(Once(f"try-{number}"), lambda: "free") == "free"
        except StoreDown:
            os.kill(worker.process.pid, signal.SIGCONT)
        else:
            return
    pytest.fail("ten times stopped, ten times in the middle of a write")


def test_a_zombie_is_fenced_and_gets_its_successors_result(common, workers):  # E-F5
    url, store = common
    zombie = workers("once", url, "zombie", 0.3, "wait")
    assert zombie.hear() == "running"
    stop_outside_of_a_write(zombie, store)
    try:
        heir = workers("once", url, "heir", 0.3)
        assert [heir.hear(), heir.hear()] == ["running", "heir"]
    finally:
        os.kill(zombie.process.pid, signal.SIGCONT)
    zombie.go()
    assert zombie.hear() == "heir"
    assert do(store) == "heir"


def test_a_key_survives_the_death_of_everybody_who_knew_it(common, workers):  # E-F1
    url, store = common
    worker = workers("once", url, "first", 30)
    assert [worker.hear(), worker.hear()] == ["running", "first"]
    worker.killed()
    assert do(store) == "first"
