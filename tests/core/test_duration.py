"""Durations as people write them, both ways."""

from __future__ import annotations

import re
from datetime import timedelta
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan import SettingError
from mulligan.core.duration import duration_text, seconds


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (90, 90),
        (1.5, 1.5),
        (0, 0),
        ("90s", 90),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        (" 250ms ", 0.25),
        ("1.5h", 5400),
        ("2d", 172_800),
        ("1d2h3m4s5ms", 93_784.005),
        (timedelta(minutes=2), 120),
    ],
)
def test_a_duration_is_read_as_people_write_it(written, meant):
    assert seconds(written) == pytest.approx(meant)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "90",
        "s",
        "1w",
        "-5s",
        "+5s",
        "1_000s",
        "\uff11\uff12s",
        "\u0663s",
        "1e3s",
        "inf",
        "nans",
        "1.s",
        ".5s",
    ],
)
def test_what_only_looks_like_a_duration_is_refused(written):  # E-A10
    message = f'wait needs a duration such as 90, "90s", "1h30m" or "250ms"; got {written!r}'
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        seconds(written, name="wait")


@pytest.mark.parametrize("written", [None, True, False, [], b"90s", 1j])
def test_other_types_are_refused(written):
    message = f'wait needs a duration such as 90 or "90s"; got {written!r}'
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        seconds(written, name="wait")


@pytest.mark.parametrize(
    "written", [-1, -0.001, nan, inf, -inf, 10**400, timedelta(seconds=-1), "9" * 400 + "d"]
)
def test_what_no_clock_can_show_is_refused(written):  # E-A6, E-A7
    message = f"wait needs a finite number of seconds, not negative; got {written!r}"
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        seconds(written, name="wait")


def test_a_bound_of_the_caller_is_named():
    message = "wait needs at least 5 s, not negative; got 4"
    with pytest.raises(SettingError, match=f"^{message}$"):
        seconds(4, name="wait", least=5)
    assert seconds(5, least=5) == 5


@given(st.text() | st.floats() | st.integers() | st.none() | st.timedeltas())
def test_whatever_is_written_it_is_a_finite_duration_or_refused(written):
    try:
        read = seconds(written)
    except SettingError:
        return
    assert 0 <= read < inf


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0s"),
        (0.00025, "0.25ms"),
        (0.25, "250ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (10, "10s"),
        (41.04, "41s"),
        (60, "1m"),
        (90, "1m30s"),
        (3600, "1h"),
        (5400, "1h30m"),
        (21_600, "6h"),
        (3599.7, "1h"),
        (532_800, "6d4h"),
        (inf, "forever"),
        (nan, "nan"),
        (-3, "-3"),
    ],
)
def test_a_duration_is_told_in_two_units_at_most(value, text):
    assert duration_text(value) == text


@given(st.floats(0.001, 1e9))
def test_what_is_told_reads_back_as_nearly_the_same(value):
    told = seconds(duration_text(value))
    # Two units: never off by more than one of the smaller.
    smaller = 3600 if value >= 86_400 else 60 if value >= 3600 else 1 if value >= 60 else 0.06
    assert abs(told - value) <= smaller


@given(st.floats())
def test_telling_never_fails(value):
    assert duration_text(value)
