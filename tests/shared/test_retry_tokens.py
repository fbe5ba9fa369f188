from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan import Failure, Kind
from mulligan.core.failure import Reach
from mulligan.core.moment import Moment
from mulligan.shared.retry_tokens import TOKENS, Fund, Reserve, Settle, TokenBucket, Tokens
from mulligan.shared.retry_tokens_client import RetryTokens
from mulligan.stores.state_machine import Key

NOW = Moment(0.0, 1e9)
STANDARD = Tokens()


def reserve(state, name, cost=14.0, lease=60.0):
    return Reserve(id=name, cost=cost, lease=lease, tokens=STANDARD)(state, NOW)


def test_a_full_bucket_pays_for_thirty_five_retries_then_for_the_floor():  # E-C6
    state = TokenBucket()
    answers = []
    for n in range(60):
        state, answer = reserve(state, f"r{n}")
        state, _ = Settle(id=f"r{n}", is_returned=False)(state, NOW)
        answers.append(state.left(STANDARD))
    assert answers[34] == 500 - 35 * 14
    assert answers[-1] == 0
    for n in range(3):
        state, answer = reserve(state, f"floor {n}")
        assert answer
    state, answer = reserve(state, "one too many")
    assert not answer


def test_what_sleeps_in_backoff_has_paid_already():  # E-C2
    state, allowed = TokenBucket(), 0
    for n in range(1000):
        state, answer = reserve(state, f"sleeper {n}")
        allowed += answer
    assert allowed == 500 // 14


def test_a_retry_that_succeeds_puts_its_tokens_back():
    state, _ = reserve(TokenBucket(), "r")
    state, _ = Settle(id="r", is_returned=True)(state, NOW)
    assert state == TokenBucket()


def test_a_reservation_nobody_settles_is_spent_when_its_lease_is_over():
    state, _ = reserve(TokenBucket(), "crashed", lease=10)
    later = Moment(11.0, 1e9)
    state, _ = Fund(successes=0, tokens=STANDARD)(state, later)
    assert state.reserved == ()
    assert state.left(STANDARD) == 486


def test_a_quiet_day_banks_nothing():  # E-C1
    state, _ = Fund(successes=1e6, tokens=STANDARD)(TokenBucket(), NOW)
    assert state == TokenBucket()


def test_a_changed_capacity_takes_effect_at_once():  # E-C4
    state, _ = reserve(TokenBucket(), "r", cost=400)
    assert state.left(Tokens(capacity=1000)) == 600
    assert state.left(Tokens(capacity=100)) == 0


@pytest.mark.parametrize(
    ("failure", "cost"),
    [
        (Failure(kind=Kind.NETWORK, reach=Reach.NEVER_SENT), 0),  # E-C5
        (Failure(kind=Kind.RATE_LIMIT), 0),  # the gate paces it
        (Failure(kind=Kind.SERVER), 14),
    ],
)
def test_a_retry_costs_what_its_failure_says(failure, cost):
    tokens = RetryTokens(Key("api", "tokens"), STANDARD)
    assert tokens.reserve(failure, 1.0, now=0.0, wall=1e9) is not None
    assert tokens.view.state.spent == cost


@pytest.mark.parametrize(("failing", "drains"), [(0.18, False), (0.26, True)])
def test_it_drains_above_a_fifth_of_failing_calls_and_not_below(failing, drains):
    # Three attempts at 14 tokens: 1 - p - 14p² - 14p³ is zero at p = 21.5 %.
    import random

    dice, state = random.Random(1), TokenBucket()
    for n in range(20_000):
        if dice.random() > failing:
            state, _ = Fund(successes=1, tokens=STANDARD)(state, NOW)
            continue
        for attempt in (2, 3):
            state, answer = reserve(state, f"{n}/{attempt}")
            if not answer:
                break
            passed = dice.random() > failing
            settle = Settle(id=f"{n}/{attempt}", is_returned=passed)
            state, _ = settle(state, NOW)
            if passed:
                break
    assert (state.left(STANDARD) < 50) is drains


moves = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "back", "gone", "fund"]),
        st.sampled_from("abcdefgh"),
        st.floats(0, 50),
        st.floats(0, 5),
    ),
    max_size=60,
)


@given(moves=moves)
def test_tokens_are_never_made_and_never_negative(moves):
    tokens, state, now = Tokens(capacity=100, floor=1), TokenBucket(), 0.0
    for what, name, cost, passes in moves:
        now += passes
        moment = Moment(now, 1e9 + now)
        if what == "reserve":
            once = Reserve(id=name, cost=cost, lease=20, tokens=tokens)
            state, answer = once(state, moment)
            if answer:
                assert once(state, moment) == (state, answer)
        elif what == "fund":
            state, _ = Fund(successes=cost, tokens=tokens)(state, moment)
        else:
            state, _ = Settle(id=name, is_returned=what == "back")(state, moment)
        assert 0 <= state.left(tokens) <= 100
        assert sum(each.cost for each in state.reserved) <= state.spent + 1e-6
        assert TOKENS.unpack(TOKENS.pack(state)) == state
