"""What every driver does, whichever world it runs in."""

from __future__ import annotations

import gc
import weakref

import pytest

import mulligan
from mulligan import Exponential, Policy, Rule
from mulligan.testing import LoadedDice, Scripted, status_error


def patient(**rules):
    kinds = {mulligan.Kind(kind): rule for kind, rule in rules.items()}
    return Policy(rules=kinds, effects=mulligan.Effects.READ)


DOUBLING = Rule(attempts=4, backoff=Exponential(first=1, cap=10, jitter="none"))


def test_waits_double_until_it_works(drive):
    outcomes = [ConnectionRefusedError()] * 3 + ["ok"]
    assert drive(outcomes, patient(network=DOUBLING)) == ("ok", [1, 2, 4])


def test_the_callers_own_exception_comes_back_when_attempts_run_out(drive):
    last = ConnectionRefusedError("fourth")
    outcomes = [ConnectionRefusedError(str(n)) for n in range(3)] + [last]
    with pytest.raises(ConnectionRefusedError) as caught:
        drive(outcomes, patient(network=DOUBLING))
    assert caught.value is last
    assert caught.value.__context__ is None
    assert drive.clock.sleeps == [1, 2, 4]


def test_the_story_tells_every_attempt_and_every_reason(drive):
    with pytest.raises(ConnectionRefusedError) as caught:
        drive([ConnectionRefusedError("no")], patient(network=DOUBLING))
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.ending, story.attempts, story.waited) == ("exhausted", 4, 7)
    assert [each.because for each in story.tries] == [
        "retry in 1s, by backoff",
        "retry in 2s, by backoff",
        "retry in 4s, by backoff",
        "attempt 4 of 4 failed with network",
    ]
    assert caught.value.__notes__ == [
        "mulligan: gave up after 4 attempts, 7s of waiting: attempt 4 of 4 failed with network"
    ]


def test_unknown_errors_are_raised_at_once_and_without_remark(drive):
    error = KeyError("typo")
    with pytest.raises(KeyError) as caught:
        drive([error, "never reached"])
    assert caught.value is error
    assert drive.clock.sleeps == []
    assert not hasattr(error, "__notes__")
    story = mulligan.story(error)
    assert story is not None
    assert story.ending == "unknown"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_is_never_retried(drive, stop):  # E-D1
    script = Scripted(stop(), "never reached")
    with pytest.raises((stop, BaseExceptionGroup)) as caught:
        drive.run(script, effects="read")
    raised = caught.value
    leaves = raised.exceptions if isinstance(raised, BaseExceptionGroup) else [raised]
    assert [type(each) for each in leaves] == [stop]
    assert len(script.calls) == 1


def test_an_unsafe_call_that_may_have_been_applied_is_not_repeated(drive):  # R-I1, E-F10
    script = Scripted(ConnectionResetError("reset"), "never reached")
    with pytest.raises(ConnectionResetError) as caught:
        drive.run(script)
    assert len(script.calls) == 1
    assert caught.value.__notes__[0].endswith(
        '() may have been applied; if repeating is harmless, set effects="read" '
        'or effects="idempotent"'
    )


def test_an_unsafe_call_that_was_never_sent_is_repeated(drive):
    assert drive([ConnectionRefusedError(), "ok"]) == ("ok", [0.25])


def test_an_unsafe_call_that_the_server_refused_is_repeated(drive):
    assert drive([status_error(529), status_error(429), "ok"]) == ("ok", [0.25, 0.5])


def test_the_servers_time_is_waited_exactly(drive):  # R-L2, R-L6
    limited = status_error(429, headers={"retry-after": "7"})
    assert drive([limited, "ok"]) == ("ok", [7])


def test_every_hint_counts_not_only_the_first(drive):  # E-A13
    hints = [status_error(429, headers={"retry-after": str(n)}) for n in (1, 2, 4, 8)]
    assert drive([*hints, "ok"]) == ("ok", [1, 2, 4, 8])


def test_after_a_hint_the_backoff_starts_again(drive):  # E-A17
    policy = patient(rate_limit=DOUBLING)
    hint = status_error(429, headers={"retry-after": "5"})
    bare = status_error(429)
    assert drive([bare, bare, hint, "ok"], policy)[1] == [1, 2, 5]
    drive.clock.sleeps.clear()
    longer = Policy(rules={mulligan.Kind.RATE_LIMIT: Rule(attempts=9, backoff=DOUBLING.backoff)})
    assert drive([bare, bare, hint, bare, "ok"], longer)[1] == [1, 2, 5, 1]


def test_a_hint_of_zero_is_no_hint_and_does_not_reset_the_backoff(drive):  # E-A8
    zero = status_error(429, headers={"retry-after": "0"})
    assert drive([zero, zero, zero, "ok"], patient(rate_limit=DOUBLING))[1] == [1, 2, 4]


def test_a_wait_too_long_to_sleep_through_ends_the_call_and_says_when(drive):  # R-L10
    limited = status_error(429, headers={"retry-after": "3600"})
    with pytest.raises(Exception, match="status 429") as caught:
        drive([limited])
    assert caught.value is limited
    story = mulligan.story(limited)
    assert story is not None
    assert story.ending == "parked"
    assert story.retry_at == drive.clock.wall() + 3600
    assert drive.clock.sleeps == []


def test_a_wait_beyond_the_horizon_ends_the_call_and_still_says_when(drive):
    limited = status_error(429, headers={"retry-after": str(7 * 86400)})
    with pytest.raises(Exception, match="status 429"):
        drive([limited])
    story = mulligan.story(limited)
    assert story is not None
    assert (story.ending, story.retry_at) == ("horizon", drive.clock.wall() + 7 * 86400)


def test_in_place_is_how_to_block(drive):
    limited = status_error(429, headers={"retry-after": "18000"})
    assert drive([limited, "ok"], in_place="6h") == ("ok", [18000])


def test_limits_are_bounded_by_time_not_by_attempts(drive):  # E-C10
    with pytest.raises(Exception, match="status 429") as caught:
        drive([status_error(429)])
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.ending == "deadline"
    assert story.attempts > 10
    assert 840 < drive.clock.now() <= 900


def test_each_kind_has_its_own_counter(drive):  # E-C11
    rule = Rule(attempts=3, backoff=Exponential(first=1, cap=1, jitter="none"))
    policy = patient(server=rule, network=rule)
    refused, broken = ConnectionRefusedError(), status_error(500)
    assert drive([refused, refused, broken, broken, "ok"], policy) == ("ok", [1, 1, 1, 1])


def test_no_wait_passes_the_deadline_and_the_last_real_error_is_raised(drive):  # E-D3
    with pytest.raises(Exception, match="status 500") as caught:
        drive([status_error(500)], patient(server=DOUBLING), deadline=2.5)
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.because == "waiting 2s would pass the deadline, 1.5s away"
    assert drive.clock.sleeps == [1]


def test_no_attempt_begins_that_cannot_finish(drive):  # E-D3
    def slow():
        drive.clock.advance(4)
        raise status_error(500)

    with pytest.raises(Exception, match="status 500") as caught:
        drive.run(slow, policy=patient(server=DOUBLING), deadline=8)
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.because == "3s would be left for an attempt, and none has taken less than 4s"
    assert story.attempts == 1


def test_a_client_error_costs_one_request(drive):  # R-C9
    script = Scripted(status_error(401), "never reached")
    with pytest.raises(Exception, match="status 401"):
        drive.run(script, effects="read")
    assert len(script.calls) == 1


def test_a_fallback_value_answers_for_the_call(drive):
    assert drive([status_error(401)], fallback=None) == (None, [])


def test_a_fallback_function_gets_the_error(drive):
    error = status_error(401)
    assert drive([error], fallback=lambda seen: seen is error) == (True, [])


def test_a_fallback_does_not_hide_bugs(drive):
    with pytest.raises(KeyError):
        drive([KeyError("typo")], fallback="cached")


def test_a_fallback_that_fails_keeps_the_original_as_its_cause(drive):
    error = status_error(401)

    def cached(_):
        raise LookupError("cold")

    with pytest.raises(LookupError) as caught:
        drive([error], fallback=cached)
    assert caught.value.__cause__ is error


def test_on_exhausted_is_told_and_cannot_replace_the_error(drive, caplog):  # R-X1
    told: list[BaseException] = []

    def tell(error):
        told.append(error)
        raise RuntimeError("callback broke")

    error = status_error(500)
    with pytest.raises(Exception, match="status 500") as caught:
        drive([error], attempts=2, effects="read", on_exhausted=tell)
    assert caught.value is error
    assert told == [error]
    assert "callback broke" in caplog.text


def test_on_exhausted_hears_nothing_of_final_errors(drive):
    told: list[BaseException] = []
    with pytest.raises(Exception, match="status 401"):
        drive([status_error(401)], on_exhausted=told.append)
    assert told == []


def test_a_judged_answer_is_retried_like_an_exception(drive):
    from mulligan import Failure, Kind

    def judge(answer):
        return Failure(kind=Kind.SERVER, message="empty") if answer == "" else None

    assert drive(["", "", "text"], judge=judge) == ("text", [0.25, 0.5])


def test_a_judged_answer_that_stays_bad_comes_back_inside_the_error(drive):
    from mulligan import FailedAnswer, Failure, Kind

    with pytest.raises(FailedAnswer) as caught:
        drive(["junk"], attempts=2, judge=lambda _: Failure(kind=Kind.SERVER, message="junk"))
    assert caught.value.answer == "junk"
    assert str(caught.value) == "the answer is a failure (server: junk)"


def test_verify_answers_for_an_attempt_that_was_applied(drive):
    script = Scripted(ConnectionResetError())
    result = drive.run(script, verify=lambda: "found it")
    assert result == "found it"
    assert len(script.calls) == 1


def test_verify_allows_the_repeat_of_what_was_not_applied(drive):
    script = Scripted(ConnectionResetError(), "made now")
    assert drive.run(script, verify=lambda: mulligan.NOT_APPLIED) == "made now"
    assert len(script.calls) == 2


def test_a_verify_that_fails_leaves_the_original_error(drive):
    def verify():
        raise RuntimeError("no access")

    error = ConnectionResetError("reset")
    with pytest.raises(ConnectionResetError) as caught:
        drive([error], verify=verify)
    assert caught.value is error
    story = mulligan.story(error)
    assert story is not None
    assert story.ending == "maybe_applied"
    assert story.because.endswith("and verify= raised RuntimeError")


def test_a_validator_decides_about_conditional_failures(drive):  # R-A3
    locked = status_error(423)
    assert drive([locked, "ok"], validator=lambda _: True) == ("ok", [0.5])
    with pytest.raises(Exception, match="status 423"):
        drive([locked, "never"], validator=lambda _: False)
    with pytest.raises(Exception, match="status 423"):
        drive([locked, "never"])


def test_a_validator_that_raises_never_hides_the_failure(drive):  # E-G8
    def validator(_):
        raise RuntimeError

    with pytest.raises(Exception, match="status 423") as caught:
        drive([status_error(423)], validator=validator)
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.because == "423 (conditional): the validator raised RuntimeError"


def test_current_is_known_from_the_second_attempt_on(drive):  # R-A4
    seen = []

    def call():
        seen.append(mulligan.current())
        if len(seen) < 3:
            raise ConnectionRefusedError("no")

    drive.run(call, metadata={"run": 7})
    first, second, third = seen
    assert first is None
    assert second is not None
    assert third is not None
    assert (second.attempt, third.attempt) == (2, 3)
    assert [str(each) for each in third.failures] == ["network: no", "network: no"]
    assert second.request_id == third.request_id
    assert third.metadata == {"run": 7}
    assert mulligan.current() is None


def test_current_is_known_at_once_with_context(drive):
    def call():
        here = mulligan.current()
        assert here is not None
        return here.attempt, here.name

    assert drive.run(call, context=True) == (1, "call")


def test_the_error_is_free_as_soon_as_the_caller_lets_go_of_it(drive):
    class Flaw(Exception):
        pass

    def fail():
        raise Flaw

    async def afail():
        raise Flaw

    guard = mulligan.Guard(on=Flaw, attempts=3, clock=drive.clock)
    references: list[weakref.ref[Flaw]] = []

    def look():
        try:
            guard.call(fail)
        except Flaw as error:
            references.append(weakref.ref(error))

    async def alook():
        try:
            await guard.acall(afail)
        except Flaw as error:
            references.append(weakref.ref(error))

    gc.disable()
    try:
        look() if drive.name == "sync" else drive.arun(alook)
        assert [reference() for reference in references] == [None]
    finally:
        gc.enable()


def test_a_call_is_not_repeated_with_an_argument_that_is_used_up(drive):  # E-E1
    sent = []

    def upload(chunks):
        sent.append(list(chunks))
        raise status_error(503)

    with pytest.raises(Exception, match="status 503") as caught:
        drive.run(upload, (each for each in "abc"), effects="read")
    assert sent == [["a", "b", "c"]]
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.because == (
        "not retried: the generator among its arguments is used up; pass a list"
    )


def test_jitter_comes_from_the_dice(drive):
    outcomes = [ConnectionRefusedError()] * 2 + ["ok"]
    assert drive(outcomes, dice=LoadedDice(0.0, 0.999))[1] == [0.0, 0.999]


def test_on_adds_to_what_is_retried(drive):
    class Flaky(Exception):
        pass

    assert drive([Flaky(), "ok"], on=Flaky) == ("ok", [0.25])


def test_a_provider_that_names_no_time_is_remarked_upon(drive):  # R-C18
    events: list[mulligan.Failed] = []

    def listen(event):
        if isinstance(event, mulligan.Failed):
            events.append(event)

    drive([status_error(429)] * 3 + ["ok"], target="acme", listeners=[listen])
    assert [each.remark for each in events] == [
        "",
        "acme sent 2 limits without a time",
        "acme sent 3 limits without a time",
    ]
