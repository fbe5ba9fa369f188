"""How many calls are sent to a target before it has answered for the first time."""

from __future__ import annotations

from mulligan.shared.gate.first_burst import FirstBurst


def sent(start: FirstBurst, live: int, now: float) -> int:
    """How many more calls may be sent while `live` are under way."""
    count = 0
    while start.wait(live + count, now) == 0 and count < 10_000:
        count += 1
    return count


def test_twenty_calls_go_ahead_and_the_next_one_waits_for_a_moment():
    start = FirstBurst()
    assert sent(start, 0, 100.0) == 20
    assert start.wait(20, 100.1) == 0.15000000000000568


def test_an_answered_call_leaves_its_place_to_another_and_a_round_of_answers_doubles_them():
    start = FirstBurst()
    sent(start, 0, 0.0)
    for _ in range(19):
        start.answered(is_awaited=True)
    assert sent(start, 1, 0.1) == 19
    start.answered(is_awaited=True)
    assert sent(start, 20, 0.1) == 20
    for _ in range(39):
        start.answered(is_awaited=True)
    assert sent(start, 0, 0.2) == 40
    start.answered(is_awaited=True)
    assert sent(start, 0, 0.2) == 80


def test_where_answers_take_long_twice_as_many_are_sent_every_quarter_of_a_second():
    start = FirstBurst()
    assert [sent(start, 0, now) for now in (0.0, 0.25, 0.5, 1.0)] == [20, 40, 80, 320]


def test_nobody_takes_the_place_of_a_call_that_failed_before_any_answer():
    start = FirstBurst()
    sent(start, 0, 0.0)
    for _ in range(14):
        start.failed(0.2)
    assert sent(start, 6, 0.2) == 0
    assert sent(start, 6, 0.44) == 0
    assert sent(start, 6, 0.46) == 20


def test_failures_after_an_answer_hold_nobody_back():
    start = FirstBurst()
    sent(start, 0, 0.0)
    start.answered(is_awaited=True)
    start.failed(0.2)
    assert sent(start, 18, 0.2) == 2
    assert sent(start, 18, 0.25) == 22


def test_it_is_over_with_the_first_answer_after_which_no_call_waits():
    start = FirstBurst()
    start.answered(is_awaited=True)
    assert not start.is_over
    start.answered(is_awaited=False)
    assert start.is_over


def test_rounding_of_times_lets_no_crowd_through():
    start = FirstBurst()
    since = 0.21446
    start.wait(0, since)
    assert sent(start, 20, since + 0.25 - 1e-17) in {0, 20}
    assert start.wait(20, since + 0.2499999999999999) > 0
