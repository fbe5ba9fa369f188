from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mulligan.classify.times.plain_text import level
from mulligan.classify.times.reset_time import find_reset
from mulligan.core.hint import Confidence, Precision

BERLIN = ZoneInfo("Europe/Berlin")
# Monday, 6 July 2026, 14:00 in Berlin.
NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()


def seconds(text, *, now=NOW, zone=BERLIN):
    found = find_reset(text, now=now, zone=zone)
    return None if found is None else found.seconds


def local(text, *, now=NOW, zone=BERLIN):
    found = find_reset(text, now=now, zone=zone)
    return None if found is None else datetime.fromtimestamp(found.at, zone).isoformat()[:19]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("try again in 644ms", 0.644),
        ("Please retry in 34.07s.", 34.07),
        ("try again in 1h47m17.664s", 6437.664),
        ("try again in 1h 23m 4.5s", 4984.5),
        ("or try again in 5 days 22 hours 11 minutes.", 511860),
        ("or try again in 5 days 22 hours 11\nminutes.", 511860),
        ("Please try\n│ again in 20s │", 20),
        ("quota will reset after 42h1m20s", 151280),
        ("Refreshes in 6 days and 18 hours", 583200),
        ("resets in 6hr 29min", 23340),
        ("the bucket is filled up again in 2h05", 7500),
        ("it leaks once a day, next time in 9 hours 56 minutes", 35760),
        ("retry after 86400 seconds", 86400),
        ("Retry-After: 3600", 3600),
        ("it will reset in less than a minute", 60),
        ("retry in ~1 day", 86400),
        ("you can try again in half an hour", 1800),
        ("try again in PT2H30M", 9000),
        ("reset occurs in 0:00:59.5", 59.5),
        ("try again in 1 day, 3:02:01", 97321),
        ("versuche es in 2 Stunden erneut", 7200),
        ("riprova tra 90 minuti", 5400),
        ("réessayez dans 2 heures", 7200),
        ("tente novamente em 15 minutos", 900),
        ("5分钟后重试", 300),
        ("resets in 2h05", 7500),
        ("limit reached: 3h 12m left until reset", 11520),
        ("2 hours until your weekly reset", 7200),
        ("cooldown: 45s", 45),
        ("the block lifts in 35 min", 2100),
        ("unblocked in 35 min", 2100),
        ('\\"retryDelay\\": \\"34.5s\\"', 34.5),
        ("resets_in_seconds=90", 90),
        ("try again in 3,600 seconds", 3600),
        ("try again in 1,5 hours", 5400),
        ("오전 12시에 재설정", 36000),
        ("resets → 2h 15m", 8100),
        ("Your quota will reset after 0s.", 0),
    ],
)
def test_a_duration_is_what_it_says(text, expected):
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resets 9pm", "2026-07-06T21:00:00"),
        ("no new step before 2026-07-06T21:00:00", "2026-07-06T21:00:00"),
        ("es geht morgen um 8:30 Uhr weiter", "2026-07-07T08:30:00"),
        ("resets 9:30 p.m.", "2026-07-06T21:30:00"),
        ("resets at 21:30:15", "2026-07-06T21:30:15"),
        ("resets 12am", "2026-07-07T00:00:00"),
        ("resets 12pm", "2026-07-07T12:00:00"),
        ("resets at midnight", "2026-07-07T00:00:00"),
        ("resets at noon", "2026-07-07T12:00:00"),
        ("resets 3:45\u202fPM", "2026-07-06T15:45:00"),
        ("continuing automatically at 10pm", "2026-07-06T22:00:00"),
        ("resets tomorrow at 9am", "2026-07-07T09:00:00"),
        ("resets Thu 3pm", "2026-07-09T15:00:00"),
        ("resets Mon 3pm", "2026-07-06T15:00:00"),
        ("resets Monday at 1pm", "2026-07-13T13:00:00"),
        ("resets Jul 31, 2am", "2026-07-31T02:00:00"),
        ("resets Jul 27 at 4:30am", "2026-07-27T04:30:00"),
        ("resets 03:16 on 2 Dec", "2026-12-02T03:16:00"),
        ("try again at Sep 28th, 2026\n2:14 AM.", "2026-09-28T02:14:00"),
        ("try again at Aug 20, 2026, 7:38 AM", "2026-08-20T07:38:00"),
        ("try again at 10 de jul. de 2026, 11:52", "2026-07-10T11:52:00"),
        ("vuelve a intentarlo el 10 jul 2026, 2:40 p.m.", "2026-07-10T14:40:00"),
        ("versuche es am 7. Juli 2026 um 15:30 erneut", "2026-07-07T15:30:00"),
        ("wird am 07.07.2026 um 08:00 zurückgesetzt", "2026-07-07T08:00:00"),
        ("réessayez à 18h30", "2026-07-06T18:30:00"),
        ("se restablece a las 21:00", "2026-07-06T21:00:00"),
        ("将于 2026-07-08 16:23:45 重置", "2026-07-08T16:23:45"),
        ("15:30にリセット", "2026-07-06T15:30:00"),
        ("monthly cycle ends on 10/2/2026", "2026-10-02T00:00:00"),
        ("ends; resets on 31/7/2026", "2026-07-31T00:00:00"),
        ("credits reset on 2026-07-10", "2026-07-10T00:00:00"),
        ("resume using this model at 7/12/2026, 8:01:10 PM", "2026-07-12T20:01:10"),
        ("resets Wednesday, July 8 at 4 PM", "2026-07-08T16:00:00"),
        ("resets at 24:00", "2026-07-07T00:00:00"),
        ("resets @ 9pm", "2026-07-06T21:00:00"),
        ("resets 6pm (tomorrow)", "2026-07-07T18:00:00"),
        ("your next window starts at 21:00", "2026-07-06T21:00:00"),
        ("resets on the 1st", "2026-08-01T00:00:00"),
        ("credits renew on the first day of next month", "2026-08-01T00:00:00"),
        ("resets on the 6th", "2026-08-06T00:00:00"),
        ("resets on the 31st at 5pm", "2026-07-31T17:00:00"),
        ("renews on the 28th of each month", "2026-07-28T00:00:00"),
    ],
)
def test_a_time_without_a_zone_is_the_hosts(text, expected):
    assert local(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resets 9am (America/Chicago)", "2026-07-06T14:00:00"),
        ("resets 9pm (Asia/Calcutta)", "2026-07-06T15:30:00"),
        ("resets 2:30pm (America/Buenos_Aires)", "2026-07-06T17:30:00"),
        ("resets 4pm (Europe/Kiev)", "2026-07-06T13:00:00"),
        ("will reset at 1pm (Etc/GMT+5)", "2026-07-06T18:00:00"),
        ("resets 4pm (europe/kiev)", "2026-07-06T13:00:00"),
        ("resets at 3:45 PM PST", "2026-07-06T23:45:00"),
        ("resets at 9:05 AM EDT", "2026-07-06T13:05:00"),
        ("resets at 5 PM PT", "2026-07-07T00:00:00"),
        ("resets at 3 PM Pacific Time", "2026-07-06T22:00:00"),
        ("resets at 3:45 PM GMT+5:30", "2026-07-07T10:15:00"),
        ("resets at 3:45 PM GMT+1", "2026-07-06T14:45:00"),
        ("available again at 18:00 (UTC)", "2026-07-06T18:00:00"),
        ("resets at 19:00 CEST", "2026-07-06T17:00:00"),
        ("reset at 2026-07-30 16:11:46 +0800 CST", "2026-07-30T08:11:46"),
        ("restored at 2026-07-06T19:00:00+01:00", "2026-07-06T18:00:00"),
        ("resets at 2026-07-07T05:00:00.25Z", "2026-07-07T05:00:00"),
        ("regain access on 2026-10-01 at 00:00 UTC", "2026-10-01T00:00:00"),
        ("Retry-After: Tue, 07 Jul 2026 00:00:05 GMT", "2026-07-07T00:00:05"),
        ("limit reached|1783350000", "2026-07-06T15:00:00"),
        ("resets at 1783350000000", "2026-07-06T15:00:00"),
        ("resetsAt 1783350000", "2026-07-06T15:00:00"),
        ("resets at 1800 UTC", "2026-07-06T18:00:00"),
        ("resets 2026-07-06 21:00:00+02", "2026-07-06T19:00:00"),
        ("resets 3:15 PM (America/New_York) on Jul 9", "2026-07-09T19:15:00"),
    ],
)
def test_a_stated_zone_counts_whatever_the_host_is_in(text, expected):
    found = find_reset(text, now=NOW, zone=BERLIN)
    assert found is not None
    assert datetime.fromtimestamp(found.at, UTC).isoformat()[:19] == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Try again later.",
        "Please wait a few minutes before you try again.",
        "limits reset every 5h and every week",
        "the 5-hour limit was reached",
        "resets eventually",
        "resets 99:99",
        "resets Feb 30, 2026",
        "resets at 25pm?",
        "preset 9pm",
        "retry 3 times",
        "wait, what?",
    ],
)
def test_words_without_a_time_state_none(text):
    assert seconds(text) is None


def test_a_duration_that_was_rounded_to_the_minute_is_precise_to_the_minute():
    found = find_reset("try again in 2 hours 5 minutes", now=NOW, zone=BERLIN)
    assert found is not None
    assert found.precision is Precision.MINUTE
    assert found.hint is not None
    assert found.hint.floor == 7560


def test_a_clock_time_that_passed_less_than_an_hour_ago_is_tomorrow_with_low_confidence():
    """E-A16."""
    found = find_reset("resets 1:30pm", now=NOW, zone=BERLIN)
    assert found is not None
    assert found.seconds == 84600
    assert found.confidence is Confidence.LOW
    earlier = find_reset("resets 12:30pm", now=NOW, zone=BERLIN)
    assert earlier is not None
    assert earlier.confidence is Confidence.HIGH


@pytest.mark.parametrize(
    "text",
    ["try again at 2:00 PM", "resets 2pm (Europe/Berlin)", "try again at Jul 6th, 2026 2:00 PM"],
)
def test_a_minute_that_was_named_is_over_when_it_has_ended(text):
    """Codex cuts the seconds off: at 14:00:34 it says 2:00 PM of a limit until 14:00:54."""
    found = find_reset(text, now=NOW + 34, zone=BERLIN)
    assert found is not None
    assert (found.seconds, found.confidence) == (26, Confidence.HIGH)
    assert found.hint is not None
    assert found.hint.floor == 27  # the end of a minute is known to the second


def test_a_minute_that_has_ended_is_over():
    found = find_reset("try again at Jul 6th, 2026 2:00 PM", now=NOW + 60, zone=BERLIN)
    assert found is not None
    assert found.hint is None


@pytest.mark.parametrize(
    "text", ["resets 2026-07-01 10:00", "reset at 1783300000", "try again at Jul 1st, 2026 9:00 AM"]
)
def test_a_full_date_in_the_past_is_over(text):
    found = find_reset(text, now=NOW, zone=BERLIN)
    assert found is not None
    assert found.seconds == 0
    assert found.hint is None


def test_a_date_without_a_year_that_just_passed_is_over_and_an_older_one_is_next_year():
    assert seconds("resets Jul 5, 9am") == 0
    assert local("resets Jul 2, 9am") == "2027-07-02T09:00:00"


def test_a_leap_day_without_a_year_is_the_next_one_there_is():
    assert local("resets Feb 29, 6am") == "2028-02-29T06:00:00"


def test_the_first_of_two_clauses_counts():
    assert local("resets Mon 3pm (session resets 2:45pm)") == "2026-07-06T15:00:00"


def test_the_servers_word_wins_over_the_programs_own_next_try():
    assert seconds("Retrying in 5 seconds… Please try again in 20 minutes.") == 1200
    assert seconds("Retrying in 5 seconds…") == 5


def test_the_span_shows_the_clause_in_the_original_text():
    text = "\x1b[31m│ You’ve hit your limit · resets 9pm (UTC) │\x1b[0m"
    found = find_reset(text, now=NOW, zone=BERLIN)
    assert found is not None
    assert text[slice(*found.span)] == "resets 9pm (UTC)"
    assert found.source == "resets 9pm (UTC)"


def test_an_abbreviation_that_countries_share_means_the_hosts_if_the_host_uses_it():
    shanghai = ZoneInfo("Asia/Shanghai")
    here = find_reset("resets at 23:00 CST", now=NOW, zone=shanghai)
    abroad = find_reset("resets at 23:00 CST", now=NOW, zone=BERLIN)
    assert here is not None
    assert abroad is not None
    assert here.seconds == 3 * 3600
    assert abroad.seconds == 17 * 3600
    assert (here.confidence, abroad.confidence) == (Confidence.HIGH, Confidence.LOW)


def test_a_night_on_which_the_clocks_change_has_its_real_length():
    """E-A16: fold and gap."""
    before = datetime(2026, 10, 24, 23, 30, tzinfo=UTC).timestamp()
    assert seconds("resets 4am (Europe/Paris)", now=before) == 3.5 * 3600
    spring = datetime(2026, 3, 8, 7, 30, tzinfo=UTC).timestamp()
    assert seconds("resets 3:30am (America/Los_Angeles)", now=spring) == 3 * 3600
    # 02:30 does not exist on that night: what the clock would have shown, half an hour past three.
    assert seconds("resets 2:30am (America/Los_Angeles)", now=spring) == 3 * 3600
    # 01:30 happens twice in autumn: the first that is not over.
    autumn = datetime(2026, 11, 1, 8, 45, tzinfo=UTC).timestamp()
    assert seconds("resets 1:30am (America/Los_Angeles)", now=autumn) == 45 * 60


zones = st.sampled_from(
    [
        *("Europe/Berlin", "America/New_York", "Asia/Calcutta", "Asia/Kathmandu", "Etc/GMT+5"),
        *("America/St_Johns", "Europe/Kiev", "UTC", "Australia/Lord_Howe", "Pacific/Auckland"),
    ]
)
moments = st.integers(
    int(datetime(2025, 1, 1, tzinfo=UTC).timestamp()) // 60,
    int(datetime(2030, 1, 1, tzinfo=UTC).timestamp()) // 60,
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def twelve(hour, minute, style):
    half = "am" if hour < 12 else "pm"
    shown = hour % 12 or 12
    if style == "short" and minute == 0:
        return f"{shown}{half}"
    return {
        "short": f"{shown}:{minute:02}{half}",
        "spaced": f"{shown}:{minute:02} {half.upper()}",
        "dotted": f"{shown}:{minute:02} {half[0]}.m.",
        "military": f"{hour:02}:{minute:02}",
    }[style]


def walls(start, stop, zone):
    """Every minute from start to stop with what the wall clock shows: no arithmetic of ours."""
    moment = start - start % 60
    while moment < stop:
        yield moment, datetime.fromtimestamp(moment, zone)
        moment += 60


banners = st.sampled_from(
    [
        "You've hit your limit · resets {}",
        "Claude usage limit reached. Your limit will reset at {}.",
        "5-hour limit reached ∙ resets {}",
        "■ You’ve hit your usage limit. Visit the page or try again at {}.",
        "Access resets at {}.",
        "Quota exhausted; available again at {}",
    ]
)
styles = st.sampled_from(["short", "spaced", "dotted", "military"])


@settings(max_examples=400, deadline=None)
@given(
    banner=banners,
    key=zones,
    minute=moments,
    h=st.integers(0, 23),
    m=st.integers(0, 59),
    style=styles,
)
def test_a_clock_time_is_the_next_minute_at_which_the_wall_shows_it(
    banner, key, minute, h, m, style
):
    zone, now = ZoneInfo(key), minute * 60
    text = banner.format(f"{twelve(h, m, style)} ({key})")
    showing = (
        at for at, wall in walls(now, now + 50 * 3600, zone) if (wall.hour, wall.minute) == (h, m)
    )
    expected = next(showing, None)
    assume(expected is not None)
    # In the night of a gap the skipped time stands for the shifted one, which no wall shows.
    there = datetime.fromtimestamp(now, zone).date()
    for ahead in (0, 1):
        day = there + timedelta(days=ahead)
        naive = datetime(day.year, day.month, day.day, h, m, tzinfo=zone)
        back = datetime.fromtimestamp(naive.timestamp(), zone)
        assume((back.hour, back.minute) == (h, m))
    assert seconds(text, now=now, zone=UTC) == expected - now


@settings(max_examples=400, deadline=None)
@given(
    banner=banners,
    key=zones,
    minute=moments,
    ahead=st.integers(0, 200),
    h=st.integers(0, 23),
    m=st.integers(0, 59),
    style=styles,
    form=st.sampled_from(["us", "joined", "ordinal", "iso", "day first", "no year"]),
)
def test_a_dated_time_is_the_minute_at_which_the_wall_shows_it(
    banner, key, minute, ahead, h, m, style, form
):
    zone, now = ZoneInfo(key), minute * 60
    day = (datetime.fromtimestamp(now, zone) + timedelta(days=ahead)).date()
    month = MONTHS[day.month - 1]
    suffix = "th" if 10 < day.day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    stated = {
        "us": f"{month} {day.day}, {day.year}, ",
        "joined": f"{month} {day.day}, {day.year} at ",
        "ordinal": f"{month} {day.day}{suffix}, {day.year} ",
        "iso": f"{day.isoformat()} ",
        "day first": f"{day.day} {month} {day.year}, ",
        "no year": f"{month} {day.day}, ",
    }[form]
    text = banner.format(f"{stated}{twelve(h, m, style)} ({key})")
    middle = datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp()
    showing = [
        at
        for at, wall in walls(int(middle) - 30 * 3600, int(middle) + 30 * 3600, zone)
        if (wall.date(), wall.hour, wall.minute) == (day, h, m)
    ]
    assume(showing)
    expected = next((at for at in showing if at >= now), showing[-1])
    assert seconds(text, now=now, zone=UTC) == max(0, expected - now)


@settings(max_examples=300, deadline=None)
@given(
    days=st.integers(0, 30),
    hours=st.integers(0, 23),
    minutes=st.integers(0, 59),
    rest=st.integers(0, 59),
    form=st.sampled_from(["go", "words", "comma", "short"]),
)
def test_a_duration_adds_up(days, hours, minutes, rest, form):
    total = ((days * 24 + hours) * 60 + minutes) * 60 + rest
    assume(total > 0)
    parts = [
        (days, "day", "d"),
        (hours, "hour", "h"),
        (minutes, "minute", "m"),
        (rest, "second", "s"),
    ]
    stated = [(count, word, letter) for count, word, letter in parts if count]
    plural = [f"{count} {word}{'s' * (count > 1)}" for count, word, _ in stated]
    text = {
        "go": f"{days * 24 + hours}h{minutes}m{rest}s",
        "words": " ".join(plural),
        "comma": ", ".join(plural[:-1]) + (" and " if len(plural) > 1 else "") + plural[-1],
        "short": " ".join(f"{count}{letter}" for count, _, letter in stated),
    }[form]
    assert seconds(f"Usage limit reached. Try again in {text}.") == total


@given(st.text(max_size=300))
def test_noise_has_no_time_or_one_that_is_not_in_the_past(text):
    found = find_reset(text, now=NOW, zone=timezone(timedelta(hours=5)))
    assert found is None or found.seconds >= 0


@given(st.text(max_size=200))
def test_plain_text_keeps_every_position(text):
    assert len(level(text)) == len(text)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("resets at 07-07 09:25:00 UTC", 77100),
        ("重置时间：07-07 09:25:00", 77100),
        ("Reset time (UTC): 2026-07-07 09:25", 77100),
        ("请在 3 小时 20 分钟后重试", 12000),
        ("剩余时间：2小时15分钟", 8100),
        ("距离重置还有 1小时5分", 3900),
        ("等待 13570s", 13570),
        ("残り時間: 3時間20分", 12000),
        ("30秒後にもう一度お試しください", 30),
        ("리셋까지 2시간 30분 남았습니다", 9000),
        ("Повторите попытку через 5 минут", 300),
        ("Please wait 1,200 seconds before retrying", 1200),
        ("Cooling down for 90s", 90),
    ],
)
def test_times_without_a_year_and_lengths_in_other_languages(words, seconds):
    now = datetime(2026, 7, 6, 12, tzinfo=UTC).timestamp()
    found = find_reset(words, now=now, zone=UTC)
    assert found is not None
    assert abs(found.seconds - seconds) <= 60


@pytest.mark.parametrize("words", ["还有 3 个任务", "range 07-27 items", "重试（剩余 2 次）"])
def test_a_count_is_no_time(words):
    assert find_reset(words, now=0.0, zone=UTC) is None


# Monday, 6 July 2026, 16:27.
MONDAY = datetime(2026, 7, 6, 16, 27, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("zeros", ["", "000", "000000", "000000000"])
def test_an_epoch_in_words_is_read_in_its_unit(zeros):
    assert seconds(f"resets at 1783358820{zeros}", now=MONDAY, zone=UTC) == 3600


@pytest.mark.parametrize(
    "text",
    [
        "retry after 99999999999999",
        "retry after 999,999,999,999",
        "resets in 99999999 hours",
        "resets at 2170-01-01 00:00",
        "resets at 17833588200000",
    ],
)
def test_a_time_that_no_server_means_is_not_read(text):
    assert seconds(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("try again in 1 234 seconds", 1234),
        ("try again in 1\u00a0234 seconds", 1234),
        ("try again in 1\u202f234 seconds", 1234),
        ("try again in 1'234 seconds", 1234),
        ("try again in 1\u2019234 seconds", 1234),
        ("try again in 1_234 seconds", 1234),
        ("try again in 1,234,567.5 ms", 1234.5675),
        ("retry after 1,234", 1234),
        ("retry after 1_234", 1234),
        ("resets at 1,783,358,820", 3600),
        ("resets in 5 Std. 30 Min.", 19800),
        ("resets in an hour and a half", 5400),
        ("resets in two and a half hours", 9000),
        ("resets in 2½ hours", 9000),
        ("resets in 2 1/2 hours", 9000),
        ("réessayez dans deux heures et demie", 9000),
        ("Please wait at least 30 seconds", 30),
        ("retry after 30 or send fewer requests", 30),
        ('{"retry-after": 30, "x": 1}', 30),
    ],
)
def test_a_number_is_read_whole(text, expected):
    assert seconds(text, now=MONDAY, zone=UTC) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    [
        "resets in -5 seconds",
        "resets at -1783358820",
        "-5 seconds until reset",
        "retry after 5 long seconds",
        "retry after 1 234",
        "retry after 5 503 Service Unavailable",
    ],
)
def test_a_part_of_a_number_is_no_time(text):
    assert seconds(text, now=MONDAY, zone=UTC) is None


def test_a_status_in_front_is_no_part_of_the_wait():
    assert seconds("429 300 seconds until reset", now=MONDAY, zone=UTC) == 300


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("请等待两小时", 7200),
        ("三十分钟后", 1800),
        ("半小时后", 1800),
        ("一个半小时后重试", 5400),
        ("2小时半后重试", 9000),
        ("一周后", 604800),
        ("两周后", 1209600),
        ("一百二十秒后重试", 120),
        ("三時間後", 10800),
        ("60秒間お待ちください", 60),
        ("1個小時後", 3600),
        ("1個小時後重試", 3600),
        ("1ヶ月後", 2592000),
        ("2日と3時間後にリセット", 183600),
        ("Error: 429 60秒間お待ちください", 60),
        ("Error: 429 请等待两分钟后重试", 120),
        ("今天 09:00 超出限额，5分钟后重试", 300),
        ("60초 동안 기다려 주세요", 60),
    ],
)
def test_a_length_in_chinese_japanese_or_korean(text, expected):
    assert seconds(text, now=MONDAY, zone=UTC) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京时间 18:30 重置", "2026-07-07T10:30:00"),
        ("18:30（北京时间）重置", "2026-07-07T10:30:00"),
        ("重置时间(北京时间): 2026-07-08 18:30", "2026-07-08T10:30:00"),
        ("日本時間 18:30 にリセット", "2026-07-07T09:30:00"),
        ("한국시간 18:30에 재설정", "2026-07-07T09:30:00"),
        ("UTC时间 18:30 重置", "2026-07-06T18:30:00"),
        ("今晚8点重置", "2026-07-06T20:00:00"),
        ("今晚八点重置", "2026-07-06T20:00:00"),
        ("明天上午9点重置", "2026-07-07T09:00:00"),
        ("明日の10:00にリセット", "2026-07-07T10:00:00"),
        ("后天下午三点半恢复", "2026-07-08T15:30:00"),
        ("下周一 10:00 重置", "2026-07-13T10:00:00"),
        ("下周三 9点恢复", "2026-07-15T09:00:00"),
        ("星期三 10:00 重置", "2026-07-08T10:00:00"),
        ("本周五 10:00 重置", "2026-07-10T10:00:00"),
        ("来週月曜 10:00 にリセット", "2026-07-13T10:00:00"),
        ("7月10日(金) 10:00にリセット", "2026-07-10T10:00:00"),
        ("다음 주 월요일 10:00에 재설정", "2026-07-13T10:00:00"),
        ("每天0点重置", "2026-07-07T00:00:00"),
    ],
)
def test_an_instant_in_chinese_japanese_or_korean(text, expected):
    assert local(text, now=MONDAY, zone=UTC) == expected


@pytest.mark.parametrize(
    "text",
    [
        "额度每5小时重置一次",
        "リセットは5時間ごと",
        "5時間ごとにリセット",
        "5시간마다 초기화",
        "一日一回リセット",
        "毎月1日にリセット",
        "一周一次重置",
        "十分抱歉，请稍后重试",
        "请晚一点再试",
        "一時的に混雑しています、再試行してください",
        "完成百分之三十后重试",
        "明天八点重置",
        "今天的额度已用完，请重试",
    ],
)
def test_how_often_and_how_much_are_no_time(text):
    assert seconds(text, now=MONDAY, zone=UTC) is None
