"""What `explain` promises is what the drivers do."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mulligan
from mulligan.config.forecast import attempts_within, time_for_waits, upcoming
from mulligan.core.failure import Kind
from mulligan.core.presets import PRESETS, preset
from mulligan.testing import LoadedDice, status_error

STATUS = {Kind.RATE_LIMIT: 429, Kind.SERVER: 503}


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("kind", STATUS)
@pytest.mark.parametrize(("roll", "column"), [(0.5, "median"), (0.0, "least")])
def test_a_call_that_never_succeeds_makes_the_waits_of_the_table(drive, name, kind, roll, column):
    policy = replace(preset(name), timeouts=None)  # which a plain function cannot keep
    if policy.rules[kind].attempts is None:
        policy = policy.but(attempts=5)
    rule = policy.rules[kind]
    error = status_error(STATUS[kind])
    with pytest.raises(type(error)):
        drive([error] * 9, policy, effects="read", dice=LoadedDice(roll))
    assert drive.clock.sleeps == pytest.approx([getattr(wait, column) for wait in upcoming(rule)])


def test_time_ends_a_limit_after_as_many_attempts_as_explain_says(drive):
    policy = preset("default")
    usual = attempts_within(policy.rules[Kind.RATE_LIMIT], time_for_waits(policy))
    error = status_error(429)
    with pytest.raises(type(error)) as caught:
        drive([error] * 99, policy, effects="read", dice=LoadedDice(0.5))
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.attempts == usual == 35
