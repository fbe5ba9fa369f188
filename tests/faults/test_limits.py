from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.errors import SettingError
from mulligan.faults.limits import (
    ClientLimits,
    Counting,
    Meter,
    RateLimit,
    admit,
    charge,
    look,
)

countings = st.sampled_from(list(Counting))
limits = st.builds(
    RateLimit, capacity=st.integers(1, 20), window=st.floats(0.5, 100), counting=countings
)
gaps = st.lists(st.floats(0, 30), min_size=1, max_size=60)


def hammer(limit: RateLimit, waits: list[float]) -> list[float]:
    """The times at which a client that asks after each of these gaps is admitted."""
    meter, now, admitted = Meter(), 1000.0, []
    for wait in waits:
        now += wait
        if look(limit, meter, 1.0, now).is_admitted:
            meter = charge(limit, meter, 1.0, now)
            admitted.append(now)
    return admitted


@given(limits, gaps)
def test_no_window_admits_more_than_its_counting_allows(limit, waits):
    admitted = hammer(limit, waits)
    # A bucket that was full may be used up at once and refill once more within the window.
    factor = 1 if limit.counting is Counting.SLIDING else 2
    for begin in admitted:
        # A piece that was taken exactly one window ago is back.
        inside = [at for at in admitted if begin <= at < begin + limit.window * (1 - 1e-9)]
        assert len(inside) <= limit.capacity * factor


@given(limits, gaps)
def test_who_waits_as_told_is_admitted_and_who_does_not_is_refused(limit, waits):
    meter, now = Meter(), 1000.0
    for wait in waits:
        now += wait
        said = look(limit, meter, 1.0, now)
        if said.is_admitted:
            assert said.retry_after == 0
            meter = charge(limit, meter, 1.0, now)
            continue
        assert said.retry_after is not None
        assert said.retry_after > 0
        assert not look(limit, meter, 1.0, now + said.retry_after * 0.99).is_admitted
        now += said.retry_after + 1e-6
        assert look(limit, meter, 1.0, now).is_admitted


@given(limits, gaps)
def test_what_remains_counts_down_to_nothing_and_is_whole_after_the_reset(limit, waits):
    meter, now = Meter(), 1000.0
    for wait in waits:
        now += wait
        said = look(limit, meter, 1.0, now)
        assert 0 <= said.remaining <= limit.capacity
        assert said.reset_at >= now
        if said.is_admitted:
            meter = charge(limit, meter, 1.0, now)
    end = look(limit, meter, 1.0, now).reset_at + 1e-6
    assert look(limit, meter, 1.0, max(end, now)).remaining == limit.capacity - 1


def test_a_request_larger_than_the_limit_never_passes():
    said = look(RateLimit(capacity=10, window=60), Meter(), 11, 0.0)
    assert not said.is_admitted
    assert said.retry_after is None


def test_a_fixed_window_gives_everything_back_at_once_on_the_clock():
    limit = RateLimit(capacity=2, window=60, counting=Counting.FIXED)
    meter = charge(limit, Meter(), 2, 119.0)
    assert not look(limit, meter, 1, 119.9).is_admitted
    assert look(limit, meter, 1, 120.0).remaining == 1


def test_a_bucket_trickles():
    limit = RateLimit(capacity=60, window=60)
    meter = charge(limit, Meter(at=0.0), 60, 0.0)
    assert look(limit, meter, 1, 0.5).retry_after == pytest.approx(0.5)
    assert look(limit, meter, 1, 10.0).remaining == 9


def test_a_sliding_window_gives_each_piece_back_one_window_later():
    limit = RateLimit(capacity=2, window=10, counting=Counting.SLIDING)
    meter = charge(limit, charge(limit, Meter(), 1, 0.0), 1, 4.0)
    assert look(limit, meter, 1, 5.0).retry_after == pytest.approx(5.0)
    assert look(limit, meter, 2, 5.0).retry_after == pytest.approx(9.0)


def test_a_request_refused_by_tokens_costs_no_request():
    known = ClientLimits.parse(requests="5/60s", tokens="100/60s")
    said, account = admit(known, {}, tokens=90, now=0.0)
    assert said.is_admitted
    said, account = admit(known, account, tokens=90, now=0.0)
    assert said.refused_by == "tokens"
    assert said.verdicts["requests"][1].remaining == 4  # as before it, not as if it had passed
    said, account = admit(known, account, tokens=1, now=0.0)
    assert said.verdicts["requests"][1].remaining == 3


@pytest.mark.parametrize("counting", ["bucket", "sliding"])
def test_refusals_that_count_keep_a_client_out_for_as_long_as_it_hammers(counting):
    """E-A18: continuing while limited can cost the client its turn."""
    known = ClientLimits.parse(requests="3/10s", counting=counting, counts_refusals=True)
    account: dict[str, Meter] = {}
    admitted = 0
    for step in range(400):
        said, account = admit(known, account, tokens=0, now=step * 0.1)
        admitted += said.is_admitted
    assert admitted == 3


@given(
    st.integers(1, 5),
    countings,
    st.booleans(),
    st.lists(st.tuples(st.floats(0, 8), st.integers(1, 60)), min_size=1, max_size=40),
)
def test_who_waits_as_told_is_admitted_even_where_refusals_count(
    capacity, counting, counts_refusals, asked
):
    """E-A18: a client that obeys is never locked out by the requests of another."""
    known = ClientLimits.parse(
        requests=f"{capacity}/10s",
        tokens="60/7s",
        counting=counting,
        counts_refusals=counts_refusals,
    )
    account: dict[str, Meter] = {}
    now = 1000.0
    for gap, tokens in asked:
        now += gap
        said, account = admit(known, account, tokens=tokens, now=now)
        if not said.is_admitted:
            assert said.retry_after is not None
            assert said.refused_by
            now += said.retry_after + 1e-6
            said, account = admit(known, account, tokens=tokens, now=now)
            assert said.is_admitted


def test_refusals_that_do_not_count_let_it_in_again():
    known = ClientLimits.parse(requests="3/10s")
    account: dict[str, Meter] = {}
    admitted = 0
    for step in range(400):
        said, account = admit(known, account, tokens=0, now=step * 0.1)
        admitted += said.is_admitted
    assert admitted == 14


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"requests": "50"}, r"^a limit of requests is written like 50/60s; got '50'$"),
        ({"tokens": "0/60s"}, r"^a limit needs capacity >= 1 and window > 0; got capacity=0, "),
        ({"counting": "leaky"}, r"^limits count as bucket, fixed or sliding; got 'leaky'$"),
    ],
)
def test_limits_that_cannot_be_meant_are_refused(given_, message):
    with pytest.raises(SettingError, match=message):
        ClientLimits.parse(**given_)
