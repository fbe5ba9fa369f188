"""Listeners that raise or are slow never hurt a call."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import mulligan
from mulligan import BackgroundListener
from mulligan.telemetry import background
from mulligan.telemetry.background import QueuedListener, watched
from mulligan.testing import Scripted, status_error, virtual_time


class Delivering(QueuedListener):
    """Hands each batch to a function."""

    def __init__(self, take, **options):
        self._take = take
        super().__init__("test", **options)

    def deliver(self, events):
        self._take(events)


BRIEFLY_DOWN = (status_error(503), "well")


def call(*listeners, outcomes=BRIEFLY_DOWN, times=1):
    with virtual_time():
        guard = mulligan.Guard("acme", effects="read", listeners=listeners, gate=False)
        return [guard.call(Scripted(*outcomes)) for _ in range(times)]


def test_a_listener_that_raises_is_reported_and_the_others_are_called(caplog):
    heard: list[object] = []

    def broken(event):
        raise RuntimeError("api_key=abcdef123456")

    assert call(broken, heard.append) == ["well"]
    assert len(heard) == 2
    assert "the listener broken raised RuntimeError: api_key=[masked]" in caplog.text
    assert "abcdef" not in caplog.text


@pytest.mark.real
def test_a_slow_listener_is_given_a_thread_and_holds_up_calls_no_longer(caplog, monkeypatch):
    monkeypatch.setattr(background, "_SLOW", 0.01)
    monkeypatch.setattr(background, "_ENOUGH", 0.1)
    heard, open_ = [], threading.Event()

    def slow(event):
        heard.append(event)
        open_.wait(0.06)

    began = time.perf_counter()
    call(slow, times=50)  # a hundred events: six seconds if it were called in line
    took = time.perf_counter() - began
    open_.set()
    assert took < 2
    assert "the listener slow has held up calls for" in caplog.text
    ends = time.monotonic() + 5
    while len(heard) < 100 and time.monotonic() < ends:
        time.sleep(0.01)
    assert [type(each).__name__ for each in heard] == ["Failed", "Recovered"] * 50


def test_a_quick_listener_is_called_in_line_and_in_order():
    heard: list[tuple[str, int]] = []
    call(lambda event: heard.append((type(event).__name__, threading.get_ident())))
    assert heard == [("Failed", threading.get_ident()), ("Recovered", threading.get_ident())]


def test_what_a_listener_asks_for_is_asked_for_through_the_watch():
    class Wants:
        successes = True

        def __call__(self, event):
            heard.append(type(event).__name__)

    heard: list[str] = []
    call(Wants(), outcomes=("well",))
    assert heard == ["Succeeded"]


def test_our_own_listeners_that_only_count_are_not_watched():
    counters = mulligan.Counters()
    assert watched(counters) is counters


@pytest.mark.real
def test_events_past_the_capacity_are_dropped_and_counted(caplog):
    busy, go = threading.Event(), threading.Event()

    def stuck(event):
        busy.set()
        go.wait(5)

    listener = BackgroundListener(stuck, capacity=5)
    guard_call = lambda: call(listener, outcomes=(status_error(401),))  # noqa: E731 -- two events a call
    with pytest.raises(Exception, match="401"):
        guard_call()
    assert busy.wait(5)
    for _ in range(10):
        with pytest.raises(Exception, match="401"):
            guard_call()
    assert listener.dropped >= 10
    assert "the listener stuck has dropped" in caplog.text
    go.set()
    assert listener.flush()


@pytest.mark.real
def test_a_background_listener_that_raises_loses_that_event_alone():
    heard: list[str] = []

    def picky(event):
        if type(event).__name__ == "Failed":
            raise ValueError("not this one")
        heard.append(type(event).__name__)

    listener = BackgroundListener(picky)
    call(listener)
    assert listener.flush()
    assert heard == ["Recovered"]
    assert listener.dropped == 1


@pytest.mark.real
def test_three_hundred_threads_lose_no_event():
    heard: list[int] = []
    listener: Any = Delivering(heard.extend, capacity=100_000)

    def put(at):
        for number in range(100):
            listener(at * 100 + number)

    threads = [threading.Thread(target=put, args=(at,)) for at in range(300)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert listener.flush()
    assert sorted(heard) == list(range(30_000))
    assert listener.dropped == 0


@pytest.mark.real
def test_after_a_fork_the_child_delivers_its_own_events_only(tmp_path):
    path = tmp_path / "events"

    def write(items):
        with path.open("a") as file:
            file.writelines(f"{os.getpid()} {each}\n" for each in items)

    listener: Any = Delivering(write, linger=0.2)
    listener("of the parent")
    child = os.fork()
    if not child:
        listener("of the child")
        os._exit(0 if listener.flush() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert listener.flush()
    assert sorted(path.read_text().splitlines()) == sorted(
        [f"{os.getpid()} of the parent", f"{child} of the child"]
    )


def test_a_capacity_that_holds_nothing_is_refused():
    with pytest.raises(mulligan.SettingError, match="needs a capacity of 1 or more; got 0"):
        BackgroundListener(print, capacity=0)
    with pytest.raises(mulligan.SettingError, match="BackgroundListener needs a callable; got 3"):
        BackgroundListener(3)  # type: ignore[arg-type]


@pytest.mark.real
def test_a_guard_without_listeners_loads_nothing_of_this():
    code = """
import sys, mulligan
answers = iter([ConnectionRefusedError(), None])
def flaky():
    if (error := next(answers)) is not None:
        raise error
mulligan.Guard("acme", effects="read").call(flaky)
print([name for name in sys.modules if name.startswith("mulligan.telemetry")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == "[]\n"
