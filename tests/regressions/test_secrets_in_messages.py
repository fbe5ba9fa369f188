"""Secrets reached logs, notes and stories by side doors.

Messages of exceptions were masked; the tracebacks of broken listeners, the words of judges, names
of targets and many spellings of keys were not.
"""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

import functools

import pytest

import mulligan
from mulligan import Failure, Kind
from mulligan.core.redaction import presentable
from mulligan.testing import Scripted, status_error, virtual_time

PLANTED = "Zq7Xw9Kv2Mj4Tb8Rn5Lc3Hd6"


def survives(text):
    return any(PLANTED[at : at + 10] in text for at in range(len(PLANTED) - 9))


def broken(event):
    raise RuntimeError("listener broke")


def test_a_broken_listener_of_a_block_does_not_bring_the_callers_words_into_the_log(caplog):
    """Its log record had the traceback, with the caller's exception as context."""

    def block():
        for attempt in mulligan.Guard("acme", listeners=[broken], attempts=2).attempts():
            with attempt:
                raise status_error(500, f"api_key={PLANTED}")

    with virtual_time(), pytest.raises(Exception, match="api_key"):
        block()
    assert not survives(caplog.text)


def test_a_broken_listener_of_a_stream_does_not_bring_the_callers_words_into_the_log(caplog):
    """The same, from a stream."""

    def stream():
        yield 1
        raise status_error(500, f"api_key={PLANTED}")

    with virtual_time(), pytest.raises(Exception, match="api_key"):
        list(mulligan.Guard("acme", listeners=[broken]).stream(stream))
    assert not survives(caplog.text)


def test_a_broken_listener_under_an_except_does_not_bring_those_words_into_the_log(caplog):
    """The same, for an exception that the caller was handling."""

    def under_an_except():
        try:
            int(f"password={PLANTED}")
        except ValueError:
            mulligan.Guard("acme", listeners=[broken], attempts=1).call(Scripted(status_error(500)))

    with virtual_time(), pytest.raises(Exception, match="status 500"):
        under_an_except()
    assert not survives(caplog.text)


def test_a_broken_listener_is_named_without_its_arguments(caplog):
    """`repr()` of a partial shows its arguments."""
    listener = functools.partial(lambda key, event: 1 / 0, f"sk-{PLANTED}")
    with virtual_time(), pytest.raises(Exception, match="status 500"):
        mulligan.Guard("acme", listeners=[listener], attempts=1).call(Scripted(status_error(500)))
    assert not survives(caplog.text)


def test_what_a_judge_says_is_cleaned_like_everybody_elses_words():
    """Only classified failures were cleaned, not those of a judge."""
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


def test_every_word_of_a_users_failure_is_cleaned(virtual_clock):
    """Only the message was cleaned, not `code`, `because` and `fields`."""
    secret = "sk-ant-api03-Zq7Xw9Kv2Mj4Tb8Rn5Lc3Hd6"
    said = Failure(kind=Kind.AUTH, code=secret, because=secret, fields=(("token", secret),))
    with pytest.raises(mulligan.FailedAnswer) as judged:
        mulligan.Guard(judge=lambda _: said).call(Scripted("answer"))
    known = mulligan.classifier.adding(predicate=lambda _: said)
    with pytest.raises(KeyError) as predicted:
        mulligan.Guard(classifier=known).call(Scripted(KeyError("x")))
    for error in (judged.value, predicted.value):
        assert secret not in repr(mulligan.story(error))
    assert secret not in repr(judged.value.failure)


def test_the_value_of_a_secret_field_is_not_told():
    """Fields of a validation error were copied with their values."""
    body = {"errors": {"password": [f"{PLANTED} is too short"]}}
    failure = mulligan.classifier.classify(status_error(422, body=body), now=0)
    assert not survives(repr(failure))


def test_a_password_in_the_name_of_a_target_is_not_told(caplog):
    """A target named after its URL was printed in every line."""
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
    """Each of these spellings was printed."""
    assert not survives(presentable(template.format(s=PLANTED)))


@pytest.mark.parametrize(
    "before", ["token=" + "x" * 1959 + " ", " " * 15_966 + " "], ids=["masked", "blank"]
)
def test_the_first_cut_never_leaves_half_a_secret(before):
    """The text was cut before it was masked, in the middle of an address."""
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
    """The first fix masked these as well."""
    assert presentable(said) == said
