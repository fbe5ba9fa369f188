"""How a gate finds the pace of a target that states nothing but when to come again."""

from __future__ import annotations

import pytest

from mulligan.shared.gate.gate import PermitGranted

from .test_gate import World, opened


class Draining:
    """A bucket that asks whoever comes too early to wait for its next call."""

    def __init__(self, rate, at) -> None:
        self.rate, self.level, self.at = rate, 0.0, at

    def asks_to_wait(self, now):
        """0 if a call passes."""
        self.level += (now - self.at) * self.rate
        self.at = now
        if self.level >= 1:
            self.level -= 1
            return 0.0
        return (1 - self.level) / self.rate


def let_in(world, name, *, step):
    """Ask at every step until the call may go."""
    while not isinstance(world.enter(name), PermitGranted):
        world.now += step


def drained(world, bucket, *, calls, step=0.01):
    """Seconds and rejections until so many calls have passed; somebody asks at every step."""
    began, passed, rejected = world.now, 0, 0
    while passed < calls:
        name = f"{world.now}"
        if not isinstance(world.enter(name), PermitGranted):
            world.now += step
            continue
        wait = bucket.asks_to_wait(world.now)
        world.leave(name, reply="rejected" if wait else "answered", hint=wait)
        passed, rejected = passed + (not wait), rejected + bool(wait)
    return world.now - began, rejected


@pytest.mark.parametrize("rate", [0.3, 1.7, 4.4])
def test_a_bucket_is_used_up_at_its_own_pace(rate):
    world = World()
    bucket = Draining(rate, world.now)
    opened(world, 1 / rate)
    seconds, rejected = drained(world, bucket, calls=150)
    assert seconds <= 1.02 * 150 / rate
    assert rejected <= 12


def test_a_bucket_that_gives_less_than_before_is_found_out_soon():
    world = World()
    bucket = Draining(4.0, world.now)
    opened(world, 0.25)
    drained(world, bucket, calls=60)
    bucket.rate = 0.4
    seconds, rejected = drained(world, bucket, calls=60)
    assert rejected <= 16
    assert seconds <= 1.1 * 60 / 0.4


def test_a_pace_outlasts_a_time_in_which_nothing_passes():
    world = World()
    bucket = Draining(2.0, world.now)
    opened(world, 0.5)
    drained(world, bucket, calls=60)
    for number in range(300):
        let_in(world, f"outage {number}", step=0.1)
        world.leave(f"outage {number}", reply="rejected", hint=1.0)
    bucket.level, bucket.at = 0.0, world.now
    seconds, _ = drained(world, bucket, calls=60)
    assert seconds <= 1.2 * 60 / 2.0


def test_who_comes_late_takes_nothing_from_those_behind():
    world = World()
    bucket = Draining(1.0, world.now)
    opened(world, 1.0)
    seconds, _ = drained(world, bucket, calls=100, step=0.37)
    assert seconds <= 1.03 * 100


def test_a_window_is_not_taken_for_a_bucket():
    world = World()
    opened(world, 20.0)
    for number in range(3):
        assert isinstance(world.enter(f"{number}"), PermitGranted)
        world.leave(f"{number}")
    assert isinstance(world.enter("too much"), PermitGranted)
    world.leave("too much", reply="rejected", hint=20.0)
    world.now += 20.1
    assert isinstance(world.enter("probe"), PermitGranted)
    world.leave("probe")
    assert world.burst() == 2


def test_a_gate_that_opens_slowly_is_not_thrown_open_because_answers_are_slow():
    world = World()
    opened(world, 1.0)
    for trip in range(8):
        count = 0
        while isinstance(world.enter(f"{trip}/{count}"), PermitGranted):
            count += 1
        assert count <= 2**trip
        world.now += 12.0
        for number in range(count):
            world.leave(f"{trip}/{number}")


@pytest.mark.parametrize("calls", [15, 29, 30, 32])
def test_calls_that_are_rejected_late_take_back_no_more_than_was_counted(calls):
    world = World()
    bucket = Draining(10.0, world.now)
    opened(world, 0.1)
    drained(world, bucket, calls=60)
    names = [f"slow {number}" for number in range(60)]
    for name in names:
        let_in(world, name, step=0.01)
    for name in names:
        world.leave(name, reply="rejected", hint=20.0)
    for number in range(calls):
        let_in(world, f"then {number}", step=0.01)
        world.leave(f"then {number}", reply="answered")
    opening = world.state.opening
    assert opening is not None
    assert opening.past_passed >= 0
    bucket.level, bucket.at = 0.0, world.now
    seconds, _ = drained(world, bucket, calls=40)
    assert seconds <= 4 * 40 / bucket.rate


def test_a_call_now_and_then_does_not_keep_the_pace_of_an_outage():
    world = World()
    bucket = Draining(10.0, world.now)
    opened(world, 0.1)
    drained(world, bucket, calls=60)
    for number in range(15):
        let_in(world, f"outage {number}", step=1.0)
        world.leave(f"outage {number}", reply="rejected", hint=60.0)
    for number in range(100):
        world.now += 40.0
        let_in(world, f"seldom {number}", step=1.0)
        world.leave(f"seldom {number}", reply="answered")
    assert world.state.opening is None
