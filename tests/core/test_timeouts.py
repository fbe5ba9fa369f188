"""Limits of one attempt: they shrink after a timeout, and services have their own."""

from __future__ import annotations

import re
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan import SettingError, Timeouts
from mulligan.core.timeouts import SERVICE_TIMEOUTS


def test_a_retried_timeout_gets_less_time():  # R-B19
    limits = Timeouts(total=300, shrink=0.8)
    assert [limits.after(n).total for n in range(3)] == pytest.approx([300, 240, 192])


def test_every_part_shrinks():  # R-B19
    limits = Timeouts(connect=10, read=60, write=20, pool=5, total=120, shrink=0.5)
    once = Timeouts(connect=5, read=30, write=10, pool=2.5, total=60, shrink=0.5)
    assert limits.after(1) == once
    assert limits.after(2).connect == 2.5


def test_parts_without_a_limit_stay_without():
    assert Timeouts(total=10, shrink=0.5).after(3) == Timeouts(total=1.25, shrink=0.5)


def test_without_a_factor_nothing_shrinks():
    limits = Timeouts(total=300)
    assert limits.after(7) is limits


@given(
    total=st.floats(1e-3, 1e6),
    shrink=st.floats(0.01, 1),
    timeouts=st.integers(0, 50),
)
def test_limits_only_ever_shrink_and_never_reach_zero(total, shrink, timeouts):
    limits = Timeouts(total=total, shrink=shrink)
    now, then = limits.after(timeouts).total, limits.after(timeouts + 1).total
    assert now is not None
    assert then is not None
    assert 0 < then <= now <= total


@pytest.mark.parametrize(
    ("service", "connect", "read", "total"),
    [
        ("ollama", 5, 120, 300),
        ("anthropic", 10, 60, 120),
        ("postgresql", 5, 30, 60),
        ("redis", 2, 5, 10),
        ("external", 10, 30, 60),
    ],
)
def test_services_have_the_published_limits(service, connect, read, total):  # R-B20
    assert SERVICE_TIMEOUTS[service] == Timeouts(connect=connect, read=read, total=total)


def test_there_are_no_other_services():  # R-B20
    assert len(SERVICE_TIMEOUTS) == 5


def test_durations_are_understood_at_the_door():
    assert Timeouts(total="5m", connect="250ms") == Timeouts(total=300, connect=0.25)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"total": 0}, "Timeouts.total needs more than 0 s; got 0"),
        ({"read": "0s"}, "Timeouts.read needs more than 0 s; got '0s'"),
        ({"pool": -1}, "Timeouts.pool needs a finite number of seconds, not negative; got -1"),
        ({"write": inf}, "Timeouts.write needs a finite number of seconds, not negative; got inf"),
        ({"shrink": 0}, "Timeouts.shrink needs a number in (0, 1]; got 0"),
        ({"shrink": 1.1}, "Timeouts.shrink needs a number in (0, 1]; got 1.1"),
        ({"shrink": nan}, "Timeouts.shrink needs a number in (0, 1]; got nan"),
    ],
)
def test_what_cannot_be_meant_is_refused(limits, message):
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        Timeouts(**limits)


def test_a_sub_agent_that_stays_too_slow_says_timeout_and_how_often_it_was_tried(adrive):  # R-B19
    began = []

    async def slow():
        began.append(adrive.clock.now())
        await adrive.clock.asleep(1000)

    async def main():
        guard = mulligan.Guard("sub-agent", policy="subagent", effects="read", clock=adrive.clock)
        await guard.acall(slow)

    with pytest.raises(TimeoutError) as caught:
        adrive.arun(main)
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.ending, story.attempts) == ("exhausted", 3)
    assert [each.kind for each in story.tries] == ["timeout"] * 3
    assert [each.took for each in story.tries] == pytest.approx([300, 240, 192])
