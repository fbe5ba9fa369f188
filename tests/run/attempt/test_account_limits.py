"""What runs know of an account's limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.moment import Moment
from mulligan.run.attempt.account_limits import (
    ACCOUNT,
    LONGEST_BELIEF,
    ForgetLimits,
    LimitMet,
    ModelAnswered,
    OverrideLimit,
    ProbeReleased,
    StartAllowed,
    StartDelayed,
    StartRequest,
    covers,
    plain_model,
)

START = 1_794_000_000.0


class Account:
    """An account in virtual time, which is written down and read again at each step."""

    def __init__(self) -> None:
        self.state, self.now = ACCOUNT.start, 0.0

    def do(self, operation):
        after, result = operation(self.state, Moment(self.now, START + self.now))
        self.state = ACCOUNT.unpack(ACCOUNT.pack(after))
        return result

    def meet(self, seconds=0.0, *, is_sure=True, model="", is_default=False, run="r1"):
        return self.do(
            LimitMet(
                run=run,
                program="claude",
                label="KEY",
                model=model,
                is_default=is_default,
                seconds=seconds,
                is_sure=is_sure,
                because="limit",
            )
        )

    def ask(self, model="", run="r2"):
        return self.do(StartRequest(run=run, model=model))


def test_a_limit_holds_all_runs_until_its_time_then_one_tries():
    account = Account()
    account.meet(7200.0)
    assert account.ask() == StartDelayed(7200.0, "run r1 met a limit: limit", START + 7200)
    account.now = 7201
    assert account.ask(run="a") == StartAllowed()
    assert account.ask(run="a") == StartAllowed()  # however often it asks
    held = account.ask(run="b")
    assert isinstance(held, StartDelayed)
    assert held.delay <= 15
    assert held.because == "run a checks whether the limit has been lifted"
    account.do(ModelAnswered(model="", age=1.0))
    assert account.ask(run="b") == StartAllowed()
    assert account.state == ACCOUNT.start


def test_a_run_that_tries_and_dies_keeps_nobody_waiting_for_long():
    account = Account()
    account.meet(60.0)
    account.now = 61
    assert account.ask(run="a") == StartAllowed()
    account.now += 121
    assert account.ask(run="b") == StartAllowed()
    assert account.ask(run="c") == StartAllowed()


def test_a_run_that_tries_and_fails_otherwise_lets_the_next_one_try():
    account = Account()
    account.meet(60.0)
    account.now = 61
    assert account.ask(run="a") == StartAllowed()
    account.do(ProbeReleased(run="a"))
    assert account.ask(run="b") == StartAllowed()
    assert isinstance(account.ask(run="c"), StartDelayed)


def test_no_statement_is_believed_for_longer_than_six_hours():  # "31 days"
    account = Account()
    assert account.meet(31 * 86_400.0) == LONGEST_BELIEF
    held = account.ask()
    assert (held.delay, held.resets_at) == (LONGEST_BELIEF, START + 31 * 86_400.0)
    account.now = LONGEST_BELIEF + 1
    assert account.ask() == StartAllowed()


def test_a_time_that_nobody_is_sure_of_is_believed_for_minutes_and_longer_each_time():
    account, waits = Account(), []
    for _ in range(8):
        waits.append(account.meet(86_340.0, is_sure=False))
        assert account.state.limits[0].resets_at is None
        account.now += waits[-1] + 1
    assert waits == [60, 120, 240, 480, 960, 1800, 1800, 1800]
    assert Account().meet(20.0, is_sure=False) == 20


def test_runs_that_meet_it_together_have_met_it_once():
    account = Account()
    assert [account.meet(is_sure=False, run=f"r{n}") for n in range(9)] == [60.0] * 9


def test_a_sure_time_is_not_shortened_by_who_does_not_know():
    account = Account()
    account.meet(7200.0)
    account.meet(0.0, is_sure=False)
    assert account.ask().delay == 7200


def test_a_limit_of_one_family_leaves_the_others_alone():  # "an Opus limit stops Sonnet"
    account = Account()
    account.meet(7200.0, model="opus")
    assert account.ask("claude-sonnet-4-5") == StartAllowed()
    assert (
        account.ask("") == StartAllowed()
    )  # whatever its default is, nobody has met this limit with it
    assert isinstance(account.ask("claude-opus-4-5-20251101"), StartDelayed)
    account.meet(7200.0, model="opus", is_default=True)
    assert isinstance(account.ask(""), StartDelayed)
    account.do(ModelAnswered(model="claude-sonnet-4-5", age=0.0))
    assert isinstance(account.ask("opus"), StartDelayed)
    account.meet(3600.0)
    assert isinstance(account.ask("sonnet"), StartDelayed)


def test_an_answer_that_was_on_its_way_lifts_nothing():
    account = Account()
    account.now = 100
    account.meet(7200.0)
    account.now = 110
    assert not account.do(ModelAnswered(model="", age=50.0))
    assert account.do(ModelAnswered(model="", age=5.0))
    account.meet(7200.0)
    account.now += 130
    assert account.do(ModelAnswered(model="", age=500.0))


def test_what_somebody_ordered_is_stronger_than_what_is_believed():
    account = Account()
    account.meet(7200.0)
    account.do(OverrideLimit(move="allowed", seconds=60))
    assert account.ask() == StartAllowed()
    account.now = 61
    assert isinstance(account.ask(), StartDelayed)
    account.do(OverrideLimit(move="blocked", because="holiday"))
    assert account.ask() == StartDelayed(float("inf"), "holiday")
    assert not account.do(ForgetLimits(model="opus"))
    (gone,) = account.do(ForgetLimits())
    assert (gone.hand, len(gone.limits)) == ("blocked", 1)
    assert account.state == ACCOUNT.start
    assert account.do(ForgetLimits()) == ()


def test_an_account_does_not_grow():
    account = Account()
    for number in range(200):
        account.meet(7200.0, model=f"model-{number}")
    assert len(account.state.limits) <= 16


def test_names_of_models():
    assert covers("opus", "claude-opus-4-5-20251101")
    assert covers("opus", "us.anthropic.claude-opus-4-1-20250805-v1:0")
    assert covers("opus", "anthropic/claude-opus-4-5")
    assert covers("opus", "opusplan")
    assert covers("claude opus 4", "opus")
    assert covers("sonnet", "sonnet[1m]")
    assert not covers("claude opus 4", "claude-opus-3")
    assert not covers("opus", "sonnet")
    assert covers("gpt-5.3-codex-spark", "openai/gpt-5.3-codex-spark")
    assert not covers("gpt-5.3-codex", "gpt-5.3-codex-spark")
    assert not covers("gemini-2.5-flash", "gemini-2.5-flash-lite")
    assert not covers("gemini-2.5-pro", "gemini-3-pro-preview")
    assert plain_model("default") == ""
    assert plain_model("anthropic/claude-opus-4-5") == "claude-opus-4-5"
    assert plain_model("  Opus\x1b[31m\n4 ") == "opus-4"


@pytest.mark.parametrize(
    ("limited", "model"),
    [
        ("gpt-5", "gpt-5-mini"),
        ("gpt-5", "gpt-5-codex"),
        ("gpt-5", "gpt-5.1"),
        ("gpt-5.1", "gpt-5"),
        ("gpt-4o", "gpt-4o-mini"),
        ("o3", "o3-mini"),
        ("o3", "o3-pro"),
        ("glm-4.6", "glm-4.6-air"),
        ("flash", "gemini-2.5-flash-lite"),
    ],
)
def test_a_limit_of_one_model_leaves_its_siblings_alone(limited, model):
    assert not covers(limited, model)


@pytest.mark.parametrize(
    ("limited", "model"),
    [
        ("opus", "claude-opus-4-6"),
        ("haiku", "claude-3-5-haiku-20241022"),
        ("flash", "gemini-2.5-flash"),
        ("pro", "gemini-3-pro-preview"),
        ("opus 4", "us.anthropic.claude-opus-4-1-20250805-v1:0"),
        ("claude-opus-4-20250514", "claude-opus-4-6"),
        ("gpt-5", "openai/gpt-5-2025-08-07"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gemini-2.0-flash", "gemini-2.0-flash-001"),
    ],
)
def test_a_limit_of_a_family_or_a_tier_or_another_snapshot_holds(limited, model):
    assert covers(limited, model)


@given(st.text(), st.text())
def test_garbage_is_no_model_and_raises_nothing(one, other):
    covers(one, other)
    assert len(plain_model(one)) <= 81
    assert covers(one, one)
