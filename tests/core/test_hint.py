"""A hint is always a future."""

from __future__ import annotations

import re
from math import inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan import Hint, SettingError
from mulligan.core.hint import LONGEST, Precision


@given(st.floats() | st.floats(0, LONGEST))
def test_only_a_future_within_ten_years_is_a_hint(delay):  # E-A5 to E-A8
    hint = Hint.after(delay, source="retry-after")
    if 0 < delay <= LONGEST:
        assert hint is not None
        assert hint.delay == delay
    else:
        assert hint is None


@pytest.mark.parametrize("delay", [0, 0.0, -0.0, -1, nan, inf, -inf])
def test_a_hint_without_a_future_cannot_be_made(delay):
    message = f"Hint needs a finite delay > 0; got {delay!r} (no usable time means no hint)"
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        Hint(delay=delay)


@pytest.mark.parametrize(("precision", "margin"), [("exact", 0), ("second", 1), ("minute", 60)])
def test_a_clock_time_gets_a_margin_a_duration_gets_none(precision, margin):
    hint = Hint(delay=5, precision=Precision(precision))
    assert hint.floor == 5 + margin


@given(delay=st.floats(1e-9, LONGEST), precision=st.sampled_from(Precision))
def test_the_floor_is_never_sooner_than_what_was_said(delay, precision):  # E-A9
    hint = Hint.after(delay, source="body", precision=precision)
    assert hint is not None
    assert isfinite(hint.floor)
    assert hint.floor >= delay


def test_a_hint_keeps_what_was_said_about_it():
    hint = Hint.after(60, source="resets 7pm (UTC)", at=1e9, precision=Precision.MINUTE)
    assert hint == Hint(delay=60, at=1e9, precision=Precision.MINUTE, source="resets 7pm (UTC)")
    assert hint is not None
    assert hint.confidence == "high"
