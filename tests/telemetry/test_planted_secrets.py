"""A secret that a server, a client library or a program lets slip is not passed on by us.

The exception is the caller's, and keeps its words. Everything that Mulligan makes of it (events,
log records and their fields, stories, notes, what is pickled) is searched for what was planted.
"""

from __future__ import annotations

import functools
import io
import json
import logging
import pickle
from dataclasses import asdict
from typing import Any

import pytest

import mulligan
from mulligan import Counters, Exponential, Kind, LogListener, Policy, Rule
from mulligan.testing import Scripted, status_error, virtual_time

PLANTED = "Zq7Xw9Kv2Mj4Tb8Rn5Lc3Hd6"

STEADY = Policy(
    rules=dict.fromkeys(
        (Kind.SERVER, Kind.NETWORK, Kind.RATE_LIMIT, Kind.TIMEOUT),
        Rule(attempts=3, backoff=Exponential(jitter="none")),
    ),
    effects=mulligan.Effects.READ,
)

# Words as servers, clients and programs write them.
WORDS = [
    f"Incorrect API key provided: sk-proj-{PLANTED}",
    f"Authorization: Bearer {PLANTED} was refused",
    f"{{'headers': {{'x-api-key': '{PLANTED}'}}}}",
    f"cannot connect to redis://:{PLANTED}@cache:6379/0",
    f"GET https://api.example.com/v1?key={PLANTED}&alt=json failed",
    f'body was {{"password": "{PLANTED}"}}',
    f"\x1b[31mCookie: sid={PLANTED}\x1b[0m",
    "x" * 480 + f" token={PLANTED}",
]


class LeakyError(Exception):
    """Carries its request along, as the errors of client libraries do."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status_code = status
        self.headers = {
            "authorization": f"Bearer {PLANTED}",
            "set-cookie": f"sid={PLANTED}",
            "x-request-id": f"token={PLANTED}",
        }
        self.body = {
            "error": {
                "type": "server_error",
                "code": f"sk-{PLANTED}",
                "message": words,
                "param": f"api_key={PLANTED}",
            },
            "api_key": PLANTED,
        }
        self.request = f"POST https://user:{PLANTED}@api.example.com/"
        self.args = (words, {"api_key": PLANTED})


def outcomes(words):
    """One exception of each sort, all of which carry `words`."""
    chained = RuntimeError("wrapped")
    chained.__cause__ = ConnectionResetError(words)
    return {
        "plain": ConnectionResetError(words),
        "errno": OSError(104, words),
        "timeout": TimeoutError(words),
        "chained": chained,
        "group": ExceptionGroup(words, [ConnectionResetError(words)]),
        "unknown": RuntimeError(words),
        "server": LeakyError(503, words),
        "limit": LeakyError(429, words),
        "client": LeakyError(400, words),
        "auth": LeakyError(401, words),
        "final": status_error(
            422, words, body={"detail": [{"loc": ["body", "x"], "msg": words, "type": "v"}]}
        ),
        "header": status_error(429, words, headers={"retry-after": f"token={PLANTED}"}),
        "parked": status_error(429, words, headers={"retry-after": "3600"}),
        "problem": status_error(
            409, body={"title": words, "detail": words, "type": f"https://e.x/?key={PLANTED}"}
        ),
    }


SORTS = tuple(outcomes(""))


class Ears:
    """Everything that can be heard of a call."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.counters = Counters()
        self.text = io.StringIO()
        self.records: list[Any] = []
        self.handler = logging.StreamHandler(self.text)
        self.handler.setFormatter(logging.Formatter("%(levelname)s %(message)s %(mulligan)r"))
        self.handler.addFilter(self._keep)
        self.logger = logging.Logger("ears", logging.DEBUG)  # noqa: LOG001 -- a logger without parents
        self.logger.addHandler(self.handler)

    def _keep(self, record):
        self.records.append(record)
        return True

    @property
    def listeners(self):
        full = LogListener(logger=self.logger, successes=True)
        sampled = LogListener("sampled", logger=self.logger)
        return [self.events.append, self.counters, full, sampled]

    def everything(self, error: BaseException | None) -> dict[str, str]:
        heard = {
            "events": repr(self.events),
            "events as data": repr([asdict(each) for each in self.events]),
            "pickled events": repr(pickle.dumps(self.events)),
            "log": self.text.getvalue(),
            "fields": json.dumps([record.mulligan for record in self.records]),
            "arguments of records": repr([record.args for record in self.records]),
            "counters": repr(self.counters.totals),
            "failures": repr(
                [str(each.failure) for each in self.events if hasattr(each, "failure")]
            ),
            "reasons": repr(
                [each.decision.because for each in self.events if hasattr(each, "decision")]
            ),
        }
        if error is not None:
            story = mulligan.story(error)
            assert story is not None
            heard |= {
                "story": f"{story!r}\n{story}\n{story.note}",
                "pickled story": repr(pickle.dumps(story)),
                "notes": repr(getattr(error, "__notes__", None)),
                "pickled with the error": repr(pickle.dumps(error.__dict__.get("__mulligan__"))),
            }
        return heard


def leaks(heard):
    fragments = {PLANTED[at : at + 10] for at in range(len(PLANTED) - 9)}
    return [name for name, text in heard.items() if any(part in text for part in fragments)]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("sort", SORTS)
def test_no_planted_secret_is_passed_on(words, sort):
    ears, error = Ears(), outcomes(words)[sort]
    with virtual_time():
        guard = mulligan.Guard("acme", policy=STEADY, effects="read", listeners=ears.listeners)
        with pytest.raises(Exception) as caught:  # noqa: PT011 -- whichever it is
            guard.call(Scripted(error))
    assert caught.value is error
    heard = ears.everything(error)
    assert ears.events
    assert leaks(heard) == []


@pytest.mark.parametrize("words", WORDS)
def test_no_planted_secret_is_passed_on_by_a_call_that_recovers(drive, words):
    ears, seen = Ears(), []

    def call():
        here = mulligan.current()
        seen.append("" if here is None else f"{here!r} {here.failures!r}")
        if len(seen) < 3:
            raise LeakyError(503, words)
        return "ok"

    assert drive.run(call, policy=STEADY, listeners=ears.listeners) == "ok"
    assert leaks(ears.everything(None) | {"current": repr(seen)}) == []


@pytest.mark.parametrize("words", WORDS)
def test_no_planted_secret_is_passed_on_by_a_stream_that_breaks(words):
    ears = Ears()

    def stream():
        yield "first"
        raise LeakyError(503, words)

    with virtual_time():
        guard = mulligan.Guard("acme", policy=STEADY, listeners=ears.listeners)
        with pytest.raises(LeakyError) as caught:
            list(guard.stream(stream))
    assert leaks(ears.everything(caught.value)) == []


@pytest.mark.parametrize("words", WORDS)
def test_no_planted_secret_is_passed_on_by_a_block(words):
    ears = Ears()
    with virtual_time():
        guard = mulligan.Guard("acme", policy=STEADY, listeners=ears.listeners)

        def block():
            for attempt in guard.attempts():
                with attempt:
                    raise LeakyError(503, words)

        with pytest.raises(LeakyError) as caught:
            block()
    assert leaks(ears.everything(caught.value)) == []


@pytest.mark.parametrize("words", WORDS)
def test_the_warning_that_nobody_asked_for_leaks_nothing_either(words, caplog):
    with virtual_time(), pytest.raises(LeakyError):
        mulligan.Guard("acme", policy=STEADY).call(Scripted(LeakyError(503, words)))
    assert "gave up" in caplog.text
    assert leaks({"log": caplog.text, "fields": repr([r.__dict__ for r in caplog.records])}) == []


def broken(event):
    raise RuntimeError("listener broke")


@pytest.mark.parametrize("words", WORDS)
def test_what_is_said_about_a_broken_listener_leaks_nothing(words, caplog):
    with virtual_time(), pytest.raises(LeakyError):
        mulligan.Guard("acme", policy=STEADY, listeners=[broken]).call(
            Scripted(LeakyError(503, words))
        )
    assert "listener broke" in caplog.text
    assert leaks({"log": caplog.text}) == []


def test_a_broken_listener_of_a_block_does_not_bring_the_callers_words_into_the_log(caplog):
    guard = mulligan.Guard("acme", policy=STEADY, listeners=[broken])

    def block():
        for attempt in guard.attempts():
            with attempt:
                raise LeakyError(503, WORDS[0])

    with virtual_time(), pytest.raises(LeakyError):
        block()
    assert "listener broke" in caplog.text
    assert leaks({"log": caplog.text}) == []


def test_a_broken_listener_of_a_stream_does_not_bring_the_callers_words_into_the_log(caplog):
    def stream():
        yield "first"
        raise LeakyError(503, WORDS[0])

    with virtual_time(), pytest.raises(LeakyError):
        list(mulligan.Guard("acme", policy=STEADY, listeners=[broken]).stream(stream))
    assert "listener broke" in caplog.text
    assert leaks({"log": caplog.text}) == []


def test_a_broken_listener_does_not_bring_an_error_that_is_being_handled_into_the_log(caplog):
    def handle():
        try:
            int(f"sk-{PLANTED}")
        except ValueError:
            mulligan.Guard("acme", policy=STEADY, listeners=[broken]).call(
                Scripted(status_error(500))
            )

    with virtual_time(), pytest.raises(Exception, match="status 500"):
        handle()
    assert "listener broke" in caplog.text
    assert leaks({"log": caplog.text}) == []


def test_a_broken_listener_is_named_without_its_arguments(caplog):
    def keyed(key, event):
        raise RuntimeError("listener broke")

    listener = functools.partial(keyed, f"sk-{PLANTED}")
    with virtual_time(), pytest.raises(Exception, match="status 500"):
        mulligan.Guard("acme", policy=STEADY, listeners=[listener]).call(
            Scripted(status_error(500))
        )
    assert "listener broke" in caplog.text
    assert leaks({"log": caplog.text}) == []


@pytest.mark.parametrize("words", WORDS)
def test_a_predicate_that_breaks_leaks_nothing(words):
    ears = Ears()

    def broken(error):
        raise ValueError(f"api_key={PLANTED}")

    known = mulligan.classifier.adding(predicate=broken)
    with virtual_time(), pytest.raises(LeakyError) as caught:
        mulligan.Guard("acme", policy=STEADY, classifier=known, listeners=ears.listeners).call(
            Scripted(LeakyError(503, words))
        )
    assert leaks(ears.everything(caught.value)) == []


def test_the_arguments_of_a_call_are_nowhere():
    ears = Ears()
    with virtual_time(), pytest.raises(ConnectionRefusedError) as caught:
        mulligan.Guard("acme", policy=STEADY, listeners=ears.listeners).call(
            Scripted(ConnectionRefusedError("no")), PLANTED, password=PLANTED
        )
    assert leaks(ears.everything(caught.value)) == []
