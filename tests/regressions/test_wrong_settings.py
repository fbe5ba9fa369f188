"""Wrong settings were accepted, and did nothing or failed later.

A typing mistake in an option must be refused where it is written, in our words.
"""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

import copy

import pytest

import mulligan
from mulligan import Exponential, Failure, Kind, Policy, Rule, SettingError, Timeouts, preset
from mulligan.core.duration import seconds


def test_nobody_can_change_a_preset_for_everybody():
    """`copy.copy()` shared the table of rules with the preset."""
    with pytest.raises((TypeError, AttributeError)):
        copy.copy(preset("surface")).rules.clear()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Policy(rules={"sever": Rule()}),
        lambda: Policy(effects="reed"),
        lambda: Policy(codes={"A": "nope"}),
        lambda: Policy(rules={"server": 5}),
        lambda: Policy(statuses=["429"]),
        lambda: Rule(backoff=5),
        lambda: Exponential(factor="2"),
        lambda: Timeouts(shrink="x"),
        lambda: mulligan.LogListener("smapled"),
        lambda: seconds("1 2s"),
    ],
)
def test_what_cannot_be_meant_is_a_setting_error(make):
    """Accepted, or refused with a TypeError from deep inside."""
    with pytest.raises(SettingError):
        make()


@pytest.mark.parametrize("name", ["validator", "judge", "on_exhausted"])
def test_a_coroutine_function_that_nobody_awaits_is_refused(name):
    """The coroutine was truthy: a validator said yes every time."""

    async def helper(_):
        return False

    with pytest.raises(SettingError, match=f"^{name} needs a plain function"):
        mulligan.Guard(**{name: helper})


@pytest.mark.parametrize("name", ["verify", "fallback"])
def test_a_plain_function_refuses_helpers_that_must_be_awaited(name):
    """The call would have returned a coroutine as its answer."""

    async def helper(*_):
        return False

    with pytest.raises(SettingError, match=f"^{name} is a coroutine function, and plain"):

        @mulligan.retry(**{name: helper})
        def plain(): ...


def test_a_kind_may_be_a_word_and_a_wrong_word_is_named():
    """`Failure(kind="sever")` was made, and matched no rule."""
    assert Failure(kind="server").kind is Kind.SERVER
    with pytest.raises(SettingError, match=r"^Failure.kind needs a kind of failure; got 'sever'"):
        Failure(kind="sever")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_retries": 2}, "no option 'max_retries'; write attempts, the total"),
        ({"policy": "nightly.toml"}, r"policy takes a Policy or a preset's name; load the file"),
        ({"listeners": print}, "listeners needs callables that take an event; got <built-in"),
        ({"metadata": 5}, "metadata needs a mapping; got 5"),
        ({"clock": 5}, r"clock needs an object with now\(\); got 5"),
        ({"judge": 5}, "judge needs a function; got 5"),
    ],
)
def test_a_mistake_in_an_option_is_told_in_our_words(options, message):
    """TypeError without a hint, or no error at all."""
    with pytest.raises(SettingError, match=f"^{message}"):
        mulligan.Guard(**options)


def test_a_limit_is_not_passed_by_a_parameter_that_does_not_exist():
    """The first call raised TypeError in the user's function."""
    with pytest.raises(
        SettingError, match=r"^timeout_to names 'timeuot', which fetch\(\) does not"
    ):

        @mulligan.retry(timeout=5, timeout_to="timeuot")
        def fetch(url, timeout): ...


def test_limits_that_nobody_would_keep_are_refused():
    """A read timeout was accepted and had no effect."""
    with pytest.raises(SettingError, match=r"^timeout bounds whole attempts: .* give read to"):
        mulligan.Guard(timeout=Timeouts(read=1))
