"""Mistakes that were made once, each with the test that would have seen it."""

# Wrong types are the point of many of these.
# mypy: ignore-errors

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import pytest

import mulligan
from mulligan import (
    Effects,
    Exponential,
    Failure,
    Hint,
    Kind,
    Policy,
    RetryAfter,
    Rule,
    SettingError,
    Timeouts,
    preset,
)
from mulligan.core.admission import Admitted, Hold
from mulligan.core.call import Call
from mulligan.core.duration import duration_text, seconds
from mulligan.core.text import presentable
from mulligan.testing import Scripted, status_error, virtual_time


def pickled(error):
    return pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own


PLANTED = "Zq7Xw9Kv2Mj4Tb8Rn5Lc3Hd6"


def survives(text):
    return any(PLANTED[at : at + 10] in text for at in range(len(PLANTED) - 9))


@pytest.mark.parametrize(
    "error",
    [
        mulligan.CircuitOpen("acme", 3.0, "five failures in a row"),
        mulligan.DeadlinePassed("acme", "too late"),
        mulligan.FailedAnswer(Failure(kind=Kind.SERVER, message="empty"), ""),
        mulligan.FileError("bad", file="p.toml", key="a.b", line=3, hint="fix it"),
        mulligan.LimitReached("acme", 99.0, "50 requests a minute"),
        mulligan.MissingExtra("mulligan.stores.redis", "redis"),
        mulligan.NotAdmitted("acme", "no"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("move", [pickled, copy.copy, copy.deepcopy])
def test_our_errors_travel_between_processes(error, move):
    again = move(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_an_admission_that_holds_for_no_time_has_not_admitted():
    class Gate:
        asked = 0

        def enter(self, attempt, *, now, wall):
            self.asked += 1
            return Hold(0.0, "not yet") if self.asked == 1 else Admitted("ticket")

        def leave(self, ticket, outcome, failure, *, now, wall):
            assert ticket == "ticket"

    gate = Gate()
    with virtual_time():
        mulligan.Guard("acme", admissions=[gate]).call(Scripted("ok"))
    assert gate.asked == 2


def test_an_admission_that_always_holds_is_bounded():
    class Gate:
        asked = 0

        def enter(self, attempt, *, now, wall):
            self.asked += 1
            if self.asked > 10_000:
                raise AssertionError("endless")
            return Hold(1.0, "closed")

        def leave(self, ticket, outcome, failure, *, now, wall):
            pass

    with virtual_time(), pytest.raises(mulligan.LimitReached):
        mulligan.Guard("acme", admissions=[Gate()]).call(Scripted("ok"))


def test_a_story_from_another_version_never_replaces_the_error():
    error = ConnectionRefusedError("the caller's own")
    error.__dict__["__mulligan__"] = {
        "target": "",
        "name": "",
        "ending": "tokens",
        "because": "b",
        "attempts": 1,
        "waited": 0.0,
        "tries": [],
    }
    with virtual_time(), pytest.raises(ConnectionRefusedError):
        mulligan.Guard("acme", attempts=2).call(Scripted(error))


def test_an_exception_with_a_will_of_its_own_is_never_replaced():
    class Strange(ConnectionRefusedError):
        @property
        def __cause__(self):
            raise RuntimeError("do not look")

    with virtual_time(), pytest.raises(Strange):
        mulligan.Guard("acme", attempts=2).call(Scripted(Strange()))


def test_an_admission_that_breaks_at_the_end_spoils_neither_answer_nor_error():
    class Gate:
        def enter(self, attempt, *, now, wall):
            return Admitted()

        def leave(self, ticket, outcome, failure, *, now, wall):
            raise RuntimeError("leave broke")

    with virtual_time():
        guard = mulligan.Guard("acme", admissions=[Gate()], attempts=1)
        assert guard.call(Scripted("ok")) == "ok"


def test_nobody_can_change_a_preset_for_everybody():
    with pytest.raises((TypeError, AttributeError)):
        copy.copy(preset("surface")).rules.clear()


def broken(event):
    raise RuntimeError("listener broke")


def test_a_broken_listener_of_a_block_does_not_bring_the_callers_words_into_the_log(caplog):
    def block():
        for attempt in mulligan.Guard("acme", listeners=[broken], attempts=2).attempts():
            with attempt:
                raise status_error(500, f"api_key={PLANTED}")

    with virtual_time(), pytest.raises(Exception, match="api_key"):
        block()
    assert not survives(caplog.text)


def test_a_broken_listener_of_a_stream_does_not_bring_the_callers_words_into_the_log(caplog):
    def stream():
        yield 1
        raise status_error(500, f"api_key={PLANTED}")

    with virtual_time(), pytest.raises(Exception, match="api_key"):
        list(mulligan.Guard("acme", listeners=[broken]).stream(stream))
    assert not survives(caplog.text)


def test_a_broken_listener_under_an_except_does_not_bring_those_words_into_the_log(caplog):
    def under_an_except():
        try:
            int(f"password={PLANTED}")
        except ValueError:
            mulligan.Guard("acme", listeners=[broken], attempts=1).call(Scripted(status_error(500)))

    with virtual_time(), pytest.raises(Exception, match="status 500"):
        under_an_except()
    assert not survives(caplog.text)


def test_a_broken_listener_is_named_without_its_arguments(caplog):
    listener = functools.partial(lambda key, event: 1 / 0, f"sk-{PLANTED}")
    with virtual_time(), pytest.raises(Exception, match="status 500"):
        mulligan.Guard("acme", listeners=[listener], attempts=1).call(Scripted(status_error(500)))
    assert not survives(caplog.text)


def test_what_a_judge_says_is_cleaned_like_everybody_elses_words():
    events: list[object] = []

    def judge(answer):
        return Failure(kind=Kind.SERVER, message=f"api_key={PLANTED}\x1b[31m\nsecond line")

    with virtual_time(), pytest.raises(mulligan.FailedAnswer) as caught:
        mulligan.Guard("acme", judge=judge, attempts=2, listeners=[events.append]).call(
            Scripted("x")
        )
    assert not survives(repr(events))
    assert not survives(str(caught.value))
    assert not survives(str(mulligan.story(caught.value)))


def test_the_value_of_a_secret_field_is_not_told():
    body = {"errors": {"password": [f"{PLANTED} is too short"]}}
    failure = mulligan.classifier.classify(status_error(422, body=body), now=0)
    assert not survives(repr(failure))


def test_a_password_in_the_name_of_a_target_is_not_told(caplog):
    with virtual_time(), pytest.raises(Exception, match="status 500") as caught:
        mulligan.Guard(f"redis://:{PLANTED}@cache", attempts=1).call(Scripted(status_error(500)))
    assert not survives(caplog.text)
    assert not survives(repr(mulligan.story(caught.value)))


LEAKS = [
    "密钥sk-proj-{s}无效",  # \b sees no boundary after a CJK letter
    "令牌Bearer {s}",
    "ключsk-ant-{s}",
    r"upstream said {{\"api_key\": \"{s}\"}}",  # JSON in JSON
    "[('x-api-key', '{s}'), ('accept', '*/*')]",  # headers as a list of pairs
    "[(b'authorization', b'{s}')]",
    "{{b'cookie': b'a=1; sid={s}'}}",
    "password='correct horse {s}'",  # a quoted value with a blank
    'password: "correct horse {s}"',
    "redis://:p@{s}@cache/0",  # an @ in the password
    "db_pass={s}",
    "DefaultEndpointsProtocol=https;AccountKey={s};",
    "subscriptionKey={s}",
    "--api-key {s}",
    "Bearer 12|{s}",
    "xai-{s}",
    "pplx-{s}",
    "nvapi-{s}",
    "r8_{s}",
    "tvly-{s}",
    "whsec_{s}",
    "SG.{s}.{s}",
    "-----BEGIN PRIVATE KEY----- {s} -----END PRIVATE KEY-----",
    "<password>{s}</password>",
    "api_key%3D{s}",
    "api_key：{s}",  # noqa: RUF001 -- a colon of another keyboard
    'Authorization: Digest username="u", response="{s}"',
    "password is {s}",
    "Incorrect API key provided: {s}",
    "https://hooks.slack.com/services/T000/B000/{s}",
    "https://api.telegram.org/bot123456:{s}/send",
    "Invalid API key: {s}",
    "api key: {s}",
    "API Key {s} is not valid",
    'API key "{s}" is disabled',
    "token '{s}' expired",
    '"password": ["{s}"]',
    '{{"api_keys": ["{s}", "{s}"]}}',
    '{{"cookies": {{"session": "{s}"}}}}',
    "refreshToken => {s}",
    "PHPSESSID={s}",
    "https://x/cb?code={s}",
    "hvs.{s}",
    "https://discord.com/api/webhooks/123/{s}",
]


@pytest.mark.parametrize("template", LEAKS)
def test_a_planted_secret_does_not_survive(template):
    assert not survives(presentable(template.format(s=PLANTED)))


@pytest.mark.parametrize(
    "before", ["token=" + "x" * 1959 + " ", " " * 15_966 + " "], ids=["masked", "blank"]
)
def test_the_first_cut_never_leaves_half_a_secret(before):
    assert not survives(presentable(before + f"redis://:{PLANTED}@cache/0"))


@pytest.mark.parametrize(
    "said",
    [
        "unknown key: model",
        "missing key: temperature",
        "Invalid token provided",
        "Basic authentication failed",
    ],
)
def test_innocent_words_are_left_alone(said):
    assert presentable(said) == said


def test_a_whole_factor_is_as_safe_as_a_fraction():  # E-A1
    # In whole numbers 2 ** 10**9 takes seconds and 125 MB.
    assert isinstance(Exponential(factor=2).factor, float)
    assert Exponential(factor=2).delay(10**9, 0.5) == 15


def test_the_longer_wait_is_told_with_its_own_reason():  # at_least
    call = Call(preset("pipeline"), Effects.READ)
    failure = Failure(kind=Kind.RATE_LIMIT, hint=Hint(delay=5, source="retry-after"))
    decision = call.failed(failure, now=0, wall=0, roll=0.5)
    assert decision.because == "again in 2m15s, by backoff"


def test_the_time_since_the_first_failure_is_told_from_the_first_second_of_a_clock():
    events: list[mulligan.Failed] = []
    with virtual_time():
        mulligan.Guard("acme", listeners=[events.append]).call(
            Scripted(status_error(500), status_error(500), status_error(500), "ok")
        )
    assert [each.elapsed for each in events] == [0.0, 0.25, 0.75, 1.75]


def test_limits_that_shrink_to_nothing_do_not_replace_the_error():
    assert Timeouts(total=1, shrink=1e-200).after(2).total is not None


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
    with pytest.raises(SettingError):
        make()


def test_a_time_of_a_thousand_digits_is_no_hint():
    assert Hint.after(10**400, source="retry-after") is None


def test_a_no_without_a_reason_is_still_a_sentence():
    decision = Call(preset("default"), Effects.READ).failed(
        Failure(kind=Kind.SERVER, is_retriable=False), now=0, wall=0, roll=0.5
    )
    assert not decision.because.rstrip().endswith(":")


@pytest.mark.parametrize(("value", "text"), [(59.96, "1m"), (0.9996, "1s"), (-0.0, "0s")])
def test_durations_round_into_the_next_unit(value, text):
    assert duration_text(value) == text


def test_skill_retries_four_statuses_and_no_fifth():  # R-C7
    failure = mulligan.classifier.classify(status_error(425), now=0)
    decision = Call(preset("skill"), Effects.READ).failed(failure, now=0, wall=0, roll=0.5)
    assert not isinstance(decision, RetryAfter)


def test_a_listener_whose_error_cannot_be_told_never_replaces_the_callers():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("mute")

    def listener(event):
        raise Mute

    with virtual_time(), pytest.raises(ConnectionRefusedError):
        mulligan.Guard("acme", attempts=2, listeners=[listener]).call(
            Scripted(ConnectionRefusedError())
        )


def test_layers_do_not_multiply_through_a_wrapper_that_forgot_its_from(virtual_clock):
    script = Scripted(status_error(503))
    inner = mulligan.retry(effects="read")(script)

    @mulligan.retry(effects="read")
    def outer():
        try:
            inner()
        except Exception:  # noqa: BLE001 -- as wrappers do
            raise RuntimeError("tool failed")  # noqa: B904 -- the point

    with pytest.raises(RuntimeError):
        outer()
    assert len(script.calls) == 5


@pytest.mark.parametrize("name", ["validator", "judge", "on_exhausted"])
def test_a_coroutine_function_that_nobody_awaits_is_refused(name):
    async def helper(_):
        return False

    with pytest.raises(SettingError, match=f"^{name} needs a plain function"):
        mulligan.Guard(**{name: helper})


@pytest.mark.parametrize("name", ["verify", "fallback"])
def test_a_plain_function_refuses_helpers_that_must_be_awaited(name):
    async def helper(*_):
        return False

    with pytest.raises(SettingError, match=f"^{name} is a coroutine function, and plain"):

        @mulligan.retry(**{name: helper})
        def plain(): ...


def test_a_coroutine_from_verify_is_never_taken_for_the_answer(virtual_clock):
    async def verify():
        return "found"

    error = ConnectionResetError("lost")
    with pytest.raises(ConnectionResetError):
        mulligan.Guard(verify=verify).call(Scripted(error))
    story = mulligan.story(error)
    assert story is not None
    assert story.because.endswith("a plain call cannot await verify=")


def test_a_coroutine_from_a_fallback_is_never_taken_for_the_answer(virtual_clock):
    async def cached(_):
        return "cached"

    with pytest.raises(Exception, match="status 401"):
        mulligan.Guard(fallback=cached).call(Scripted(status_error(401)))


def test_a_kind_may_be_a_word_and_a_wrong_word_is_named():
    assert Failure(kind="server").kind is Kind.SERVER
    with pytest.raises(SettingError, match=r"^Failure.kind needs a kind of failure; got 'sever'"):
        Failure(kind="sever")


@pytest.mark.parametrize("found", [True, "server", 5])
def test_an_answer_is_not_lost_to_a_judge_that_talks_nonsense(virtual_clock, caplog, found):
    guard = mulligan.Guard(judge=lambda _: found)
    assert guard.call(Scripted("answer")) == "answer"
    assert "a judge says a Failure or None" in caplog.text


def test_an_answer_is_not_lost_to_a_judge_that_raises(virtual_clock, caplog):
    guard = mulligan.Guard(judge=lambda answer: answer["missing"])
    assert guard.call(Scripted({"id": 7})) == {"id": 7}
    assert "the judge <lambda> raised KeyError" in caplog.text


def test_none_from_verify_means_that_nobody_knows(virtual_clock):
    error = ConnectionResetError("lost")
    with pytest.raises(ConnectionResetError):
        mulligan.Guard(verify=lambda: None).call(Scripted(error, "repeated"))
    assert mulligan.Guard(verify=lambda: mulligan.APPLIED).call(Scripted(error)) is None


def test_a_file_that_was_read_is_not_sent_again_empty(virtual_clock, tmp_path):
    path = tmp_path / "body"
    path.write_text("abc")
    sent = []

    def upload(file):
        sent.append(file.read())
        raise status_error(503)

    with path.open() as file, pytest.raises(Exception, match="status 503"):
        mulligan.call(upload, file)
    assert sent == ["abc"]


def test_an_argument_that_was_never_touched_is_no_reason_to_stop(virtual_clock):
    chunks = (each for each in "abc")
    tries = []

    def upload(chunks):
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionRefusedError
        return list(chunks)

    assert mulligan.call(upload, chunks) == ["a", "b", "c"]


def test_an_outer_guard_may_wait_for_what_an_inner_one_parked(virtual_clock):
    script = Scripted(status_error(429, headers={"retry-after": "3600"}), "ok")
    assert mulligan.Guard(in_place="6h").call(mulligan.Guard().call, script) == "ok"
    assert virtual_clock.sleeps == [3600]


def test_an_explicit_deadline_is_not_cut_short_by_patience(virtual_clock):
    with pytest.raises(Exception, match="status 429"):
        mulligan.Guard(deadline="1h").call(Scripted(status_error(429)))
    assert 3000 < virtual_clock.now() <= 3600


def test_one_exhaustion_is_counted_once_however_many_guards_it_passes(virtual_clock, caplog):
    counters = mulligan.Counters()
    log = mulligan.LogListener()
    options: dict[str, Any] = {"attempts": 2, "listeners": [counters, log]}
    inner, outer = mulligan.Guard("inner", **options), mulligan.Guard("outer", **options)
    with pytest.raises(Exception, match="status 503"):
        outer.call(inner.call, Scripted(status_error(503)))
    assert counters.total("retry_exhausted_total") == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_wait_to_be_admitted_is_announced(virtual_clock):
    answers: list[Hold | Admitted] = [Hold(7, "window closed"), Admitted()]

    class Gate:
        def enter(self, attempt, *, now, wall):
            return answers.pop(0)

        def leave(self, ticket, outcome, failure, *, now, wall): ...

    events: list[mulligan.Event] = []
    mulligan.Guard("acme", admissions=[Gate()], listeners=[events.append]).call(Scripted("ok"))
    assert [(type(each).__name__, each.attempt) for each in events] == [("Held", 1)]


def test_a_verified_attempt_fails_once_and_is_verified_once(virtual_clock):
    events: list[mulligan.Event] = []
    guard = mulligan.Guard(verify=lambda: mulligan.NOT_APPLIED, listeners=[events.append])
    guard.call(Scripted(ConnectionResetError(), "ok"))
    assert [type(each).__name__ for each in events] == ["Failed", "Verified", "Recovered"]


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
    with pytest.raises(SettingError, match=f"^{message}"):
        mulligan.Guard(**options)


def test_a_limit_is_not_passed_by_a_parameter_that_does_not_exist():
    with pytest.raises(
        SettingError, match=r"^timeout_to names 'timeuot', which fetch\(\) does not"
    ):

        @mulligan.retry(timeout=5, timeout_to="timeuot")
        def fetch(url, timeout): ...
