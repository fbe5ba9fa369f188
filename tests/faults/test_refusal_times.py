from __future__ import annotations

import re
from email.utils import parsedate_to_datetime

import pytest

from mulligan.errors import SettingError
from mulligan.faults.refusal_times import retry_after, stated_wait
from mulligan.faults.script import Script

NOW = 1_794_776_400.25  # 2026-11-15


@pytest.mark.parametrize(
    "value", ["2", "0", "-5", "1.5", "1e999", "nan", "soon", "\uff11\uff12", "99999999"]
)
def test_what_the_script_wrote_goes_out_as_it_stands(value):
    """E-A5 to E-A10: garbage is a fault worth having."""
    assert retry_after(value, NOW) == value


@pytest.mark.parametrize(
    ("written", "shift"), [("date+5s", 5), ("date+5", 5), ("date", 0), ("date-1h", -3600)]
)
def test_dates_are_computed_in_whole_seconds_and_never_too_soon(written, shift):
    at = parsedate_to_datetime(retry_after(written, NOW)).timestamp()
    assert NOW + shift <= at < NOW + shift + 1


def test_the_two_older_formats_of_a_date_are_spoken():
    """E-A12."""
    assert re.fullmatch(r"Sunday, 15-Nov-26 \d\d:\d\d:\d\d GMT", retry_after("rfc850+5s", NOW))
    assert re.fullmatch(r"Sun Nov 15 \d\d:\d\d:\d\d 2026", retry_after("asctime+5s", NOW))


@pytest.mark.parametrize(
    ("headers", "written", "wait"),
    [
        ({"retry-after": "2"}, "2", 2.0),
        ({"retry-after": "0.5"}, "0.5", 0.5),
        ({"retry-after": "60", "retry-after-ms": "250"}, "60", 0.25),
        ({"retry-after": "0"}, "0", None),
        ({"retry-after": "-5"}, "-5", None),
        ({"retry-after": "nan"}, "nan", None),
        ({"retry-after": "9" * 400}, "9" * 400, None),
        ({"retry-after": "x"}, "date+2s", 2.75),
        ({"retry-after": "x"}, "date-2s", None),
        ({}, None, None),
    ],
)
def test_a_window_is_closed_only_by_what_a_client_can_use(headers, written, wait):
    """E-A15: milliseconds win."""
    assert stated_wait(headers, written, NOW) == wait


def test_a_date_that_cannot_be_computed_is_refused_when_it_is_written():
    with pytest.raises(SettingError, match=r"^429\(retry-after=…\) the date needs a duration"):
        Script.parse("429(retry-after=date+5parsecs)")
