"""Who renews what others hold."""

from __future__ import annotations

import threading
import time

import pytest

from mulligan.once.renewal import RenewalThreads
from mulligan.stores.memory import Memory, MemoryState


class _Count:
    def __init__(self, keys: MemoryState, times: int) -> None:
        self.keys, self.times, self.done = keys, times, threading.Event()

    def act(self) -> float | None:
        self.times -= 1
        if self.times:
            return 0.001
        self.done.set()
        return None


@pytest.mark.real
def test_a_keeper_does_what_is_due_and_ends_when_nothing_is():
    keeper, keys = RenewalThreads(), Memory().keys
    jobs = [_Count(keys, times) for times in (3, 1)]
    for job in jobs:
        keeper.add(job, 0.01)
    assert all(job.done.wait(5) for job in jobs)
    assert idle(keeper)
    gone = _Count(keys, 1)
    keeper.add(gone, 0.2)
    keeper.remove(gone)
    late = _Count(keys, 1)
    keeper.add(late, 0.0)
    assert late.done.wait(5)
    assert not gone.done.is_set()


def idle(keeper: RenewalThreads) -> bool:
    """Whether it comes to have neither jobs nor threads."""
    for _ in range(500):
        if not keeper._due and not keeper._threads:
            return True
        time.sleep(0.01)
    return False


class _Hung(_Count):
    """A job whose store does not answer."""

    def __init__(self, keys: MemoryState) -> None:
        super().__init__(keys, 1)
        self.began, self.ends = threading.Event(), threading.Event()

    def act(self) -> float | None:
        self.began.set()
        self.ends.wait(5)
        return super().act()


@pytest.mark.real
def test_a_store_that_hangs_costs_nobody_in_another_store_a_lease():
    keeper, hung = RenewalThreads(), _Hung(Memory().keys)
    keeper.add(hung, 0.0)
    assert hung.began.wait(5)
    other = _Count(Memory().keys, 2)
    keeper.add(other, 0.0)
    assert other.done.wait(5)
    assert not hung.done.is_set()
    hung.ends.set()
    assert idle(keeper)


class _Broken(_Count):
    def act(self) -> float | None:
        raise ZeroDivisionError


@pytest.mark.real
def test_a_job_that_raises_costs_the_others_nothing(caplog):
    keeper, keys = RenewalThreads(), Memory().keys
    after = _Count(keys, 2)
    keeper.add(_Broken(keys, 1), 0.0)
    keeper.add(after, 0.01)
    assert after.done.wait(5)
    assert idle(keeper)
    assert "the job _Broken raised ZeroDivisionError" in caplog.text


@pytest.mark.real
def test_a_thread_does_not_outlive_a_long_lease_that_was_given_back():
    keeper, day = RenewalThreads(), _Count(Memory().keys, 1)
    keeper.add(day, 86_400)
    keeper.remove(day)
    assert idle(keeper)
