from __future__ import annotations

import time
from datetime import UTC, datetime
from math import isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.classify.headers import read_retry_after
from mulligan.classify.times.server_formats import ClockPair, when
from mulligan.core.hint import Confidence, Precision

NOW = datetime(2026, 11, 15, 20, 0, tzinfo=UTC).timestamp()


def delay(value: str, **others: str) -> float | None:
    headers = {"retry-after": value, **{k.replace("_", "-"): v for k, v in others.items()}}
    hint = read_retry_after(headers, now=NOW)
    return None if hint is None else hint.delay


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5", 5.0),
        ("61", 61.0),
        ("3600", 3600.0),
        ("1.5", 1.5),
        (" 7 ", 7.0),
        ("007", 7.0),
        ("86400000", 86400000.0),
        ("30, 30", 30.0),
        ("30, 45", 45.0),
    ],
)
def test_seconds_are_taken_as_they_are_stated(value, expected):
    assert delay(value) == expected


HOSTILE = [
    *("", " ", "0", "0.0", "-5", "-0", "nan", "NaN", "inf", "-inf", "Infinity", "1e999", "1e3"),
    *(
        "12abc",
        "abc",
        "1_000",
        "\uff11\uff12",
        "\u0663",
        "+5",
        "5.",
        ".5",
        "1,5x",
        "5 s",
        "0x10",
        "5\n6",
    ),
    *("9" * 400, "Sun, 31 Feb 2027 00:00:00 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", "tomorrow"),
    *("Sun, 06 Nov 2044 25:61:61 GMT", "Xyz, 06 Foo 2044 08:49:37 GMT", "null", "None", "5;6"),
]


@pytest.mark.parametrize("value", HOSTILE)
def test_zero_negative_past_or_malformed_is_no_hint(value):  # E-A5, E-A6, E-A8, E-A10
    assert delay(value) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "999999999"},
        {"retry-after": "99999999999999"},
        {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"},
        {"retry-after-ms": "999999999999999"},
    ],
)
def test_a_time_that_no_server_means_is_no_hint(headers):  # E-A7
    assert read_retry_after(headers, now=NOW) is None


@pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
def test_an_instant_since_1970_is_read_in_its_unit(scale):
    stated = str(int(NOW + 90) * scale)
    hint = read_retry_after({"retry-after": stated}, now=NOW)
    assert hint is not None
    assert hint.delay == pytest.approx(90, abs=1e-3)
    assert hint.at == pytest.approx(NOW + 90)
    assert when(stated, clocks=ClockPair(NOW, NOW), source="x-ratelimit-reset") is not None


@pytest.mark.parametrize("stated", ["999999999999h", "99999999999999s", "9999-12-31T23:59:59Z"])
def test_a_reset_header_that_no_server_means_is_no_hint(stated):  # E-A7
    assert when(stated, clocks=ClockPair(NOW, NOW), source="x-ratelimit-reset") is None


def test_milliseconds_win_over_seconds():  # E-A15
    assert delay("9", retry_after_ms="1250") == 1.25
    assert delay("9", x_ms_retry_after_ms="1500") == 1.5
    assert delay("9", retry_after_ms="100", x_ms_retry_after_ms="1500") == 0.1


@pytest.mark.parametrize("millis", ["0", "-3", "soon", "nan"])
def test_unreadable_milliseconds_leave_the_seconds_standing(millis):
    assert delay("9", retry_after_ms=millis) == 9.0


# E-A12: six golden dates, each 90 s after the server's own clock.
GOLDEN = [
    ("Sun, 15 Nov 2026 20:01:30 GMT", "Sun, 15 Nov 2026 20:00:00 GMT"),
    ("Sunday, 15-Nov-26 20:01:30 GMT", "Sunday, 15-Nov-26 20:00:00 GMT"),
    ("Sun Nov 15 20:01:30 2026", "Sun Nov 15 20:00:00 2026"),
    ("Sun, 15 Nov 2026 20:01:30 -0000", "Sun, 15 Nov 2026 20:00:00 +0000"),
    ("Thu, 01 Jan 2026 00:00:30 GMT", "Wed, 31 Dec 2025 23:59:00 GMT"),
    ("Sun, 29 Mar 2026 01:00:30 GMT", "Sun Mar 29 00:59:00 2026"),  # the hour Berlin skips
]


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/New_York"])
def zone(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(("stated", "date"), GOLDEN)
@pytest.mark.parametrize("skew", [-3600, 0, 3600])
def test_a_date_is_measured_on_the_servers_clock(stated, date, skew, zone):
    hint = read_retry_after({"retry-after": stated, "date": date}, now=NOW + skew)
    assert hint is not None
    assert hint.delay == 90
    assert hint.precision is Precision.SECOND
    assert hint.at == NOW + skew + 90, "the wake-up stands on our clock"


@pytest.mark.parametrize("stated", [stated for stated, _ in GOLDEN[:4]])
def test_a_date_without_the_servers_clock_is_measured_on_ours(stated):
    assert delay(stated) == 90


def test_two_digit_years_are_never_more_than_fifty_years_ahead():  # RFC 9110 §5.6.7
    assert delay("Saturday, 15-Nov-70 20:00:00 GMT") is not None  # 2070
    assert delay("Tuesday, 15-Nov-77 20:00:00 GMT") is None  # 1977


def test_a_leap_second_is_a_second():
    assert delay("Sun, 15 Nov 2026 20:00:60 GMT") == 60


@given(value=st.text(max_size=40), date=st.none() | st.text(max_size=40))
def test_no_header_can_make_a_hint_that_is_not_a_future(value, date):
    headers = {"retry-after": value} | ({} if date is None else {"date": date})
    hint = read_retry_after(headers, now=NOW)
    assert hint is None or (isfinite(hint.delay) and hint.delay > 0)


# E-A11: real values of reset headers, with what they mean at NOW.
REAL = [
    ("17ms", 0.017),
    ("500ms", 0.5),
    ("644ms", 0.644),
    ("1s", 1.0),
    ("1.984999999s", 1.984999999),
    ("6m0s", 360.0),
    ("7m12s", 432.0),
    ("1m26.4s", 86.4),
    ("1h47m17.664s", 6437.664),
    ("23h47m36.648s", 85656.648),
    ("42h1m20s", 151280.0),
    ("539.477544ms", 0.539477544),
    ("250µs", 0.00025),
    ("59", 59.0),
    ("3600", 3600.0),
    ("0.25", 0.25),
    (str(int(NOW) + 90), 90.0),
    (str((int(NOW) + 90) * 1000), 90.0),
    ("2026-11-15T20:01:30Z", 90.0),
    ("2026-11-15T21:01:30.500+01:00", 90.5),
    ("2026-11-15 20:01:30", 90.0),
    ("Sun, 15 Nov 2026 20:01:30 GMT", 90.0),
]


@pytest.mark.parametrize(("value", "seconds"), REAL)
def test_real_reset_values_mean_what_their_vendors_mean(value, seconds):
    hint = when(value, clocks=ClockPair(NOW, NOW), source="x")
    assert hint is not None
    assert hint.delay == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    "value", ["0s", "0", "-5s", "5x", "1h-2m", "", "1e5", "2026-13-01T00:00:00Z"]
)
def test_reset_values_without_a_future_are_no_hint(value):
    assert when(value, clocks=ClockPair(NOW, NOW), source="x") is None


def test_an_instant_is_no_hint_where_nobody_knows_the_time():
    assert when("2026-11-15T20:01:30Z", clocks=ClockPair(nan, nan), source="x") is None
    assert when("6m0s", clocks=ClockPair(nan, nan), source="x") is not None


def test_an_instant_without_a_zone_is_taken_for_utc_with_little_confidence():
    hint = when("2026-11-15 20:01:30", clocks=ClockPair(NOW, NOW), source="x")
    assert hint is not None
    assert hint.confidence is Confidence.LOW
    sure = when("2026-11-15 20:01:30 UTC", clocks=ClockPair(NOW, NOW), source="x")
    assert sure is not None
    assert sure.confidence is Confidence.HIGH
