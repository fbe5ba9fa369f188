"""A stop is seen by everybody who waits, at once, as often as they look."""

from __future__ import annotations

import os
import select
import signal
import threading
import time

import pytest

from mulligan.run.process.stop import Stop, signals


@pytest.fixture
def stop():
    stop = Stop()
    yield stop
    stop.close()


def is_readable(stop):
    return bool(select.select([stop.descriptor], [], [], 0)[0])


def test_nothing_is_asked_at_first(stop):
    assert (stop.is_set, stop.reason, stop.count, is_readable(stop)) == (False, "", 0, False)


def test_the_first_reason_is_kept_and_every_time_is_counted(stop):
    stop.set("idle")
    stop.set("interrupt")
    assert (stop.is_set, stop.reason, stop.count) == (True, "idle", 2)


def test_it_stays_readable_for_any_number_of_waiters(stop):
    stop.set()
    for _ in range(3):
        assert is_readable(stop)
        assert stop.wait(60)


def test_it_can_be_asked_for_more_often_than_a_pipe_holds(stop):
    for _ in range(66_000):
        stop.set()
    assert stop.count == 66_000


def test_what_was_asked_stays_known_after_closing():
    stop = Stop()
    stop.close()
    stop.set("terminate")
    stop.close()
    assert (stop.is_set, stop.reason) == (True, "terminate")


@pytest.mark.real
def test_a_wait_ends_when_it_is_over_and_not_before(stop):
    began = time.monotonic()
    assert not stop.wait(0.1)
    assert time.monotonic() - began >= 0.1
    assert not stop.wait(0)
    assert not stop.wait(-5)


@pytest.mark.real
def test_six_hours_of_waiting_end_when_another_thread_asks(stop, within):
    threading.Timer(0.05, stop.set, ["terminate"]).start()
    with within(1):  # R-B14 waits for hours; nobody may have to kill us
        assert stop.wait(6 * 3600)


@pytest.mark.real
@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGINT, "interrupt"),
        (signal.SIGTERM, "terminate"),
        (signal.SIGHUP, "hangup"),
        (signal.SIGQUIT, "quit"),
    ],
)
def test_a_signal_ends_a_wait_and_says_which_it_was(stop, number, reason):
    before = signal.getsignal(number)
    with signals(stop):
        threading.Timer(0.05, os.kill, [os.getpid(), number]).start()
        assert stop.wait(60)
        assert stop.reason == reason
    assert signal.getsignal(number) is before


@pytest.mark.real
def test_a_signal_that_our_caller_ignores_stays_ignored(stop):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup
    try:
        with signals(stop):
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.wait(0.05)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.real
def test_exit_codes_are_known_even_if_our_caller_ignores_dead_children(stop, supervised):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with signals(stop):
            assert supervised.sh("exit 7").code == 7
        assert signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_an_inner_one_ends_with_its_outer_and_never_ends_it():
    outer = Stop()
    one, other = Stop(outer), Stop(outer)
    one.set("fenced")
    assert (one.reason, other.is_set, outer.is_set) == ("fenced", False, False)
    outer.set("interrupt")
    assert (other.reason, one.reason, one.count) == ("interrupt", "fenced", 2)
    late = Stop(outer)
    assert late.reason == "interrupt"
    for each in (one, other, late, outer):
        each.close()
