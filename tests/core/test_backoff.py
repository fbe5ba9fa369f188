"""Every wait is finite, not negative, at most the cap, and keeps its jitter there."""

from __future__ import annotations

import re
from math import inf, isfinite, nan
from random import Random
from statistics import pstdev

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mulligan import Exponential, Fixed, Linear, Schedule, SettingError

JITTERS = ("none", "full", "equal", "additive", "proportional")
SHAPES = (
    lambda **jitter: Exponential(first=0.5, factor=2.0, cap=30, **jitter),
    lambda **jitter: Exponential(first=1, factor=1.0, cap=10, **jitter),
    lambda **jitter: Exponential(first=3e-9, factor=1e6, cap=1e9, **jitter),
    lambda **jitter: Linear(first=1, step=1, cap=5, **jitter),
    lambda **jitter: Linear(first=1, step=1e290, cap=60, **jitter),
    lambda **jitter: Fixed(wait=5, **jitter),
    lambda **jitter: Schedule(waits=(120, 300, 900, 1800), **jitter),
    lambda **jitter: Schedule(waits=(1, 100), cap=10, **jitter),
)


def jittered(shape, jitter):
    spread = {"additive": 0.75, "proportional": 0.4}.get(jitter, 0.0)
    return shape(jitter=jitter, spread=spread)


EVERY = [jittered(shape, jitter) for shape in SHAPES for jitter in JITTERS]

backoffs = st.sampled_from(EVERY)
attempts = st.integers(0, 10**9)
rolls = st.floats() | st.floats(0, 1, exclude_max=True)  # a broken die gives anything


@given(backoff=backoffs, attempt=attempts, roll=rolls)
@example(backoff=EVERY[0], attempt=5000, roll=0.5)
@example(backoff=EVERY[0], attempt=10**9, roll=nan)
@example(backoff=EVERY[0], attempt=0, roll=-inf)
@example(backoff=EVERY[3], attempt=1, roll=inf)
def test_no_wait_is_negative_endless_or_longer_than_the_cap(backoff, attempt, roll):  # E-A1, E-A3
    wait = backoff.delay(attempt, roll)
    assert isfinite(wait)
    assert 0 <= wait <= backoff.cap


@pytest.mark.parametrize("backoff", EVERY, ids=repr)
def test_a_million_draws_are_all_finite(backoff):  # E-A2: a million over the forty of them
    dice = Random(20260101)
    for _ in range(1_000_000 // len(EVERY)):
        wait = backoff.delay(dice.randrange(0, 10_000), dice.random())
        assert 0 <= wait <= backoff.cap


@given(
    first=st.floats(1e-6, 1e6),
    factor=st.floats(1, 1e6),
    more=st.floats(0, 1e6),
    jitter=st.sampled_from(JITTERS),
    share=st.floats(1e-6, 1),
    attempt=attempts,
    roll=rolls,
)
def test_the_bounds_hold_for_every_setting(*, first, factor, more, jitter, share, attempt, roll):
    cap = first + more
    spread = {"additive": share * cap, "proportional": share}.get(jitter, 0.0)
    backoff = Exponential(first=first, factor=factor, cap=cap, jitter=jitter, spread=spread)
    assert 0 <= backoff.delay(attempt, roll) <= cap


@given(backoff=backoffs, attempt=attempts, low=st.floats(0, 1), high=st.floats(0, 1))
def test_a_higher_roll_never_waits_less(backoff, attempt, low, high):
    low, high = sorted((low, high))
    assert backoff.delay(attempt, low) <= backoff.delay(attempt, high)


@given(backoff=backoffs, attempt=st.integers(1, 10**6), roll=st.floats(0, 1))
def test_a_later_attempt_never_waits_less(backoff, attempt, roll):
    assert backoff.delay(attempt, roll) <= backoff.delay(attempt + 1, roll)


@given(backoff=backoffs, attempt=attempts)
def test_bounds_are_what_the_dice_can_reach(backoff, attempt):
    least, median, greatest = backoff.bounds(attempt)
    assert least == backoff.delay(attempt, 0)
    assert median == backoff.delay(attempt, 0.5)
    assert greatest == backoff.delay(attempt, 1)
    assert least <= median <= greatest


EVEN_ROLLS = [(n + 0.5) / 1000 for n in range(1000)]


@pytest.mark.parametrize("jitter", ["full", "equal"])
@pytest.mark.parametrize("attempt", [10, 100, 10**9])
def test_at_the_cap_the_jitter_is_still_there(jitter, attempt):  # E-A3
    backoff = Exponential(first=1, cap=60, jitter=jitter)
    waits = [backoff.delay(attempt, roll) for roll in EVEN_ROLLS]
    assert max(waits) <= 60
    assert pstdev(waits) >= 6


@pytest.mark.parametrize("attempt", [10, 100, 10**9])
def test_at_the_cap_additive_jitter_keeps_its_spread(attempt):  # E-A3, R-B11
    backoff = Exponential(first=1, cap=60, jitter="additive", spread=10)
    assert backoff.bounds(attempt) == (50, 55, 60)


@pytest.mark.parametrize("attempt", [10, 100, 10**9])
def test_at_the_cap_proportional_jitter_keeps_its_share(attempt):  # E-A3
    backoff = Exponential(first=1, cap=60, jitter="proportional", spread=0.5)
    assert backoff.bounds(attempt) == pytest.approx((20, 40, 60))


@given(
    factor=st.floats(1, 100),
    jitter=st.sampled_from(JITTERS),
    attempt=st.integers(1, 5),
)
def test_medians_grow_by_the_factor(factor, jitter, attempt):  # E-A4
    # Additive jitter adds the same to every wait: the ratio is that of the curves below it.
    roll = 0.0 if jitter == "additive" else 0.5
    spread = {"additive": 0.5, "proportional": 0.5}.get(jitter, 0.0)
    backoff = Exponential(first=0.1, factor=factor, cap=1e12, jitter=jitter, spread=spread)
    assert backoff.delay(attempt + 1, roll) == pytest.approx(factor * backoff.delay(attempt, roll))


@pytest.mark.parametrize(
    ("jitter", "spread", "bounds"),
    [
        ("none", 0, (8, 8, 8)),
        ("full", 0, (0, 4, 8)),
        ("equal", 0, (4, 6, 8)),
        ("additive", 3, (8, 9.5, 11)),
        ("proportional", 0.25, (6, 8, 10)),
    ],
)
def test_each_jitter_moves_the_wait_around_the_curve(jitter, spread, bounds):  # R-B12
    backoff = Exponential(first=2, cap=100, jitter=jitter, spread=spread)
    assert backoff.bounds(3) == bounds


def test_a_linear_wait_grows_by_its_step():  # R-B7
    backoff = Linear(first=1, step=1, cap=5)
    assert [backoff.delay(n, 0.5) for n in range(1, 8)] == [1, 2, 3, 4, 5, 5, 5]


def test_a_fixed_wait_stays():  # R-B6
    assert {Fixed(wait=5).delay(n, 0.9) for n in (0, 1, 2, 10**9)} == {5}


def test_the_last_entry_of_a_schedule_repeats():  # R-B13
    backoff = Schedule(waits=(120, 300, 900, 1800), jitter="additive", spread=30)
    assert [backoff.delay(n, 0) for n in range(1, 7)] == [120, 300, 900, 1800, 1800, 1800]
    assert [backoff.delay(n, 1) for n in range(1, 7)] == [150, 330, 930, 1830, 1830, 1830]


def test_fixed_and_schedule_leave_room_for_their_jitter():
    assert Fixed(wait=4, jitter="additive", spread=2).cap == 6
    assert Fixed(wait=4, jitter="proportional", spread=0.5).cap == 6
    assert Schedule(waits=(4, 8), jitter="additive", spread=2).cap == 10
    assert Fixed(wait=4).cap == 4


def test_durations_are_understood_at_the_door():
    assert Exponential(first="500ms", cap="1m") == Exponential(first=0.5, cap=60)  # type: ignore[arg-type]
    assert Schedule(waits=("2m", "1h30m")).waits == (120, 5400)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Exponential(first=5, cap=1),
            "Exponential needs 0 < first <= cap; got first=5, cap=1",
        ),
        (
            lambda: Exponential(first=0),
            "Exponential needs 0 < first <= cap; got first=0, cap=30",
        ),
        (
            lambda: Exponential(factor=0.5),
            "Exponential needs a factor in [1, 1e6]; got 0.5",
        ),
        (
            lambda: Exponential(factor=nan),
            "Exponential needs a factor in [1, 1e6]; got nan",
        ),
        (
            lambda: Exponential(cap=0),
            "Exponential needs cap > 0; got cap=0",
        ),
        (
            lambda: Exponential(cap=inf),
            "Exponential.cap needs a finite number of seconds, not negative; got inf",
        ),
        (
            lambda: Exponential(first=-1),
            "Exponential.first needs a finite number of seconds, not negative; got -1",
        ),
        (
            lambda: Exponential(jitter="some"),  # type: ignore[arg-type]
            "Exponential.jitter needs one of none, full, equal, additive, proportional; got 'some'",
        ),
        (
            lambda: Exponential(jitter="additive"),
            "additive jitter needs 0 < spread <= cap seconds; got spread=0, cap=30",
        ),
        (
            lambda: Exponential(jitter="additive", spread=31),
            "additive jitter needs 0 < spread <= cap seconds; got spread=31, cap=30",
        ),
        (
            lambda: Exponential(jitter="proportional", spread=1.5),
            "proportional jitter needs a spread in (0, 1]; got spread=1.5",
        ),
        (
            lambda: Exponential(jitter="full", spread=1),
            "full jitter takes no spread; got spread=1 (additive and proportional do)",
        ),
        (
            lambda: Linear(first=6, cap=5),
            "Linear needs 0 < first <= cap; got first=6, cap=5",
        ),
        (
            lambda: Linear(step=-1),
            "Linear.step needs a finite number of seconds, not negative; got -1",
        ),
        (
            lambda: Fixed(wait=0),
            "Fixed needs wait > 0; got wait=0",
        ),
        (
            lambda: Schedule(waits=()),
            "Schedule needs one wait > 0 or more; got waits=()",
        ),
        (
            lambda: Schedule(waits=(1, 0)),
            "Schedule needs one wait > 0 or more; got waits=(1, 0)",
        ),
        (
            lambda: Schedule(waits=(1, "soon")),  # type: ignore[arg-type]
            'Schedule.waits needs a duration such as 90, "90s", "1h30m" or "250ms"; got \'soon\'',
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(make, message):
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        make()
