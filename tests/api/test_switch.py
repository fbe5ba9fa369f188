"""Another provider, a cached answer, a default: what answers when retrying has failed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan import AnswerCache, Guard, Switch
from mulligan.errors import SettingError
from mulligan.testing import Scripted, status_error, virtual_time

LIMITED = {"retry-after": "600"}


@pytest.fixture
def clock():
    with virtual_time() as clock:
        yield clock


@pytest.fixture(params=["call", "acall"])
def asked(request, clock):
    """Ask a switch: as a plain call, as a coroutine."""

    def ask(switch, *args, **kwargs):
        if request.param == "call":
            return switch.answer(*args, **kwargs)
        return clock.run(switch.aanswer(*args, **kwargs))

    return ask


def guard(target: str, **options: Any) -> Guard:
    return Guard(target, **{"effects": "read", **options})


def another(error):
    """An error like `error`: one that was raised has a story."""
    status = getattr(error, "status_code", None)
    if status is None:
        return type(error)(*error.args)
    return status_error(status, headers=error.headers)


def fails(error):
    """A function that always raises an error of its own."""

    class Function:
        calls = 0

        def __call__(self, *args):
            self.calls += 1
            raise another(error)

    return Function()


def test_the_first_provider_answers_while_it_can(asked):
    second = Scripted("second")
    switch = Switch((guard("a"), Scripted("first")), (guard("b"), second))
    answer = asked(switch, "hello")
    assert (answer.value, answer.source, answer.story, answer.is_stale) == (
        "first",
        "a",
        None,
        False,
    )
    assert second.calls == []


def test_a_limit_moves_to_the_next_provider_and_back_when_it_resets(asked, clock):
    first = Scripted(status_error(429, headers=LIMITED), "first again")
    second = Scripted("second")
    switch = Switch((guard("a"), first), (guard("b"), second))
    began = clock.now()
    assert [asked(switch, n).source for n in range(3)] == ["b"] * 3
    assert clock.now() - began < 5  # nobody waited for the limit
    assert len(first.calls) == 1  # and nobody asked meanwhile
    clock.advance(700)
    assert asked(switch, "now").value == "first again"


def test_a_short_limit_is_waited_for(asked, clock):
    first = Scripted(status_error(429, headers={"retry-after": "3"}), "first")
    switch = Switch((guard("a"), first), (guard("b"), Scripted("second")))
    assert asked(switch).source == "a"


def test_an_open_circuit_is_not_asked_and_not_waited_for(asked, clock):
    """R-K8, R-A6."""
    first, second = fails(status_error(503)), Scripted("second")
    one = guard("a", breaker=mulligan.Breaker(failures=2, open_for=60), attempts=2, gate=False)
    switch = Switch((one, first), (guard("b"), second))
    for _ in range(5):
        clock.advance(1)
        assert asked(switch).source == "b"
    asked_for = first.calls
    began = clock.now()
    answer = asked(switch)
    assert (answer.source, first.calls) == ("b", asked_for)
    assert clock.now() == began
    assert answer.story is not None
    assert answer.story.ending == "refused"


@pytest.mark.parametrize("status", [401, 402, 429, 500, 503, 529])
def test_what_another_provider_can_do_better_moves(asked, status):
    switch = Switch(
        (guard("a", attempts=1), fails(status_error(status))), (guard("b"), Scripted("second"))
    )
    assert asked(switch).source == "b"


def test_a_mistake_in_the_request_does_not_move(asked):
    second = Scripted("second")
    switch = Switch((guard("a"), fails(status_error(422))), (guard("b"), second))
    with pytest.raises(Exception, match=r"^status 422"):
        asked(switch)
    assert second.calls == []


def test_a_bug_does_not_move_and_is_not_answered(asked):
    second = Scripted("second")
    switch = Switch((guard("a"), fails(KeyError("bug"))), (guard("b"), second), default="hidden")
    with pytest.raises(KeyError):
        asked(switch)
    assert second.calls == []


@pytest.mark.parametrize("effects", ["unsafe", "keyed"])
def test_what_may_have_been_applied_is_not_done_elsewhere(asked, effects):
    second = Scripted("second")
    options: Any = {"effects": effects, "attempts": 1}
    switch = Switch(
        (Guard("a", **options), fails(TimeoutError("lost"))), (Guard("b", **options), second)
    )
    with pytest.raises(TimeoutError):
        asked(switch)
    assert second.calls == []


def test_what_was_refused_can_be_done_elsewhere_whatever_it_does(asked):
    options: Any = {"effects": "unsafe", "attempts": 1}
    switch = Switch(
        (Guard("a", **options), fails(status_error(429, headers=LIMITED))),
        (Guard("b", **options), Scripted("second")),
    )
    assert asked(switch).source == "b"


kinds = st.sampled_from([TimeoutError("lost"), ConnectionResetError(), status_error(503), "ok"])


@given(st.lists(kinds, min_size=1, max_size=4), st.sampled_from(["unsafe", "keyed", "read"]))
def test_an_effect_is_never_done_by_two_providers(script, effects):
    """Whatever fails in whatever order: at most one provider may have applied it."""
    applied = []

    def does(target, outcome):
        def function():
            if not isinstance(outcome, Exception) or isinstance(outcome, OSError):
                applied.append(target)  # done, and perhaps its answer was lost
            if isinstance(outcome, Exception):
                raise another(outcome)
            return outcome

        return function

    with virtual_time():
        options: Any = {"effects": effects, "attempts": 2}
        routes = [
            (Guard(f"p{number}", **options), does(f"p{number}", outcome))
            for number, outcome in enumerate(script)
        ]
        try:
            answer = Switch(*routes).answer()
        except Exception as error:  # noqa: BLE001 -- any of them
            assert mulligan.story(error) is not None  # noqa: PT017 -- both are right
        else:
            assert answer.value == "ok"
    if effects != "read":
        assert len(set(applied)) <= 1


# One story


def test_one_story_tells_of_every_provider(asked):
    switch = Switch(
        (guard("a", attempts=2), fails(status_error(503))),
        (guard("b", attempts=1), fails(status_error(401))),
    )
    with pytest.raises(Exception, match=r"^status 401") as caught:
        asked(switch)
    tale = mulligan.story(caught.value)
    assert tale is not None
    assert (tale.target, tale.attempts, len(tale.tries)) == ("a → b", 3, 3)
    assert [each.target for each in tale.tries] == ["a", "a", "b"]
    lines = str(tale).splitlines()
    assert lines[1].startswith("  a: attempt 1: 503")
    assert lines[3].startswith("  b: attempt 1: 401 (auth)")
    assert len(caught.value.__notes__) == 1
    assert "a: " in caught.value.__notes__[0]
    assert "b: " in caught.value.__notes__[0]


def test_a_guard_around_it_does_not_begin_again(clock):
    first = fails(status_error(503))
    switch = Switch(
        (guard("a", attempts=2), first), (guard("b", attempts=1), fails(OSError(104, "")))
    )
    with pytest.raises(OSError, match="104"):
        Guard("outer", effects="read").call(switch.call)
    assert first.calls == 2


def test_who_answers_is_logged_when_it_changes(asked, clock, caplog):
    first = Scripted(status_error(429, headers=LIMITED), "first again")
    switch = Switch((guard("a"), first), (guard("b"), Scripted("second")))
    with caplog.at_level(logging.WARNING, "mulligan"):
        for _ in range(3):
            asked(switch)
        clock.advance(700)
        asked(switch)
    said = [each.message for each in caplog.records if "answers come from" in each.message]
    assert len(said) == 2
    assert said[0].startswith("answers come from b now, before from a (a: ")
    assert said[1] == "answers come from a now, before from b"


# If none of them can


def test_if_all_are_limited_the_one_that_comes_back_first_is_waited_for(asked, clock):
    first = Scripted(status_error(429, headers={"retry-after": "300"}), "first")
    second = Scripted(status_error(429, headers={"retry-after": "60"}), "second")
    switch = Switch((guard("a"), first), (guard("b"), second))
    began = clock.now()
    assert asked(switch).source == "b"
    assert 60 <= clock.now() - began < 70
    assert len(first.calls) == 1


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_provider_that_names_no_time_is_left_after_five_seconds(asked, clock, status):
    first = fails(status_error(status))
    switch = Switch((guard("a"), first), (guard("b"), Scripted("second")))
    began = clock.now()
    assert asked(switch).source == "b"
    assert clock.now() - began <= 5


def test_if_all_are_down_for_a_minute_the_call_succeeds_all_the_same(asked, clock):
    """A switch does not give up sooner than the guard alone would."""
    began = clock.now()

    def comes_back():
        if clock.now() - began < 60:
            raise status_error(503)
        return "back"

    assert asked(Switch((guard("alone"), comes_back))).value == "back"
    began = clock.now()
    switch = Switch((guard("a"), comes_back), (guard("b"), comes_back))
    assert asked(switch).value == "back"


def test_attempts_are_the_total(asked, clock):
    first = fails(status_error(429, headers={"retry-after": "60"}))
    switch = Switch((guard("a", attempts=3), first))
    with pytest.raises(Exception, match="status 429"):
        asked(switch)
    assert first.calls == 3


def test_a_deadline_is_the_guards_own(asked, clock):
    first = fails(status_error(503))
    switch = Switch(
        (guard("a", deadline=3), first), (guard("b", attempts=1), fails(OSError(104, "")))
    )
    began = clock.now()
    with pytest.raises(OSError, match="104"):
        asked(switch)
    assert clock.now() - began <= 3


def test_a_limit_that_is_too_long_for_all_is_raised_with_the_time(asked, clock):
    day = status_error(429, headers={"retry-after": "7200"})
    switch = Switch((guard("a"), fails(day)), (guard("b"), fails(day)))
    began = clock.now()
    with pytest.raises(Exception, match="status 429") as caught:
        asked(switch)
    assert clock.now() - began < 10
    tale = mulligan.story(caught.value)
    assert tale is not None
    assert tale.retry_at == pytest.approx(clock.wall() + 7200, abs=400)


def test_an_answer_of_before_takes_its_place_and_says_so(asked, clock):
    """R-A5: retry, then cache, then the error."""
    call = Scripted("fresh", status_error(503))
    switch = Switch((guard("a", attempts=2), call), cache=AnswerCache("1h"))
    assert asked(switch, "EUR").value == "fresh"
    clock.advance(60)
    answer = asked(switch, "EUR")
    assert (answer.value, answer.source, answer.is_stale) == ("fresh", "cache", True)
    assert answer.age is not None
    assert 60 <= answer.age < 120
    assert answer.story is not None
    assert answer.story.attempts == 2
    with pytest.raises(Exception, match="status 503"):
        asked(switch, "USD")
    clock.advance(3600)
    with pytest.raises(Exception, match="status 503"):
        asked(switch, "EUR")


def test_a_default_is_the_last_resort(asked):
    switch = Switch((guard("a", attempts=1), fails(status_error(503))), default=None)
    answer = asked(switch)
    assert (answer.value, answer.source) == (None, "default")
    switch = Switch((guard("c", attempts=1), fails(status_error(503))), default=str)
    assert asked(switch).value == "status 503"


def test_a_default_that_fails_says_what_came_before(asked):
    def broken(error):
        raise ValueError("no default")

    switch = Switch((guard("a", attempts=1), fails(status_error(503))), default=broken)
    with pytest.raises(ValueError, match=r"^no default$") as caught:
        asked(switch)
    assert str(caught.value.__cause__) == "status 503"


def test_a_cancelled_call_asks_nobody_else():
    async def story():
        second = Scripted("second")

        async def hangs():
            await asyncio.sleep(3600)

        switch = Switch((guard("a"), hangs), (guard("b"), second), default="hidden")
        task = asyncio.create_task(switch.acall())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return second.calls

    assert asyncio.run(story()) == []


# The cache


@given(st.lists(st.integers(0, 20)))
def test_the_cache_keeps_the_latest_of_those_used_last(puts):
    cache = AnswerCache("1h", size=5)
    with virtual_time():
        for number, key in enumerate(puts):
            cache.put(str(key), number)
        kept = list(dict.fromkeys(reversed(puts)))[:5]
        for key in range(21):
            found = cache.get(str(key))
            assert (found is not None) == (key in kept)
            if found is not None:
                assert puts[found.value] == key
                assert key not in puts[found.value + 1 :]


def test_a_machine_that_slept_has_old_answers(clock):
    cache = AnswerCache("1h")
    cache.put("k", 1)
    clock.step_wall(7200)  # the other clock stood still
    assert cache.get("k") is None


def test_switches_that_share_a_cache_do_not_share_answers(clock):
    cache = AnswerCache("1h")

    def search(_place):
        return "three hotels"

    def weather(_place):
        raise status_error(400, "no such place")

    assert Switch((guard("maps"), search), cache=cache).call("Berlin") == "three hotels"
    for switch in (
        Switch((guard("maps"), weather), cache=cache),
        Switch((guard("others"), weather), cache=cache),
    ):
        with pytest.raises(Exception, match="no such place"):
            switch.call("Berlin")


def test_arguments_that_cannot_be_compared_are_refused_before_anything_is_sent(asked):
    call = Scripted("x")
    switch = Switch((guard("a"), call), cache=AnswerCache("1h"))
    with pytest.raises(SettingError, match="argument 1"):
        asked(switch, object())
    assert call.calls == []
    switch = Switch((guard("a"), call), cache=AnswerCache("1h", key=lambda thing: "same"))
    assert asked(switch, object()).value == "x"


# Settings


def stream():
    yield 1


async def coroutine():
    return 1


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (Switch, r"^Switch needs at least one \(guard, function\)$"),
        (
            lambda: Switch(guard("a")),  # type: ignore[arg-type]
            r"^Switch needs pairs \(guard, function\); got Guard\('a'\)$",
        ),
        (lambda: Switch((Guard(), print)), r"^a guard in a Switch needs the name of its target"),
        (
            lambda: Switch((guard("a"), print), (guard("a"), print)),
            r"^two providers are called 'a'",
        ),
        (lambda: Switch((guard("a"), stream)), r"^stream\(\) is a stream; collect it"),
        (lambda: Switch((guard("a", fallback=1), print)), r"has a fallback; give it to Switch"),
        (lambda: Switch((guard("a", dead_letters=True), print)), r"must not be replayed$"),
        (lambda: Switch((Guard("w"), print), cache=AnswerCache(1)), r"^a cached answer would say"),
        (
            lambda: Switch((guard("a"), print), cache={}),  # type: ignore[arg-type]
            r"^cache needs an AnswerCache; got {}$",
        ),
        (lambda: Switch((guard("a"), print), default=coroutine), r"^default needs a value or a pl"),
        (lambda: Switch((guard("a"), print), switch_after="soon"), r"^switch_after needs a dur"),
        (
            lambda: Switch((guard("a"), coroutine)).call(),
            r"^coroutine\(\) is a coroutine; write ac",
        ),
        (lambda: AnswerCache("1h", size=0), r"^size needs a whole number >= 1; got 0$"),
        (
            lambda: AnswerCache("1h", key=3),  # type: ignore[arg-type]
            r"^key needs a plain function of the call's argum",
        ),
        (lambda: AnswerCache(-1), r"^max_age needs"),
    ],
)
def test_what_cannot_be_meant_is_refused(made, message, clock):
    with pytest.raises(SettingError, match=message):
        made()
