"""What a child finds when it was forked at the worst moment."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager

import pytest

import mulligan
from mulligan.core.admission import Admitted, Hold
from mulligan.shared.gate.gate import Gate
from mulligan.stores import open as urls
from mulligan.stores.memory import Memory
from mulligan.stores.state_machine import Key
from mulligan.testing import Scripted
from tests.shared.without_queue import GateAlone


@contextmanager
def held(lock):
    """`lock`, in the hands of another thread."""
    begun, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            begun.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait(10)
    yield
    done.set()
    thread.join()


def in_child(work) -> bool:
    """Whether `work` returns something true in the child of a fork, within five seconds."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(5)  # a lock that nobody frees would be waited for until then
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def gate(**options):
    return GateAlone(Key("api", "gate"), Gate(), roll=lambda: 0.0, **options)


def passes(admission) -> bool:
    answer = admission.enter(1, now=1.0, wall=1e9)
    if isinstance(answer, Admitted):
        admission.leave(answer.ticket, "succeeded", None, now=1.0, wall=1e9)
    return isinstance(answer, Admitted)


@pytest.mark.real
def test_a_gate_whose_lock_was_held_at_the_fork_is_free_in_the_child():
    admission = gate()
    with held(admission._lock):
        assert in_child(lambda: passes(admission))


@pytest.mark.real
def test_a_store_is_opened_in_the_child_though_another_was_being_opened_at_the_fork():
    with held(urls._opened.lock):
        assert in_child(lambda: isinstance(urls.open_store("memory:"), Memory))


@pytest.mark.real
def test_a_child_calls_through_its_guard_whatever_the_parents_threads_were_doing():
    guard = mulligan.Guard("forked", effects="read", observe=lambda _: {})
    guard.call(Scripted("well"))
    parts = guard._engine.here().state
    assert parts is not None
    locks = [parts.part("gate")._lock, parts.part("gate").view._lock, parts._lock]
    with held(locks[0]), held(locks[1]), held(locks[2]):
        assert in_child(lambda: guard.call(Scripted("well")) == "well")


def test_a_child_uses_no_permit_that_its_parent_has_leased():
    store = Memory()
    admission = gate(shared=store.state)
    admission._block = block = type(admission._block)("parents/1", 0, 8, 7, 1e9)
    for _ in range(3):
        admission.calm_ticket()
    assert in_child(
        lambda: not admission._block.left and not admission._under_way and not admission._unasked
    )
    assert admission._block is block
    assert not isinstance(admission.enter(1, now=1.0, wall=1e9), Hold)
