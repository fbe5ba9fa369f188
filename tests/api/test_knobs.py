"""Options that users of other libraries look for, and what they are told about the rest."""

from __future__ import annotations

from typing import Any

import pytest

import mulligan
from mulligan import Exponential, Fixed, Guard, Kind, Policy, Rule
from mulligan.api.options import OPTIONS, OTHER_WORDS
from mulligan.core.presets import preset
from mulligan.errors import SettingError
from mulligan.testing import Scripted, status_error, virtual_time


def waits(script, **options: Any):
    """How long a call waited in all."""
    with virtual_time() as clock:
        began = clock.now()
        assert mulligan.retry(effects="read", **options)(Scripted(*script, "ok"))() == "ok"
        return clock.now() - began


def test_wait_is_the_same_before_each_retry():
    assert waits([status_error(503), ConnectionResetError()], wait="2s") == 4


def test_backoff_is_a_curve():
    curve = Exponential(first=1, factor=3, cap=100, jitter="none")
    assert waits([status_error(503)] * 3, backoff=curve) == 1 + 3 + 9


def test_a_limit_without_a_time_waits_as_long():
    assert waits([status_error(429)], wait=7) == 7


def test_the_servers_time_wins_over_a_wait():
    limited = status_error(429, headers={"retry-after": "30"})
    assert waits([limited], wait=1) == 30
    assert waits([limited], backoff=Fixed(wait=1)) == 30


def test_guards_and_blocks_take_them_too():
    with virtual_time() as clock:
        began = clock.now()
        guard = Guard("bank", effects="read", wait=3, gate=False)
        assert guard.call(Scripted(status_error(503), "ok")) == "ok"
        script = Scripted(status_error(503), "ok")
        for attempt in mulligan.attempts(effects="read", wait=4):
            with attempt:
                script()
        assert clock.now() - began == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wait": 1, "backoff": Fixed(wait=1)}, r"^wait and backoff both say how long to wait;"),
        ({"wait": 0}, r"^wait needs more than 0 s, or retries are a storm; got 0$"),
        ({"wait": "soon"}, r"^wait needs a duration"),
        ({"backoff": 3}, r"^backoff needs Exponential, Linear, Fixed or Schedule; got 3$"),
        ({"service": "antropic"}, r"^no service 'antropic'; did you mean 'anthropic'\?$"),
        ({"service": "redis", "timeout": 3}, r"^service 'redis' and timeout both say how long"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    with pytest.raises(SettingError, match=message):
        mulligan.retry(**options)


@pytest.mark.parametrize("word", sorted(OTHER_WORDS))
def test_a_word_of_another_library_is_answered_with_ours(word):
    given: Any = {word: 3}
    with pytest.raises(SettingError, match=rf"^no option '{word}'; ") as caught:
        mulligan.retry(**given)
    with pytest.raises(SettingError, match=rf"^no option '{word}'; "):
        Guard("bank", **given)
    said = str(caught.value)
    names = {each for each in OPTIONS if each in said}
    assert names or "leave it out" in said
    assert word not in OPTIONS


def test_the_exceptions_of_other_libraries_decorators_are_told_where_to_go():
    with pytest.raises(SettingError, match=r"^to retry after OSError write retry\(on=OSError\)$"):
        mulligan.retry(OSError)


# Policies


def test_rules_of_a_policy_can_be_changed_one_by_one():
    base = preset("default")
    changed = base.but(rules={"timeout": Rule(attempts=2), Kind.NETWORK: None})
    assert changed.rules[Kind.TIMEOUT] == Rule(attempts=2)
    assert Kind.NETWORK not in changed.rules
    others = base.rules.keys() - {Kind.TIMEOUT, Kind.NETWORK}
    assert {kind: changed.rules[kind] for kind in others} == {
        kind: base.rules[kind] for kind in others
    }
    assert base == preset("default")


def test_attempts_and_backoff_count_for_changed_rules_too():
    changed = Policy().but(rules={"server": Rule()}, attempts=3, backoff=Fixed(wait=1))
    assert changed.rules == {Kind.SERVER: Rule(attempts=3, backoff=Fixed(wait=1))}


def test_a_kind_without_a_rule_is_not_retried():
    call = Scripted(status_error(503), "ok")
    policy = preset("default").but(rules={"server": None, "overloaded": None})
    with virtual_time(), pytest.raises(Exception, match="status 503"):
        Guard(effects="read", policy=policy).call(call)
    assert len(call.calls) == 1


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"servre": Rule()},
            r"^rules needs a kind of failure; got 'servre', did you mean 'server'",
        ),
        ({"server": 3}, r"^rules\['server'\] needs a Rule; got 3$"),
    ],
)
def test_rules_that_cannot_be_meant_are_refused(rules, message):
    with pytest.raises(SettingError, match=message):
        Policy().but(rules=rules)


# Guards


def test_a_guard_decorates():
    guard = Guard("bank", effects="read")
    script = Scripted(status_error(503), "ok")

    @guard
    def fetch(account: str) -> str:
        return f"{account}: {script()}"

    with virtual_time():
        assert fetch("ada") == "ada: ok"
    assert fetch.__name__ == "fetch"


@pytest.mark.parametrize("wrong", [lambda guard: guard(print, 1), lambda guard: guard("bank")])
def test_a_guard_that_is_called_with_arguments_says_what_to_write(wrong):
    with pytest.raises(SettingError, match=r"^a guard decorates: @guard; to call a function write"):
        wrong(Guard("bank"))


def test_timeouts_of_a_service_are_asked_for_and_never_come_by_the_name():
    """R-B20."""
    asked = Guard("my-model", service="anthropic")
    timeouts = asked._engine.settings.timeouts
    assert timeouts is not None
    assert (timeouts.connect, timeouts.read, timeouts.total) == (10, 60, 120)
    for name in mulligan.SERVICE_TIMEOUTS:
        assert Guard(name, effects="read", attempts=2)._engine.settings.timeouts is None


def test_the_timeout_of_a_service_cuts_an_attempt():
    with virtual_time() as clock:

        async def slow():
            await clock.asleep(90)
            return "late"

        guard = Guard("cache", service="redis", effects="read", attempts=1)
        began = clock.now()
        with pytest.raises(TimeoutError):
            clock.run(guard.acall(slow))
        assert clock.now() - began == pytest.approx(10)
